//! How long a DNS answer may be kept by an HTTP cache (RFC 8484 §5.1).

const HEADER: usize = 12;
/// RFC 1035 §3.2.2.
const SOA: u16 = 6;
/// RFC 6891 §6.1.1: an OPT record; its TTL field is not a TTL.
const OPT: u16 = 41;

/// Seconds: the least time to live in the answer section; where it is empty, what the SOA record allows (RFC 2308 §5); 0 for failures.
pub fn seconds(answer: &[u8]) -> u32 {
    least_ttl(answer).unwrap_or(0)
}

fn least_ttl(answer: &[u8]) -> Option<u32> {
    let rcode = answer.get(3)? & 0x0f;
    if !matches!(rcode, 0 | 3) {
        return None;
    }
    let count = |at: usize| Some(u16::from_be_bytes([*answer.get(at)?, *answer.get(at + 1)?]));
    let mut at = HEADER;
    for _ in 0..count(4)? {
        at = skip_name(answer, at)? + 4;
    }
    let mut least = None;
    let answers = count(6)?;
    for number in 0..u32::from(answers) + u32::from(count(8)?) {
        let record = Record::read(answer, at)?;
        at = record.end;
        let is_answer = number < u32::from(answers);
        let bound = match record.rtype {
            OPT => continue,
            SOA if !is_answer => record.ttl.min(record.minimum(answer)?),
            _ if is_answer => record.ttl,
            _ => continue,
        };
        // A negative answer may have a CNAME chain: both bound it.
        least = Some(least.map_or(bound, |least: u32| least.min(bound)));
    }
    least
}

struct Record {
    rtype: u16,
    ttl: u32,
    end: usize,
}

impl Record {
    fn read(message: &[u8], at: usize) -> Option<Self> {
        let at = skip_name(message, at)?;
        let fixed: &[u8; 10] = message.get(at..)?.first_chunk()?;
        let [t1, t0, _, _, l3, l2, l1, l0, d1, d0] = *fixed;
        let end = at + 10 + usize::from(u16::from_be_bytes([d1, d0]));
        message.get(..end)?;
        Some(Self { rtype: u16::from_be_bytes([t1, t0]), ttl: u32::from_be_bytes([l3, l2, l1, l0]), end })
    }

    /// MINIMUM, the last field of an SOA record (RFC 1035 §3.3.13).
    fn minimum(&self, message: &[u8]) -> Option<u32> {
        message.get(..self.end)?.last_chunk().map(|octets| u32::from_be_bytes(*octets))
    }
}

fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            0xc0.. => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    /// An answer to a question for the root, with records (type, TTL, RDATA) in the answer and in the authority section.
    fn answer(rcode: u8, answers: &[(u16, u32, &[u8])], authority: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let counts = [answers.len() as u8, authority.len() as u8];
        let mut message = vec![0, 0, 0x81, 0x80 | rcode, 0, 1, 0, counts[0], 0, counts[1], 0, 0];
        message.extend_from_slice(&[1, b'a', 0, 0, 1, 0, 1]);
        for (rtype, ttl, rdata) in answers.iter().chain(authority) {
            message.extend_from_slice(&[0xc0, 12]);
            message.extend_from_slice(&rtype.to_be_bytes());
            message.extend_from_slice(&[0, 1]);
            message.extend_from_slice(&ttl.to_be_bytes());
            message.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
            message.extend_from_slice(rdata);
        }
        message
    }

    /// RDATA of an SOA record of the root.
    fn soa(minimum: u32) -> Vec<u8> {
        let mut rdata = vec![0; 18];
        rdata.extend_from_slice(&minimum.to_be_bytes());
        rdata
    }

    #[test]
    fn an_answer_is_fresh_as_long_as_its_shortest_lived_record() {
        assert_eq!(seconds(&answer(0, &[(5, 300, &[0]), (1, 60, &[0; 4])], &[(2, 10, &[0])])), 60);
    }

    #[test]
    fn a_negative_answer_is_fresh_as_long_as_its_soa_record_says() {
        assert_eq!(seconds(&answer(3, &[], &[(6, 900, &soa(60))])), 60);
        assert_eq!(seconds(&answer(0, &[], &[(6, 30, &soa(60))])), 30);
        assert_eq!(seconds(&answer(0, &[(5, 20, &[0])], &[(6, 30, &soa(60))])), 20);
    }

    #[test]
    fn failures_and_fragments_are_never_fresh() {
        assert_eq!(seconds(&answer(2, &[(1, 60, &[0; 4])], &[])), 0);
        assert_eq!(seconds(&answer(0, &[], &[])), 0);
        let whole = answer(0, &[(1, 60, &[0; 4])], &[]);
        for cut in 0..whole.len() {
            assert_eq!(seconds(&whole[..cut]), 0, "cut at {cut}");
        }
    }
}
