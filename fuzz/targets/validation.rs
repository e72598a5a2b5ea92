//! Whatever is said to be an answer, and to be the keys and delegations above it, validation ends, with one verdict, after a bounded number of questions.
//!
//! The input is messages, each after its length in two octets: the answer, then what comes of each lookup; an empty one represents none.

use sixway_dnssec::{Anchor, AnchorKey, CurrentTime, Reply, Security, Validate, Validator, Wire};
use std::time::Duration;

/// The key of the corpus' zone, `test`.
const ANCHOR: &[u8] = include_bytes!("validation.anchor");

/// 2027-01-15, within the time of the corpus' signatures.
const WALL: u64 = 1_800_000_000;

pub fn run(octets: &[u8]) {
    let mut messages = messages(octets);
    let Some(message) = messages.next() else { return };
    let (Some((name, qtype)), Ok(reply)) = (question(message), Reply::read(message)) else { return };
    let anchor = Anchor { zone: Wire(b"\x04test\x00"[..].into()), key: AnchorKey::Ds(ANCHOR.into()) };
    let mut validator = Validator::new(vec![anchor], vec![Wire(b"\x03lan\x00"[..].into())]);
    let now = CurrentTime { monotonic: Duration::from_secs(1), wall: WALL };
    let validation = validator.begin(now, &name, qtype, reply);
    let mut asked = 0;
    while let Some((waits, lookup)) = validator.poll_lookup() {
        asked += 1;
        assert_eq!(waits, validation);
        let found = messages.next().and_then(|message| Reply::read(message).ok());
        validator.handle_lookup(now, &lookup, found.as_ref());
    }
    assert!(asked <= 80, "{asked} lookups");
    let (number, verdict) = validator.poll_verdict().unwrap();
    assert_eq!(number, validation);
    assert!(verdict.security != Security::Unchecked && validator.poll_verdict().is_none());
    assert!(verdict.checks <= 160, "{} signatures", verdict.checks);
    assert!(verdict.security != Security::Secure || asked > 0, "nothing is secure without keys");
}

fn messages(octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (message, behind) = behind.split_at(length);
        rest = behind;
        Some(message)
    })
}

/// The question of a message, whose name is not compressed, and the type.
fn question(message: &[u8]) -> Option<(Vec<u8>, u16)> {
    let mut at = 12;
    while message.get(at)? & 0xc0 == 0 && message[at] != 0 {
        at += usize::from(message[at]) + 1;
    }
    let qtype = message.get(at + 1..at + 3)?;
    (message[at] == 0 && at < 12 + 255)
        .then(|| (message[12..=at].to_vec(), u16::from_be_bytes([qtype[0], qtype[1]])))
}
