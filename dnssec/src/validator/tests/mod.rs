//! The validator before trees of signed zones: recorded ones, and such as only an attacker makes.

mod attacks;
mod changed;
mod forged;
mod known_bypasses;
mod recorded;
mod work;

use super::Validator;
use crate::current_time::CurrentTime;
use crate::lookup::Lookup;
use crate::reply::Reply;
use crate::security::Security;
use crate::validate::Validate;
use crate::verdict::Verdict;
use std::time::Duration;

/// The wall clock of the tests: 15 January 2027.
const WALL: u64 = 1_800_000_000;

/// The time that goes with it.
const NOW: CurrentTime = CurrentTime { monotonic: Duration::from_secs(1_000), wall: WALL };

/// From presentation form, without escapes; case is kept.
fn wire(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut name: Vec<u8> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    name.push(0);
    name
}

/// The source of answers to the validator's lookups.
trait Upstream {
    fn answer(&mut self, lookup: &Lookup) -> Option<Reply>;
}

/// Runs one validation to its end, at a time.
fn validate_at(
    validator: &mut Validator,
    upstream: &mut impl Upstream,
    wall: u64,
    (name, qtype): (&str, u16),
    reply: Reply,
) -> Verdict {
    let now = CurrentTime { wall, ..NOW };
    let begun = validator.begin(now, &wire(name), qtype, reply);
    while let Some((_, lookup)) = validator.poll_lookup() {
        let found = upstream.answer(&lookup);
        validator.handle_lookup(now, &lookup, found.as_ref());
    }
    let (validation, verdict) = validator.poll_verdict().expect("nothing is waited for any more");
    assert_eq!(validation, begun);
    assert!(verdict.security != Security::Secure || verdict.ttl_bound.is_some());
    assert!(
        verdict.security == Security::Insecure
            || verdict.security == Security::Secure
            || verdict.extended_error.is_some()
    );
    verdict
}
