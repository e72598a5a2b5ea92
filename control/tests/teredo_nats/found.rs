//! What qualification finds of each kind of NAT (RFC 4380 §5.2.1, RFC 5991 §3.2).

use super::*;
use sixway_control::teredo_client::{NatKind, PortChoice, Why};
use sixway_wire::teredo::TeredoInterface;

const fn expected(kind: Kind) -> NatKind {
    match kind {
        Kind::Absent => NatKind::Absent,
        Kind::Cone => NatKind::Cone,
        Kind::AddressRestricted | Kind::PortRestricted => NatKind::Restricted,
        Kind::AddressSymmetric
        | Kind::PortSymmetric
        | Kind::PortPreservingSymmetric
        | Kind::SequentialSymmetric => NatKind::Symmetric,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(512)))]

    #[test]
    fn each_kind_of_nat_is_found_and_a_client_qualifies_in_two_round_trips(case in cases(), symmetric in any::<bool>()) {
        let kind = case.options.kind;
        let mut world = World::new(case, Settings { symmetric, ..Settings::new(vec![SERVER]) });
        let two = world.round_trips(2);
        let took = world.qualify(two);
        world.network.run(Duration::from_secs(5));
        let client = world.client.borrow();
        prop_assert_eq!(client.nat(), expected(kind));
        if kind.is_symmetric() && !symmetric {
            prop_assert_eq!(&client.stopped[..], &[Why::Symmetric]);
            prop_assert!(client.used.is_empty() && took.is_none());
            return Ok(());
        }
        prop_assert!(took.is_some(), "{:?}", client.client.status(world.network.now).to_string());
        prop_assert!(client.stopped.is_empty());
        let [state] = client.used[..] else { panic!("{:?}", client.used) };
        prop_assert_eq!(state.symmetric, kind.is_symmetric());
        prop_assert_eq!(state.address.server, PRIMARY);
        prop_assert_eq!(state.address.mapped().address, NAT);
        prop_assert_eq!(state.address.interface.flags & !TeredoInterface::RANDOM, 0);
    }

    #[test]
    fn the_choice_of_ports_is_found(case in cases()) {
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(5));
        let client = world.client.borrow();
        let status = client.client.status(world.network.now);
        let kind = case.options.kind;
        let preserved = kind == Kind::Absent || kind == Kind::PortPreservingSymmetric || case.options.preserves_ports;
        let found = match (preserved, kind) {
            (true, _) => PortChoice::Preserved,
            (false, Kind::SequentialSymmetric) => PortChoice::Sequential,
            _ => PortChoice::Other,
        };
        let by_chance = status.mapped().is_some_and(|mapped| mapped.port == 40_001);
        prop_assert!(status.ports == found || by_chance, "{:?} {status}", status.ports);
    }

    #[test]
    fn lost_datagrams_delay_the_qualification_and_change_no_result(case in cases(), loss in 1..80_u8) {
        let kind = case.options.kind;
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.loss = loss;
        prop_assert!(world.qualify(Duration::from_secs(600)).is_some());
        // The probe is one datagram: a cone NAT may be called a restricted one.
        world.network.run(Duration::from_secs(5));
        let client = world.client.borrow();
        let found = client.nat();
        let unknown = client.in_use.is_none();
        let restricted = expected(kind) == NatKind::Cone && found == NatKind::Restricted;
        prop_assert!(found == expected(kind) || restricted || unknown, "{found:?} of {kind:?}");
    }
}

#[test]
fn two_clients_behind_one_nat_have_two_ports() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Absent) {
        let options =
            Options { kind, preserves_ports: true, hairpins: false, timeout: Duration::from_secs(60) };
        let mut world = World::new(
            Case { options, delay: Duration::from_millis(20), seed: 3 },
            Settings::new(vec![SERVER]),
        );
        let endpoint = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 6), 40_001);
        let local = Local { endpoint, subnets: Vec::new() };
        let other =
            ClientHost::new(Settings::new(vec![SERVER]), local, 9, Answering::default(), world.network.now);
        world.network.attach(endpoint.address, Some(0), other.clone());
        world.network.run(Duration::from_secs(5));
        let mapped = [&world.client, &other].map(|client| client.borrow().address().unwrap().mapped());
        assert_eq!(mapped.map(|mapped| mapped.address), [NAT, NAT]);
        assert_ne!(mapped[0].port, mapped[1].port, "{kind:?}");
    }
}
