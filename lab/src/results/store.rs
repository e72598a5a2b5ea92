//! The folder of a run. One process writes at a time (flock), and each sample is on the disk before the next cell begins.

use super::commands::add_commands;
use super::file::{open_to_append, write_whole};
use super::header::{Asked, Header, SCHEMA};
use super::sample::Sample;
use super::table::samples_of;
use crate::failure::{Asking as _, Failure, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The file of samples, and the table of their values that is published.
const SAMPLES: &str = "samples.jsonl";
const TABLE: &str = "data.csv";

/// How often a cell that failed is tried.
const TRIES: usize = 2;

/// A run's folder, open for writing.
pub struct Store {
    folder: PathBuf,
    samples: File,
    header: Header,
    /// What was tried of each key.
    seen: BTreeMap<String, Tried>,
    /// Held as long as this value.
    _lock: File,
}

/// How often a cell was measured successfully, how often it failed, and the seconds that this took.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    measured: usize,
    failed: usize,
    took: f64,
}

/// All that a run has measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Its header.
    pub header: Header,
    /// One sample for each key, in the order of the plan; of a cell that was tried twice, the last.
    pub samples: Vec<Sample>,
}

impl Store {
    /// Begins a run in a new or empty folder, or resumes the one that it holds.
    ///
    /// # Errors
    /// Another process writes there, the run there was asked for something else, or it is in another format.
    pub fn open(folder: &Path, asked: &Asked, header: impl FnOnce() -> Result<Header>) -> Result<Self> {
        std::fs::create_dir_all(folder.join("raw")).asking(|| format!("creating {}", folder.display()))?;
        let lock = open_to_append(&folder.join("lock"))?;
        if lock.try_lock().is_err() {
            return Err(Failure::Unexpected(format!("another run writes to {}", folder.display())));
        }
        let run = folder.join("run.json");
        let header = if run.exists() {
            let there = read_header(&run)?;
            if let Some(difference) = asked.difference(&there.asked) {
                return Err(Failure::Unexpected(format!(
                    "{} holds another run: {difference}; choose another folder with --out",
                    folder.display()
                )));
            }
            if folder.join(TABLE).exists() && !folder.join(SAMPLES).exists() {
                return Err(Failure::Unexpected(format!(
                    "{} holds published results, without {SAMPLES}: they cannot be continued; choose another folder with --out",
                    folder.display()
                )));
            }
            there
        } else {
            let new = header()?;
            write_whole(&run, &json(&new, true)?)?;
            new
        };
        let path = folder.join(SAMPLES);
        let mut samples = open_to_append(&path)?;
        let whole = drop_torn_line(&path, &mut samples)?;
        let mut store =
            Self { folder: folder.to_owned(), samples, header, seen: BTreeMap::new(), _lock: lock };
        parse(&path, &whole)?.iter().for_each(|sample| store.note(sample));
        Ok(store)
    }

    /// The run's header: of a run that is resumed, what it was at its beginning.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Whether this cell needs no measurement: it was measured, or failed twice.
    pub fn is_done(&self, key: &str) -> bool {
        self.seen.get(key).is_some_and(|tried| tried.measured > 0 || tried.failed >= TRIES)
    }

    /// The seconds that a cell took, if it was tried.
    pub fn took(&self, key: &str) -> Option<f64> {
        self.seen.get(key).map(|tried| tried.took)
    }

    /// Adds a sample; it is on the disk when this returns.
    pub fn append(&mut self, sample: &Sample) -> Result<()> {
        let line = json(sample, false)? + "\n";
        self.samples
            .write_all(line.as_bytes())
            .and_then(|()| self.samples.sync_data())
            .asking(|| format!("writing to {}", self.folder.join(SAMPLES).display()))?;
        self.note(sample);
        Ok(())
    }

    /// Where raw files of a cell are stored; the folder is created.
    pub fn raw_folder(&self, key: &str) -> Result<PathBuf> {
        let folder = self.folder.join("raw").join(key);
        std::fs::create_dir_all(&folder).asking(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    fn note(&mut self, sample: &Sample) {
        let seen = self.seen.entry(sample.cell.key()).or_default();
        if sample.failed.is_none() {
            seen.measured += 1
        } else {
            seen.failed += 1
        }
        seen.took += sample.took;
    }
}

/// Whether a folder has the samples themselves; a published one has a table of their values.
pub fn has_samples(folder: &Path) -> bool {
    folder.join(SAMPLES).exists()
}

/// Reads a run, also one that is still being measured, and one of which only the table was published.
///
/// # Errors
/// The folder holds no run of this format, or a line that is not a sample.
pub fn read(folder: &Path) -> Result<Results> {
    let header = read_header(&folder.join("run.json"))?;
    let name = if has_samples(folder) { SAMPLES } else { TABLE };
    let path = folder.join(name);
    if !path.exists() {
        return Err(Failure::Unexpected(format!(
            "{} has neither {SAMPLES} nor {TABLE}: nothing says what was measured",
            folder.display()
        )));
    }
    let text = std::fs::read_to_string(&path).asking(|| format!("reading {}", path.display()))?;
    let all = if name == SAMPLES {
        parse(&path, &text[..text.rfind('\n').map_or(0, |end| end + 1)])?
    } else {
        samples_of(&text).map_err(|what| Failure::Unexpected(format!("{}: {what}", path.display())))?
    };
    let mut latest: BTreeMap<String, Sample> = BTreeMap::new();
    for sample in all {
        latest.insert(sample.cell.key(), sample);
    }
    let mut samples: Vec<Sample> = header.plan.iter().filter_map(|key| latest.remove(key)).collect();
    if name == TABLE {
        add_commands(folder, &mut samples)?;
    }
    Ok(Results { header, samples })
}

fn json(value: &impl serde::Serialize, pretty: bool) -> Result<String> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|error| Failure::Unexpected(format!("writing results as JSON: {error}")))
}

fn read_header(path: &Path) -> Result<Header> {
    let text = std::fs::read_to_string(path).asking(|| format!("reading {}", path.display()))?;
    let wrong = |what: String| Failure::Unexpected(format!("{}: {what}", path.display()));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match value["schema"].as_u64() {
        Some(schema) if schema == u64::from(SCHEMA) => {
            serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
        }
        other => Err(wrong(format!("schema {other:?}, and this lab reads {SCHEMA} only"))),
    }
}

/// What was being written when the machine or the process died is cut off; the rest.
fn drop_torn_line(path: &Path, file: &mut File) -> Result<String> {
    let octets = std::fs::read(path).asking(|| format!("reading {}", path.display()))?;
    let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
    if whole < octets.len() {
        file.set_len(whole as u64)
            .and_then(|()| file.seek(SeekFrom::End(0)).map(drop))
            .asking(|| format!("cutting {}", path.display()))?;
    }
    Ok(String::from_utf8_lossy(&octets[..whole]).into_owned())
}

fn parse(path: &Path, text: &str) -> Result<Vec<Sample>> {
    let sample = |(at, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| Failure::Unexpected(format!("{}:{}: {error}", path.display(), at + 1)))
    };
    text.lines().enumerate().map(sample).collect()
}
