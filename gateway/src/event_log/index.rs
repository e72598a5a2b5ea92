//! The index of a log file: which lines are about an outside endpoint. Next to `events.jsonl` it is `events.jsonl.index`.
//!
//! ```text
//!     run:   "6id3"  entries 4  from 8  to 8  earliest 8  latest 8  stepped 8         then, sorted:   key 8  place 4   …
//! ```
//!
//! A run covers the octets of the log from `from` to `to`; `place` counts from `from`. A file that is being written gets a run for each
//! 8,192 lines; when it is full these become one. Numbers are little end first. `earliest` and `latest` are those of the
//! times of its lines: bindings that are listed again have the time at which that began. `stepped` is 1 if the clock was set back there, so
//! that the times of its lines are not in order. An index can always be made again from its log.

use super::notice::Notice;
use super::record::{Event, Record};
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Prefix4, protocol};
use std::fs::File;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 4] = *b"6id3";
/// Octets before the entries of a run.
pub(super) const HEADER: usize = 48;
/// Octets of an entry.
pub(super) const ENTRY: usize = 12;
/// Lines that a run covers, unless its file is full.
pub(super) const RUN_LINES: u32 = 8_192;

/// The keys of lines.
pub(super) type Key = u64;

/// The beginnings of the log.
pub(super) const STARTED: Key = 0;
/// Gaps in it.
pub(super) const LOST: Key = 1;
/// The clock was set.
pub(super) const STEPPED: Key = 2;
/// How translators give port blocks.
pub(super) const MAPPING: Key = 3;

/// Leases have this and the length of their prefix in the last octet of their keys.
const LEASE: u8 = 128;

/// A port block. Its address is not 0, and in place of a protocol it has the binary logarithm of its size.
pub(super) fn key_of_block((address, first): (Ipv4Addr, u16), size: u16) -> Key {
    u64::from(address.to_bits()) << 32 | u64::from(first) << 16 | u64::from(size.ilog2())
}

/// An outside endpoint. No key of one is [`STARTED`], [`LOST`], [`STEPPED`] or [`MAPPING`]: the protocol's number is not 0.
pub(super) fn key_of(nat: NatProtocol, outside: Endpoint4) -> Key {
    let number = match nat {
        NatProtocol::Tcp => protocol::TCP,
        NatProtocol::Udp => protocol::UDP,
        NatProtocol::Icmp => protocol::ICMPV4,
    };
    u64::from(outside.address.to_bits()) << 32 | u64::from(outside.port) << 16 | u64::from(number) << 8
}

/// An outside address of a protocol without ports.
pub(super) fn key_of_portless(protocol: PortlessProtocol, outside: Ipv4Addr) -> Key {
    u64::from(outside.to_bits()) << 32 | u64::from(protocol.number()) << 8
}

/// A lease of an address or prefix. The last octet is that of no block and of no endpoint.
pub(super) fn key_of_lease(ipv4: Prefix4) -> Key {
    u64::from(ipv4.address().to_bits()) << 32 | u64::from(LEASE + ipv4.length())
}

/// The key of a record; `None`: it is not looked for. Sessions are not: their binding is.
pub(super) fn key(record: &Record) -> Option<Key> {
    match &record.event {
        Event::Binding(_, binding) => Some(key_of(binding.protocol, binding.outside)),
        Event::Block(_, block) => Some(key_of_block((block.address, block.first), block.size)),
        Event::Mapping(_) => Some(MAPPING),
        Event::Started => Some(STARTED),
        Event::Lost(..) => Some(LOST),
        Event::Stepped(_) => Some(STEPPED),
        Event::Portless(_, session) => Some(key_of_portless(session.protocol, session.outside)),
        Event::Notice(Notice::Lease(lease)) => Some(key_of_lease(lease.ipv4)),
        Event::Session(..) | Event::Stopped | Event::Limit(..) => None,
        Event::Notice(Notice::Alarm(_) | Notice::Subscriber { .. }) => None,
    }
}

/// Times of lines, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) earliest: u64,
    pub(super) latest: u64,
    /// Whether the clock was set back: later lines may have earlier times.
    pub(super) is_stepped: bool,
}

impl Times {
    /// Of no lines.
    pub(super) const NONE: Self = Self { earliest: u64::MAX, latest: 0, is_stepped: false };

    /// With those of others.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            earliest: self.earliest.min(other.earliest),
            latest: self.latest.max(other.latest),
            is_stepped: self.is_stepped || other.is_stepped,
        }
    }

    /// With that of a record.
    pub(super) fn and_of(self, record: &Record) -> Self {
        let is_stepped = matches!(record.event, Event::Stepped(by) if by < 0);
        self.and(Self { earliest: record.micros, latest: record.micros, is_stepped })
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) entries: u32,
    /// The first octet of the log that it covers, and the first that it does not.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The times of its lines.
    pub(super) times: Times,
    /// Where its entries begin in the index.
    pub(super) at: u64,
}

impl Run {
    /// Where the next run begins.
    pub(super) const fn end(&self) -> u64 {
        self.at + self.entries as u64 * ENTRY as u64
    }

    /// The run whose header this is, read at `place`.
    pub(super) fn read(header: &[u8; HEADER], place: u64) -> Option<Self> {
        let (magic, rest) = header.split_first_chunk::<4>()?;
        let (entries, rest) = rest.split_first_chunk::<4>()?;
        let mut numbers =
            rest.chunks_exact(8).filter_map(|octets| Some(u64::from_le_bytes(octets.try_into().ok()?)));
        let (from, to) = (numbers.next()?, numbers.next()?);
        let (earliest, latest, is_stepped) = (numbers.next()?, numbers.next()?, numbers.next()? != 0);
        let (at, times) = (place + HEADER as u64, Times { earliest, latest, is_stepped });
        let run = Self { entries: u32::from_le_bytes(*entries), from, to, times, at };
        (*magic == MAGIC && from <= to).then_some(run)
    }
}

/// The octets of an entry.
pub(super) fn entry(octets: &[u8]) -> Option<(Key, u32)> {
    let (key, place) = octets.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*key), u32::from_le_bytes(*place.first_chunk()?)))
}

/// Where the index of a log file is.
pub(super) fn path_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".index");
    name.into()
}

/// The run that grows in memory.
#[derive(Debug)]
pub(super) struct GrowingRun {
    entries: Vec<(Key, u32)>,
    lines: u32,
    from: u64,
    times: Times,
}

impl GrowingRun {
    /// An empty one that begins at this octet of the log.
    pub(super) fn at(from: u64) -> Self {
        Self { entries: Vec::new(), lines: 0, from, times: Times::NONE }
    }

    /// A line begins at this octet.
    pub(super) fn add(&mut self, record: &Record, place: u64) {
        self.times = self.times.and_of(record);
        self.lines += 1;
        if let (Some(key), Ok(place)) = (key(record), u32::try_from(place - self.from)) {
            self.entries.push((key, place));
        }
    }

    /// The lines from this octet on were not written: this number of them.
    pub(super) fn cut(&mut self, from: u64, lines: u32) {
        self.lines = self.lines.saturating_sub(lines);
        self.entries.retain(|(_, place)| self.from + u64::from(*place) < from);
    }

    /// Whether it is to be written.
    pub(super) const fn is_full(&self) -> bool {
        self.lines >= RUN_LINES
    }

    /// Appends it to the index, whose end is `end`, and begins another. The log is complete up to `to`. Returns the index's new end.
    ///
    /// # Errors
    /// The kernel's. The run stays, and can be written again.
    pub(super) fn write(&mut self, index: &File, end: u64, to: u64) -> io::Result<u64> {
        if self.lines == 0 {
            return Ok(end);
        }
        let octets = octets(&mut self.entries, (self.from, to), self.times);
        index.write_all_at(&octets, end)?;
        *self = Self::at(to);
        Ok(end + octets.len() as u64)
    }
}

fn octets(entries: &mut [(Key, u32)], (from, to): (u64, u64), times: Times) -> Vec<u8> {
    entries.sort_unstable();
    let mut octets = Vec::with_capacity(HEADER + entries.len() * ENTRY);
    octets.extend(MAGIC);
    octets.extend((entries.len() as u32).to_le_bytes());
    let Times { earliest, latest, is_stepped } = times;
    octets.extend([from, to, earliest, latest, is_stepped.into()].into_iter().flat_map(u64::to_le_bytes));
    for (key, place) in entries {
        octets.extend(key.to_le_bytes());
        octets.extend(place.to_le_bytes());
    }
    octets
}

/// The runs of an index that fit together and cover no more than this many octets of the log.
pub(super) fn runs(index: &File, log: u64) -> io::Result<Vec<Run>> {
    let (mut runs, mut place, mut covered) = (Vec::new(), 0, 0);
    let length = index.metadata()?.len();
    let mut header = [0; HEADER];
    while place + HEADER as u64 <= length {
        index.read_exact_at(&mut header, place)?;
        let Some(run) = Run::read(&header, place) else { break };
        if run.from != covered || run.to > log || run.end() > length {
            break;
        }
        (place, covered) = (run.end(), run.to);
        runs.push(run);
    }
    Ok(runs)
}

/// Writes the runs of a full file as one, to another file.
///
/// # Errors
/// The kernel's.
pub(super) fn merge(index: &File, log: u64, into: &mut File) -> io::Result<()> {
    into.set_len(0)?;
    let mut all = Vec::new();
    let runs = runs(index, log)?;
    for run in &runs {
        let mut octets = vec![0; run.entries as usize * ENTRY];
        index.read_exact_at(&mut octets, run.at)?;
        let entries = octets.chunks_exact(ENTRY).filter_map(entry);
        all.extend(
            entries.filter_map(|(key, place)| Some((key, u32::try_from(run.from + u64::from(place)).ok()?))),
        );
    }
    if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
        let times = runs.iter().fold(Times::NONE, |times, run| times.and(run.times));
        into.write_all(&octets(&mut all, (first.from, last.to), times))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::Phase;
    use super::super::record::tests::binding;
    use super::*;

    fn record(micros: u64, port: u16) -> Record {
        let binding = binding("[2001:db8::1]:5", &format!("192.0.2.1:{port}"));
        Record { micros, event: Event::Binding(Phase::Created, binding) }
    }

    fn entries(index: &File, run: &Run) -> Vec<(Key, u32)> {
        let mut octets = vec![0; run.entries as usize * ENTRY];
        index.read_exact_at(&mut octets, run.at).unwrap();
        octets.chunks_exact(ENTRY).filter_map(entry).collect()
    }

    #[test]
    fn runs_are_written_one_after_the_other_and_become_one() {
        let path = std::env::temp_dir().join(format!("sixway-index-{}", std::process::id()));
        let open = |path: &Path| {
            std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).unwrap()
        };
        let index = open(&path);
        let mut growing = GrowingRun::at(0);
        growing.add(&record(101, 9), 0);
        growing.add(&record(90, 7), 50);
        growing.add(&record(99, 8), 100);
        growing.cut(100, 1);
        let end = growing.write(&index, 0, 100).unwrap();
        assert_eq!(growing.write(&index, end, 100).unwrap(), end, "an empty run is not written");
        growing.add(&record(102, 7), 100);
        growing.add(&Record { micros: 102, event: Event::Stepped(-5) }, 140);
        let end = growing.write(&index, end, 150).unwrap();
        let found = runs(&index, 150).unwrap();
        let times = |run: &Run| (run.times.earliest, run.times.latest, run.times.is_stepped);
        let covered: Vec<_> = found.iter().map(|run| (run.from, run.to, times(run), run.entries)).collect();
        assert_eq!(covered, [(0, 100, (90, 101, false), 2), (100, 150, (102, 102, true), 2)]);
        let at = |port| key_of(NatProtocol::Udp, Endpoint4::new("192.0.2.1".parse().unwrap(), port));
        assert_eq!(entries(&index, &found[0]), [(at(7), 50), (at(9), 0)]);
        assert_eq!(runs(&index, 149).unwrap().len(), 1, "the log is shorter than it was");
        let merged_path = path.with_extension("merged");
        let mut merged = open(&merged_path);
        merge(&index, 150, &mut merged).unwrap();
        let one = runs(&merged, 150).unwrap();
        assert_eq!((one.len(), times(&one[0]), one[0].to), (1, (90, 102, true), 150));
        assert_eq!(entries(&merged, &one[0]), [(STEPPED, 140), (at(7), 50), (at(7), 100), (at(9), 0)]);
        index.set_len(end - 1).unwrap();
        assert_eq!(runs(&index, 150).unwrap().len(), 1, "a run that was cut off");
        for file in [path, merged_path] {
            std::fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn keys_of_endpoints_are_different() {
        let address = "255.255.255.255".parse().unwrap();
        let keys: std::collections::BTreeSet<Key> = NatProtocol::ALL
            .into_iter()
            .flat_map(|protocol| [0, 1, 65_535].map(|port| key_of(protocol, Endpoint4::new(address, port))))
            .chain([
                STARTED,
                LOST,
                STEPPED,
                key_of(NatProtocol::Icmp, Endpoint4::new("0.0.0.0".parse().unwrap(), 0)),
            ])
            .chain(PortlessProtocol::ALL.map(|protocol| key_of_portless(protocol, address)))
            .collect();
        assert_eq!(keys.len(), 17);
    }
}
