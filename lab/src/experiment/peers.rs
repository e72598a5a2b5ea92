//! How much of a quick run is measured with devices that are there for comparison.

use crate::device::{Realm, find};
use crate::results::Asked;

/// A ratio takes this number of rounds.
const ROUNDS: u32 = 3;

/// Cells in guests took two to four times as long on a busy machine.
const IN_GUEST: f64 = 3.0;

/// The part of an experiment that a device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A few places, at which it is compared.
    Brief,
    /// Nothing.
    Nothing,
}

/// The part of a device that is one of `peers`, or not. Who names devices gets all of each, and so does who has the time: a quick run compares at a few
/// places, and one of fewer rounds than a ratio takes does not compare.
pub fn part(device: &str, peers: &[&str], asked: &Asked) -> Part {
    let is_chosen = !asked.devices.is_empty() || !peers.contains(&device);
    match (is_chosen || !asked.quick, asked.repeats >= ROUNDS) {
        (true, _) => Part::Whole,
        (false, true) => Part::Brief,
        (false, false) => Part::Nothing,
    }
}

/// How many times as long a cell of a device takes as one of this host's: guests boot, and are emulated.
pub fn times_as_long(device: &str) -> f64 {
    let in_guest = find(device).is_some_and(|device| matches!(device.card().realm, Realm::Guest(_)));
    if in_guest { IN_GUEST } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_brief_in_a_quick_run_that_compares() {
        let of = |device: &str, quick, repeats, named: &[&str]| {
            let devices = named.iter().map(|name| (*name).to_owned()).collect();
            part(device, &["jool"], &Asked { quick, repeats, devices, ..Asked::default() })
        };
        assert_eq!(of("jool", true, 3, &[]), Part::Brief);
        assert_eq!(of("jool", true, 1, &[]), Part::Nothing, "there is no ratio of one round");
        assert_eq!(of("jool", true, 1, &["jool"]), Part::Whole, "it was named");
        assert_eq!(of("jool", false, 1, &[]), Part::Whole);
        assert_eq!(of("sixway", true, 1, &[]), Part::Whole, "it is no peer");
    }
}
