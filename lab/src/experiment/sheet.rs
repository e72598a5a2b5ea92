//! The sheet on which a stage records its measurements.

use crate::device::{CpuSource, MemoryReading};
use crate::failure::{Failure, Result};
use crate::guest::image_folder;
use crate::load::Histogram;
use crate::measure::{ClockOffset, CpuOverTime};
use crate::results::{CLOCK, Name, QUANTILES, Sample, TesterCost, Unit, Value, Verdict, write_whole};
use crate::sixway::sixway;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Values, files and commands of one cell.
#[derive(Clone, Debug)]
pub struct Sheet {
    folder: PathBuf,
    values: BTreeMap<Name, Value>,
    not_measurable: BTreeMap<Name, String>,
    verdict: Option<Verdict>,
    tester: TesterCost,
    /// What CPU times are, if they are not the device's alone.
    cpu_is: Option<&'static str>,
    commands: Vec<String>,
    raw: Vec<String>,
}

/// What the CPU time of a device is that is read by that of all CPUs.
const SHARED: &str = "of the whole machine, with the load and what answers it: without root or pinned CPUs, packets are received on the CPU that sends them";

/// What a CPU time is that was read by few ticks.
const BRIEF: &str = "counted by ticks of 10 ms, of which the load took less than ten";
const TEN_TICKS: Duration = Duration::from_millis(100);

/// Why there is no value that would be infinite or not a number.
const NOT_FINITE: &str = "the measurement gave no finite number";

/// Whether a value is a device's CPU time, or follows from it.
fn is_of_cpu(name: &str, unit: Unit) -> bool {
    unit.is_cost() || (unit == Unit::Cores && (name.starts_with("cpu") || name == "native-cpu"))
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
            cpu_is: None,
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

    /// Notes why a value cannot be measured.
    pub fn not_measurable(&mut self, name: &str, why: impl Into<String>) {
        self.not_measurable.insert(name.to_owned(), why.into());
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
            verdict: None,
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

    /// Notes how the device's CPU time is read, and over which time: if it is that of the whole machine, or a few ticks, all values that follow from it
    /// are uncertain.
    pub fn cpu_source(&mut self, source: CpuSource, over: Duration) {
        self.cpu_is = match source {
            CpuSource::Shared => Some(SHARED),
            CpuSource::Interrupts | CpuSource::ProcessAndInterrupts if over < TEN_TICKS => Some(BRIEF),
            CpuSource::Interrupts
            | CpuSource::ProcessAndInterrupts
            | CpuSource::Process
            | CpuSource::KernelThreads
            | CpuSource::Machine => None,
        };
    }

    /// A CPU time in each second, of the whole measurement, and how it varied over intervals of it, if there are two or more.
    pub fn varying(&mut self, name: &str, cores: f64, over: CpuOverTime) {
        let mut value = Value::one(cores, Unit::Cores);
        if over.n > 1 {
            (value.n, value.sd) = (over.n as u64, Some(over.sd));
        }
        self.values.insert(name.to_owned(), value);
    }

    /// How far the clock of another machine is ahead, and how much more or less it may be: two values, with the machine's name in front of them if it is
    /// not the device.
    pub fn clock(&mut self, machine: Option<&str>, offset: &ClockOffset) {
        let [ahead, within] = CLOCK.map(|name| match machine {
            Some(machine) => format!("{machine}-{name}"),
            None => name.to_owned(),
        });
        self.value(&ahead, offset.ahead as f64 / 1e6, Unit::Milliseconds);
        self.value(&within, offset.within.as_secs_f64() * 1e3, Unit::Milliseconds);
    }

    /// Whether the clock of the device was noted.
    pub fn has_clock(&self) -> bool {
        self.values.contains_key(CLOCK[0])
    }

    /// Keeps a file with this text.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, name: &str, text: &str) -> Result<()> {
        write_whole(&self.folder.join(name), text)?;
        self.raw.push(name.to_owned());
        Ok(())
    }

    /// Where a program may write a file of this name, which is kept.
    pub fn path(&mut self, name: &str) -> PathBuf {
        self.raw.push(name.to_owned());
        self.folder.join(name)
    }

    /// Notes a command line, without the folders in which this machine has Sixway and the guest's kernel: results are published.
    pub fn command(&mut self, line: impl Into<String>) {
        let own = [(sixway().ok(), "sixway"), (image_folder(), "guest")];
        let own: Vec<_> = own.iter().filter_map(|(path, name)| Some((path.as_deref()?, *name))).collect();
        self.commands.push(portable(line.into(), &own));
    }

    /// Notes what the measurement cost; the verdict follows from it.
    pub fn tester(&mut self, cost: TesterCost) {
        self.verdict = Some(Verdict::judge(&cost));
        self.tester = cost;
    }

    /// What the measurement cost, once it was noted.
    pub const fn cost(&self) -> &TesterCost {
        &self.tester
    }

    /// Notes the cost of a load that is not the row's, such as the native one: those of these values that were noted have a verdict of their own, which
    /// follows from it.
    pub fn tester_of(&mut self, names: &[&str], cost: &TesterCost) {
        for name in names {
            if let Some(value) = self.values.get_mut(*name) {
                value.verdict = Some(Verdict::judge(cost));
            }
        }
    }

    /// Notes that a link of limited rate was full, if nothing else was at its limit: to be called after [`Sheet::tester`].
    pub fn link_was_full(&mut self) {
        if self.verdict == Some(Verdict::NotLoaded) {
            self.verdict = Some(Verdict::LinkBound);
        }
    }

    /// Notes that the device lost much of what it was offered, if the tester was not at its limit: to be called after [`Sheet::tester`].
    pub fn device_has_dropped(&mut self) {
        if self.verdict == Some(Verdict::NotLoaded) {
            self.verdict = Some(Verdict::DeviceBound);
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
                let Self { values, mut not_measurable, tester, commands, raw, cpu_is, .. } = self;
                let mut values = finite(values, &mut not_measurable);
                if values.is_empty() {
                    return Err(Failure::Unexpected(NOT_FINITE.to_owned()));
                }
                for (name, value) in &mut values {
                    if let Some(what) = cpu_is.filter(|_| is_of_cpu(name, value.unit)) {
                        value.uncertain = Some(what.to_owned());
                    }
                }
                let tester = tester.finite();
                Ok(Sample { values, not_measurable, verdict, tester, commands, raw, ..sample })
            }
            _ => Err(Failure::Unexpected(
                "the experiment has noted no value, or no cost of its own".to_owned(),
            )),
        }
    }
}

/// The values that are numbers. Results cannot have another one, such as the quotient of two zeros: it gets a reason in place of a value.
fn finite(
    values: BTreeMap<Name, Value>,
    not_measurable: &mut BTreeMap<Name, String>,
) -> BTreeMap<Name, Value> {
    let mut all = BTreeMap::new();
    for (name, value) in values {
        match value.finite() {
            Some(value) => drop(all.insert(name, value)),
            None => drop(not_measurable.insert(name, NOT_FINITE.to_owned())),
        }
    }
    all
}

/// A line with names in place of these paths.
fn portable(line: String, own: &[(&Path, &str)]) -> String {
    own.iter().fold(line, |line, (path, name)| line.replace(&path.display().to_string(), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Asked, Cell, Header, SCHEMA, Store, read};

    fn cell() -> Cell {
        let [experiment, series, device] = ["e", "s", "d"].map(str::to_owned);
        Cell { experiment, series, device, point: BTreeMap::new(), repeat: 0 }
    }

    /// Values of a sheet whose CPU time is read this way over this time, by name: whether they are uncertain.
    fn uncertain(source: CpuSource, over: Duration) -> Vec<(String, bool)> {
        let mut sheet = Sheet::new(PathBuf::new());
        sheet.cpu_source(source, over);
        sheet.value("cpu", 0.5, Unit::Cores);
        sheet.value("cpu-per-packet", 900.0, Unit::NanosecondsPerPacket);
        sheet.value("host-cpu", 0.1, Unit::Cores);
        sheet.value("native-cpu", 0.1, Unit::Cores);
        sheet.value("requests", 5.0, Unit::PerSecond);
        sheet.tester(TesterCost::default());
        let filled = sheet.fill(Sample::failed(cell(), "")).unwrap();
        filled.values.into_iter().map(|(name, value)| (name, value.uncertain.is_some())).collect()
    }

    #[test]
    fn what_is_not_finite_is_not_measurable_and_the_run_can_be_read() {
        let folder = std::env::temp_dir().join(format!("sixway-lab-finite-{}", std::process::id()));
        let mut sheet = Sheet::new(folder.clone());
        sheet.value("requests", 5.0, Unit::PerSecond);
        sheet.value("loss", f64::NAN, Unit::Lost);
        sheet.spread("rate", &[1.0, f64::INFINITY], Unit::PerSecond);
        sheet.varying("cpu", 0.5, CpuOverTime { mean: 0.5, sd: f64::NAN, n: 2 });
        sheet.tester(TesterCost { steal: f64::NAN, generator_cores: 0.5, ..TesterCost::default() });
        let sample = Sample { failed: None, ..Sample::failed(cell(), "") };
        let filled = sheet.fill(sample).unwrap();
        let asked = Asked::default();
        let header = Header { schema: SCHEMA, plan: vec![cell().key()], ..Header::default() };
        Store::open(&folder, &asked, || Ok(header)).unwrap().append(&filled).unwrap();
        let results = read(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let sample = &results.unwrap().samples[0];
        assert_eq!(sample, &filled);
        let names: Vec<_> = sample.values.keys().map(String::as_str).collect();
        assert_eq!((names, sample.values["cpu"].sd), (vec!["cpu", "requests"], None));
        let reasons: Vec<_> =
            sample.not_measurable.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
        assert_eq!(reasons, [("loss", NOT_FINITE), ("rate", NOT_FINITE)]);
        assert_eq!((sample.tester.steal, sample.tester.generator_cores), (0.0, 0.5));
    }

    #[test]
    fn clocks_of_other_machines_are_values_in_milliseconds() {
        let mut sheet = Sheet::new(PathBuf::new());
        assert!(!sheet.has_clock());
        let offset = ClockOffset { ahead: -2_500_000, within: Duration::from_micros(40), at: 0 };
        sheet.clock(None, &offset);
        sheet.clock(Some("client"), &offset);
        assert!(sheet.has_clock());
        let values = ["clock-ahead", "clock-within", "client-clock-ahead", "client-clock-within"]
            .map(|name| (sheet.values()[name].value, sheet.values()[name].unit));
        let [ahead, within] = [-2.5, 0.04].map(|value| (value, Unit::Milliseconds));
        assert_eq!(values, [ahead, within, ahead, within]);
    }

    #[test]
    fn a_command_has_no_path_of_this_machine() {
        let own = [(Path::new("/x/y/sixway"), "sixway"), (Path::new("/x/guest/6.1"), "guest")];
        let line = "insmod /x/guest/6.1/a.ko\n/x/y/sixway run -c /tmp/z.toml".to_owned();
        assert_eq!(portable(line, &own), "insmod guest/a.ko\nsixway run -c /tmp/z.toml");
    }

    #[test]
    fn the_cpu_time_of_the_whole_machine_is_marked() {
        let all = |cpu: bool| {
            let values = [
                ("cpu", cpu),
                ("cpu-per-packet", cpu),
                ("host-cpu", false),
                ("native-cpu", cpu),
                ("requests", false),
            ];
            values.map(|(name, is)| (name.to_owned(), is)).to_vec()
        };
        let (long, brief) = (Duration::from_secs(1), Duration::from_millis(99));
        assert_eq!(uncertain(CpuSource::Shared, long), all(true));
        for by_ticks in [CpuSource::Interrupts, CpuSource::ProcessAndInterrupts] {
            assert_eq!(uncertain(by_ticks, long), all(false));
            assert_eq!(uncertain(by_ticks, brief), all(true), "no time for ten ticks");
            assert_eq!(uncertain(by_ticks, Duration::from_millis(100)), all(false), "ten ticks");
        }
        for exact in [CpuSource::Process, CpuSource::KernelThreads, CpuSource::Machine] {
            assert_eq!(uncertain(exact, brief), all(false), "{exact:?}");
        }
    }

    #[test]
    fn values_of_another_load_have_a_verdict_of_their_own() {
        let mut sheet = Sheet::new(PathBuf::new());
        sheet.value("throughput", 9.0, Unit::BitsPerSecond);
        sheet.value("native-throughput", 3.0, Unit::BitsPerSecond);
        sheet.tester(TesterCost { device_core_busy: 1.0, ..TesterCost::default() });
        let busy = TesterCost { generator_cores: 0.95, ..TesterCost::default() };
        sheet.tester_of(&["native-throughput", "native-response"], &busy);
        let own = |name: &str| sheet.values()[name].verdict.as_ref().map(Verdict::text);
        assert_eq!((own("throughput"), own("native-throughput")), (None, Some("tester-bound")));
        assert_eq!(sheet.verdict, Some(Verdict::DeviceBound), "that of the row is another");
        assert!(!sheet.values().contains_key("native-response"));
    }

    #[test]
    fn a_device_that_has_dropped_is_at_its_limit_unless_the_tester_was() {
        let verdict = |generator_cores| {
            let mut sheet = Sheet::new(PathBuf::new());
            sheet.tester(TesterCost { generator_cores, device_core_busy: 0.66, ..TesterCost::default() });
            sheet.device_has_dropped();
            sheet.verdict
        };
        assert_eq!(verdict(0.5), Some(Verdict::DeviceBound));
        assert!(matches!(verdict(0.95), Some(Verdict::TesterBound { .. })));
    }
}
