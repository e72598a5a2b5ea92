//! An entry of the cache as a validator sees it.

use super::super::answer::{Answer, Part};
use crate::Instant;
use sixway_dnssec::{Reply, ReplyBuilder, Section, Unreadable};

/// An answer from the cache, whole: a chain that is unfinished is to be joined with the rest of it first.
///
/// # Errors
/// When it exceeds the limits of a validator's reply.
pub(super) fn as_reply(answer: &Answer, now: Instant) -> Result<Reply, Unreadable> {
    let mut reply = ReplyBuilder::new(answer.rcode().try_into().map_err(|_| Unreadable)?);
    for part in Part::ALL {
        let section = match part {
            Part::Chain | Part::Data | Part::Signatures => Section::Answer,
            Part::Authority | Part::Proofs => Section::Authority,
        };
        for record in answer.records(part) {
            let ttl = record.ttl.saturating_sub(answer.age(now));
            reply.admit(section, &record.owner, record.rtype, ttl, &record.data)?;
        }
    }
    Ok(reply.finish())
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::{Bounds, LONGEST_CHAIN};
    use super::super::super::key::Key;
    use super::super::super::query::IN;
    use super::*;
    use sixway_dnssec::MOST_LINKS;

    /// Recorded answers of real servers: name, type, verdict and message in each line.
    const RECORDED: &str = include_str!("../../../../dnssec/src/validator/tests/answers.txt");

    fn wire(name: &str) -> Vec<u8> {
        let labels = name.split('.').filter(|label| !label.is_empty());
        let mut wire: Vec<u8> =
            labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
        wire.push(0);
        wire
    }

    fn octets(hex: &str) -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    #[test]
    fn an_entry_of_the_cache_is_what_the_upstream_said() {
        let bounds = Bounds {
            dnssec_ok: true,
            longest_ttl: u32::MAX,
            longest_negative_ttl: u32::MAX,
            failure_ttl: 5,
            zone: 1,
        };
        let (now, mut compared) = (Instant::from_secs(1_000), 0);
        for line in RECORDED.lines() {
            let [name, qtype, "secure" | "insecure" | "bogus", message] =
                line.split(' ').collect::<Vec<_>>()[..]
            else {
                continue;
            };
            let (key, message) =
                (Key::of(&wire(name), qtype.parse().expect("a type"), IN, true), octets(message));
            let entry = Answer::read(&key, &message, now, &bounds).expect("it is believed");
            let (kept, said) =
                (as_reply(&entry, now).expect("it fits"), Reply::read(&message).expect("it fits"));
            assert_eq!(kept.rcode, said.rcode, "{name} {qtype}");
            // Sections may be in another order, and what proves nothing is left out.
            assert!(said.answer.iter().all(|set| kept.answer.contains(set)), "{name} {qtype}");
            assert_eq!(kept.answer.len(), said.answer.len(), "{name} {qtype}");
            assert!(kept.authority.iter().all(|set| said.authority.contains(set)), "{name} {qtype}");
            compared += 1;
        }
        assert!(compared > 90, "{compared}");
    }

    #[test]
    fn as_many_links_are_believed_as_are_validated() {
        assert_eq!(MOST_LINKS, LONGEST_CHAIN + 1);
    }
}
