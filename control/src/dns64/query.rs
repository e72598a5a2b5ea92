//! A client's query, read strictly and without allocating.
//!
//! ```text
//!   ID | QR Opcode AA TC RD RA Z AD CD RCODE | QDCOUNT ANCOUNT NSCOUNT ARCOUNT      12 octets (RFC 1035 §4.1.1)
//!   QNAME QTYPE QCLASS                                                              one, without compression
//!   … | OPT: 0, 41, payload, extended RCODE, version, DO …, RDLEN, options          at most one (RFC 6891 §6.1.1)
//! ```

use super::cookie::Cookie;
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

/// RFC 7873 §4: the cookie option.
pub(crate) const COOKIE: u16 = 10;

/// RFC 7828 §3.1: the option about idle streams.
pub(crate) const KEEPALIVE: u16 = 11;

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
    /// It has the TCP keepalive option (RFC 7828).
    pub keepalive: bool,
    /// Its DNS cookie (RFC 7873).
    pub cookie: Option<Cookie>,
}

/// Why a message is not a query that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A response, or too short for one: it gets no answer.
    Silent,
    /// FORMERR.
    Malformed,
    /// NOTIMP: an opcode other than QUERY.
    NotImplemented,
    /// BADVERS: a version of EDNS other than 0 (RFC 6891 §6.1.3).
    BadVersion,
}

/// A message that is not a query, as far as it could be read: so much of it is repeated in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong with it.
    pub why: Fault,
    /// Octets of its only question, from the header's end; 0: it could not be read.
    pub question: usize,
    /// Its OPT record.
    pub edns: Option<Edns>,
}

impl Unreadable {
    /// Nothing but its header could be read.
    const fn whole(why: Fault) -> Self {
        Self { why, question: 0, edns: None }
    }
}

impl<'m> Query<'m> {
    /// Reads a message. Octets behind its last record are ignored.
    pub fn read(message: &'m [u8]) -> Result<Self, Unreadable> {
        let Some(header) = message.first_chunk::<HEADER>() else {
            return Err(Unreadable::whole(Fault::Silent));
        };
        if header[2] & 0x80 != 0 {
            return Err(Unreadable::whole(Fault::Silent));
        }
        let is_query = header[2] & 0x78 == 0;
        let fault = if is_query { Fault::Malformed } else { Fault::NotImplemented };
        let [questions, answers, authorities, additionals] =
            [4, 6, 8, 10].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        let question = (questions == 1).then(|| read_question(message)).flatten();
        let Some((name, [t0, t1, c0, c1])) = question else { return Err(Unreadable::whole(fault)) };
        let length = name.len() + 4;
        let before = u32::from(answers) + u32::from(authorities);
        let read = Records::read(message, HEADER + length, (before, additionals));
        let why = match read.fault {
            _ if !is_query => Some(fault),
            // The authority section of an IXFR query holds an SOA record (RFC 1995 §3).
            None if answers != 0 => Some(fault),
            fault => fault,
        };
        if let Some(why) = why {
            return Err(Unreadable { why, question: length, edns: read.edns });
        }
        Ok(Self {
            message: &message[..read.end],
            name,
            qtype: u16::from_be_bytes([t0, t1]),
            qclass: u16::from_be_bytes([c0, c1]),
            id: u16::from_be_bytes([header[0], header[1]]),
            recursion_desired: header[2] & 1 != 0,
            checking_disabled: header[3] & 0x10 != 0,
            authentic_data: header[3] & 0x20 != 0,
            edns: read.edns,
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

/// The name of the first question, and its type and class.
fn read_question(message: &[u8]) -> Option<(&[u8], [u8; 4])> {
    let (name, behind) = message[HEADER..].split_at(measure(&message[HEADER..])?);
    Some((name, *behind.first_chunk::<4>()?))
}

/// The records behind the question, as far as they can be read: an OPT record is searched for, the others are skipped.
struct Records {
    edns: Option<Edns>,
    fault: Option<Fault>,
    /// Where the last one ends.
    end: usize,
}

impl Records {
    fn read(message: &[u8], at: usize, (before, additionals): (u32, u16)) -> Self {
        let mut read = Self { edns: None, fault: None, end: at };
        for number in 0..before + u32::from(additionals) {
            if read.record(message, number >= before).is_none() {
                read.fault = Some(Fault::Malformed);
                break;
            }
        }
        read
    }

    /// `None`: it is malformed, or an OPT record where none may be.
    fn record(&mut self, message: &[u8], is_additional: bool) -> Option<()> {
        let (owner, fields) = (self.end, skip(message, self.end)?);
        let record = message.get(fields..)?.first_chunk::<10>()?;
        let end = fields + 10 + usize::from(u16::from_be_bytes([record[8], record[9]]));
        let data = message.get(fields + 10..end)?;
        if u16::from_be_bytes([record[0], record[1]]) == OPT {
            if !is_additional || self.edns.is_some() || message[owner] != 0 {
                return None;
            }
            let payload = u16::from_be_bytes([record[2], record[3]]).max(LEAST_PAYLOAD);
            let dnssec_ok = record[6] & 0x80 != 0;
            let edns = Edns { payload, dnssec_ok, padding: false, keepalive: false, cookie: None };
            let edns = self.edns.insert(edns);
            match record[5] {
                0 => edns.read_options(data)?,
                _ => self.fault = Some(Fault::BadVersion),
            }
        }
        self.end = end;
        Some(())
    }
}

impl Edns {
    fn read_options(&mut self, mut options: &[u8]) -> Option<()> {
        while !options.is_empty() {
            let [c0, c1, l0, l1] = *options.first_chunk::<4>()?;
            let end = 4 + usize::from(u16::from_be_bytes([l0, l1]));
            let value = options.get(4..end)?;
            match u16::from_be_bytes([c0, c1]) {
                PADDING => self.padding = true,
                KEEPALIVE => self.keepalive = true,
                // RFC 7873 §5.2: the first one counts, and a malformed one makes a malformed query.
                COOKIE if self.cookie.is_none() => self.cookie = Some(Cookie::read(value)?),
                _ => {}
            }
            options = &options[end..];
        }
        Some(())
    }
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
        assert_eq!(
            query.edns,
            Some(Edns { payload: 1232, dnssec_ok: false, padding: false, keepalive: false, cookie: None })
        );
    }

    fn fault(message: &[u8]) -> Option<Fault> {
        Query::read(message).err().map(|unreadable| unreadable.why)
    }

    #[test]
    fn a_query_cut_anywhere_is_malformed_or_gets_no_answer() {
        for length in 0..DIG.len() {
            let expected = if length < HEADER { Fault::Silent } else { Fault::Malformed };
            assert_eq!(fault(&DIG[..length]), Some(expected), "{length}");
            let question = Query::read(&DIG[..length]).unwrap_err().question;
            assert_eq!(question, if length < 33 { 0 } else { 21 }, "{length}");
        }
    }

    #[test]
    fn octets_behind_the_last_record_are_not_part_of_the_query() {
        let longer = [DIG, &[7; 300]].concat();
        assert_eq!(Query::read(&longer), Query::read(DIG));
    }

    #[test]
    fn a_response_gets_no_answer_and_another_opcode_is_not_implemented() {
        let mut message = DIG.to_vec();
        message[2] = 0x81;
        assert_eq!(Query::read(&message), Err(Unreadable::whole(Fault::Silent)));
        let edns = Query::read(DIG).unwrap().edns;
        for opcode in 1..16 {
            message[2] = opcode << 3;
            let expected = Unreadable { why: Fault::NotImplemented, question: 21, edns };
            assert_eq!(Query::read(&message), Err(expected));
        }
    }

    #[test]
    fn one_question_and_one_opt_record_make_a_query() {
        for (field, count) in [(5, 0), (5, 2), (7, 1)] {
            let mut message = DIG.to_vec();
            message[field] = count;
            assert_eq!(fault(&message), Some(Fault::Malformed));
        }
        let opt = &DIG[33..];
        let mut twice = with_opt(&[opt, opt].concat());
        twice[11] = 2;
        assert_eq!(fault(&twice), Some(Fault::Malformed));
        let mut in_authority = DIG.to_vec();
        (in_authority[9], in_authority[11]) = (1, 0);
        assert_eq!(fault(&in_authority), Some(Fault::Malformed));
        let mut named = with_opt(&[&[1, b'a'], opt].concat());
        assert_eq!(fault(&named), Some(Fault::Malformed));
        named.truncate(33);
        named[11] = 0;
        assert_eq!(Query::read(&named).map(|query| query.edns), Ok(None));
    }

    #[test]
    fn the_name_of_a_question_is_not_compressed() {
        let pointer = [&DIG[..12], &[0xc0, 0x0c, 0, 1, 0, 1]].concat();
        assert_eq!(fault(&pointer), Some(Fault::Malformed));
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
        let cookie = [0, 10, 0, 8, 7, 7, 7, 7, 7, 7, 7, 7];
        let plain = Edns {
            payload: 512,
            dnssec_ok: true,
            padding: false,
            keepalive: false,
            cookie: Cookie::read(&[7; 8]),
        };
        assert_eq!(edns(&opt(100, 0x80, &cookie)), Ok(plain));
        let padded = [&cookie[..], &[0, 12, 0, 1, 0]].concat();
        assert_eq!(edns(&opt(100, 0x80, &padded)), Ok(Edns { padding: true, ..plain }));
        assert_eq!(fault(&opt(100, 0x80, &padded[..16])), Some(Fault::Malformed));
        let bad_cookie = opt(100, 0x80, &[0, 10, 0, 2, 7, 7]);
        assert_eq!(fault(&bad_cookie), Some(Fault::Malformed), "RFC 7873 §5.2.2");
        assert!(edns(&opt(100, 0x80, &[0, 11, 0, 0])).unwrap().keepalive);
    }

    #[test]
    fn another_version_of_edns_is_refused_whatever_its_options_are() {
        let opt = [0, 0, 41, 4, 0xd0, 0, 1, 0, 0, 0, 1, 0xff];
        assert_eq!(fault(&with_opt(&opt)), Some(Fault::BadVersion));
    }
}
