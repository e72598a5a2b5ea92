//! The validator: validations under way, and what they share.

use super::anchors::Anchors;
use super::answer_validation::AnswerValidation;
use super::cuts::Cuts;
use super::lookups::{Lookup, Lookups};
use super::reply::Reply;
use super::validation::Validation;
use super::verdict::Verdict;
use super::walk::WalkContext;
use crate::Instant;
use crate::dns64::{Anchor, Wire};
use std::collections::{BTreeMap, VecDeque};

/// Validates answers. How many at a time is its caller's to bound; what each of them may cost is bounded here.
#[derive(Debug)]
pub struct Validator {
    anchors: Anchors,
    cuts: Cuts,
    lookups: Lookups,
    /// Those that wait, with what they wait for.
    messages: BTreeMap<Validation, (AnswerValidation, Lookup)>,
    verdicts: VecDeque<(Validation, Verdict)>,
    next: u64,
}

impl Validator {
    /// A validator that believes in `anchors`, and validates nothing at and below the names in `insecure`, the negative trust anchors
    /// (RFC 7646). Of anchors of both kinds the one nearest to a name decides.
    #[must_use]
    pub fn new(anchors: Vec<Anchor>, insecure: Vec<Wire>) -> Self {
        Self {
            anchors: Anchors::new(anchors, insecure),
            cuts: Cuts::default(),
            lookups: Lookups::default(),
            messages: BTreeMap::new(),
            verdicts: VecDeque::new(),
            next: 0,
        }
    }

    /// Other anchors are believed in from now on. What was found with the old ones is forgotten.
    pub fn set_anchors(&mut self, anchors: Vec<Anchor>) {
        self.anchors.set(anchors);
        self.cuts.clear();
    }

    /// What was found so far is forgotten: it is to be looked up again.
    pub fn forget(&mut self) {
        self.cuts.clear();
    }

    /// Begins to validate what was said about a name, which is in wire form, in any case. `wall` is Unix time in seconds.
    ///
    /// The reply's answer section has the whole chain of CNAME and DNAME records and what is at its end, and nothing else.
    pub fn begin(&mut self, now: Instant, wall: u64, name: &[u8], qtype: u16, reply: Reply) -> Validation {
        let validation = Validation(self.next);
        self.next += 1;
        match AnswerValidation::new(reply, name, qtype) {
            Ok(message) => self.go_on(now, wall, validation, message, None),
            Err(verdict) => self.verdicts.push_back((validation, verdict)),
        }
        validation
    }

    /// The next question. Each is asked once, however many wait for it, and is to be answered in every case with
    /// [`handle_lookup`](Self::handle_lookup), immediately or later.
    pub fn poll_lookup(&mut self) -> Option<Lookup> {
        self.lookups.poll()
    }

    /// What came of a lookup; `None`: nothing usable, within the time that there was.
    pub fn handle_lookup(&mut self, now: Instant, wall: u64, lookup: &Lookup, reply: Option<&Reply>) {
        for validation in self.lookups.end(lookup) {
            if let Some((message, _)) = self.messages.remove(&validation) {
                self.go_on(now, wall, validation, message, Some((lookup, reply)));
            }
        }
    }

    /// The next verdict.
    pub fn poll_verdict(&mut self) -> Option<(Validation, Verdict)> {
        self.verdicts.pop_front()
    }

    /// No one waits for this validation any more.
    pub fn abandon(&mut self, validation: Validation) {
        if let Some((_, lookup)) = self.messages.remove(&validation) {
            self.lookups.abandon(&lookup, validation);
        }
        self.verdicts.retain(|(number, _)| *number != validation);
    }

    fn go_on(
        &mut self,
        now: Instant,
        wall: u64,
        validation: Validation,
        mut message: AnswerValidation,
        found: Option<(&Lookup, Option<&Reply>)>,
    ) {
        let mut around = WalkContext { now, wall, anchors: &self.anchors, cuts: &mut self.cuts, found };
        match message.validate(&mut around) {
            Ok(verdict) => self.verdicts.push_back((validation, verdict)),
            Err(lookup) => {
                self.lookups.want(lookup.clone(), validation);
                self.messages.insert(validation, (message, lookup));
            }
        }
    }
}
