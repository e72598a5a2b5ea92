//! The validator: validations under way, and what they share.

use super::lookups::Lookup;
use super::reply::Reply;
use super::verdict::Verdict;
use crate::Instant;
use crate::dns64::{Anchor, Security, Wire};
use std::collections::VecDeque;

/// A validation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Validation(pub u64);

/// Validates answers. How many at a time is its caller's to bound; what each of them may cost is bounded here.
#[derive(Debug)]
pub struct Validator {
    anchors: Vec<Anchor>,
    insecure: Vec<Wire>,
    next: u64,
    verdicts: VecDeque<(Validation, Verdict)>,
}

impl Validator {
    /// A validator that believes in `anchors`, and validates nothing at and below the names in `insecure`, the negative trust anchors
    /// (RFC 7646). Of anchors of both kinds the one nearest to a name decides.
    #[must_use]
    pub fn new(anchors: Vec<Anchor>, insecure: Vec<Wire>) -> Self {
        Self { anchors, insecure, next: 0, verdicts: VecDeque::new() }
    }

    /// Other anchors are believed in from now on. What was found with the old ones is forgotten.
    pub fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.anchors = anchors;
    }

    /// Begins to validate what was said about a name, which is in wire form, in any case. `wall` is Unix time in seconds.
    ///
    /// The reply's answer section has the whole chain of CNAME and DNAME records and what is at its end, and nothing else.
    pub fn begin(&mut self, now: Instant, wall: u64, name: &[u8], qtype: u16, reply: Reply) -> Validation {
        let _ = (now, wall, name, qtype, reply, &self.anchors, &self.insecure);
        let validation = Validation(self.next);
        self.next += 1;
        let verdict = Verdict {
            security: Security::Indeterminate,
            extended_error: Some(5),
            ttl_bound: None,
            blamed: None,
        };
        self.verdicts.push_back((validation, verdict));
        validation
    }

    /// The next question. Each is asked once, whoever waits for it, and is to be answered in every case with
    /// [`handle_lookup`](Self::handle_lookup), at once or later.
    pub fn poll_lookup(&mut self) -> Option<Lookup> {
        None
    }

    /// What came of a lookup; `None`: nothing usable, within the time that there was.
    pub fn handle_lookup(&mut self, now: Instant, wall: u64, lookup: &Lookup, reply: Option<&Reply>) {
        let _ = (now, wall, lookup, reply);
    }

    /// The next verdict.
    pub fn poll_verdict(&mut self) -> Option<(Validation, Verdict)> {
        self.verdicts.pop_front()
    }

    /// Nobody waits for this validation any more.
    pub fn abandon(&mut self, validation: Validation) {
        self.verdicts.retain(|(number, _)| *number != validation);
    }
}
