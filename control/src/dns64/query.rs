//! A client's query, read strictly and without allocating.
//!
//! ```text
//!   ID | QR Opcode AA TC RD RA Z AD CD RCODE | QDCOUNT ANCOUNT NSCOUNT ARCOUNT      12 octets (RFC 1035 §4.1.1)
//!   QNAME QTYPE QCLASS                                                              one, without compression
//!   … | OPT: 0, 41, payload, extended RCODE, version, DO …, RDLEN, options          at most one (RFC 6891 §6.1.1)
//! ```

use super::key::Key;
use super::name::{measure, skip};

/// Octets of a message's header (RFC 1035 §4.1.1).
pub(crate) const HEADER: usize = 12;

/// RFC 6891 §6.1.1: the type of the OPT record.
pub(crate) const OPT: u16 = 41;

/// RFC 7830 §3: the padding option.
pub(crate) const PADDING: u16 = 12;

/// RFC 6891 §6.2.5: a smaller payload counts as this one.
const LEAST_PAYLOAD: u16 = 512;

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'m> {
    /// The whole message.
    pub message: &'m [u8],
    /// QNAME in wire form, in the client's case, root label included.
    pub name: &'m [u8],
    /// QTYPE.
    pub qtype: u16,
    /// QCLASS.
    pub qclass: u16,
    /// ID.
    pub id: u16,
    /// RD: the answer may be fetched.
    pub recursion_desired: bool,
    /// CD: the client validates by itself (RFC 4035 §3.2.2).
    pub checking_disabled: bool,
    /// AD: the client wants to know whether the answer is authentic (RFC 6840 §5.7).
    pub authentic_data: bool,
    /// What its OPT record says.
    pub edns: Option<Edns>,
}

/// What a client's OPT record says (RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The largest datagram it takes, in octets; at least 512.
    pub payload: u16,
    /// DO: it wants DNSSEC records (RFC 3225).
    pub dnssec_ok: bool,
    /// It padded its query, and so the answer may be padded (RFC 8467 §4).
    pub padding: bool,
}

/// Why a message is no query that could be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A response, or too short for one: it gets no answer.
    Silent,
    /// FORMERR.
    Malformed,
    /// NOTIMP: an opcode other than QUERY.
    NotImplemented,
    /// BADVERS: a version of EDNS other than 0 (RFC 6891 §6.1.3).
    BadVersion,
}

impl<'m> Query<'m> {
    /// Reads a message.
    pub fn read(message: &'m [u8]) -> Result<Self, Unreadable> {
        let Some(header) = message.first_chunk::<HEADER>() else { return Err(Unreadable::Silent) };
        if header[2] & 0x80 != 0 {
            return Err(Unreadable::Silent);
        }
        if header[2] & 0x78 != 0 {
            return Err(Unreadable::NotImplemented);
        }
        let [questions, answers, authorities, additionals] =
            [4, 6, 8, 10].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        // The authority section of an IXFR query holds an SOA record (RFC 1995 §3).
        if questions != 1 || answers != 0 {
            return Err(Unreadable::Malformed);
        }
        let name_length = measure(&message[HEADER..]).ok_or(Unreadable::Malformed)?;
        let (name, behind) = message[HEADER..].split_at(name_length);
        let [t0, t1, c0, c1] = *behind.first_chunk::<4>().ok_or(Unreadable::Malformed)?;
        let edns = read_records(message, HEADER + name_length + 4, authorities, additionals)?;
        Ok(Self {
            message,
            name,
            qtype: u16::from_be_bytes([t0, t1]),
            qclass: u16::from_be_bytes([c0, c1]),
            id: u16::from_be_bytes([header[0], header[1]]),
            recursion_desired: header[2] & 1 != 0,
            checking_disabled: header[3] & 0x10 != 0,
            authentic_data: header[3] & 0x20 != 0,
            edns,
        })
    }

    /// Under what its answer is kept, with the CD bit that upstreams are asked with.
    #[must_use]
    pub fn key(&self, checking_disabled: bool) -> Key {
        Key::of(self.name, self.qtype, self.qclass, checking_disabled)
    }

    /// Whether it has DO=1.
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.edns.is_some_and(|edns| edns.dnssec_ok)
    }
}

/// The records behind the question, to the message's end: an OPT record is looked for, the others are passed by.
fn read_records(
    message: &[u8],
    mut at: usize,
    authorities: u16,
    additionals: u16,
) -> Result<Option<Edns>, Unreadable> {
    let (mut edns, mut version) = (None, 0);
    for number in 0..u32::from(authorities) + u32::from(additionals) {
        let (owner, fields) = (at, skip(message, at).ok_or(Unreadable::Malformed)?);
        let record =
            message.get(fields..).and_then(<[u8]>::first_chunk::<10>).ok_or(Unreadable::Malformed)?;
        let end = fields + 10 + usize::from(u16::from_be_bytes([record[8], record[9]]));
        let data = message.get(fields + 10..end).ok_or(Unreadable::Malformed)?;
        if u16::from_be_bytes([record[0], record[1]]) == OPT {
            if number < u32::from(authorities) || edns.is_some() || message[owner] != 0 {
                return Err(Unreadable::Malformed);
            }
            version = record[5];
            edns = Some(Edns {
                payload: u16::from_be_bytes([record[2], record[3]]).max(LEAST_PAYLOAD),
                dnssec_ok: record[6] & 0x80 != 0,
                padding: version == 0 && has_padding(data)?,
            });
        }
        at = end;
    }
    match (at == message.len(), version) {
        (false, _) => Err(Unreadable::Malformed),
        (true, 0) => Ok(edns),
        (true, _) => Err(Unreadable::BadVersion),
    }
}

fn has_padding(mut options: &[u8]) -> Result<bool, Unreadable> {
    let mut found = false;
    while !options.is_empty() {
        let [c0, c1, l0, l1] = *options.first_chunk::<4>().ok_or(Unreadable::Malformed)?;
        found |= u16::from_be_bytes([c0, c1]) == PADDING;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        options = options.get(4 + length..).ok_or(Unreadable::Malformed)?;
    }
    Ok(found)
}
