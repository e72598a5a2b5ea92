//! The paper's statements. That response times grow along a straight line is not among them: with eight requests under way for each host, that
//! is arithmetic.

use super::published::LOSS;
use crate::analyse::{Finding, Outcome, groups, points};
use crate::results::{Results, Verdict};

/// Whether the paper's statements hold for each device.
pub fn findings(results: &Results) -> Vec<Finding> {
    // The puzzle has a question of its own.
    let of_this: Vec<_> = results
        .samples
        .iter()
        .filter(|sample| sample.cell.experiment == "relay-2013" && sample.cell.series != "puzzle")
        .cloned()
        .collect();
    let groups = groups(&of_this);
    let losses = points(&groups, "hosts", "loss");
    let mut devices: Vec<&str> = losses.iter().map(|(device, ..)| *device).collect();
    devices.dedup();
    devices.sort_unstable();
    devices.dedup();
    let finding = |device: &str| {
        let own = || losses.iter().filter(|(of, ..)| *of == device);
        let worst = own().map(|(.., loss)| loss.mean).fold(0.0, f64::max);
        let hosts = own().map(|(_, hosts, _)| *hosts).fold(0.0, f64::max);
        let loaded = groups
            .iter()
            .any(|group| group.cell.device == device && *group.verdict() == Verdict::DeviceBound);
        let outcome = match (worst <= LOSS, loaded) {
            (false, _) => Outcome::DoesNotHold,
            (true, true) => Outcome::Holds,
            (true, false) => Outcome::NotShown,
        };
        let bound = if loaded { "its core was busy" } else { "no row is device-bound" };
        Finding {
            statement: format!("{device} loses at most {:.2} % while its core is busy.", LOSS * 100.0),
            outcome,
            evidence: format!("{:.3} % at most with up to {hosts} hosts; {bound}", worst * 100.0),
        }
    };
    devices.into_iter().map(finding).collect()
}
