//! The lab measures back what it injects: each impairment alone, against the ledger of the process that did it.

use crate::Interop;
use sixway_lab::experiment::tester::{Kind, inject, network};
use sixway_lab::failure::Result;
use sixway_lab::measure::Cores;
use std::sync::Arc;

pub const TESTS: &[Interop] = &[
    Interop::new("injected_loss_is_measured_back", &[], || measured_back(Kind::Loss)),
    Interop::new("injected_delay_is_measured_back", &[], || measured_back(Kind::Delay)),
    Interop::new("injected_jitter_is_measured_back", &[], || measured_back(Kind::Jitter)),
    Interop::new("injected_duplicates_are_measured_back", &[], || measured_back(Kind::Duplicates)),
    Interop::new("injected_reordering_is_measured_back", &[], || measured_back(Kind::Reordering)),
];

/// Packets, and how many a second: a tester that is not optimised keeps up with it.
const LOAD: (u64, f64) = (20_000, 10_000.0);

/// How often it is measured: what the machine does during the load and not before or after it is taken for the link's.
const ATTEMPTS: u64 = 3;

fn measured_back(kind: Kind) -> Result<()> {
    let cores = Cores { device: None, tester: None };
    let network = Arc::new(network(cores)?);
    let mut injection = inject(&network, cores, (kind, 7), LOAD)?;
    for attempt in 1..ATTEMPTS {
        if injection.compared.agrees_within_path() {
            break;
        }
        injection = inject(&network, cores, (kind, 7 + attempt), LOAD)?;
    }
    let (outcome, ledger) = (&injection.outcome, &injection.ledger);
    assert_eq!(
        (injection.control.lost, injection.control.duplicated, injection.control.reordered),
        (0, 0, 0)
    );
    assert_eq!((outcome.sent, outcome.answered + outcome.lost), (LOAD.0, LOAD.0));
    assert!(injection.compared.injected > 0.0, "nothing was injected: {ledger:?}");
    assert!(injection.compared.agrees_within_path(), "{:?}", injection.compared);
    // What was not injected is not found.
    match kind {
        Kind::Loss => assert_eq!((outcome.duplicated, outcome.reordered), (0, 0)),
        Kind::Delay | Kind::Duplicates => assert_eq!((outcome.lost, outcome.reordered), (0, 0)),
        Kind::Jitter | Kind::Reordering => assert_eq!((outcome.lost, outcome.duplicated), (0, 0)),
    }
    Ok(())
}
