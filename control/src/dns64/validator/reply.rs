//! A message as a validator sees it: RRsets with their signatures.

use super::{limits, name, rdata};
use crate::Instant;
use crate::dns64::Wire;
use crate::dns64::answer::{Answer, Part};

/// RRSIG (RFC 4034 §3).
const RRSIG: u16 = 46;
/// IN.
const INTERNET: u16 = 1;

/// A message, as RRsets with their signatures; names uncompressed, and all of it in canonical form (RFC 4034 §6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub(super) rcode: u8,
    pub(super) answer: Vec<Rrset>,
    pub(super) authority: Vec<Rrset>,
}

/// A message that cannot be validated: it is cut, malformed, or has more RRsets than any honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Records of one owner and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rrset {
    /// In lower case.
    pub(super) owner: Wire,
    pub(super) rtype: u16,
    /// The least of its records'.
    pub(super) ttl: u32,
    /// In canonical order, each once.
    pub(super) rdatas: Vec<Box<[u8]>>,
    pub(super) signatures: Vec<Rrsig>,
}

/// A signature (RFC 4034 §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rrsig {
    pub(super) algorithm: u8,
    pub(super) labels: u8,
    pub(super) original_ttl: u32,
    pub(super) expiration: u32,
    pub(super) inception: u32,
    pub(super) key_tag: u16,
    /// In lower case.
    pub(super) signer: Wire,
    pub(super) signature: Box<[u8]>,
    /// RDATA up to the signature, in canonical form: what is signed begins with it.
    pub(super) head: Box<[u8]>,
}

impl Reply {
    /// An answer from the cache, whole: a chain that is unfinished is to be joined with the rest of it first.
    ///
    /// # Errors
    /// When it exceeds the validator's limits.
    pub fn of(answer: &Answer, now: Instant) -> Result<Self, Unreadable> {
        let mut reply = Self { rcode: answer.rcode().try_into().map_err(|_| Unreadable)?, ..Self::default() };
        for part in Part::ALL {
            let section = match part {
                Part::Chain | Part::Data | Part::Signatures => &mut reply.answer,
                Part::Authority | Part::Proofs => &mut reply.authority,
            };
            for record in answer.records(part) {
                let rdata = rdata::canonical(&record.data, 0, record.data.len(), record.rtype);
                let (owner, ttl) =
                    (record.owner.to_ascii_lowercase(), record.ttl.saturating_sub(answer.age(now)));
                admit(section, owner, record.rtype, ttl, rdata.ok_or(Unreadable)?).ok_or(Unreadable)?;
            }
        }
        reply.settle();
        Ok(reply)
    }

    /// Reads a DNS message, header and question included. The additional section is not looked at.
    ///
    /// # Errors
    /// When it cannot be read, or exceeds the validator's limits.
    pub fn read(message: &[u8]) -> Result<Self, Unreadable> {
        Self::parse(message).ok_or(Unreadable)
    }

    fn parse(message: &[u8]) -> Option<Self> {
        let rcode = message.get(3)? & 15;
        let mut at = 12;
        for _ in 0..number(message, 4)? {
            at = rdata::name(message, at, &mut Vec::new())? + 4;
        }
        let mut reply = Self { rcode, ..Self::default() };
        for (count, section) in [(6, &mut reply.answer), (8, &mut reply.authority)] {
            for _ in 0..number(message, count)? {
                at = record(message, at, section)?;
            }
        }
        reply.settle();
        Some(reply)
    }

    /// RFC 4034 §6.3: records in canonical order, without duplicates. Signatures of what is not there sign nothing.
    fn settle(&mut self) {
        for section in [&mut self.answer, &mut self.authority] {
            section.retain(|set| !set.rdatas.is_empty());
            for set in section {
                set.rdatas.sort_unstable();
                set.rdatas.dedup();
            }
        }
    }
}

/// Reads the record at `at`, puts it where it belongs, and says where it ends.
fn record(message: &[u8], at: usize, section: &mut Vec<Rrset>) -> Option<usize> {
    let mut owner = Vec::new();
    let at = rdata::name(message, at, &mut owner)?;
    let (rtype, class) = (number(message, at)?, number(message, at + 2)?);
    let ttl = u32::from(number(message, at + 4)?) << 16 | u32::from(number(message, at + 6)?);
    // RFC 2181 §8: the highest bit means zero.
    let ttl = if ttl >> 31 == 0 { ttl } else { 0 };
    let start = at + 10;
    let end = start + usize::from(number(message, at + 8)?);
    message.get(..end)?;
    if class == INTERNET {
        let rdata = rdata::canonical(message, start, end, rtype)?;
        owner.make_ascii_lowercase();
        admit(section, owner, rtype, ttl, rdata)?;
    }
    Some(end)
}

/// Puts a record to those of its owner and type.
fn admit(section: &mut Vec<Rrset>, owner: Vec<u8>, rtype: u16, ttl: u32, rdata: Box<[u8]>) -> Option<()> {
    let signed = if rtype == RRSIG { number(&rdata, 0)? } else { rtype };
    let found = section.iter().position(|set| set.rtype == signed && *set.owner.0 == *owner);
    let place = found.unwrap_or(section.len());
    if found.is_none() {
        if section.len() == limits::RRSETS {
            return None;
        }
        let owner = Wire(owner.into());
        section.push(Rrset { owner, rtype: signed, ttl, rdatas: Vec::new(), signatures: Vec::new() });
    }
    let set = section.get_mut(place)?;
    if rtype != RRSIG {
        set.ttl = set.ttl.min(ttl);
        set.rdatas.push(rdata);
    } else if set.signatures.len() < limits::SIGNATURES {
        set.signatures.push(signature(&rdata)?);
    }
    Some(())
}

/// RFC 4034 §3.1, from RDATA in canonical form.
fn signature(rdata: &[u8]) -> Option<Rrsig> {
    let mut signer = Vec::new();
    let end = rdata::name(rdata, 18, &mut signer)?;
    let long = |at| Some(u32::from(number(rdata, at)?) << 16 | u32::from(number(rdata, at + 2)?));
    Some(Rrsig {
        algorithm: *rdata.get(2)?,
        labels: *rdata.get(3)?,
        original_ttl: long(4)?,
        expiration: long(8)?,
        inception: long(12)?,
        key_tag: number(rdata, 16)?,
        signer: name::lower(&signer),
        signature: rdata.get(end..)?.into(),
        head: rdata.get(..end)?.into(),
    })
}

fn number(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}
