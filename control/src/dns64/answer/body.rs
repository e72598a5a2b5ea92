//! An answer's records as they follow the question of a message with that very question name.
//!
//! ```text
//!   header │ QNAME QTYPE QCLASS │ chain │ data │ signatures │ authority │ proofs
//!   12 octets     the client's  └─ answer section ──────────┘ └ authority section ┘
//! ```
//!
//! Names are written compressed against the question name, so that the client's case comes back, and against the targets of the chain, which
//! nothing precedes that is ever left out; never against anything else. So signatures and proofs may be left out, records too, and A
//! records may be written as longer AAAA records: nothing that is pointed at moves.

use super::part::Part;
use super::record::{Layout, Record, rtype};
use crate::dns64::key::Key;
use crate::dns64::name::{Name, expand, labels, same};
use crate::dns64::query::HEADER;

/// Octets of a message on a stream (RFC 1035 §4.2.2), with room left for an OPT record.
const LARGEST: usize = 65_535 - 256;

/// RFC 1035 §4.1.4: a pointer has 14 bits.
const FARTHEST: usize = 0x3fff;

/// Where, in key and body, each part ends, and how many records it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    ends: [u16; Part::ALL.len()],
    counts: [u16; Part::ALL.len()],
}

impl Parts {
    /// No records, behind a key of this length.
    pub(crate) fn none(key: usize) -> Self {
        Self { ends: [key as u16; Part::ALL.len()], counts: [0; Part::ALL.len()] }
    }

    /// The range of a part in a body behind a key of this length.
    pub(crate) fn range(&self, key: usize, part: Part) -> std::ops::Range<usize> {
        let before = (part as usize).checked_sub(1).map_or(key, |at| self.ends[at].into());
        before..usize::from(self.ends[part as usize])
    }

    /// How many records it has.
    pub(crate) fn count(&self, part: Part) -> u16 {
        self.counts[part as usize]
    }
}

/// The key, then the body. `None`: no message would hold it.
pub(super) fn write(key: &Key, records: &[Vec<Record>; Part::ALL.len()]) -> Option<(Box<[u8]>, Parts)> {
    let mut writer = Writer { out: key.octets().to_vec(), key, targets: Vec::new() };
    let mut parts = Parts::none(writer.out.len());
    for part in Part::ALL {
        for record in &records[part as usize] {
            writer.record(record, part == Part::Chain)?;
        }
        if HEADER - 1 + writer.out.len() > LARGEST {
            return None;
        }
        parts.ends[part as usize] = u16::try_from(writer.out.len()).ok()?;
        parts.counts[part as usize] = u16::try_from(records[part as usize].len()).ok()?;
    }
    Some((writer.out.into(), parts))
}

struct Writer<'k> {
    out: Vec<u8>,
    key: &'k Key,
    targets: Vec<Target>,
}

/// A name of the chain that others may point at.
struct Target {
    name: Box<[u8]>,
    /// Its offset in a message.
    at: usize,
    /// The number of its octets there; the rest is pointed at.
    literal: usize,
}

impl Writer<'_> {
    fn record(&mut self, record: &Record, is_chain: bool) -> Option<()> {
        self.name(&record.owner, false);
        self.out.extend_from_slice(&record.rtype.to_be_bytes());
        self.out.extend_from_slice(&self.key.qclass().to_be_bytes());
        self.out.extend_from_slice(&record.ttl.to_be_bytes());
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        self.data(record, is_chain && record.rtype == rtype::CNAME)?;
        let length = u16::try_from(self.out.len() - length_at - 2).ok()?;
        self.out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        Some(())
    }

    fn data(&mut self, record: &Record, is_target: bool) -> Option<()> {
        let data = &record.data;
        let Some(layout) = Layout::of(record.rtype).filter(|layout| layout.compressible) else {
            self.out.extend_from_slice(data);
            return Some(());
        };
        let writer = std::cell::RefCell::new(self);
        let plain = |octets: &[u8]| {
            writer.borrow_mut().out.extend_from_slice(octets);
            Some(())
        };
        layout.walk(data, 0, data.len(), plain, |at| {
            let mut name = Name::new();
            let behind = expand(data, at, &mut name)?;
            writer.borrow_mut().name(&name, is_target);
            Some(behind)
        })
    }

    /// Writes a name; if it `is_target`, later names may point at it.
    fn name(&mut self, name: &[u8], is_target: bool) {
        let found = labels(name).find_map(|at| Some((at, self.pointer_to(&name[at..])?)));
        let literal = found.map_or(name.len(), |(at, _)| at);
        // The header's octets are not here, and CD is, which is in no message.
        let at = HEADER - 1 + self.out.len();
        if is_target && literal != 0 {
            self.targets.push(Target { name: name.into(), at, literal });
        }
        self.out.extend_from_slice(&name[..literal]);
        if let Some((_, pointer)) = found {
            self.out.extend_from_slice(&(0xc000 | pointer as u16).to_be_bytes());
        }
    }

    /// Where in a message the name is already. The root's is no longer than a pointer.
    fn pointer_to(&self, name: &[u8]) -> Option<usize> {
        if name.len() <= 1 {
            return None;
        }
        let within = |whole: &[u8]| {
            let at = whole.len().checked_sub(name.len())?;
            (same(&whole[at..], name) && labels(whole).any(|label| label == at)).then_some(at)
        };
        let of_target = |target: &Target| {
            let at = within(&target.name).filter(|at| *at < target.literal)?;
            Some(target.at + at).filter(|at| *at <= FARTHEST)
        };
        within(self.key.name()).map(|at| HEADER + at).or_else(|| self.targets.iter().find_map(of_target))
    }
}
