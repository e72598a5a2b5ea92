//! A message as a validator sees it: RRsets with their signatures.

use crate::name;
use crate::rdata;
use crate::wire::Wire;

/// RRSIG (RFC 4034 §3).
const RRSIG: u16 = 46;
/// IN.
const INTERNET: u16 = 1;
/// RRsets of one section.
const RRSETS: usize = 64;
/// Signatures of one RRset that are examined.
const SIGNATURES: usize = 8;

/// A message, as RRsets with their signatures; names uncompressed, and all of it in canonical form (RFC 4034 §6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The RCODE of the header.
    pub rcode: u8,
    /// The answer section.
    pub answer: Vec<Rrset>,
    /// The authority section.
    pub authority: Vec<Rrset>,
}

/// A message that cannot be validated: it is cut, malformed, or has more RRsets than any honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Records of one owner and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    /// In lower case.
    pub owner: Wire,
    /// TYPE.
    pub rtype: u16,
    /// The least of its records', in seconds.
    pub ttl: u32,
    /// In canonical order, each once.
    pub rdatas: Vec<Box<[u8]>>,
    /// Its signatures, eight at most.
    pub signatures: Vec<Rrsig>,
}

/// A signature (RFC 4034 §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrsig {
    /// RFC 4034 §3.1.2.
    pub algorithm: u8,
    /// RFC 4034 §3.1.3.
    pub labels: u8,
    /// RFC 4034 §3.1.4, in seconds.
    pub original_ttl: u32,
    /// RFC 4034 §3.1.5.
    pub expiration: u32,
    /// RFC 4034 §3.1.5.
    pub inception: u32,
    /// RFC 4034 §3.1.6.
    pub key_tag: u16,
    /// RFC 4034 §3.1.7, in lower case.
    pub signer: Wire,
    /// RFC 4034 §3.1.8.
    pub signature: Box<[u8]>,
    /// RDATA up to the signature, in canonical form: what is signed begins with it.
    pub head: Box<[u8]>,
}

/// The sections that a validator looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The answer section.
    Answer,
    /// The authority section.
    Authority,
}

/// A reply that is being put together, record by record.
#[derive(Debug)]
pub struct ReplyBuilder(Reply);

impl ReplyBuilder {
    /// Without records.
    #[must_use]
    pub fn new(rcode: u8) -> Self {
        Self(Reply { rcode, ..Reply::default() })
    }

    /// With one more record: its owner and its RDATA in wire form, uncompressed, in any case.
    ///
    /// # Errors
    /// When it is malformed, or exceeds the limits of a reply.
    pub fn admit(
        &mut self,
        section: Section,
        owner: &[u8],
        rtype: u16,
        ttl: u32,
        rdata: &[u8],
    ) -> Result<(), Unreadable> {
        let rdata = rdata::canonical(rdata, 0, rdata.len(), rtype).ok_or(Unreadable)?;
        let section = match section {
            Section::Answer => &mut self.0.answer,
            Section::Authority => &mut self.0.authority,
        };
        admit(section, owner.to_ascii_lowercase(), rtype, ttl, rdata).ok_or(Unreadable)
    }

    /// The whole.
    #[must_use]
    pub fn finish(mut self) -> Reply {
        self.0.settle();
        self.0
    }
}

impl Reply {
    /// Reads a DNS message, header and question included. The additional section is not examined.
    ///
    /// # Errors
    /// When it cannot be read, or exceeds the limits of a reply.
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

    /// RFC 4034 §6.3: records in canonical order, without duplicates. Signatures of absent records are ignored.
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
        if section.len() == RRSETS {
            return None;
        }
        let owner = Wire(owner.into());
        section.push(Rrset { owner, rtype: signed, ttl, rdatas: Vec::new(), signatures: Vec::new() });
    }
    let set = section.get_mut(place)?;
    if rtype != RRSIG {
        set.ttl = set.ttl.min(ttl);
        set.rdatas.push(rdata);
    } else if set.signatures.len() < SIGNATURES {
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
