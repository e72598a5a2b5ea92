//! NATs that forget, move or go away.

use super::*;
use sixway_control::teredo_client::{FIRST_PAUSE, NatKind, Why};

impl World {
    /// RFC 4380 §5.2.5: the server is asked at the latest after the refresh interval. Its answer and a second one that confirms it take two round trips.
    fn bound(&self) -> Duration {
        Settings::INTERVAL + self.round_trips(2)
    }

    /// Whether the client has the address that its NAT gives it, and is reachable there through its server.
    fn is_right(&mut self) -> bool {
        let outside = self.network.nats[0].outside;
        let address = self.client.borrow().address();
        address.is_some_and(|address| address.mapped().address == outside) && self.meets().is_some()
    }
}

fn natted() -> impl Strategy<Value = Case> {
    cases().prop_filter("a NAT", |case| case.options.kind != Kind::Absent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(256)))]

    #[test]
    fn a_nat_that_reboots_or_changes_its_address_is_noticed_within_the_refresh_interval_and_two_round_trips(
        case in natted(), moves in any::<bool>(), at in 5..200_u64,
    ) {
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(at));
        prop_assert!(world.is_right());
        world.network.nats[0].reboot(moves.then_some(NAT_LATER));
        let bound = world.bound();
        world.network.run(bound);
        prop_assert!(world.is_right(), "{}", world.client.borrow().client.status(world.network.now));
        let two = world.round_trips(2);
        world.network.run(two);
        let client = world.client.borrow();
        prop_assert!(client.stopped.is_empty(), "one address is replaced by the other");
        prop_assert!(!moves || client.used.len() == 2);
    }

    #[test]
    fn with_a_doubt_a_changed_mapping_is_noticed_in_two_round_trips(case in natted(), moves in any::<bool>()) {
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(20));
        world.network.nats[0].reboot(moves.then_some(NAT_LATER));
        let now = world.network.now;
        world.client.borrow_mut().client.doubt(now);
        let two = world.round_trips(2);
        world.network.run(two);
        prop_assert!(world.is_right());
    }

    #[test]
    fn another_local_address_is_mapped_in_two_round_trips(case in natted()) {
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(20));
        let before = world.client.borrow().address();
        let (old, new) = (Ipv4Addr::new(10, 0, 0, 5), Ipv4Addr::new(10, 0, 0, 77));
        world.network.renumber(old, new);
        let now = world.network.now;
        {
            let mut client = world.client.borrow_mut();
            client.local.endpoint.address = new;
            let local = client.local.clone();
            client.client.moved(Some(local), now);
        }
        let two = world.round_trips(2);
        world.network.run(two);
        prop_assert!(world.is_right());
        let client = world.client.borrow();
        prop_assert_eq!(&client.stopped[..], &[Why::Moved]);
        prop_assert!(client.address() != before);
    }
}

#[test]
fn a_nat_that_becomes_symmetric_ends_the_service_if_support_is_off() {
    for seed in 0..20 {
        let options = Options {
            kind: Kind::PortRestricted,
            preserves_ports: false,
            hairpins: false,
            timeout: Duration::from_secs(60),
        };
        let case = Case { options, delay: Duration::from_millis(30), seed };
        let mut world = World::new(case, Settings { symmetric: false, ..Settings::new(vec![SERVER]) });
        world.network.run(Duration::from_secs(50));
        world.network.nats[0].options.kind = Kind::PortSymmetric;
        world.network.nats[0].reboot(None);
        let within = world.bound() + world.round_trips(2);
        world.network.run(within);
        let client = world.client.borrow();
        assert_eq!((client.stopped.clone(), client.in_use), (vec![Why::Symmetric], None));
        assert_eq!(client.nat(), NatKind::Symmetric);
    }
}

#[test]
fn a_nat_that_forgets_within_the_refresh_interval_is_asked_more_often_until_the_address_stays() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Absent) {
        for timeout in [7, 12, 20, 29] {
            let options = Options {
                kind,
                preserves_ports: false,
                hairpins: false,
                timeout: Duration::from_secs(timeout),
            };
            let case = Case { options, delay: Duration::from_millis(30), seed: timeout };
            let mut world = World::new(case, Settings::new(vec![SERVER]));
            world.network.run(Duration::from_secs(600));
            let used = world.client.borrow().used.len();
            assert!(used < 8, "{kind:?} {timeout} s: {used}");
            world.network.run(Duration::from_secs(3_600));
            assert_eq!(world.client.borrow().used.len(), used, "{kind:?} {timeout} s");
            let status = world.client.borrow().client.status(world.network.now);
            // One that has the same port again each time hides that it forgot: there the interval must be configured.
            let hides = kind == Kind::PortPreservingSymmetric;
            assert!(hides || world.is_right(), "{kind:?} {timeout} s: {status} {:?}", status.interval);
        }
    }
}

#[test]
fn a_silent_server_is_replaced_by_the_next_one_of_the_list() {
    let options = Options {
        kind: Kind::PortRestricted,
        preserves_ports: true,
        hairpins: false,
        timeout: Duration::from_secs(60),
    };
    let next = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 2)];
    let servers = vec![SERVER, ServerAddresses { primary: next[0], secondary: Some(next[1]) }];
    let mut world =
        World::new(Case { options, delay: Duration::from_millis(30), seed: 4 }, Settings::new(servers));
    let other = ServerHost::new(next[0], Some(next[1]));
    for address in next {
        world.network.attach(address, None, other.clone());
    }
    world.network.run(Duration::from_secs(100));
    assert!(world.is_right());
    world.server.borrow_mut().is_down = true;
    // The refresh interval, and three questions of four seconds.
    let within = world.bound() + Duration::from_secs(12);
    world.network.run(within);
    assert_eq!(world.client.borrow().address().unwrap().server, next[0]);
    assert!(world.is_right());
    assert!(world.client.borrow().stopped.is_empty());
}

#[test]
fn a_link_that_is_down_ends_the_address_and_it_comes_back_soon_after_the_link() {
    let options = Options {
        kind: Kind::Cone,
        preserves_ports: false,
        hairpins: false,
        timeout: Duration::from_secs(60),
    };
    let case = Case { options, delay: Duration::from_millis(30), seed: 8 };
    let mut world = World::new(case, Settings::new(vec![SERVER]));
    world.network.run(Duration::from_secs(40));
    world.network.loss = 255;
    world.network.run(Duration::from_secs(60));
    assert_eq!(world.client.borrow().stopped, [Why::NoAnswer(PRIMARY)]);
    world.network.loss = 0;
    let within = FIRST_PAUSE * 2 + world.round_trips(2);
    assert!(world.qualify(within).is_some());
    assert!(world.is_right());
}
