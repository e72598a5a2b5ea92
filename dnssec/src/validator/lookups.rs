//! Questions that validations ask, each once, however many wait for it.

use crate::lookup::Lookup;
use crate::validation::Validation;
use std::collections::{BTreeMap, VecDeque};

/// Lookups that are wanted. A validation waits for one at a time, and so there are no more of these than of those.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// By what is waited for: who waits.
    waiting: BTreeMap<Lookup, Vec<Validation>>,
    /// To be passed to the caller.
    outgoing: VecDeque<Lookup>,
}

impl Lookups {
    /// The validation waits for this.
    pub(super) fn want(&mut self, lookup: Lookup, validation: Validation) {
        let waiting = self.waiting.entry(lookup).or_insert_with_key(|lookup| {
            self.outgoing.push_back(lookup.clone());
            Vec::new()
        });
        waiting.push(validation);
    }

    /// The next one that has not been passed to the caller, and the first validation that waits for it.
    pub(super) fn poll(&mut self) -> Option<(Validation, Lookup)> {
        let lookup = self.outgoing.pop_front()?;
        // Without those that no validation waits for.
        let first = self.waiting.get(&lookup)?.first()?;
        Some((*first, lookup))
    }

    /// It has come: who waited for it?
    pub(super) fn end(&mut self, lookup: &Lookup) -> Vec<Validation> {
        self.waiting.remove(lookup).unwrap_or_default()
    }

    /// The validation no longer waits for this. Lookups that were passed to the caller are still to be answered.
    pub(super) fn abandon(&mut self, lookup: &Lookup, validation: Validation) {
        let Some(waiting) = self.waiting.get_mut(lookup) else { return };
        waiting.retain(|number| *number != validation);
        if waiting.is_empty() && self.outgoing.contains(lookup) {
            self.outgoing.retain(|wanted| wanted != lookup);
            self.waiting.remove(lookup);
        }
    }
}
