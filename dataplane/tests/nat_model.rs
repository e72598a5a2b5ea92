//! The slow model of a NAT next to the real one (`fuzz/targets/nat_model.rs`), with random settings and steps: NAT64 and NAT44, limits, port
//! blocks, deterministic NAT, quarantine and addresses that are being drained.

#[path = "../../fuzz/targets/nat_model.rs"]
pub mod target;

use proptest::prelude::*;
use sixway_trial::budget;

/// How ports are given, in the octet that chooses settings.
const SINGLY: u8 = 0;
const IN_BLOCKS: u8 = 2;
const DETERMINISTIC: u8 = 3;
/// The bit that chooses softwires.
const SOFTWIRES: u8 = 0x40;

fn run(giving: u8, [choice, limits, rates, seed]: [u8; 4], steps: &[[u8; 8]]) {
    let choice = choice & !0x18 | giving << 3;
    target::run(&[&[choice, limits, rates, seed], steps.as_flattened()].concat());
}

fn steps() -> impl Strategy<Value = Vec<[u8; 8]>> {
    prop::collection::vec(any::<[u8; 8]>(), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(1_600)))]

    #[test]
    fn with_single_ports_the_real_nat_does_what_the_model_does(head: [u8; 4], steps in steps()) {
        run(SINGLY, head, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(200)))]

    #[test]
    fn with_port_blocks_the_real_nat_does_what_the_model_does(head: [u8; 4], steps in steps()) {
        run(IN_BLOCKS, head, &steps);
    }

    #[test]
    fn with_deterministic_ports_the_real_nat_does_what_the_model_does(head: [u8; 4], steps in steps()) {
        run(DETERMINISTIC, head, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(800)))]

    #[test]
    fn behind_softwires_with_the_same_addresses_the_real_nat_does_what_the_model_does(
        giving in SINGLY..=IN_BLOCKS,
        head: [u8; 4],
        steps in steps(),
    ) {
        let [choice, limits, rates, seed] = head;
        run(giving, [choice | SOFTWIRES, limits, rates, seed], &steps);
    }
}
