//! The interval determination procedure behind NATs (RFC 4380 §5.2.7).

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(128)))]

    #[test]
    fn the_interval_that_is_learned_is_shorter_than_what_the_nat_keeps_and_the_address_stays(
        case in cases(), timeout in 32..200_u64,
    ) {
        let mut case = case;
        case.options.timeout = Duration::from_secs(timeout);
        let mut world = World::new(case, Settings { learn_interval: true, ..Settings::new(vec![SERVER]) });
        world.network.run(Duration::from_secs(3_600));
        let interval = world.client.borrow().client.status(world.network.now).interval;
        let natted = case.options.kind != Kind::Absent;
        prop_assert!(!natted || interval < case.options.timeout);
        prop_assert!(interval >= Settings::INTERVAL && interval <= Duration::from_secs(120));
        if timeout > 125 || !natted {
            prop_assert!(interval > Duration::from_secs(100), "{interval:?}");
        } else if timeout > 65 {
            prop_assert!(interval >= Duration::from_secs(60), "{interval:?}");
        }
        prop_assert!(world.meets().is_some());
        let client = world.client.borrow();
        prop_assert_eq!((client.used.len(), client.stopped.len()), (1, 0));
    }
}
