//! Questions to upstreams in progress: each is sent once, however many queries wait for it.

use super::super::answer::Answer;
use super::super::key::Key;
use super::super::shares::Payer;
use super::super::upstream::Number;
use super::waiting::Waiter;
use foldhash::quality::FixedState;
use std::collections::HashMap;

/// CNAME and DNAME records that are followed where an upstream left a chain unfinished.
pub(super) const MOST_LINKS: u8 = 11;

/// A question under way.
#[derive(Debug)]
pub(super) struct Lookup {
    /// What the answer is kept by.
    pub key: Key,
    /// Whether DNSSEC records are asked for.
    pub dnssec_ok: bool,
    /// The queries that wait for the answer.
    pub waiters: Vec<Waiter>,
    /// Whether a validation needs it.
    pub for_validator: bool,
    /// The beginning of a chain whose end is being asked for.
    pub so_far: Option<Answer>,
    /// An upstream that said something unusable before (RFC 4035 §4.7 asks for another try).
    pub unlike: Option<usize>,
    /// Ends that were asked for.
    pub links: u8,
    /// The payer of the questions: who began it.
    pub payer: Payer,
}

/// All questions under way. Upstreams bound their number.
#[derive(Debug)]
pub(super) struct Lookups {
    by_number: HashMap<Number, Lookup, FixedState>,
    by_key: HashMap<(Key, bool), Number, FixedState>,
}

impl Lookups {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self { by_number: HashMap::with_hasher(hasher.clone()), by_key: HashMap::with_hasher(hasher) }
    }

    /// The question, if it is in progress. A query that needs DNSSEC records does not wait for an answer without them.
    pub(super) fn under_way(&mut self, key: &Key, dnssec_ok: bool) -> Option<&mut Lookup> {
        let with = self.by_key.get(&(*key, true));
        let number = match dnssec_ok {
            true => with,
            false => with.or_else(|| self.by_key.get(&(*key, false))),
        };
        let number = *number?;
        self.by_number.get_mut(&number)
    }

    /// It has been asked.
    pub(super) fn begin(&mut self, number: Number, lookup: Lookup) {
        self.by_key.insert((lookup.key, lookup.dnssec_ok), number);
        self.by_number.insert(number, lookup);
    }

    /// All that are under way.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Number, &mut Lookup)> {
        self.by_number.iter_mut().map(|(number, lookup)| (*number, lookup))
    }

    /// It has been replied to.
    pub(super) fn finish(&mut self, number: Number) -> Option<Lookup> {
        let lookup = self.by_number.remove(&number)?;
        self.by_key.remove(&(lookup.key, lookup.dnssec_ok));
        Some(lookup)
    }
}
