//! Records for a server that cannot be reached: lines of JSON in a file of bounded size, oldest first. It outlives the process.
//!
//! ```text
//!     "done" and the place of the first line that was not sent, 32 octets        lines …
//! ```
//!
//! The place is written after each 64 KiB that were sent, and at the end. After a sudden end, up to 64 KiB are sent again.

use super::file_access::{FileAccess, refused};
use super::port_block::LONGEST_LINE;
use super::record::Record;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Octets that are read at a time, and after which the place is written.
const CHUNK: usize = 64 << 10;
/// Octets before the first line.
const HEADER: u64 = 32;
/// Between two attempts to open it.
const RETRY: Duration = Duration::from_secs(1);
/// It is compacted if this part of it is free: less would copy the rest too often.
const FREE_PART: u64 = 8;

/// The spool.
pub(super) struct Spool {
    path: PathBuf,
    most: u64,
    /// `None`: it could not be opened.
    open: Option<Open>,
    fault: Option<io::Error>,
    retry: Instant,
}

/// The file.
struct Open {
    file: File,
    /// The place of the first line that was not sent, and the same in the file.
    done: u64,
    written_done: u64,
    length: u64,
}

impl Spool {
    /// Opens it, with what another process left there. If that fails, it is tried again when there are records for it.
    pub(super) fn open(path: &Path, most: u64) -> Self {
        let mut spool = Self { path: path.to_owned(), most, open: None, fault: None, retry: Instant::now() };
        spool.try_to_open();
        spool
    }

    /// Why it cannot be opened.
    pub(super) fn fault(&mut self) -> Option<String> {
        self.is_there();
        self.fault.as_ref().map(|error| refused("log.spool", &self.path, error))
    }

    /// Whether it is open; if not, it is tried from time to time.
    pub(super) fn is_there(&mut self) -> bool {
        if self.open.is_none() && Instant::now() >= self.retry {
            self.try_to_open();
        }
        self.open.is_some()
    }

    fn try_to_open(&mut self) {
        match Open::new(&self.path) {
            Ok(open) => (self.open, self.fault) = (Some(open), None),
            Err(error) => (self.fault, self.retry) = (Some(error), Instant::now() + RETRY),
        }
    }

    /// Octets that wait.
    pub(super) fn octets(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.length - open.done)
    }

    /// Appends records as long as there is room; how many.
    pub(super) fn append(&mut self, records: &[Record]) -> usize {
        if !self.is_there() {
            return 0;
        }
        let (waiting, most) = (self.octets() + HEADER, self.most);
        let Some(open) = &mut self.open else { return 0 };
        let (mut octets, mut taken) = (Vec::new(), 0);
        for record in records {
            let before = octets.len();
            record.write_json(&mut octets);
            if waiting + octets.len() as u64 > most {
                octets.truncate(before);
                break;
            }
            taken += 1;
        }
        if open.length + octets.len() as u64 > most {
            let is_worth_it = (open.done - HEADER) * FREE_PART >= most;
            match is_worth_it.then(|| Open::compacted(&self.path, &open.file, open.done..open.length)) {
                Some(Ok(compacted)) => *open = compacted,
                Some(Err(_)) | None => return 0,
            }
        }
        open.append(&octets).map_or(0, |()| taken)
    }

    /// The first waiting records, and the octets of their lines; none: it is empty. Lines that are not records are skipped.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn first(&mut self) -> io::Result<Vec<(Record, u64)>> {
        self.open.as_mut().map_or_else(|| Ok(Vec::new()), Open::first)
    }

    /// The first octets were sent.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn advance(&mut self, octets: u64) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.advance(octets))
    }

    /// Stores the position of sent records, so that the next process does not send them again.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn keep_place(&mut self) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), Open::write_done)
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = FileAccess::private().open_alone(path)?;
        let length = file.metadata()?.len();
        let mut header = [0; HEADER as usize];
        let is_read = length >= HEADER && file.read_exact_at(&mut header, 0).is_ok();
        match done_of(&header).filter(|_| is_read) {
            Some(done) => {
                // It was emptied, and the place was not written yet.
                let done = if done > length { HEADER } else { done };
                let mut open = Self { file, done, written_done: done, length };
                open.cut_torn_line()?;
                Ok(open)
            }
            None if length == 0 => {
                file.write_all_at(header_of(HEADER).as_bytes(), 0)?;
                Ok(Self { file, done: HEADER, written_done: HEADER, length: HEADER })
            }
            // Lines without a place before them.
            None => {
                let mut open = Self::compacted(path, &file, 0..length)?;
                open.cut_torn_line()?;
                Ok(open)
            }
        }
    }

    /// The last line, if a crash has cut it: the next record would be part of it.
    fn cut_torn_line(&mut self) -> io::Result<()> {
        let from = self.done.max(self.length.saturating_sub(LONGEST_LINE as u64));
        let mut octets = vec![0; (self.length - from) as usize];
        self.file.read_exact_at(&mut octets, from)?;
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last as u64 + 1);
        self.length = from + whole;
        self.file.set_len(self.length)
    }

    fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(octets, self.length);
        match written {
            Ok(()) => self.length += octets.len() as u64,
            // The beginning of a line must not be there. If it stays, it is skipped when it is read.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }

    fn first(&mut self) -> io::Result<Vec<(Record, u64)>> {
        let mut octets = vec![0; CHUNK];
        let count = self.file.read_at(&mut octets, self.done)?;
        octets.truncate(count);
        let Some(last) = octets.iter().rposition(|octet| *octet == b'\n') else {
            // What is not a line; nothing of it could be sent.
            self.clear()?;
            return Ok(Vec::new());
        };
        let (mut records, mut skipped) = (Vec::new(), 0);
        for line in octets[..=last].split_inclusive(|octet| *octet == b'\n') {
            skipped += line.len() as u64;
            if let Some(record) = Record::read_json(line) {
                records.push((record, skipped));
                skipped = 0;
            }
        }
        if records.is_empty() {
            self.advance(last as u64 + 1)?;
        }
        Ok(records)
    }

    fn advance(&mut self, octets: u64) -> io::Result<()> {
        self.done += octets;
        if self.done >= self.length {
            return self.clear();
        }
        if self.done - self.written_done >= CHUNK as u64 { self.write_done() } else { Ok(()) }
    }

    fn write_done(&mut self) -> io::Result<()> {
        self.file.write_all_at(header_of(self.done).as_bytes(), 0)?;
        self.written_done = self.done;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        (self.done, self.length) = (HEADER, HEADER);
        // In this order: a place behind the end is that of an empty file.
        self.file.set_len(HEADER)?;
        self.write_done()
    }

    /// A new file with a part of an old one, which it replaces.
    fn compacted(path: &Path, old: &File, part: std::ops::Range<u64>) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let file = FileAccess::private().open_alone(&new)?;
        file.set_len(0)?;
        file.write_all_at(header_of(HEADER).as_bytes(), 0)?;
        let (mut from, mut length) = (part.start, HEADER);
        let mut octets = vec![0; CHUNK];
        while from < part.end {
            let count = old.read_at(&mut octets, from)?;
            if count == 0 {
                break;
            }
            file.write_all_at(&octets[..count], length)?;
            from += count as u64;
            length += count as u64;
        }
        std::fs::rename(&new, path)?;
        Ok(Self { file, done: HEADER, written_done: HEADER, length })
    }
}

fn header_of(done: u64) -> String {
    format!("done {done:020}      \n")
}

fn done_of(header: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(header).ok()?.strip_prefix("done ")?.strip_suffix("      \n")?;
    digits.parse().ok().filter(|done| *done >= HEADER)
}

#[cfg(test)]
mod tests {
    use super::super::record::Event;
    use super::*;

    fn records(numbers: std::ops::Range<u64>) -> Vec<Record> {
        numbers.map(|micros| Record { micros: 1_000_000_000 + micros, event: Event::Started }).collect()
    }

    fn file(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("sixway-spool-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn all(spool: &mut Spool) -> Vec<Record> {
        let mut found = Vec::new();
        loop {
            let first = spool.first().unwrap();
            if first.is_empty() {
                return found;
            }
            for (record, octets) in first {
                spool.advance(octets).unwrap();
                found.push(record);
            }
        }
    }

    #[test]
    fn what_waits_comes_out_in_order_and_is_bounded() {
        let path = file("order");
        let mut spool = Spool::open(&path, 6_500);
        let all_records = records(0..200);
        let line = 61;
        let taken = spool.append(&all_records);
        assert_eq!((taken, spool.octets()), (6_500 / line, (6_500 / line * line) as u64));
        assert_eq!(spool.append(&all_records[..1]), 0, "it is full");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), spool.octets() + HEADER);
        // After a few are sent, the file is not rewritten. After half of it, there is room again.
        for (place, (_, octets)) in spool.first().unwrap().into_iter().take(50).enumerate() {
            spool.advance(octets).unwrap();
            if place == 10 {
                assert_eq!(spool.append(&all_records[..1]), 0);
            }
        }
        assert_eq!(spool.append(&all_records[106..126]), 20);
        assert!(std::fs::metadata(&path).unwrap().len() <= 6_500);
        // The rest is for the next process.
        for (_, octets) in spool.first().unwrap().into_iter().take(7) {
            spool.advance(octets).unwrap();
        }
        spool.keep_place().unwrap();
        drop(spool);
        let mut again = Spool::open(&path, 6_500);
        let wanted: Vec<Record> = all_records[57..126].to_vec();
        assert_eq!(all(&mut again), wanted);
        assert_eq!((again.octets(), std::fs::metadata(&path).unwrap().len()), (0, HEADER));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_process_that_ends_suddenly_leaves_little_to_be_sent_again() {
        let path = file("sudden");
        let mut spool = Spool::open(&path, 1 << 30);
        assert_eq!(spool.append(&records(0..10_000)), 10_000);
        let mut sent = 0;
        while sent < 9_000 {
            for (_, octets) in spool.first().unwrap().into_iter().take(100) {
                spool.advance(octets).unwrap();
                sent += 1;
            }
        }
        drop(spool);
        let mut again = Spool::open(&path, 1 << 30);
        let left = all(&mut again);
        assert!((1_000..1_000 + 2 * CHUNK / 61).contains(&left.len()), "{}", left.len());
        assert_eq!(left.last(), records(9_999..10_000).last());
        // Emptied, and the place was not written.
        std::fs::write(&path, header_of(50_000)).unwrap();
        drop(again);
        let mut emptied = Spool::open(&path, 1 << 20);
        assert_eq!((emptied.append(&records(0..3)), all(&mut emptied)), (3, records(0..3)));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_damaged_is_skipped_and_a_line_that_was_cut_does_not_spoil_the_next() {
        for header in [header_of(HEADER), String::new()] {
            let path = file("damaged");
            let mut octets = header.into_bytes();
            octets.extend(b"not a line\n");
            records(0..2).iter().for_each(|record| record.write_json(&mut octets));
            octets.extend(b"{\"time\":");
            std::fs::write(&path, octets).unwrap();
            let mut spool = Spool::open(&path, 1 << 20);
            assert_eq!(spool.append(&records(2..3)), 1);
            assert_eq!(all(&mut spool), records(0..3));
            assert_eq!(spool.octets(), 0);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_spool_that_cannot_be_opened_is_tried_again() {
        let path = file("refused");
        std::fs::create_dir(&path).unwrap();
        let mut spool = Spool::open(&path, 1 << 20);
        assert!(spool.fault().is_some());
        assert_eq!((spool.append(&records(0..1)), spool.octets(), all(&mut spool).len()), (0, 0, 0));
        std::fs::remove_dir(&path).unwrap();
        assert!(!spool.is_there(), "not yet");
        spool.retry = Instant::now();
        assert_eq!((spool.append(&records(0..1)), spool.fault().is_none()), (1, true));
        std::fs::remove_file(&path).unwrap();
    }
}
