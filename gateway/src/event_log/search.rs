//! Finds lines of a log by their key, and reads as little as possible.

use super::index::{self, ENTRY, HEADER, Key, Run, Times};
use super::port_block::LONGEST_LINE;
use super::record::{Event, Phase, Record};
use super::rotation;
use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, RangeInclusive};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// Entries that are read together.
const PROBE: u32 = 42;
/// Octets that are read for a line; a longer line is read again.
const LINE: usize = 512;
/// Octets that are read at a time where there is no index.
const CHUNK: usize = 64 << 10;
/// Lines that are not indexed may have times that are this much earlier or later than those around them, in microseconds: bindings that are
/// listed again have the time at which that began.
const DISORDER: u64 = 3_600_000_000;
/// Lines of a listing that are skipped for the time of another line.
const LISTED: usize = 4_096;
/// Attempts to open the files while they get other names.
const ATTEMPTS: usize = 10;

/// A log: its files, oldest first. The last one is being written.
pub(super) struct Log {
    files: Vec<LogFile>,
    /// The search key.
    keys: Vec<Key>,
    /// Octets that were read.
    read: Cell<u64>,
    /// The file with an index that does not match its lines.
    mismatched: Cell<Option<usize>>,
}

struct LogFile {
    log: File,
    /// Its device and inode.
    identity: (u64, u64),
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
        let files = open_all(path)?;
        let mut log = Self { files, keys: keys.to_vec(), read: Cell::new(0), mismatched: Cell::new(None) };
        for place in 0..log.files.len() {
            let first = log.first_of(&log.files[place])?;
            log.files[place].first = first;
        }
        Ok(log)
    }

    /// The time of the first line of a file that is one.
    fn first_of(&self, file: &LogFile) -> io::Result<Option<u64>> {
        if let Some(record) = self.line(file, 0)? {
            return Ok(Some(record.micros));
        }
        let mut first = None;
        self.scan(file, 0, |record| {
            first = Some(record.micros);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// After an error: the file whose index does not fit its lines is searched without it. Returns whether there was one.
    pub(super) fn leave_out_index(&mut self) -> bool {
        let Some(file) = self.mismatched.take().and_then(|place| self.files.get_mut(place)) else {
            return false;
        };
        (file.index, file.runs, file.rest) = (None, OnceCell::new(), OnceCell::new());
        true
    }

    /// Octets of all files without their indexes.
    pub(super) fn octets(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }

    /// Octets that were read.
    pub(super) fn octets_read(&self) -> u64 {
        self.read.get()
    }

    /// The time from which on the log is complete. That of a binding that is listed again is older.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn first(&self) -> io::Result<Option<u64>> {
        let Some(file) = self.files.iter().find(|file| file.first.is_some()) else { return Ok(None) };
        let is_listed = |record: &Record| {
            use Event::{Binding, Block, Mapping};
            matches!(record.event, Binding(Phase::Continues, _) | Block(Phase::Continues, _) | Mapping(_))
        };
        if self.line(file, 0)?.is_some_and(|record| !is_listed(&record)) {
            return Ok(file.first);
        }
        let (mut first, mut listed) = (file.first, 0);
        self.scan(file, 0, |record| {
            first = first.max(Some(record.micros));
            listed += 1;
            if is_listed(&record) && listed < LISTED {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(first)
    }

    /// The times that a file may have.
    fn times(&self, place: usize) -> io::Result<Option<Times>> {
        let file = &self.files[place];
        let Some(first) = file.first else { return Ok(None) };
        let runs = self.runs(file)?;
        let indexed = runs.iter().fold(Times::NONE, |times, run| times.and(run.times));
        if runs.last().is_some_and(|run| run.to == file.length) {
            return Ok(Some(indexed));
        }
        let next = self.files[place + 1..].iter().find_map(|next| next.first);
        let latest = next.map_or(u64::MAX, |next| next.saturating_add(DISORDER));
        let earliest = first.saturating_sub(DISORDER);
        Ok(Some(indexed.and(Times { earliest, latest, is_stepped: false })))
    }

    /// The last record of a key that is not later than this.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn last_until(&self, key: Key, until: u64) -> io::Result<Option<Record>> {
        for (place, file) in self.files.iter().enumerate().rev() {
            if self.times(place)?.is_none_or(|times| times.earliest > until) {
                continue;
            }
            let is_it = |record: &&Record| index::key(record) == Some(key) && record.micros <= until;
            if let Some(found) = self.rest(file)?.iter().rev().find(is_it) {
                return Ok(Some(found.clone()));
            }
            for run in self.runs(file)?.iter().rev().filter(|run| run.times.earliest <= until) {
                let search = Search { log: self, place, file, run, key };
                if let Some(found) = search.last_until(until)? {
                    return Ok(Some(found));
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
        for (place, file) in self.files.iter().enumerate() {
            if self.times(place)?.is_none_or(|times| times.latest <= after) {
                continue;
            }
            for run in self.runs(file)?.iter().filter(|run| run.times.latest > after) {
                let search = Search { log: self, place, file, run, key };
                if let Some(found) = search.first_after(after)? {
                    return Ok(Some(found));
                }
            }
            let is_it = |record: &&Record| index::key(record) == Some(key) && record.micros > after;
            if let Some(found) = self.rest(file)?.iter().find(is_it) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// Calls back with the records of a key within some time, the oldest first or the newest first, until the callback ends it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn each(
        &self,
        key: Key,
        within: RangeInclusive<u64>,
        newest_first: bool,
        tell: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut places: Vec<usize> = (0..self.files.len()).collect();
        if newest_first {
            places.reverse();
        }
        for place in places {
            let has_none = |times: Times| times.earliest > *within.end() || times.latest < *within.start();
            if self.times(place)?.is_none_or(has_none) {
                continue;
            }
            let file = &self.files[place];
            let of_key = |record: &&Record| index::key(record) == Some(key);
            let mut rest: Vec<Record> = self.rest(file)?.iter().filter(of_key).cloned().collect();
            let mut runs: Vec<&Run> = self.runs(file)?.iter().filter(|run| !has_none(run.times)).collect();
            if newest_first {
                rest.reverse();
                runs.reverse();
                if each_of(rest, &within, tell).is_break() {
                    return Ok(());
                }
                rest = Vec::new();
            }
            for run in runs {
                let search = Search { log: self, place, file, run, key };
                if search.each(&within, newest_first, tell)?.is_break() {
                    return Ok(());
                }
            }
            if each_of(rest, &within, tell).is_break() {
                return Ok(());
            }
        }
        Ok(())
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
            ControlFlow::Continue(())
        })?;
        Ok(file.rest.get_or_init(|| rest))
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

    /// Reads lines from this octet on, until the callback ends it.
    fn scan(
        &self,
        file: &LogFile,
        from: u64,
        mut tell: impl FnMut(Record) -> ControlFlow<()>,
    ) -> io::Result<()> {
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
                if Record::read_json(line).is_some_and(|record| tell(record).is_break()) {
                    return Ok(());
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

/// Passes on the given records that are within the given time.
fn each_of(
    records: Vec<Record>,
    within: &RangeInclusive<u64>,
    tell: &mut dyn FnMut(Record) -> ControlFlow<()>,
) -> ControlFlow<()> {
    records.into_iter().filter(|record| within.contains(&record.micros)).try_for_each(tell)
}

/// A search in a run.
struct Search<'l> {
    log: &'l Log,
    /// Of the file.
    place: usize,
    file: &'l LogFile,
    run: &'l Run,
    key: Key,
}

impl Search<'_> {
    fn last_until(&self, until: u64) -> io::Result<Option<Record>> {
        let (from, to) = self.entries()?;
        if self.run.times.is_stepped {
            for place in (from..to).rev() {
                let record = self.record(place)?;
                if record.micros <= until {
                    return Ok(Some(record));
                }
            }
            return Ok(None);
        }
        let later = self.partition((from, to), until)?;
        if later > from { self.record(later - 1).map(Some) } else { Ok(None) }
    }

    fn first_after(&self, after: u64) -> io::Result<Option<Record>> {
        let (from, to) = self.entries()?;
        if self.run.times.is_stepped {
            for place in from..to {
                let record = self.record(place)?;
                if record.micros > after {
                    return Ok(Some(record));
                }
            }
            return Ok(None);
        }
        let later = self.partition((from, to), after)?;
        if later < to { self.record(later).map(Some) } else { Ok(None) }
    }

    /// See [`Log::each`].
    fn each(
        &self,
        within: &RangeInclusive<u64>,
        newest_first: bool,
        tell: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let (from, to) = self.entries()?;
        let (mut from, mut to) = (from, to);
        if !self.run.times.is_stepped {
            let before = within.start().checked_sub(1);
            let first = before.map_or(Ok(from), |before| self.partition((from, to), before))?;
            to = self.partition((first, to), *within.end())?;
            from = first;
        }
        for number in 0..to - from {
            let record = self.record(if newest_first { to - 1 - number } else { from + number })?;
            if each_of(vec![record], within, tell).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The places of the key's entries: the first, and the first behind them.
    fn entries(&self) -> io::Result<(u32, u32)> {
        let from = self.lower_bound(self.key)?;
        let some = self.read(from, PROBE.min(self.run.entries - from))?;
        match some.iter().position(|(other, _)| *other != self.key) {
            Some(count) => Ok((from, from + count as u32)),
            None => Ok((from, self.lower_bound(self.key + 1)?)),
        }
    }

    /// The place of the first entry whose key is not less.
    fn lower_bound(&self, key: Key) -> io::Result<u32> {
        let (mut from, mut to) = (0, self.run.entries);
        // Every entry before `from` has a lesser key, every one from `to` on has not.
        while from < to {
            let middle = from + (to - from).saturating_sub(PROBE) / 2;
            let count = PROBE.min(to - middle);
            let entries = self.read(middle, count)?;
            match entries.iter().position(|(other, _)| *other >= key) {
                Some(0) => to = middle,
                Some(place) => return Ok(middle + place as u32),
                None => from = middle + entries.len().max(1) as u32,
            }
        }
        Ok(from)
    }

    fn read(&self, from: u32, count: u32) -> io::Result<Vec<(Key, u32)>> {
        let Some(index) = &self.file.index else { return Ok(Vec::new()) };
        let mut octets = vec![0; count as usize * ENTRY];
        index.read_exact_at(&mut octets, self.run.at + u64::from(from) * ENTRY as u64)?;
        self.log.count(octets.len() as u64);
        Ok(octets.chunks_exact(ENTRY).filter_map(index::entry).collect())
    }

    /// The first of these entries whose line is later than `until`.
    fn partition(&self, (from, to): (u32, u32), until: u64) -> io::Result<u32> {
        let (mut from, mut to) = (from, to);
        while from < to {
            let middle = from + (to - from) / 2;
            let is_later = self.time(middle)? > until;
            if is_later { to = middle } else { from = middle + 1 }
        }
        Ok(from)
    }

    /// The time of an entry's line. Of a long line only the beginning is read.
    fn time(&self, place: u32) -> io::Result<u64> {
        let of_record = || self.record(place).map(|record| record.micros);
        if self.key != index::MAPPING {
            return of_record();
        }
        let Some((_, octet)) = self.read(place, 1)?.first().copied() else { return of_record() };
        let mut octets = [0; LINE];
        let count = self.file.log.read_at(&mut octets, self.run.from + u64::from(octet))?;
        self.log.count(count as u64);
        let beginning = octets.get(..count).filter(|octets| !octets.contains(&b'\n'));
        beginning.and_then(Record::time_of_beginning).map_or_else(of_record, Ok)
    }

    /// The record of an entry, which has the key.
    fn record(&self, place: u32) -> io::Result<Record> {
        let record = match self.read(place, 1)?.first() {
            Some((_, octet)) => self.log.line(self.file, self.run.from + u64::from(*octet))?,
            None => None,
        };
        record.filter(|record| index::key(record) == Some(self.key)).ok_or_else(|| {
            self.log.mismatched.set(Some(self.place));
            io::Error::new(io::ErrorKind::InvalidData, "an index does not fit its file; remove it")
        })
    }
}

/// The files, oldest first, as they were at one moment: they get other names, and are removed, meanwhile.
fn open_all(path: &Path) -> io::Result<Vec<LogFile>> {
    let named =
        |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let opened = |path: &Path| match LogFile::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(path, error)),
    };
    let list = || rotation::full_files(path).map_err(|error| named(path, error));
    for attempt in 1.. {
        // In this order: a file that becomes full now is found under its new name.
        let current = opened(path)?;
        let full = list()?;
        let mut files = Vec::new();
        for file in &full {
            files.extend(opened(&file.path)?);
        }
        let has = |current: &LogFile| files.iter().any(|file| file.identity == current.identity);
        let is_moved = current.as_ref().is_some_and(has);
        if attempt < ATTEMPTS && (is_moved || list()? != full) {
            continue;
        }
        files.extend(current.filter(|_| !is_moved));
        if files.is_empty() {
            return Err(named(path, io::ErrorKind::NotFound.into()));
        }
        return Ok(files);
    }
    Ok(Vec::new())
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let log = File::open(path)?;
        let metadata = log.metadata()?;
        let (length, identity) = (metadata.len(), (metadata.dev(), metadata.ino()));
        // Without an index, it is read as a whole.
        let index = File::open(index::path_of(path)).ok();
        let (runs, rest) = (OnceCell::new(), OnceCell::new());
        Ok(Self { log, identity, length, index, first: None, runs, rest })
    }
}
