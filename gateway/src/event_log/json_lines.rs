//! The log as a file of JSON lines, with its index, and with full files of which the oldest are removed.

use super::file_access::FileAccess;
use super::index::{self, GrowingRun, Times};
use super::port_block::LONGEST_LINE;
use super::record::{Event, Record};
use super::rotation;
use super::sink_state::SinkState;
use crate::config::EventLogFile;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A second, in microseconds.
const SECOND: u64 = 1_000_000;
/// Lines wait in memory until there are this many octets.
const BUFFER: usize = 256 << 10;

/// The file.
pub(super) struct JsonLines {
    path: PathBuf,
    access: FileAccess,
    rotate_size: u64,
    rotate_keep: u32,
    /// A lock that no other process has, although the file is renamed.
    _lock: File,
    file: File,
    /// Octets of the file.
    length: u64,
    /// Lines that are not in the file yet, and their number.
    buffer: Vec<u8>,
    lines: u32,
    index: Index,
    /// The latest time of its lines, microseconds since 1970.
    latest: u64,
    /// The number of the next full file.
    number: u64,
    /// What a rotation has done that failed halfway.
    renamed: Renamed,
    /// Files that became full since [`JsonLines::take_filled`].
    filled: u64,
    /// Whether the last lines could not be written.
    is_failing: bool,
    state: Arc<SinkState>,
    /// [`rotation::prune`]; a test has another one.
    prune: fn(&Path, u32) -> io::Result<()>,
}

/// The index of the file.
struct Index {
    file: File,
    /// Its octets.
    length: u64,
    run: GrowingRun,
    /// Whether it lacks lines: then it gets no further run, and the rest of the file is searched without it.
    has_gap: bool,
}

/// The full file, and its index, that have their new names already.
#[derive(Default)]
struct Renamed {
    file: Option<PathBuf>,
    has_index: bool,
}

impl JsonLines {
    /// Opens the file, or creates it, and completes its index.
    ///
    /// # Errors
    /// The kernel's, or the configured owner does not exist.
    pub(super) fn open(config: &EventLogFile, state: &Arc<SinkState>) -> io::Result<Self> {
        let access = FileAccess::of(config)?;
        let path = config.path.clone();
        let lock = FileAccess::private().open_alone(&lock_of(&path))?;
        let (file, index) = (access.open_alone(&path)?, access.open(&index::path_of(&path))?);
        let length = ended(&file)?;
        let mut lines = Self {
            access,
            rotate_size: config.rotate_size,
            rotate_keep: config.rotate_keep,
            _lock: lock,
            file,
            length,
            buffer: Vec::with_capacity(BUFFER),
            lines: 0,
            index: Index { file: index, length: 0, run: GrowingRun::at(0), has_gap: false },
            latest: 0,
            number: rotation::next_number(&config.path)?,
            renamed: Renamed::default(),
            filled: 0,
            is_failing: false,
            state: Arc::clone(state),
            path,
            prune: rotation::prune,
        };
        lines.index_what_is_there();
        lines.prune();
        Ok(lines)
    }

    /// Files that became full since the last call.
    pub(super) fn take_filled(&mut self) -> u64 {
        std::mem::take(&mut self.filled)
    }

    /// If its lines have later times than the present one, the clock was set back between two processes.
    pub(super) fn tell_of_clock(&mut self, micros: u64) {
        let ahead = self.latest.saturating_sub(micros);
        if ahead > SECOND && micros > 0 {
            let by = i64::try_from(ahead).map_or(i64::MIN, |ahead| -ahead);
            self.write(&[Record { micros, event: Event::Stepped(by) }]);
        }
    }

    /// What could not be written is tried again.
    pub(super) const fn try_again(&mut self) {
        self.is_failing = false;
    }

    /// Whether the last lines could not be written.
    pub(super) const fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// Whether the path is still this file's, and the file is unchanged. Programs that rotate logs move or truncate it.
    pub(super) fn is_as_left(&self) -> bool {
        if self.renamed.file.is_some() {
            return true;
        }
        let own = self.file.metadata();
        let found = std::fs::symlink_metadata(&self.path);
        matches!((own, found), (Ok(own), Ok(found)) if (own.dev(), own.ino()) == (found.dev(), found.ino()) && own.len() == self.length)
    }

    /// Another program has moved or cut the file: its index is of no use.
    pub(super) fn forget_index(self) {
        let _ = std::fs::remove_file(index::path_of(&self.path));
    }

    /// Appends records. They are in the file after [`JsonLines::flush`]. Records that cannot be written are lost and counted.
    pub(super) fn write(&mut self, records: &[Record]) {
        for record in records {
            self.index.add(record, self.length + self.buffer.len() as u64);
            self.latest = self.latest.max(record.micros);
            record.write_json(&mut self.buffer);
            self.lines += 1;
            let is_full = self.length + self.buffer.len() as u64 >= self.rotate_size;
            if self.buffer.len() >= BUFFER || self.index.is_due() || is_full {
                self.flush();
            }
        }
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) {
        if self.lines == 0 {
            return;
        }
        let written = self.append();
        self.is_failing = written.is_err();
        let written = written.and_then(|()| {
            if self.length >= self.rotate_size {
                return self.rotate();
            }
            if self.index.is_due() {
                self.index.write(&self.path, self.length);
            }
            Ok(())
        });
        match written {
            Ok(()) => self.state.returns(),
            Err(error) => self.state.goes(&error.to_string()),
        }
    }

    /// If records were lost, that is a record itself.
    pub(super) fn tell_of_losses(&mut self, micros: u64) {
        let lost = self.state.take_untold();
        if lost == 0 {
            return;
        }
        self.write(&[Record { micros, event: Event::Lost(lost, Arc::clone(&self.state.name)) }]);
        self.flush();
        if self.is_failing {
            // It was lost as well, and counted as one.
            self.state.untell(lost);
        }
    }

    /// The buffer is written to the file as a whole, or not at all.
    fn append(&mut self) -> io::Result<()> {
        let (octets, lines) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.lines));
        let written = self.file.write_all_at(&octets, self.length);
        match &written {
            Ok(()) => {
                self.length += octets.len() as u64;
                self.state.wrote(lines as usize);
            }
            Err(_) => {
                self.state.lose(lines.into());
                // A partial line must not remain; lines that were not written are not indexed.
                let _ = self.file.set_len(self.length);
                self.index.run.cut(self.length, lines);
            }
        }
        self.buffer = octets;
        self.buffer.clear();
        written
    }

    fn index_what_is_there(&mut self) {
        if let Err(error) = self.index_the_rest() {
            self.index.fails(&self.path, &error);
        }
    }

    /// Adds missing entries to the index: after a crash, or if it does not exist.
    fn index_the_rest(&mut self) -> io::Result<()> {
        let index = &mut self.index;
        let runs = index::runs(&index.file, self.length)?;
        self.latest = runs.iter().fold(Times::NONE, |times, run| times.and(run.times)).latest;
        index.length = runs.last().map_or(0, |run| run.end());
        index.file.set_len(index.length)?;
        let mut place = runs.last().map_or(0, |run| run.to);
        index.run = GrowingRun::at(place);
        let mut reader = BufReader::with_capacity(BUFFER, self.file.try_clone()?);
        reader.seek(SeekFrom::Start(place))?;
        let mut line = Vec::new();
        while place < self.length && reader.read_until(b'\n', &mut line)? > 0 {
            if let Some(record) = Record::read_json(&line).filter(|_| line.len() <= LONGEST_LINE) {
                index.run.add(&record, place);
                self.latest = self.latest.max(record.micros);
            }
            place += line.len() as u64;
            line.clear();
            if index.run.is_full() {
                index.length = index.run.write(&index.file, index.length, place)?;
            }
        }
        Ok(())
    }

    /// The file is full: it gets a number, and its runs become one. If it fails halfway, it is tried again with the next lines, which are
    /// still written to the file that has its number already.
    fn rotate(&mut self) -> io::Result<()> {
        self.index.write(&self.path, self.length);
        let full = match &self.renamed.file {
            Some(full) => full.clone(),
            None => self.rename()?,
        };
        let (index, index_of_full) = (index::path_of(&self.path), index::path_of(&full));
        if !self.renamed.has_index {
            unless_done(std::fs::rename(&index, &index_of_full))?;
            self.renamed.has_index = true;
        }
        let (file, index) = (self.access.open_alone(&self.path)?, self.access.open(&index)?);
        // One that is found there belongs to lines of another program.
        let length = ended(&file)?;
        index.set_len(0)?;
        let (own, log) = (std::mem::replace(&mut self.index.file, index), self.length);
        (self.file, self.length, self.renamed) = (file, length, Renamed::default());
        self.index.has_gap = false;
        self.index_what_is_there();
        self.filled += 1;
        // Whatever becomes of old files.
        self.number += 1;
        self.number = rotation::next_number(&self.path).map_or(self.number, |next| next.max(self.number));
        // Failures from here on only make searches slower, or use more space.
        if let Err(error) = self.merge(&own, log, &index_of_full) {
            tracing::warn!("event log: {}: {error}", index_of_full.display());
        }
        self.prune();
        Ok(())
    }

    fn prune(&self) {
        if let Err(error) = (self.prune)(&self.path, self.rotate_keep) {
            tracing::warn!("event log: old files of {} are not removed: {error}", self.path.display());
        }
    }

    /// Gives the file its number, which no other file has; its new name.
    fn rename(&mut self) -> io::Result<PathBuf> {
        loop {
            let full = rotation::numbered(&self.path, self.number);
            match rotation::rename_alone(&self.path, &full) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.number += 1,
                outcome => {
                    unless_done(outcome)?;
                    self.renamed.file = Some(full.clone());
                    return Ok(full);
                }
            }
        }
    }

    /// The runs of a full file become one, in a file that replaces them.
    fn merge(&self, runs: &File, log: u64, index: &Path) -> io::Result<()> {
        let mut name = index.as_os_str().to_owned();
        name.push(".new");
        let merged = PathBuf::from(name);
        index::merge(runs, log, &mut self.access.open(&merged)?)?;
        std::fs::rename(&merged, index)
    }
}

impl Index {
    fn add(&mut self, record: &Record, place: u64) {
        if !self.has_gap {
            self.run.add(record, place);
        }
    }

    /// Whether a run is to be written.
    const fn is_due(&self) -> bool {
        self.run.is_full() && !self.has_gap
    }

    /// Writes the run; the log is complete up to `to`.
    fn write(&mut self, log: &Path, to: u64) {
        if self.has_gap {
            return;
        }
        match self.run.write(&self.file, self.length, to) {
            Ok(length) => self.length = length,
            Err(error) => self.fails(log, &error),
        }
    }

    fn fails(&mut self, log: &Path, error: &io::Error) {
        tracing::warn!("event log: {} is not indexed any further: {error}", log.display());
        self.has_gap = true;
        self.run = GrowingRun::at(0);
    }
}

/// The file that a writer of this log locks.
fn lock_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Missing files were renamed or removed before.
fn unless_done(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Octets of the file. A last line that was cut off by a sudden end is ended.
fn ended(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == [b'\n'] {
        return Ok(length);
    }
    file.write_all_at(b"\n", length)?;
    Ok(length + 1)
}

#[cfg(test)]
mod tests {
    use super::super::record::Phase;
    use super::super::record::tests::binding;
    use super::*;

    fn config(name: &str) -> EventLogFile {
        let directory = std::env::temp_dir().join(format!("sixway-lines-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let path = directory.join("log").join("events.jsonl");
        EventLogFile { path, mode: 0o640, owner: None, group: None, rotate_size: 4_000, rotate_keep: 3 }
    }

    fn records(numbers: std::ops::Range<u16>) -> Vec<Record> {
        let record = |port: u16| Record {
            micros: u64::from(port) * 1_000_000,
            event: Event::Binding(Phase::Created, binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"))),
        };
        numbers.map(record).collect()
    }

    fn open(config: &EventLogFile) -> JsonLines {
        JsonLines::open(config, &SinkState::new(config.path.display().to_string())).unwrap()
    }

    fn write(lines: &mut JsonLines, numbers: std::ops::Range<u16>) {
        lines.write(&records(numbers));
        lines.flush();
    }

    /// Every one of the ports is in a file, in their order, and the first full file has a whole index; then it removes them.
    fn finish(config: &EventLogFile, lines: &JsonLines, wanted: std::ops::Range<u16>) {
        assert_eq!((lines.state.row().away_seconds, lines.state.row().lost), (None, 0));
        let full = rotation::full_files(&config.path).unwrap();
        assert_eq!(check_index(&full[0].path), ports(&full[0].path).len());
        let files = full.iter().map(|full| full.path.as_path()).chain([config.path.as_path()]);
        let all: Vec<u16> = files.flat_map(ports).collect();
        assert!(all.iter().copied().eq(wanted), "{all:?}");
        remove(config);
    }

    fn remove(config: &EventLogFile) {
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    /// The outside ports, in the order of the lines.
    fn ports(path: &std::path::Path) -> Vec<u16> {
        let text = std::fs::read(path).unwrap();
        let records = text.split_inclusive(|octet| *octet == b'\n').filter_map(Record::read_json);
        let port = |record: Record| match record.event {
            Event::Binding(_, binding) => binding.outside.port,
            other => panic!("{other:?}"),
        };
        records.map(port).collect()
    }

    #[test]
    fn full_files_are_kept_up_to_a_number_and_each_has_an_index_of_one_run() {
        let config = config("full");
        let mut lines = open(&config);
        records(1..200).chunks(7).for_each(|some| {
            lines.write(some);
            lines.flush();
        });
        let full = rotation::full_files(&config.path).unwrap();
        assert_eq!(full.len(), 3);
        let mut all = Vec::new();
        for file in &full {
            let length = std::fs::metadata(&file.path).unwrap().len();
            assert!((4_000..4_400).contains(&length), "{length}");
            let runs = index::runs(&File::open(index::path_of(&file.path)).unwrap(), length).unwrap();
            let [run] = runs[..] else { panic!("{runs:?}") };
            assert_eq!((run.from, run.to), (0, length));
            let found = ports(&file.path);
            assert_eq!(run.entries as usize, found.len());
            all.extend(found);
        }
        all.extend(ports(&config.path));
        let first = all[0];
        assert!(first > 1 && all.iter().copied().eq(first..200), "none is missing after the oldest: {all:?}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&full[2].path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o640);
        remove(&config);
    }

    #[test]
    fn a_file_is_continued_after_a_sudden_end_and_its_index_is_completed() {
        let config = EventLogFile { rotate_size: 1 << 30, ..config("sudden") };
        let mut lines = open(&config);
        let many: Vec<Record> = (0..3).flat_map(|_| records(0..5_000)).collect();
        lines.write(&many);
        lines.flush();
        drop(lines);
        // In the middle of a line, and without the run that was not full.
        let length = std::fs::metadata(&config.path).unwrap().len();
        File::options().write(true).open(&config.path).unwrap().set_len(length - 9).unwrap();
        let mut again = open(&config);
        write(&mut again, 60_000..60_001);
        let found = ports(&config.path);
        assert_eq!((found.len(), found.last()), (15_000, Some(&60_000)), "the line that was cut off is lost");
        drop(again);
        let indexed = std::fs::metadata(index::path_of(&config.path)).unwrap().len();
        std::fs::write(index::path_of(&config.path), "damaged").unwrap();
        let made_again = open(&config);
        assert_eq!(made_again.index.length, indexed);
        assert!(made_again.index.length > 8_000 * 12, "{}", made_again.index.length);
        remove(&config);
    }

    /// Every entry of an index leads to a line with its key.
    fn check_index(log: &std::path::Path) -> usize {
        let (text, file) = (std::fs::read(log).unwrap(), File::open(index::path_of(log)).unwrap());
        let mut count = 0;
        for run in index::runs(&file, text.len() as u64).unwrap() {
            let mut octets = vec![0; run.entries as usize * index::ENTRY];
            file.read_exact_at(&mut octets, run.at).unwrap();
            for (key, place) in octets.chunks_exact(index::ENTRY).filter_map(index::entry) {
                let line = text[run.from as usize + place as usize..]
                    .split_inclusive(|octet| *octet == b'\n')
                    .next();
                let record = line.and_then(Record::read_json).unwrap();
                assert_eq!(index::key(&record), Some(key));
                count += 1;
            }
        }
        count
    }

    #[test]
    fn lines_that_were_not_written_are_not_in_the_index() {
        let config = config("index");
        let mut lines = open(&config);
        write(&mut lines, 1..3);
        let good = std::mem::replace(&mut lines.file, File::open(&config.path).unwrap());
        write(&mut lines, 3..10);
        lines.file = good;
        write(&mut lines, 10..40);
        let full = rotation::full_files(&config.path).unwrap();
        assert_eq!(ports(&full[0].path)[..4], [1, 2, 10, 11]);
        assert_eq!(check_index(&full[0].path), ports(&full[0].path).len());
        remove(&config);
    }

    #[test]
    fn a_rotation_that_fails_is_tried_again() {
        let config = config("again");
        let mut lines = open(&config);
        write(&mut lines, 1..20);
        // In the way of the new file.
        let good = std::mem::replace(&mut lines.path, config.path.join("nowhere"));
        write(&mut lines, 20..30);
        assert!(lines.state.row().away_seconds.is_some());
        lines.path = good;
        write(&mut lines, 30..40);
        finish(&config, &lines, 1..40);
    }

    #[test]
    fn a_rotation_that_was_half_done_is_completed() {
        let config = config("half");
        let mut lines = open(&config);
        write(&mut lines, 1..20);
        std::fs::rename(&config.path, rotation::numbered(&config.path, 1)).unwrap();
        write(&mut lines, 20..40);
        finish(&config, &lines, 1..40);
    }

    /// A failure to remove old files does not prevent the renaming of a full file.
    #[test]
    fn a_full_file_keeps_its_name_when_old_files_cannot_be_removed() {
        let config = config("kept");
        let mut lines = open(&config);
        lines.prune = |_, _| Err(io::ErrorKind::PermissionDenied.into());
        write(&mut lines, 1..100);
        assert!(rotation::full_files(&config.path).unwrap().len() > 3);
        finish(&config, &lines, 1..100);
    }

    #[test]
    fn a_file_that_another_program_put_there_is_not_replaced() {
        let config = config("taken");
        let mut lines = open(&config);
        let taken = rotation::numbered(&config.path, 1);
        std::fs::write(&taken, "mine").unwrap();
        write(&mut lines, 1..30);
        assert_eq!(std::fs::read_to_string(&taken).unwrap(), "mine");
        std::fs::remove_file(taken).unwrap();
        finish(&config, &lines, 1..30);
    }

    /// An index that cannot be written has no gap: only its end is missing, for which the lines are searched.
    #[test]
    fn an_index_that_cannot_be_written_ends_before_the_lines_that_it_lacks() {
        let config = EventLogFile { rotate_size: 1 << 30, ..config("unindexed") };
        let mut lines = open(&config);
        write(&mut lines, 1..9_000);
        let good =
            std::mem::replace(&mut lines.index.file, File::open(index::path_of(&config.path)).unwrap());
        write(&mut lines, 1..9_000);
        lines.index.file = good;
        write(&mut lines, 1..20_000);
        assert_eq!((lines.state.row().away_seconds, lines.state.row().lost), (None, 0));
        let length = std::fs::metadata(&config.path).unwrap().len();
        let runs = index::runs(&File::open(index::path_of(&config.path)).unwrap(), length).unwrap();
        assert_eq!((runs.len(), check_index(&config.path)), (1, 8_192));
        drop(lines);
        drop(open(&config));
        assert!(check_index(&config.path) > 30_000, "it is completed when the file is opened");
        remove(&config);
    }

    #[test]
    fn a_file_has_one_writer() {
        let config = config("alone");
        let lines = open(&config);
        let state = SinkState::new("test".into());
        let refused = JsonLines::open(&config, &state).err().map(|error| error.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("another process writes it; end that, or set another path in the configuration")
        );
        drop(lines);
        assert!(JsonLines::open(&config, &state).is_ok());
        remove(&config);
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_number_is_logged() {
        let config = EventLogFile { rotate_size: 1 << 30, ..config("refused") };
        let mut lines = open(&config);
        write(&mut lines, 1..3);
        let good = std::mem::replace(&mut lines.file, File::open(&config.path).unwrap());
        write(&mut lines, 3..10);
        lines.tell_of_losses(1);
        let row = lines.state.row();
        assert_eq!((row.written, row.lost, row.away_seconds), (2, 8, Some(0)));
        lines.file = good;
        write(&mut lines, 10..11);
        lines.tell_of_losses(2);
        assert_eq!(lines.state.row().away_seconds, None);
        let text = std::fs::read_to_string(&config.path).unwrap();
        let said: Vec<Record> = text.lines().filter_map(|line| Record::read_json(line.as_bytes())).collect();
        assert_eq!(said.len(), 4);
        assert!(matches!(&said[3].event, Event::Lost(8, sink) if sink.ends_with("events.jsonl")), "{text}");
        remove(&config);
    }
}
