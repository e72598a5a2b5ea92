//! Clients of one link find each other, although their NAT does not (RFC 4380 §5.2.8).

use super::*;

#[test]
fn two_clients_of_a_link_find_each_others_local_endpoint_within_five_minutes_behind_any_nat() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Absent) {
        let options =
            Options { kind, preserves_ports: false, hairpins: false, timeout: Duration::from_secs(60) };
        let settings = Settings { local_discovery: true, ..Settings::new(vec![SERVER]) };
        let mut world =
            World::new(Case { options, delay: Duration::from_millis(20), seed: 3 }, settings.clone());
        let endpoint = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 6), 40_001);
        let local = Local { endpoint, subnets: vec!["10.0.0.0/24".parse().unwrap()] };
        let other = ClientHost::new(settings, local, 9, Answering::default(), world.network.now);
        world.network.attach(endpoint.address, Some(0), other.clone());
        world.network.run(Duration::from_secs(301));
        let (one, two) = (world.client.borrow(), other.borrow());
        let found = (two.address().unwrap().address(), two.local.endpoint);
        assert!(one.peers.neighbours.contains(&found), "{kind:?}: {:?}", one.peers.neighbours);
        let found = (one.address().unwrap().address(), one.local.endpoint);
        assert!(two.peers.neighbours.contains(&found), "{kind:?}");
        // The unicast bubble of the answer came on the link itself.
        let is_from = |endpoint, client: &ClientHost<Answering>| {
            client.peers.heard.iter().any(|(from, _)| *from == endpoint)
        };
        assert!(is_from(two.local.endpoint, &one) && is_from(one.local.endpoint, &two));
    }
}

#[test]
fn without_hairpinning_two_clients_do_not_reach_each_other_by_their_mapped_endpoints() {
    for (hairpins, reached) in [(true, true), (false, false)] {
        let options =
            Options { kind: Kind::Cone, preserves_ports: false, hairpins, timeout: Duration::from_secs(60) };
        let case = Case { options, delay: Duration::from_millis(20), seed: 3 };
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(5));
        let mapped = world.client.borrow().address().unwrap().mapped();
        let inside = Stranger::new(Endpoint4::new(Ipv4Addr::new(10, 0, 0, 8), 5_000));
        world.network.attach(Ipv4Addr::new(10, 0, 0, 8), Some(0), inside.clone());
        inside.borrow_mut().send(mapped, b"\x60hello");
        world.network.run(Duration::from_secs(1));
        let heard = world.client.borrow().peers.heard.iter().any(|(from, _)| from.address == NAT);
        assert_eq!(heard, reached);
    }
}
