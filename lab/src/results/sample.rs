//! One measured cell: a line of `samples.jsonl`.

use super::cell::{Cell, Name};
use super::timestamp::Timestamp;
use super::unit::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names of the values that describe the clock of another machine, in milliseconds: how far it is ahead, and how much more or less that may be. If it is
/// not the device's, the machine's name and a hyphen are in front of them. They judge nothing.
pub const CLOCK: [&str; 2] = ["clock-ahead", "clock-within"];

/// Where [`Value::quantiles`] are taken; the first is the least and the last the greatest.
pub const QUANTILES: [f64; 7] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];

/// From this share of a core on it is busy.
const BUSY: f64 = 0.9;

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was measured.
    pub cell: Cell,
    /// When it began.
    pub started: Timestamp,
    /// Seconds that it took, with everything that had to be built for it.
    pub took: f64,
    /// What came out, by name; empty if it failed.
    pub values: BTreeMap<Name, Value>,
    /// Why values of these names cannot be measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub not_measurable: BTreeMap<Name, String>,
    /// Whether it says something about the device's limits.
    pub verdict: Verdict,
    /// What the measurement itself cost.
    pub tester: TesterCost,
    /// Milliseconds that a fixed piece of work took on the device's core just before: the noise of the machine.
    pub control: Option<f64>,
    /// Command lines that were run for it.
    pub commands: Vec<String>,
    /// Names of files below `raw/KEY/`.
    pub raw: Vec<String>,
    /// Why there is no measurement.
    pub failed: Option<String>,
}

impl Sample {
    /// One without any measurement, for this reason.
    pub fn failed(cell: Cell, why: &str) -> Self {
        Self {
            cell,
            started: Timestamp::new(),
            took: 0.0,
            values: BTreeMap::new(),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::Failed,
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: Some(why.to_owned()),
        }
    }
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The value in its unit; of many observations, their mean.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Of how many observations it is made; 1 if it was counted or read once.
    pub n: u64,
    /// Standard deviation over the observations (packets, for response times).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sd: Option<f64>,
    /// The observations at [`QUANTILES`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quantiles: Option<[f64; 7]>,
    /// What it is, if it is uncertain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncertain: Option<String>,
    /// Whose limit was met, if the value is of a load of its own, such as the native one next to a tunnel's; else [`Sample::verdict`] holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<Verdict>,
}

impl Value {
    /// A value that was counted or read once.
    pub const fn one(value: f64, unit: Unit) -> Self {
        Self { value, unit, n: 1, sd: None, quantiles: None, uncertain: None, verdict: None }
    }

    /// Itself if it is a finite number, without a deviation or quantiles that are not: JSON has no others.
    pub fn finite(self) -> Option<Self> {
        let sd = self.sd.filter(|sd| sd.is_finite());
        let quantiles = self.quantiles.filter(|all| all.iter().all(|quantile| quantile.is_finite()));
        self.value.is_finite().then_some(Self { sd, quantiles, ..self })
    }
}

/// Whose limit was met. Only a row that is [`Verdict::DeviceBound`] is a statement about the device's capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The device's core was busy, or it lost more than a tenth of a load above its capacity, and the tester's were not; or a table of the
    /// device was full.
    DeviceBound,
    /// The tester was at its limit: only cost for each packet may be compared.
    TesterBound {
        /// What was at its limit.
        why: String,
    },
    /// A link of limited rate was full: rates may be compared with those over the same link.
    LinkBound,
    /// Neither was at its limit: times and cost may be compared, no throughput.
    NotLoaded,
    /// Nothing was measured.
    Failed,
}

/// What the measurement itself cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TesterCost {
    /// CPU time of the load's threads in each second: 1 is one core.
    pub generator_cores: f64,
    /// The same of whatever else ran on the tester's core: responders, switches, other programs of this machine.
    pub responder_cores: f64,
    /// Share of the time in which the device's core was busy with the device: its CPU time and its core's interrupts, 0 to 1.
    pub device_core_busy: f64,
    /// Requests that were sent later than a tenth of the median response time after they were due.
    pub late_sends: u64,
    /// Share of the time that the hypervisor took from the device's core, 0 to 1.
    pub steal: f64,
}

impl TesterCost {
    /// The same with 0 in place of what is not a finite number: JSON has no others.
    pub fn finite(self) -> Self {
        let or_zero = |share: f64| if share.is_finite() { share } else { 0.0 };
        Self {
            generator_cores: or_zero(self.generator_cores),
            responder_cores: or_zero(self.responder_cores),
            device_core_busy: or_zero(self.device_core_busy),
            late_sends: self.late_sends,
            steal: or_zero(self.steal),
        }
    }
}

impl Verdict {
    /// The verdict on a measurement whose tester had one core for the load and what answers it.
    pub fn judge(cost: &TesterCost) -> Self {
        let tester = cost.generator_cores + cost.responder_cores;
        if tester >= BUSY {
            let why = format!(
                "the tester's core was {:.0} % busy (load {:.0} %, the rest {:.0} %)",
                tester * 100.0,
                cost.generator_cores * 100.0,
                cost.responder_cores * 100.0
            );
            return Self::TesterBound { why };
        }
        if cost.device_core_busy >= BUSY { Self::DeviceBound } else { Self::NotLoaded }
    }

    /// The verdict that is written so in a table; of a tester at its limit with this reason.
    pub fn read(text: &str, why: &str) -> Option<Self> {
        match text {
            "device-bound" => Some(Self::DeviceBound),
            "tester-bound" => Some(Self::TesterBound { why: why.to_owned() }),
            "link-bound" => Some(Self::LinkBound),
            "not loaded" => Some(Self::NotLoaded),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// As it is written in a table.
    pub const fn text(&self) -> &'static str {
        match self {
            Self::DeviceBound => "device-bound",
            Self::TesterBound { .. } => "tester-bound",
            Self::LinkBound => "link-bound",
            Self::NotLoaded => "not loaded",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(generator: f64, responder: f64, device: f64) -> &'static str {
        let cost = TesterCost {
            generator_cores: generator,
            responder_cores: responder,
            device_core_busy: device,
            ..TesterCost::default()
        };
        Verdict::judge(&cost).text()
    }

    #[test]
    fn a_row_counts_only_if_the_device_is_the_bottleneck() {
        assert_eq!(verdict(0.5, 0.2, 0.95), "device-bound");
        assert_eq!(verdict(0.5, 0.2, 0.5), "not loaded");
        assert_eq!(verdict(0.6, 0.35, 0.95), "tester-bound");
        assert_eq!(verdict(0.95, 0.0, 0.5), "tester-bound");
    }
}
