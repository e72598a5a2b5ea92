//! Finds lines of a log by their key, and reads as little as possible.

use super::index::{self, ENTRY, HEADER, Key, Run};
use super::record::Record;
use super::rotation;
use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Entries that are read together.
const PROBE: u32 = 42;
/// Octets that are read for a line; a longer line is read again.
const LINE: usize = 512;
/// Octets that are read at a time where there is no index.
const CHUNK: usize = 64 << 10;
/// Lines of different workers may be this much out of order, in microseconds; in fact it is less than a tenth of it.
const DISORDER: u64 = 2_000_000;
/// A line that is longer is not ours.
const LONGEST_LINE: usize = 4_096;

/// A log: its files, oldest first. The last one is being written.
pub(super) struct Log {
    files: Vec<LogFile>,
    /// What is searched for.
    keys: Vec<Key>,
    /// Octets that were read.
    read: Cell<u64>,
}

struct LogFile {
    log: File,
    length: u64,
    index: Option<File>,
    /// The time of its first line; `None`: it has none.
    first: Option<u64>,
    runs: OnceCell<Vec<Run>>,
    /// Records of the keys in lines that no run covers.
    rest: OnceCell<Vec<Record>>,
}

impl Log {
    /// Opens the files, to search for records of these keys.
    ///
    /// # Errors
    /// The kernel's; the path is named.
    pub(super) fn open(path: &Path, keys: &[Key]) -> io::Result<Self> {
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let full = rotation::full_files(path).map_err(|error| named(path, error))?;
        let paths = full.into_iter().map(|file| file.path).chain([path.to_owned()]);
        let mut log = Self { files: Vec::new(), keys: keys.to_vec(), read: Cell::new(0) };
        for path in paths {
            match LogFile::open(&path) {
                Ok(file) => log.files.push(file),
                // It was removed in the meantime, or becomes a full one at this moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !log.files.is_empty() => {}
                Err(error) => return Err(named(&path, error)),
            }
        }
        for place in 0..log.files.len() {
            let first = log.line(&log.files[place], 0)?.map(|record| record.micros);
            log.files[place].first = first;
        }
        Ok(log)
    }

    /// Octets of all files without their indexes.
    pub(super) fn octets(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }

    /// Octets that were read.
    pub(super) fn octets_read(&self) -> u64 {
        self.read.get()
    }

    /// The time of the first line.
    pub(super) fn first(&self) -> Option<u64> {
        self.files.iter().find_map(|file| file.first)
    }

    /// The last record of a key that is not later than this.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn last_until(&self, key: Key, until: u64) -> io::Result<Option<Record>> {
        let begun = until.saturating_add(DISORDER);
        for file in self.files.iter().rev().filter(|file| file.first.is_some_and(|first| first <= begun)) {
            let is_it = |record: &&Record| index::key(record) == Some(key) && record.micros <= until;
            if let Some(found) = self.rest(file)?.iter().rev().find(is_it) {
                return Ok(Some(found.clone()));
            }
            let runs = self.runs(file)?;
            for run in runs.iter().rev().filter(|run| run.first <= begun) {
                let (from, to) = self.entries_of(file, run, key)?;
                // The first of them that is later.
                let later = self.partition(file, run, (from, to), until)?;
                if later > from {
                    return self.record_of(file, run, later - 1);
                }
            }
        }
        Ok(None)
    }

    /// The first record of a key that is later than this.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn first_after(&self, key: Key, after: u64) -> io::Result<Option<Record>> {
        let over = after.saturating_sub(DISORDER);
        for (place, file) in self.files.iter().enumerate() {
            let next = self.files[place + 1..].iter().find_map(|next| next.first);
            if file.first.is_none() || next.is_some_and(|next| next <= over) {
                continue;
            }
            let runs = self.runs(file)?;
            for (place, run) in runs.iter().enumerate() {
                if runs.get(place + 1).is_some_and(|next| next.first <= over) {
                    continue;
                }
                let (from, to) = self.entries_of(file, run, key)?;
                let later = self.partition(file, run, (from, to), after)?;
                if later < to {
                    return self.record_of(file, run, later);
                }
            }
            let is_it = |record: &&Record| index::key(record) == Some(key) && record.micros > after;
            if let Some(found) = self.rest(file)?.iter().find(is_it) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    fn runs<'f>(&self, file: &'f LogFile) -> io::Result<&'f [Run]> {
        if let Some(runs) = file.runs.get() {
            return Ok(runs);
        }
        let runs = match &file.index {
            Some(index) => index::runs(index, file.length)?,
            None => Vec::new(),
        };
        self.count((runs.len() * HEADER) as u64);
        Ok(file.runs.get_or_init(|| runs))
    }

    /// Records of the keys that no run covers.
    fn rest<'f>(&self, file: &'f LogFile) -> io::Result<&'f [Record]> {
        if let Some(rest) = file.rest.get() {
            return Ok(rest);
        }
        let from = self.runs(file)?.last().map_or(0, |run| run.to);
        let mut rest = Vec::new();
        self.scan(file, from, |record| {
            if index::key(&record).is_some_and(|key| self.keys.contains(&key)) {
                rest.push(record);
            }
        })?;
        Ok(file.rest.get_or_init(|| rest))
    }

    /// The places of a key's entries in a run: the first, and the first behind them.
    fn entries_of(&self, file: &LogFile, run: &Run, key: Key) -> io::Result<(u32, u32)> {
        let from = self.lower_bound(file, run, key)?;
        let some = self.entries(file, run, from, PROBE.min(run.entries - from))?;
        match some.iter().position(|(other, _)| *other != key) {
            Some(count) => Ok((from, from + count as u32)),
            None => Ok((from, self.lower_bound(file, run, key + 1)?)),
        }
    }

    /// The place of the first entry whose key is not less.
    fn lower_bound(&self, file: &LogFile, run: &Run, key: Key) -> io::Result<u32> {
        let (mut from, mut to) = (0, run.entries);
        // Every entry before `from` has a lesser key, every one from `to` on has not.
        while from < to {
            let middle = from + (to - from).saturating_sub(PROBE) / 2;
            let count = PROBE.min(to - middle);
            let entries = self.entries(file, run, middle, count)?;
            match entries.iter().position(|(other, _)| *other >= key) {
                Some(0) => to = middle,
                Some(place) => return Ok(middle + place as u32),
                None => from = middle + entries.len().max(1) as u32,
            }
        }
        Ok(from)
    }

    fn entries(&self, file: &LogFile, run: &Run, from: u32, count: u32) -> io::Result<Vec<(Key, u32)>> {
        let Some(index) = &file.index else { return Ok(Vec::new()) };
        let mut octets = vec![0; count as usize * ENTRY];
        index.read_exact_at(&mut octets, run.at + u64::from(from) * ENTRY as u64)?;
        self.count(octets.len() as u64);
        Ok(octets.chunks_exact(ENTRY).filter_map(index::entry).collect())
    }

    /// The first of these entries whose line is later than `until`.
    fn partition(&self, file: &LogFile, run: &Run, (from, to): (u32, u32), until: u64) -> io::Result<u32> {
        let (mut from, mut to) = (from, to);
        while from < to {
            let middle = from + (to - from) / 2;
            let is_later = self.record_of(file, run, middle)?.is_none_or(|record| record.micros > until);
            if is_later { to = middle } else { from = middle + 1 }
        }
        Ok(from)
    }

    fn record_of(&self, file: &LogFile, run: &Run, place: u32) -> io::Result<Option<Record>> {
        match self.entries(file, run, place, 1)?.first() {
            Some((_, octet)) => self.line(file, run.from + u64::from(*octet)),
            None => Ok(None),
        }
    }

    /// The line at this octet.
    fn line(&self, file: &LogFile, at: u64) -> io::Result<Option<Record>> {
        let mut room = LINE;
        loop {
            let mut octets = vec![0; room];
            let count = file.log.read_at(&mut octets, at)?;
            self.count(count as u64);
            octets.truncate(count);
            match octets.iter().position(|octet| *octet == b'\n') {
                Some(end) => return Ok(Record::read_json(&octets[..end])),
                None if count == room && room < LONGEST_LINE => room = LONGEST_LINE,
                None => return Ok(None),
            }
        }
    }

    /// Reads all lines from this octet on.
    fn scan(&self, file: &LogFile, from: u64, mut tell: impl FnMut(Record)) -> io::Result<()> {
        let (mut rest, mut at) = (Vec::new(), from);
        let mut chunk = vec![0; CHUNK];
        while at < file.length {
            let room = CHUNK.min(usize::try_from(file.length - at).unwrap_or(CHUNK));
            let count = file.log.read_at(&mut chunk[..room], at)?;
            if count == 0 {
                break;
            }
            self.count(count as u64);
            at += count as u64;
            rest.extend_from_slice(&chunk[..count]);
            let mut done = 0;
            while let Some(end) = rest[done..].iter().position(|octet| *octet == b'\n') {
                let line = &rest[done..done + end];
                done += end + 1;
                if let Some(record) = Record::read_json(line) {
                    tell(record);
                }
            }
            rest.drain(..done);
            if rest.len() > LONGEST_LINE {
                rest.clear();
            }
        }
        Ok(())
    }

    fn count(&self, octets: u64) {
        self.read.set(self.read.get() + octets);
    }
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let log = File::open(path)?;
        let length = log.metadata()?.len();
        // Without an index, it is read as a whole.
        let index = File::open(index::path_of(path)).ok();
        let (runs, rest) = (OnceCell::new(), OnceCell::new());
        Ok(Self { log, length, index, first: None, runs, rest })
    }
}
