//! The request, machine and devices of a run: `run.json`.

use super::cell::Name;
use super::machine::Machine;
use super::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// What a run is asked to do. A run is resumed only with the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Experiments in their order.
    pub experiments: Vec<Name>,
    /// Devices under test in their order; empty: those that each experiment has by default.
    pub devices: Vec<Name>,
    /// Share of the published count or duration, above 0 to 1.
    pub scale: f64,
    /// How often each cell is measured.
    pub repeats: u32,
    /// Fewer points, to see that everything runs.
    pub quick: bool,
    /// Settings of experiments, such as `hosts` = `1,4`.
    pub set: BTreeMap<Name, String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether device and tester have a core each.
    pub pin: bool,
    /// The kind of guest, if not the usual one.
    #[serde(default)]
    pub guest: Option<String>,
    /// Devices on other machines, as they are written on the command line.
    #[serde(default)]
    pub remote: Vec<String>,
    /// Senders and receivers on other machines, as they are written on the command line.
    #[serde(default)]
    pub remote_hosts: Vec<String>,
    /// Whether it is in a user namespace.
    #[serde(default)]
    pub rootless: bool,
}

impl Asked {
    /// The numbers of a setting, or those that the experiment has without it.
    ///
    /// # Errors
    /// The word that is not a number.
    pub fn numbers(&self, setting: &str, usual: &[f64]) -> Result<Vec<f64>, String> {
        let Some(text) = self.set.get(setting) else { return Ok(usual.to_vec()) };
        let number = |word: &str| {
            word.trim().parse().map_err(|_| format!("--set {setting}: {word:?} is not a number"))
        };
        text.split(',').map(number).collect()
    }

    /// The first difference from another request, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let fields = |asked: &Self| serde_json::to_value(asked).unwrap_or_default();
        let (ours, theirs) = (fields(self), fields(other));
        let ours = ours.as_object()?;
        let different = ours.iter().find(|(name, value)| theirs.get(name.as_str()) != Some(*value));
        different.map(|(name, value)| {
            let there = theirs.get(name.as_str()).cloned().unwrap_or_default();
            format!("{name} is {value} now and {there} there")
        })
    }
}

/// A number with its decimal point this many places further to the right: without the error that a multiplication by ten adds.
pub fn shifted(number: f64, places: i32) -> f64 {
    let text = format!("{number:e}");
    let moved = text.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        format!("{digits}e{}", exponent + places).parse().ok()
    });
    moved.unwrap_or(number)
}

/// A device as it was when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEntry {
    /// Its name.
    pub name: Name,
    /// Where it runs: figures of different realms are compared as ratios only.
    pub realm: String,
    /// What it says about itself.
    pub version: String,
    /// Why it is left out.
    pub cannot_run: Option<String>,
    /// Whether it is plain forwarding, to which the devices of its realm are compared.
    #[serde(default)]
    pub is_plain: bool,
}

/// The first file of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When the run began.
    pub started: Timestamp,
    /// The lab's version.
    pub lab: String,
    /// The commit of the working tree in which the lab was started, if it was one.
    pub commit: Option<String>,
    /// The SHA-256 of the program `sixway`, if it was there; results of older labs do not have it.
    #[serde(default)]
    pub sixway: Option<String>,
    /// The request.
    pub asked: Asked,
    /// The licence of the data.
    pub licence: String,
    /// Where it ran.
    pub machine: Machine,
    /// All devices that were asked for.
    pub devices: Vec<DeviceEntry>,
    /// The time budget in minutes to which scale and repetitions were fitted.
    #[serde(default)]
    pub minutes: Option<f64>,
    /// The keys of all cells in the order in which they are measured.
    pub plan: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_point_that_is_moved_and_moved_back_leaves_the_same_number() {
        assert_eq!([shifted(0.009_6, -1), shifted(0.000_96, 1), shifted(1.0, -1)], [0.000_96, 0.009_6, 0.1]);
        assert_eq!(shifted(f64::INFINITY, 1), f64::INFINITY);
        // What people type, and what is fitted to a time.
        for number in (1..=10_000).map(|number| f64::from(number) / 1e4) {
            let tenth = shifted(number, -1);
            assert!((tenth * 10.0 - number).abs() <= number * 1e-15, "{number}");
            assert_eq!(shifted(tenth, 1).to_string(), number.to_string());
        }
    }
}
