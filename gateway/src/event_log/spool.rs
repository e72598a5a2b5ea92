//! What waits for a server that is away: lines of JSON in a file of bounded size, oldest first. It outlives the process.

use super::file_access::FileAccess;
use super::record::Record;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Octets that are read at a time.
const CHUNK: usize = 64 << 10;

/// The file.
pub(super) struct Spool {
    file: File,
    /// Octets at its beginning that are done with.
    done: u64,
    length: u64,
    most: u64,
}

impl Spool {
    /// Opens it, with what another process left there.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(path: &Path, most: u64) -> io::Result<Self> {
        let file = FileAccess::private().open_alone(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, done: 0, length, most })
    }

    /// Octets that wait.
    pub(super) const fn octets(&self) -> u64 {
        self.length - self.done
    }

    /// Appends records as long as there is room; how many.
    pub(super) fn append(&mut self, records: &[Record]) -> usize {
        let mut octets = Vec::new();
        let mut taken = 0;
        for record in records {
            let before = octets.len();
            record.write_json(&mut octets);
            if self.octets() + octets.len() as u64 > self.most {
                octets.truncate(before);
                break;
            }
            taken += 1;
        }
        if self.done > 0 && self.length + octets.len() as u64 > self.most && self.compact().is_err() {
            return 0;
        }
        match self.file.write_all_at(&octets, self.length) {
            Ok(()) => self.length += octets.len() as u64,
            Err(_) => {
                // The beginning of a line must not be there. If it stays, it is skipped when it is read.
                let _ = self.file.set_len(self.length);
                taken = 0;
            }
        }
        taken
    }

    /// The first records that wait, and the octets of their lines; none: it is empty. What is not a record is skipped.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn first(&mut self) -> io::Result<Vec<(Record, u64)>> {
        let mut octets = vec![0; CHUNK];
        let count = self.file.read_at(&mut octets, self.done)?;
        octets.truncate(count);
        let Some(last) = octets.iter().rposition(|octet| *octet == b'\n') else {
            // A line that was cut off: nothing follows it.
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

    /// The first octets are done with.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn advance(&mut self, octets: u64) -> io::Result<()> {
        self.done += octets;
        if self.done >= self.length {
            self.clear()?;
        }
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        (self.done, self.length) = (0, 0);
        self.file.set_len(0)
    }

    /// Moves what waits to the beginning of the file, so that it is not sent again by the next process, and leaves room at the end.
    pub(super) fn compact(&mut self) -> io::Result<()> {
        let (mut from, mut to) = (self.done, 0);
        let mut octets = vec![0; CHUNK];
        while from < self.length {
            let count = self.file.read_at(&mut octets, from)?;
            if count == 0 {
                break;
            }
            self.file.write_all_at(&octets[..count], to)?;
            from += count as u64;
            to += count as u64;
        }
        (self.done, self.length) = (0, to);
        self.file.set_len(to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Event;
    use super::*;

    fn records(numbers: std::ops::Range<u64>) -> Vec<Record> {
        numbers.map(|micros| Record { micros: 1_000_000_000 + micros, event: Event::Started }).collect()
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
        let path = std::env::temp_dir().join(format!("sixway-spool-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut spool = Spool::open(&path, 6_500).unwrap();
        let all_records = records(0..200);
        let line = 61;
        let taken = spool.append(&all_records);
        assert_eq!((taken, spool.octets()), (6_500 / line, (6_500 / line * line) as u64));
        assert_eq!(spool.append(&all_records[..1]), 0, "it is full");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), spool.octets());
        // Half of it goes; the rest is there for the next process, and there is room again.
        for (_, octets) in spool.first().unwrap().into_iter().take(50) {
            spool.advance(octets).unwrap();
        }
        assert_eq!(spool.append(&all_records[106..126]), 20);
        assert!(std::fs::metadata(&path).unwrap().len() <= 6_500);
        spool.compact().unwrap();
        drop(spool);
        let mut again = Spool::open(&path, 6_500).unwrap();
        let wanted: Vec<Record> = all_records[50..126].to_vec();
        assert_eq!(all(&mut again), wanted);
        assert_eq!((again.octets(), std::fs::metadata(&path).unwrap().len()), (0, 0));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_damaged_is_skipped() {
        let path = std::env::temp_dir().join(format!("sixway-spool-damaged-{}", std::process::id()));
        let mut octets = b"not a line\n".to_vec();
        records(0..2).iter().for_each(|record| record.write_json(&mut octets));
        octets.extend(b"{\"time\":");
        std::fs::write(&path, octets).unwrap();
        let mut spool = Spool::open(&path, 1 << 20).unwrap();
        assert_eq!(all(&mut spool), records(0..2));
        assert_eq!(spool.octets(), 0);
        std::fs::remove_file(&path).unwrap();
    }
}
