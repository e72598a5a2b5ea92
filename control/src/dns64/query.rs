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

/// RFC 1035 §3.2.4: the Internet.
pub const IN: u16 = 1;

/// RFC 6891 §6.1.1: the type of the OPT record.
pub(crate) const OPT: u16 = 41;

/// RFC 7830 §3: the padding option.
pub(crate) const PADDING: u16 = 12;

/// RFC 6891 §6.2.5: a smaller payload counts as this one.
const LEAST_PAYLOAD: u16 = 512;

/// A client's query.
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
    /// CD: the client validates itself (RFC 4035 §3.2.2).
    pub checking_disabled: bool,
    /// AD: the client asks whether the answer is authentic (RFC 6840 §5.7).
    pub authentic_data: bool,
    /// Its OPT record.
    pub edns: Option<Edns>,
}

/// A client's OPT record (RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The largest datagram it takes, in octets; at least 512.
    pub payload: u16,
    /// DO: it requests DNSSEC records (RFC 3225).
    pub dnssec_ok: bool,
    /// It padded its query, and so the answer may be padded (RFC 8467 §4).
    pub padding: bool,
}

/// Why a message is not a query that can be answered.
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

    /// The key of its answer, with the CD bit of the upstream query.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `dig +edns AAAA www.example.org` as BIND's dig 9.18 sends it, without its cookie.
    const DIG: &[u8] = &[
        0x5b, 0x1c, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1, 3, b'w', b'w', b'w', 7, b'e', b'x', b'a', b'm', b'p',
        b'l', b'e', 3, b'o', b'r', b'g', 0, 0, 28, 0, 1, 0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0,
    ];

    /// With its OPT record replaced.
    fn with_opt(opt: &[u8]) -> Vec<u8> {
        [&DIG[..33], opt].concat()
    }

    #[test]
    fn a_query_of_dig_is_read() {
        let query = Query::read(DIG).unwrap();
        assert_eq!(query.name, b"\x03www\x07example\x03org\0");
        assert_eq!((query.qtype, query.qclass, query.id), (28, 1, 0x5b1c));
        assert!(query.recursion_desired && query.authentic_data && !query.checking_disabled);
        assert_eq!(query.edns, Some(Edns { payload: 1232, dnssec_ok: false, padding: false }));
    }

    #[test]
    fn a_query_cut_anywhere_is_malformed_or_gets_no_answer() {
        for length in 0..DIG.len() {
            let expected = if length < HEADER { Unreadable::Silent } else { Unreadable::Malformed };
            assert_eq!(Query::read(&DIG[..length]), Err(expected), "{length}");
        }
        assert_eq!(Query::read(&[DIG, &[0]].concat()), Err(Unreadable::Malformed));
    }

    #[test]
    fn a_response_gets_no_answer_and_another_opcode_is_not_implemented() {
        let mut message = DIG.to_vec();
        message[2] = 0x81;
        assert_eq!(Query::read(&message), Err(Unreadable::Silent));
        for opcode in 1..16 {
            message[2] = opcode << 3;
            assert_eq!(Query::read(&message), Err(Unreadable::NotImplemented));
        }
    }

    #[test]
    fn one_question_and_one_opt_record_make_a_query() {
        for (field, count) in [(5, 0), (5, 2), (7, 1)] {
            let mut message = DIG.to_vec();
            message[field] = count;
            assert_eq!(Query::read(&message), Err(Unreadable::Malformed));
        }
        let opt = &DIG[33..];
        let mut twice = with_opt(&[opt, opt].concat());
        twice[11] = 2;
        assert_eq!(Query::read(&twice), Err(Unreadable::Malformed));
        let mut in_authority = DIG.to_vec();
        (in_authority[9], in_authority[11]) = (1, 0);
        assert_eq!(Query::read(&in_authority), Err(Unreadable::Malformed));
        let mut named = with_opt(&[&[1, b'a'], opt].concat());
        assert_eq!(Query::read(&named), Err(Unreadable::Malformed));
        named.truncate(33);
        named[11] = 0;
        assert_eq!(Query::read(&named).map(|query| query.edns), Ok(None));
    }

    #[test]
    fn the_name_of_a_question_is_not_compressed() {
        let pointer = [&DIG[..12], &[0xc0, 0x0c, 0, 1, 0, 1]].concat();
        assert_eq!(Query::read(&pointer), Err(Unreadable::Malformed));
    }

    #[test]
    fn a_signed_query_and_one_for_a_transfer_are_read() {
        // A TSIG record of key "k", with no data to speak of, and an SOA record in the authority section.
        let other = [&[1, b'k', 0][..], &[0, 250, 0, 255, 0, 0, 0, 0, 0, 2, 1, 2]].concat();
        let mut signed = [DIG, &other].concat();
        signed[11] = 2;
        assert!(Query::read(&signed).unwrap().edns.is_some());
        let mut transfer = with_opt(&other);
        (transfer[9], transfer[11]) = (1, 0);
        assert_eq!(Query::read(&transfer).unwrap().edns, None);
    }

    #[test]
    fn options_are_passed_by_padding_is_seen_and_a_smaller_payload_counts_as_512() {
        let opt = |payload: u8, flags: u8, options: &[u8]| {
            let length = options.len() as u8;
            with_opt(&[&[0, 0, 41, 0, payload, 0, 0, flags, 0, 0, length], options].concat())
        };
        let edns = |message: &[u8]| Query::read(message).map(|query| query.edns.unwrap());
        let cookie = [0, 10, 0, 2, 7, 7];
        let plain = Edns { payload: 512, dnssec_ok: true, padding: false };
        assert_eq!(edns(&opt(100, 0x80, &cookie)), Ok(plain));
        let padded = [&cookie[..], &[0, 12, 0, 1, 0]].concat();
        assert_eq!(edns(&opt(100, 0x80, &padded)), Ok(Edns { padding: true, ..plain }));
        assert_eq!(edns(&opt(100, 0x80, &padded[..10])), Err(Unreadable::Malformed));
    }

    #[test]
    fn another_version_of_edns_is_refused_whatever_its_options_are() {
        let opt = [0, 0, 41, 4, 0xd0, 0, 1, 0, 0, 0, 1, 0xff];
        assert_eq!(Query::read(&with_opt(&opt)), Err(Unreadable::BadVersion));
    }
}
