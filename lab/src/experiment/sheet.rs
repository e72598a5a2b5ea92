//! The sheet on which a stage records its measurements.

use crate::device::MemoryReading;
use crate::failure::{Asking as _, Failure, Result};
use crate::load::Histogram;
use crate::measure::CpuOverTime;
use crate::results::{Name, QUANTILES, Sample, TesterCost, Unit, Value, Verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Values, files and commands of one cell.
#[derive(Clone, Debug)]
pub struct Sheet {
    folder: PathBuf,
    values: BTreeMap<Name, Value>,
    not_measurable: BTreeMap<Name, String>,
    verdict: Option<Verdict>,
    tester: TesterCost,
    commands: Vec<String>,
    raw: Vec<String>,
}

impl Sheet {
    /// An empty one; its files lie in this folder, which exists.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            values: BTreeMap::new(),
            not_measurable: BTreeMap::new(),
            verdict: None,
            tester: TesterCost::default(),
            commands: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// A value that was counted or read once.
    pub fn value(&mut self, name: &str, value: f64, unit: Unit) {
        self.values.insert(name.to_owned(), Value::one(value, unit));
    }

    /// The device's memory: what is uncertain is marked, and what cannot be measured has a reason in place of a value.
    pub fn memory(&mut self, reading: MemoryReading) {
        let kibibytes = |octets: u64| Value::one(octets as f64 / 1_024.0, Unit::Kibibytes);
        let value = match reading {
            MemoryReading::Exact(octets) => kibibytes(octets),
            MemoryReading::Uncertain(octets, what) => {
                Value { uncertain: Some(what.to_owned()), ..kibibytes(octets) }
            }
            MemoryReading::NotMeasurable(why) => {
                self.not_measurable.insert("memory".to_owned(), why.to_owned());
                return;
            }
        };
        self.values.insert("memory".to_owned(), value);
    }

    /// Times of many packets, recorded in nanoseconds and written in milliseconds; the whole histogram goes to a file `NAME.json`, as pairs
    /// of a value and how often it was seen.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn times(&mut self, name: &str, histogram: &Histogram) -> Result<()> {
        let milliseconds = |nanoseconds: f64| nanoseconds / 1e6;
        let quantiles = QUANTILES.map(|at| milliseconds(histogram.value_at_quantile(at) as f64));
        let value = Value {
            value: milliseconds(histogram.mean()),
            unit: Unit::Milliseconds,
            n: histogram.len(),
            sd: Some(milliseconds(histogram.stdev())),
            quantiles: Some(quantiles),
            uncertain: None,
        };
        self.values.insert(name.to_owned(), value);
        let pairs: Vec<[u64; 2]> =
            histogram.iter_recorded().map(|it| [it.value_iterated_to(), it.count_at_value()]).collect();
        let text = serde_json::json!({ "unit": "ns", "pairs": pairs }).to_string();
        self.keep(&format!("{name}.json"), &text)
    }

    /// A value that was read several times: its mean and its standard deviation.
    pub fn spread(&mut self, name: &str, readings: &[f64], unit: Unit) {
        let n = readings.len().max(1) as f64;
        let mean = readings.iter().sum::<f64>() / n;
        let variance = readings.iter().map(|reading| (reading - mean).powi(2)).sum::<f64>() / n;
        let (n, sd) = (readings.len() as u64, Some(variance.sqrt()));
        self.values.insert(name.to_owned(), Value { n, sd, ..Value::one(mean, unit) });
    }

    /// A CPU time in each second, of the whole measurement, and how it varied over intervals of it, if there are two or more.
    pub fn varying(&mut self, name: &str, cores: f64, over: CpuOverTime) {
        let mut value = Value::one(cores, Unit::Cores);
        if over.n > 1 {
            (value.n, value.sd) = (over.n as u64, Some(over.sd));
        }
        self.values.insert(name.to_owned(), value);
    }

    /// Keeps a file with this text.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).asking(|| format!("writing {}", path.display()))?;
        self.raw.push(name.to_owned());
        Ok(())
    }

    /// Where a program may write a file of this name, which is kept.
    pub fn path(&mut self, name: &str) -> PathBuf {
        self.raw.push(name.to_owned());
        self.folder.join(name)
    }

    /// Notes a command line.
    pub fn command(&mut self, line: impl Into<String>) {
        self.commands.push(line.into());
    }

    /// Notes what the measurement cost; the verdict follows from it.
    pub fn tester(&mut self, cost: TesterCost) {
        self.verdict = Some(Verdict::judge(&cost));
        self.tester = cost;
    }

    /// Notes that a link of limited rate was full, if nothing else was at its limit: to be called after [`Sheet::tester`].
    pub fn link_was_full(&mut self) {
        if self.verdict == Some(Verdict::NotLoaded) {
            self.verdict = Some(Verdict::LinkBound);
        }
    }

    /// Notes that a table of the device was full, whatever its cost says: to be called after [`Sheet::tester`].
    pub fn limited_by_device(&mut self) {
        self.verdict = Some(Verdict::DeviceBound);
    }

    /// Notes why the tester was the limit, whatever its cost says: to be called after [`Sheet::tester`].
    pub fn limited_by_tester(&mut self, why: String) {
        self.verdict = Some(Verdict::TesterBound { why });
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was noted so far.
    #[cfg(test)]
    pub const fn values(&self) -> &BTreeMap<Name, Value> {
        &self.values
    }

    /// Fills a sample with values, verdict, cost, commands and files.
    ///
    /// # Errors
    /// The stage has noted no value, or not what the measurement cost.
    pub fn fill(self, sample: Sample) -> Result<Sample> {
        match self.verdict {
            Some(verdict) if !self.values.is_empty() => {
                let Self { values, not_measurable, tester, commands, raw, .. } = self;
                Ok(Sample { values, not_measurable, verdict, tester, commands, raw, ..sample })
            }
            _ => Err(Failure::Unexpected(
                "the experiment has noted no value, or no cost of its own".to_owned(),
            )),
        }
    }
}
