//! Records that are still to be sent to a server, in order: a bounded number of records in memory, or all of them in the spool.

use super::record::Record;
use super::spool::Spool;
use std::collections::VecDeque;
use std::io;

/// Records in memory. If there are more, all go to the spool, and those that follow them too, until it is empty.
const MEMORY: usize = 8_192;

/// The records.
pub(super) struct Backlog {
    /// The first of the spool, which are still there, and the octets of their lines.
    first: VecDeque<(Record, u64)>,
    spool: Spool,
    /// Those after the spool. Empty unless the spool is.
    memory: VecDeque<Record>,
}

impl Backlog {
    pub(super) const fn new(spool: Spool) -> Self {
        Self { first: VecDeque::new(), spool, memory: VecDeque::new() }
    }

    /// Octets in the spool.
    pub(super) fn octets(&self) -> u64 {
        self.spool.octets()
    }

    /// Why the spool cannot be opened.
    pub(super) fn fault(&mut self) -> Option<String> {
        self.spool.fault()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.spool.octets() == 0
    }

    /// Appends records; how many found no room.
    pub(super) fn push(&mut self, records: &[Record]) -> usize {
        if self.spool.octets() == 0 {
            if self.memory.len() + records.len() <= MEMORY {
                self.memory.extend(records.iter().cloned());
                return 0;
            }
            if !self.spool.is_there() {
                let room = MEMORY - self.memory.len();
                self.memory.extend(records.iter().take(room).cloned());
                return records.len() - room;
            }
        }
        // What was in memory comes first.
        self.memory.extend(records.iter().cloned());
        self.spill()
    }

    /// What is in memory goes to the spool, where it outlives the process; how many records found no room.
    pub(super) fn spill(&mut self) -> usize {
        if self.memory.is_empty() || !self.spool.is_there() {
            return 0;
        }
        let all: Vec<Record> = std::mem::take(&mut self.memory).into();
        all.len() - self.spool.append(&all)
    }

    /// The first records that wait; not all of them.
    pub(super) fn head(&mut self) -> impl Iterator<Item = &Record> {
        self.read();
        let memory = if self.spool.octets() == 0 { Some(&self.memory) } else { None };
        self.first.iter().map(|(record, _)| record).chain(memory.into_iter().flatten())
    }

    fn read(&mut self) {
        while self.first.is_empty() && self.spool.octets() > 0 {
            match self.spool.first() {
                Ok(first) => self.first = first.into(),
                Err(error) => {
                    tracing::warn!("event log: a spool: {error}");
                    return;
                }
            }
        }
    }

    /// The first records were sent. They may have gone from memory to the spool since.
    pub(super) fn advance(&mut self, records: usize) {
        let mut left = records;
        while left > 0 && self.spool.octets() > 0 {
            self.read();
            let spooled = left.min(self.first.len());
            if spooled == 0 {
                return;
            }
            let octets = self.first.drain(..spooled).map(|(_, octets)| octets).sum();
            if let Err(error) = self.spool.advance(octets) {
                tracing::warn!("event log: a spool: {error}");
            }
            left -= spooled;
        }
        self.memory.drain(..left.min(self.memory.len()));
    }

    /// Writes down what was sent.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn keep_place(&mut self) -> io::Result<()> {
        self.spool.keep_place()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Event;
    use super::*;

    fn records(numbers: std::ops::Range<usize>) -> Vec<Record> {
        numbers.map(|number| Record { micros: number as u64, event: Event::Started }).collect()
    }

    fn backlog(name: &str, most: u64) -> (Backlog, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("sixway-backlog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        (Backlog::new(Spool::open(&path, most)), path)
    }

    /// Takes all, some at a time.
    fn all(backlog: &mut Backlog, at_a_time: usize) -> Vec<Record> {
        let mut found = Vec::new();
        while !backlog.is_empty() {
            let some: Vec<Record> = backlog.head().take(at_a_time).cloned().collect();
            assert!(!some.is_empty());
            backlog.advance(some.len());
            found.extend(some);
        }
        found
    }

    #[test]
    fn the_order_is_kept_whether_records_are_in_memory_or_in_the_spool() {
        let (mut backlog, path) = backlog("order", 64 << 20);
        assert_eq!(backlog.push(&records(0..MEMORY)), 0);
        assert_eq!((backlog.octets(), backlog.head().count()), (0, MEMORY));
        // A message is under way that has more records than are read from the spool at a time; they go to the spool meanwhile.
        assert_eq!(backlog.push(&records(MEMORY..2 * MEMORY)), 0);
        assert!(backlog.octets() > 0);
        backlog.advance(3_000);
        assert_eq!(backlog.push(&records(2 * MEMORY..2 * MEMORY + 5)), 0, "they follow the others");
        assert_eq!(all(&mut backlog, 700), records(3_000..2 * MEMORY + 5));
        assert_eq!(backlog.push(&records(1..3)), 0);
        assert_eq!((backlog.octets(), backlog.spill()), (0, 0));
        assert!(backlog.octets() > 0 && all(&mut backlog, 1) == records(1..3));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (mut full, path) = backlog("full", 6_500);
        assert_eq!(full.push(&records(0..MEMORY + 10)), MEMORY + 10 - 106);
        assert_eq!(all(&mut full, 50), records(0..106));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let mut without = Backlog::new(Spool::open(&path, 6_500));
        assert_eq!(without.push(&records(0..MEMORY + 10)), 10, "the first ones stay in memory");
        assert_eq!((without.push(&records(0..1)), without.spill()), (1, 0));
        assert_eq!(all(&mut without, 50), records(0..MEMORY));
        std::fs::remove_dir(path).unwrap();
    }
}
