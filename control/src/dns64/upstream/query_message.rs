//! The query message to an upstream.

use super::question::Question;
use rand::Rng;
use rand::rngs::StdRng;

/// The largest datagram that a reply may be: what passes every path unfragmented (RFC 9715 §3.1).
const PAYLOAD: u16 = 1_232;

/// Octets of an OPT record without options (RFC 6891 §6.1.2).
const OPT: usize = 11;

/// RD, AD and CD in the header's flags (RFC 1035 §4.1.1, RFC 4035 §3).
const RD: u16 = 0x0100;
const AD: u16 = 0x0020;
const CD: u16 = 0x0010;

/// How a question is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// With an OPT record (RFC 6891).
    pub(super) edns: bool,
    /// With random case (0x20).
    pub(super) cased: bool,
}

/// A query that is ready to be sent.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) message: Vec<u8>,
    pub(super) id: u16,
    pub(super) style: Style,
    /// DO=1 is in it.
    pub(super) dnssec_ok: bool,
}

impl Query {
    /// The question section: name, type, class.
    pub(super) fn question(&self) -> &[u8] {
        let end = self.message.len() - if self.style.edns { OPT } else { 0 };
        &self.message[12..end]
    }
}

/// Writes it.
pub(super) fn query(question: &Question<'_>, style: Style, random: &mut StdRng) -> Query {
    let id = random.next_u32() as u16;
    let bit = |set: bool, bit: u16| if set { bit } else { 0 };
    let flags = RD | bit(question.authentic_data, AD) | bit(question.checking_disabled, CD);
    let mut message = Vec::with_capacity(12 + question.name.len() + 4 + OPT);
    for field in [id, flags, 1, 0, 0, style.edns.into()] {
        message.extend_from_slice(&field.to_be_bytes());
    }
    message.extend_from_slice(question.name);
    if style.cased {
        scatter_case(&mut message[12..], random);
    }
    message.extend_from_slice(&question.qtype.to_be_bytes());
    message.extend_from_slice(&question.qclass.to_be_bytes());
    if style.edns {
        let [high, low] = PAYLOAD.to_be_bytes();
        let dnssec_ok = if question.dnssec_ok { 0x80 } else { 0 };
        message.extend_from_slice(&[0, 0, 41, high, low, 0, 0, dnssec_ok, 0, 0, 0]);
    }
    Query { message, id, style, dnssec_ok: style.edns && question.dnssec_ok }
}

/// Sixteen bits of the ID are few: each letter's case is one more that a forger must guess (draft-vixie-dnsext-dns0x20). Length octets are
/// below 64 and so no letters.
fn scatter_case(name: &mut [u8], random: &mut StdRng) {
    for octets in name.chunks_mut(64) {
        let bits = random.next_u64();
        for (at, octet) in octets.iter_mut().enumerate().filter(|(_, octet)| octet.is_ascii_alphabetic()) {
            *octet = *octet & !0x20 | ((bits >> at & 1) as u8) << 5;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const NAME: &[u8] = b"\x03www\x07example\0";

    fn asked(question: &Question<'_>, edns: bool, cased: bool) -> Vec<u8> {
        query(question, Style { edns, cased }, &mut StdRng::from_seed([7; 32])).message
    }

    #[test]
    fn a_query_has_its_bits_and_an_opt_record() {
        let mut question = Question::new(NAME, 28);
        let plain = asked(&question, false, false);
        assert_eq!(plain[2..12], [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plain[12..], *b"\x03www\x07example\0\0\x1c\0\x01");
        question.authentic_data = true;
        question.checking_disabled = true;
        question.dnssec_ok = true;
        let whole = asked(&question, true, false);
        assert_eq!(whole[2..12], [1, 0x30, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(whole[12 + NAME.len() + 4..], [0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    }

    #[test]
    fn case_is_random_and_nothing_else_of_the_name_is() {
        let long: Vec<u8> = [[&[40], [b'q'; 40].as_slice()].concat().repeat(6), vec![0]].concat();
        for name in [NAME, &long, b"\x04A-9Z\0", b"\0"] {
            let mut random = StdRng::from_seed([3; 32]);
            let style = Style { edns: false, cased: true };
            let seen: Vec<_> = (0..64)
                .map(|_| query(&Question::new(name, 1), style, &mut random).question().to_vec())
                .collect();
            assert!(seen.iter().all(|sent| sent[..name.len()].eq_ignore_ascii_case(name)));
            for at in (0..name.len()).filter(|at| name[*at].is_ascii_alphabetic()) {
                assert!(seen.iter().any(|sent| sent[at].is_ascii_uppercase()), "{at}");
                assert!(seen.iter().any(|sent| sent[at].is_ascii_lowercase()), "{at}");
            }
        }
    }
}
