//! Whether a reply is accepted, and the fields of it that matter here.

/// Where a message's counts and flags are (RFC 1035 §4.1.1).
const HEADER: usize = 12;
const SOA: u16 = 6;
const NS: u16 = 2;
const OPT: u16 = 41;

const FORMERR: u16 = 1;
const SERVFAIL: u16 = 2;
const NXDOMAIN: u16 = 3;
const NOTIMP: u16 = 4;
const REFUSED: u16 = 5;
/// RFC 6672 §2.2: a DNAME record makes a name that is too long; any other server would say the same.
const YXDOMAIN: u16 = 6;
/// RFC 6891 §9: the version of EDNS is not supported.
const BADVERS: u16 = 16;

/// What was sent, for comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent<'q> {
    pub(super) id: u16,
    /// The question section: name, type, class.
    pub(super) question: &'q [u8],
    /// The case of the name must come back.
    pub(super) cased: bool,
}

/// The quality of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is not to our question.
    Rejected,
    /// It would be, but for the case of the name.
    OtherCase,
    /// TC=1: by stream there is more.
    Truncated,
    /// FORMERR or NOTIMP, without an OPT record: perhaps for EDNS (RFC 6891 §7).
    NotUnderstood,
    /// FORMERR, NOTIMP or BADVERS, with an OPT record: it knows EDNS, and this question is the matter (RFC 6891 §7).
    OddWithEdns,
    /// SERVFAIL, REFUSED and whatever else is not an answer.
    Failed,
    /// The upstream refers to other servers, or its records cannot be read: no answer, and nothing to pass on.
    Useless,
    /// The name has these records, or none, or does not exist.
    Definite,
}

fn field(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..at + 2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
}

/// Judges a reply.
pub(super) fn judge(sent: &Sent<'_>, reply: &[u8]) -> Verdict {
    let (Some(id), Some(flags), Some(questions)) = (field(reply, 0), field(reply, 2), field(reply, 4)) else {
        return Verdict::Rejected;
    };
    let is_reply = flags & 0x8000 != 0 && flags & 0x7800 == 0;
    if !is_reply || id != sent.id || reply.len() < HEADER || reply.len() > usize::from(u16::MAX) {
        return Verdict::Rejected;
    }
    let rcode = flags & 0x000f;
    if questions == 0 {
        return without_question(rcode);
    }
    let end = HEADER + sent.question.len();
    let Some(question) = reply.get(HEADER..end).filter(|_| questions == 1) else {
        return Verdict::Rejected;
    };
    if question != sent.question {
        if !is_same_name(question, sent.question) {
            return Verdict::Rejected;
        }
        if sent.cased {
            return Verdict::OtherCase;
        }
    }
    if flags & 0x0200 != 0 { Verdict::Truncated } else { said(reply, end, rcode) }
}

/// Names alike but for their case, type and class the same.
fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    let split = one.len().saturating_sub(4);
    one.len() == other.len()
        && one[..split].eq_ignore_ascii_case(&other[..split])
        && one[split..] == other[split..]
}

/// Old servers send the header alone when they do not understand a query.
fn without_question(rcode: u16) -> Verdict {
    match rcode {
        FORMERR | NOTIMP => Verdict::NotUnderstood,
        SERVFAIL | REFUSED => Verdict::Useless,
        _ => Verdict::Rejected,
    }
}

/// What the records say.
fn said(reply: &[u8], question_end: usize, rcode: u16) -> Verdict {
    let Some(seen) = ReplyContents::read(reply, question_end) else { return Verdict::Useless };
    match rcode | seen.extended_rcode << 4 {
        0 if seen.is_referral() => Verdict::Useless,
        0 | NXDOMAIN | YXDOMAIN => Verdict::Definite,
        FORMERR | NOTIMP | BADVERS if seen.opt => Verdict::OddWithEdns,
        FORMERR | NOTIMP => Verdict::NotUnderstood,
        _ => Verdict::Failed,
    }
}

/// What matters of a reply's records.
#[derive(Clone, Copy, Debug, Default)]
struct ReplyContents {
    answers: u16,
    ns: bool,
    soa: bool,
    opt: bool,
    extended_rcode: u16,
}

impl ReplyContents {
    /// Walks over all records; `None` if they cannot be read.
    fn read(reply: &[u8], mut at: usize) -> Option<Self> {
        let mut seen = Self { answers: field(reply, 6)?, ..Self::default() };
        for section in 0..3 {
            for _ in 0..field(reply, 6 + 2 * section)? {
                at = skip_name(reply, at)?;
                match (section, field(reply, at)?) {
                    (1, NS) => seen.ns = true,
                    (1, SOA) => seen.soa = true,
                    (2, OPT) => {
                        (seen.opt, seen.extended_rcode) = (true, u16::from(*reply.get(at + 4)?));
                    }
                    _ => {}
                }
                at += 10 + usize::from(field(reply, at + 8)?);
                if at > reply.len() {
                    return None;
                }
            }
        }
        Some(seen)
    }

    /// RFC 2308 §2.2: NODATA has a SOA record or no NS records.
    fn is_referral(self) -> bool {
        self.answers == 0 && self.ns && !self.soa
    }
}

/// Where a name ends; a pointer is its end.
fn skip_name(reply: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *reply.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            0xc0..=0xff => return Some(at + 2),
            64..=0xbf => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &[u8] = b"\x03wWw\x07example\0\0\x1c\0\x01";

    /// A reply with these flags and sections: records, each of a section and a type, their owner a pointer.
    fn reply(flags: u16, records: &[(usize, u16)]) -> Vec<u8> {
        let mut message = vec![0x12, 0x34];
        message.extend_from_slice(&(0x8180 | flags).to_be_bytes());
        message.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
        message.extend_from_slice(QUESTION);
        for (section, kind) in records {
            message[7 + 2 * section] += 1;
            message.extend_from_slice(&[0xc0, 12]);
            message.extend_from_slice(&kind.to_be_bytes());
            message.extend_from_slice(&[0, 1, 0, 0, 0, 60, 0, 3, 1, 2, 3]);
        }
        message
    }

    fn judged(message: &[u8]) -> Verdict {
        judge(&Sent { id: 0x1234, question: QUESTION, cased: true }, message)
    }

    #[test]
    fn rcodes_and_records_decide_what_a_reply_is_worth() {
        let worth = [
            (reply(0, &[(0, 28)]), Verdict::Definite),
            (reply(0, &[]), Verdict::Definite),
            (reply(0, &[(1, SOA)]), Verdict::Definite),
            (reply(0, &[(1, NS), (1, SOA)]), Verdict::Definite),
            (reply(0, &[(0, 5), (1, NS)]), Verdict::Definite),
            (reply(3, &[(1, SOA)]), Verdict::Definite),
            (reply(6, &[(0, 39)]), Verdict::Definite),
            (reply(0, &[(1, NS)]), Verdict::Useless),
            (reply(1, &[]), Verdict::NotUnderstood),
            (reply(4, &[]), Verdict::NotUnderstood),
            (reply(2, &[]), Verdict::Failed),
            (reply(5, &[(1, NS)]), Verdict::Failed),
            (reply(0x0200, &[]), Verdict::Truncated),
        ];
        for (message, verdict) in worth {
            assert_eq!(judged(&message), verdict, "{message:02x?}");
        }
    }

    #[test]
    fn the_rcode_goes_on_in_the_opt_record() {
        let with_extended = |extended: u8| {
            let mut message = reply(0, &[(0, 28)]);
            message[11] = 1;
            message.extend_from_slice(&[0, 0, 41, 4, 208, extended, 0, 0, 0, 0, 0]);
            judged(&message)
        };
        assert_eq!(with_extended(0), Verdict::Definite);
        assert_eq!(with_extended(1), Verdict::OddWithEdns);
        assert_eq!(with_extended(2), Verdict::Failed);
    }

    #[test]
    fn a_reply_that_is_cut_anywhere_is_not_an_answer() {
        let whole = reply(0, &[(0, 28), (0, 28), (1, NS), (2, 1)]);
        assert_eq!(judged(&whole), Verdict::Definite);
        for length in 0..whole.len() {
            let verdict = judged(&whole[..length]);
            assert!(matches!(verdict, Verdict::Rejected | Verdict::Useless), "{length}: {verdict:?}");
        }
    }

    #[test]
    fn any_octet_may_be_anything() {
        let whole = reply(0, &[(0, 28), (1, SOA)]);
        for at in 0..whole.len() {
            for octet in 0..=255 {
                let mut message = whole.clone();
                message[at] = octet;
                let is_question = at < 2 || (4..6).contains(&at) || (12..12 + QUESTION.len()).contains(&at);
                if is_question && message != whole {
                    let verdict = judged(&message);
                    let none = (at, octet) == (5, 0);
                    assert!(
                        none || matches!(verdict, Verdict::Rejected | Verdict::OtherCase),
                        "{at} {octet}: {verdict:?}"
                    );
                }
                judged(&message);
            }
        }
    }
}
