//! The log as a file of JSON lines, with its index, and with full files of which the oldest are removed.

use super::file_access::FileAccess;
use super::index::{self, GrowingRun};
use super::record::{Event, Record};
use super::rotation;
use super::sink_state::SinkState;
use crate::config::EventLogFile;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The longest line that is indexed; ours have less than 400 octets.
const LONGEST_LINE: usize = 4_096;
/// Lines wait in memory until there are this many octets.
const BUFFER: usize = 256 << 10;

/// The file.
pub(super) struct JsonLines {
    path: PathBuf,
    access: FileAccess,
    rotate_size: u64,
    rotate_keep: u32,
    file: File,
    /// Octets of the file.
    length: u64,
    /// Lines that are not in the file yet, and their number.
    buffer: Vec<u8>,
    lines: usize,
    index: File,
    /// Octets of the index.
    indexed: u64,
    run: GrowingRun,
    /// The number of the next full file.
    number: u64,
    /// Whether the full file has that number already: a rotation failed halfway.
    is_renamed: bool,
    /// Files that became full since [`JsonLines::take_filled`].
    filled: u64,
    state: Arc<SinkState>,
}

impl JsonLines {
    /// Opens the file, or creates it, and completes its index.
    ///
    /// # Errors
    /// The kernel's, or the configured owner does not exist.
    pub(super) fn open(config: &EventLogFile) -> io::Result<Self> {
        let access = FileAccess::of(config)?;
        let path = config.path.clone();
        let (file, index) = (access.open_alone(&path)?, access.open(&index::path_of(&path))?);
        let number = rotation::prune(&path, config.rotate_keep)?;
        let length = ended(&file)?;
        let state = SinkState::new(path.display().to_string());
        let mut lines = Self {
            access,
            rotate_size: config.rotate_size,
            rotate_keep: config.rotate_keep,
            file,
            length,
            buffer: Vec::with_capacity(BUFFER),
            lines: 0,
            index,
            indexed: 0,
            run: GrowingRun::default(),
            number,
            is_renamed: false,
            filled: 0,
            state,
            path,
        };
        lines.index_the_rest()?;
        Ok(lines)
    }

    /// Files that became full since the last call.
    pub(super) fn take_filled(&mut self) -> u64 {
        std::mem::take(&mut self.filled)
    }

    /// Full files that are kept.
    pub(super) const fn keeps(&self) -> u32 {
        self.rotate_keep
    }

    pub(super) fn state(&self) -> &Arc<SinkState> {
        &self.state
    }

    /// Appends records. They are in the file after [`JsonLines::flush`]. What cannot be written is lost and counted.
    pub(super) fn write(&mut self, records: &[Record]) {
        for record in records {
            self.run.add(record, self.length + self.buffer.len() as u64);
            record.write_json(&mut self.buffer);
            self.lines += 1;
            let is_full = self.length + self.buffer.len() as u64 >= self.rotate_size;
            if self.buffer.len() >= BUFFER || self.run.is_full() || is_full {
                self.flush();
            }
        }
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) {
        if self.lines == 0 {
            return;
        }
        let written = self.append().and_then(|()| {
            if self.length >= self.rotate_size {
                return self.rotate();
            }
            if self.run.is_full() {
                self.indexed = self.run.write(&self.index, self.indexed, self.length)?;
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
        if self.state.row().away_seconds.is_some() {
            // It was lost as well, and counted as one.
            self.state.untell(lost);
        }
    }

    /// The buffer goes to the file as a whole, or not at all.
    fn append(&mut self) -> io::Result<()> {
        let (octets, lines) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.lines));
        let written = self.file.write_all_at(&octets, self.length);
        match &written {
            Ok(()) => {
                self.length += octets.len() as u64;
                self.state.wrote(lines);
            }
            Err(_) => {
                self.state.lose(lines as u64);
                // The rest of a line must not be there; what was not written is not indexed.
                let _ = self.file.set_len(self.length);
                self.index_again();
            }
        }
        self.buffer = octets;
        self.buffer.clear();
        written
    }

    /// Indexes what is in the file and not in the index: the present run has lines that are not in the file.
    fn index_again(&mut self) {
        if let Err(error) = self.index_the_rest() {
            self.state.goes(&format!("its index is not written: {error}"));
        }
    }

    /// Adds to the index what it lacks: after a sudden end, or because it is not there.
    fn index_the_rest(&mut self) -> io::Result<()> {
        let runs = index::runs(&self.index, self.length)?;
        self.indexed = runs.last().map_or(0, |run| run.end());
        self.index.set_len(self.indexed)?;
        let mut place = runs.last().map_or(0, |run| run.to);
        self.run = GrowingRun::at(place);
        let mut reader = BufReader::with_capacity(BUFFER, self.file.try_clone()?);
        reader.seek(SeekFrom::Start(place))?;
        let mut line = Vec::new();
        while place < self.length && reader.read_until(b'\n', &mut line)? > 0 {
            if let Some(record) = Record::read_json(&line).filter(|_| line.len() <= LONGEST_LINE) {
                self.run.add(&record, place);
            }
            place += line.len() as u64;
            line.clear();
            if self.run.is_full() {
                self.indexed = self.run.write(&self.index, self.indexed, place)?;
            }
        }
        Ok(())
    }

    /// The file is full: it gets a number, and its runs become one. If it fails halfway, it is tried again with the next lines, which are
    /// still written to the file that has its number already.
    fn rotate(&mut self) -> io::Result<()> {
        self.indexed = self.run.write(&self.index, self.indexed, self.length)?;
        let full = rotation::numbered(&self.path, self.number);
        if !self.is_renamed {
            unless_done(std::fs::rename(&self.path, &full))?;
            self.is_renamed = true;
        }
        let index = index::path_of(&self.path);
        let mut merged = self.access.open(&index::path_of(&full))?;
        index::merge(&self.index, self.length, &mut merged)?;
        unless_done(std::fs::remove_file(&index))?;
        let (file, index) = (self.access.open_alone(&self.path)?, self.access.open(&index)?);
        (self.file, self.index, self.is_renamed) = (file, index, false);
        (self.length, self.indexed, self.run) = (0, 0, GrowingRun::default());
        self.filled += 1;
        // Whatever becomes of old files: no full file is renamed over another one.
        self.number += 1;
        self.number = self.number.max(rotation::prune(&self.path, self.rotate_keep)?);
        Ok(())
    }
}

/// What is not there was renamed or removed before.
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
        let mut lines = JsonLines::open(&config).unwrap();
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
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_file_is_continued_after_a_sudden_end_and_its_index_is_completed() {
        let config = EventLogFile { rotate_size: 1 << 30, ..config("sudden") };
        let mut lines = JsonLines::open(&config).unwrap();
        let many: Vec<Record> = (0..3).flat_map(|_| records(0..5_000)).collect();
        lines.write(&many);
        lines.flush();
        drop(lines);
        // In the middle of a line, and without the run that was not full.
        let length = std::fs::metadata(&config.path).unwrap().len();
        File::options().write(true).open(&config.path).unwrap().set_len(length - 9).unwrap();
        let mut again = JsonLines::open(&config).unwrap();
        again.write(&records(60_000..60_001));
        again.flush();
        let found = ports(&config.path);
        assert_eq!((found.len(), found.last()), (15_000, Some(&60_000)), "the line that was cut off is lost");
        drop(again);
        let indexed = std::fs::metadata(index::path_of(&config.path)).unwrap().len();
        std::fs::write(index::path_of(&config.path), "damaged").unwrap();
        let made_again = JsonLines::open(&config).unwrap();
        assert_eq!(made_again.indexed, indexed);
        assert!(made_again.indexed > 8_000 * 12, "{}", made_again.indexed);
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
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
        let mut lines = JsonLines::open(&config).unwrap();
        lines.write(&records(1..3));
        lines.flush();
        let good = std::mem::replace(&mut lines.file, File::open(&config.path).unwrap());
        lines.write(&records(3..10));
        lines.flush();
        lines.file = good;
        lines.write(&records(10..40));
        lines.flush();
        let full = rotation::full_files(&config.path).unwrap();
        assert_eq!(ports(&full[0].path)[..4], [1, 2, 10, 11]);
        assert_eq!(check_index(&full[0].path), ports(&full[0].path).len());
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_rotation_that_fails_is_tried_again() {
        let config = config("again");
        let mut lines = JsonLines::open(&config).unwrap();
        lines.write(&records(1..20));
        lines.flush();
        // In the way of the new file.
        let good = std::mem::replace(&mut lines.path, config.path.join("nowhere"));
        lines.write(&records(20..30));
        lines.flush();
        assert!(lines.state.row().away_seconds.is_some());
        lines.path = good;
        lines.write(&records(30..40));
        lines.flush();
        assert_eq!((lines.state.row().away_seconds, lines.state.row().lost), (None, 0));
        let full = rotation::full_files(&config.path).unwrap();
        let mut all = ports(&full[0].path);
        assert_eq!(check_index(&full[0].path), all.len());
        all.extend(ports(&config.path));
        assert!(all.iter().copied().eq(1..40), "{all:?}");
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_rotation_that_was_half_done_is_completed() {
        let config = config("half");
        let mut lines = JsonLines::open(&config).unwrap();
        lines.write(&records(1..20));
        lines.flush();
        std::fs::rename(&config.path, rotation::numbered(&config.path, 1)).unwrap();
        lines.write(&records(20..40));
        lines.flush();
        assert_eq!((lines.state.row().away_seconds, lines.state.row().lost), (None, 0));
        let full = rotation::full_files(&config.path).unwrap();
        let mut all = ports(&full[0].path);
        assert_eq!(check_index(&full[0].path), all.len());
        all.extend(ports(&config.path));
        assert!(all.iter().copied().eq(1..40), "{all:?}");
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_file_has_one_writer() {
        let config = config("alone");
        let lines = JsonLines::open(&config).unwrap();
        let refused = JsonLines::open(&config).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some("another process writes it; end that, or write another path"));
        drop(lines);
        assert!(JsonLines::open(&config).is_ok());
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_number_is_logged() {
        let config = EventLogFile { rotate_size: 1 << 30, ..config("refused") };
        let mut lines = JsonLines::open(&config).unwrap();
        lines.write(&records(1..3));
        lines.flush();
        let good = std::mem::replace(&mut lines.file, File::open(&config.path).unwrap());
        lines.write(&records(3..10));
        lines.flush();
        lines.tell_of_losses(1);
        let row = lines.state.row();
        assert_eq!((row.written, row.lost, row.away_seconds), (2, 8, Some(0)));
        lines.file = good;
        lines.write(&records(10..11));
        lines.flush();
        lines.tell_of_losses(2);
        assert_eq!(lines.state.row().away_seconds, None);
        let text = std::fs::read_to_string(&config.path).unwrap();
        let said: Vec<Record> = text.lines().filter_map(|line| Record::read_json(line.as_bytes())).collect();
        assert_eq!(said.len(), 4);
        assert!(matches!(&said[3].event, Event::Lost(8, sink) if sink.ends_with("events.jsonl")), "{text}");
        std::fs::remove_dir_all(config.path.parent().unwrap().parent().unwrap()).unwrap();
    }
}
