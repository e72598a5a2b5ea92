//! A run from the plan to the report, with a fictitious experiment and devices: no root, no network.

use super::{Laboratory, chapter, execute, plan};
use crate::analyse::{About, Column, Finding, Outcome, Published, Table};
use crate::device::{Card, Device, Needs, Place, Realm, Running, Task, TaskKind};
use crate::experiment::{Entry, Experiment, Line, Sheet, Stage};
use crate::failure::{Failure, Result};
use crate::measure::Cores;
use crate::report::markdown;
use crate::results::{
    Asked, Cell, DeviceEntry, Header, Machine, Results, SCHEMA, Store, TesterCost, Unit, read, timestamp,
};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

struct FakeDevice(Card);

impl Device for FakeDevice {
    fn card(&self) -> &Card {
        &self.0
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Forward]
    }

    fn version(&self) -> Result<String> {
        Ok("1".to_owned())
    }

    fn start(&self, _: &Place, _: &Task) -> Result<Box<dyn Running>> {
        Err(Failure::Unexpected("it is not started in this test".to_owned()))
    }
}

const fn device(name: &'static str) -> FakeDevice {
    let needs = Needs { programs: &[], root: false, bpf: false, cpus: 1, memory_mb: 0 };
    FakeDevice(Card { name, what: "made up", realm: Realm::Here, needs })
}

/// Measures nothing: a device named `slow` takes twice as long. It notes what it was asked for, and may fail.
#[derive(Default)]
struct FakeExperiment {
    measured: Arc<Noted>,
    fails: Option<Fails>,
}

#[derive(Clone, Copy)]
enum Fails {
    /// As a signal does, before this many cells are measured.
    Killed { after: usize },
    /// At each cell of this device.
    Always(&'static str),
}

type Noted = Mutex<Vec<String>>;

const ABOUT: About = About {
    name: "made-up",
    question: "How long does it take?",
    source: "nobody",
    topology: "a ── b",
    notes: &["It is made up."],
    tables: &[Table {
        title: "Times",
        series: "s",
        axes: &["hosts"],
        columns: &[Column { value: "time", title: "time" }, Column { value: "absent", title: "absent" }],
    }],
    published: &[Published {
        device: "old",
        source: "table 1",
        series: "s",
        axis: "hosts",
        fixed: &[],
        values: &["time"],
        rows: &[(1.0, &[9.5])],
    }],
};

impl Experiment for FakeExperiment {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs { root: false, programs: &[], ..Needs::NAMESPACE }
    }

    fn lineup(&self) -> &[Entry] {
        &[Entry { task: TaskKind::Forward, usual: &["fast", "slow"] }]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let cell = |device: &str, hosts: f64| Cell {
            experiment: "made-up".to_owned(),
            series: "s".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::from([("hosts".to_owned(), hosts)]),
            repeat: 0,
        };
        let hosts = asked.numbers("hosts", &[1.0, 2.0])?;
        Ok(devices.iter().flat_map(|device| hosts.iter().map(move |hosts| cell(device, *hosts))).collect())
    }

    fn seconds(&self, _: &Cell, _: &Asked) -> f64 {
        1.0
    }

    fn build(&self, _: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(FakeStage {
            device: line.device.card().name,
            measured: Arc::clone(&self.measured),
            fails: self.fails,
        }))
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        let evidence = format!("{} samples", results.samples.len());
        vec![Finding { statement: "It takes time.".to_owned(), outcome: Outcome::Holds, evidence }]
    }
}

struct FakeStage {
    device: &'static str,
    measured: Arc<Noted>,
    fails: Option<Fails>,
}

impl Stage for FakeStage {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let mut measured = self.measured.lock().unwrap();
        match self.fails {
            Some(Fails::Killed { after }) if measured.len() == after => return Err(Failure::Interrupted),
            Some(Fails::Always(device)) if device == self.device => {
                measured.push(cell.key());
                return Err(Failure::Unexpected("it broke".to_owned()));
            }
            Some(_) | None => measured.push(cell.key()),
        }
        let each = if self.device == "slow" { 2.0 } else { 1.0 };
        sheet.value("time", each * cell.at("hosts") + f64::from(cell.repeat), Unit::Milliseconds);
        sheet.keep("log", "nothing happened\n")?;
        sheet.tester(TesterCost { device_core_busy: 0.95, ..TesterCost::default() });
        Ok(())
    }
}

/// A folder of its own that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sixway-lab-run-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

static FAST: FakeDevice = device("fast");
static SLOW: FakeDevice = device("slow");
const DEVICES: [&dyn Device; 2] = [&FAST, &SLOW];
const CORES: Cores = Cores { device: None, tester: None };

fn asked(repeats: u32) -> Asked {
    Asked {
        experiments: vec!["made-up".to_owned()],
        devices: Vec::new(),
        scale: 0.5,
        repeats,
        quick: false,
        set: BTreeMap::new(),
        seed: 1,
        pin: false,
        ..Asked::default()
    }
}

fn open(folder: &Folder, asked: &Asked, cells: &[Cell]) -> Result<Store> {
    let entry = |device: &&dyn Device| DeviceEntry {
        name: device.card().name.to_owned(),
        realm: device.card().realm.text().to_owned(),
        version: "1".to_owned(),
        cannot_run: None,
        is_plain: false,
    };
    let header = || {
        Ok(Header {
            schema: SCHEMA,
            started: timestamp(std::time::UNIX_EPOCH),
            lab: "0".to_owned(),
            commit: None,
            asked: asked.clone(),
            licence: "CC0-1.0".to_owned(),
            machine: Machine { cpus: 2, kernel: "6.18".to_owned(), ..Machine::default() },
            devices: DEVICES.iter().map(entry).collect(),
            minutes: None,
            plan: cells.iter().map(Cell::key).collect(),
            ..Header::default()
        })
    };
    Store::open(&folder.0, asked, header)
}

/// Runs once in this folder; what was measured, by key.
fn run(folder: &Folder, asked: &Asked, fails: Option<Fails>) -> (Result<()>, Vec<String>) {
    let experiment = FakeExperiment { fails, ..FakeExperiment::default() };
    let cells = plan(&[&experiment], &DEVICES, asked).unwrap();
    let mut store = open(folder, asked, &cells).unwrap();
    let laboratory =
        Laboratory { experiments: &[&experiment], devices: &DEVICES, cores: CORES, control: |_| Ok(1.0) };
    let done = execute(laboratory, &cells, asked, &mut store, |_| ());
    (done, experiment.measured.lock().unwrap().clone())
}

#[test]
fn a_run_killed_at_any_cell_resumes_and_measures_none_twice() {
    for after in 0..8 {
        let (folder, asked) = (Folder::new(&format!("killed-{after}")), asked(2));
        let (done, before) = run(&folder, &asked, Some(Fails::Killed { after }));
        assert!(matches!(done, Err(Failure::Interrupted)), "{done:?}");
        // The process died while it wrote the next line.
        let samples = folder.0.join("samples.jsonl");
        let mut torn = std::fs::File::options().append(true).open(&samples).unwrap();
        torn.write_all(b"{\"cell\":{\"experiment\":\"made-").unwrap();
        assert_eq!(read(&folder.0).unwrap().samples.len(), after, "a torn line is not read");

        let (done, rest) = run(&folder, &asked, None);
        done.unwrap();
        assert_eq!((before.len(), rest.len()), (after, 8 - after));
        let results = read(&folder.0).unwrap();
        let keys: Vec<_> = results.samples.iter().map(|sample| sample.cell.key()).collect();
        assert_eq!(keys, [before, rest].concat(), "in the order of the plan, each once");
        assert_eq!(keys, results.header.plan);
        let (done, again) = run(&folder, &asked, None);
        done.unwrap();
        assert!(again.is_empty(), "there is nothing left to measure");
    }
}

#[test]
fn what_was_measured_is_reported_with_what_was_published() {
    let (folder, asked) = (Folder::new("reported"), asked(2));
    run(&folder, &asked, None).0.unwrap();
    let results = read(&folder.0).unwrap();
    assert_eq!(results.samples[0].raw, ["log"]);
    assert!(folder.0.join("raw/made-up/s/fast/hosts=1#0/log").is_file());
    let experiment = FakeExperiment::default();
    let text = markdown(&results, &[chapter(&experiment, &results)]);
    // Two repetitions of 1 and 2 ms: the mean, and 12.706 × 0.707 / √2 as half the interval.
    for line in [
        "8 of 8 cells are measured.",
        "| hosts | device | time, ms | verdict |",
        "| 1 | *old* | *9.50* | *published* |",
        "| 1 | fast | 1.50 ± 6.35 | device-bound |",
        "| 2 | slow | 4.50 ± 6.35 | device-bound |",
        "| It takes time. | holds | 8 samples |",
        "To repeat it: `sudo sixway-lab run made-up --scale 0.5 --repeats 2 --no-pin`",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("absent"), "a column without values is left out");
}

#[test]
fn a_cell_that_fails_is_tried_once_more_and_kept_with_its_reason() {
    let (folder, asked) = (Folder::new("failed"), asked(1));
    let (done, measured) = run(&folder, &asked, Some(Fails::Always("slow")));
    done.unwrap();
    let of_slow = |keys: &[String]| keys.iter().filter(|key| key.contains("/slow/")).count();
    assert_eq!((of_slow(&measured), measured.len()), (4, 6), "two cells twice, the others once");
    let results = read(&folder.0).unwrap();
    assert_eq!(results.samples.len(), 4);
    let failed: Vec<_> = results.samples.iter().filter_map(|sample| sample.failed.as_deref()).collect();
    assert_eq!(failed, ["it broke", "it broke"]);
    let text = markdown(&results, &[chapter(&FakeExperiment::default(), &results)]);
    assert!(text.contains("2 of 4 cells are measured."), "{text}");
    assert!(text.contains("| 1 | slow | – | failed |"), "{text}");
    assert!(text.contains("- `made-up/s/slow/hosts=2#0`: failed: it broke"), "{text}");
    assert!(run(&folder, &asked, None).1.is_empty(), "it is not tried a third time");
}

#[test]
fn a_folder_has_one_writer_and_one_request() {
    let (folder, asked) = (Folder::new("locked"), asked(1));
    let first = open(&folder, &asked, &[]).unwrap();
    let second = open(&folder, &asked, &[]).err().unwrap().to_string();
    assert!(second.contains("another run writes to"), "{second}");
    drop(first);
    let other = Asked { scale: 1.0, ..asked.clone() };
    let other = open(&folder, &other, &[]).err().unwrap().to_string();
    assert!(other.contains("holds another run: scale is 1.0 now and 0.5 there"), "{other}");
    let others = [
        (Asked { guest: Some("kvm".to_owned()), ..asked.clone() }, "guest is \"kvm\" now and null there"),
        (
            Asked { remote: vec!["bsd=…".to_owned()], ..asked.clone() },
            "remote is [\"bsd=…\"] now and [] there",
        ),
        (Asked { rootless: true, ..asked.clone() }, "rootless is true now and false there"),
    ];
    for (other, what) in others {
        let said = open(&folder, &other, &[]).err().unwrap().to_string();
        assert!(said.contains(what), "{said}");
    }
    open(&folder, &asked, &[]).unwrap();
}
