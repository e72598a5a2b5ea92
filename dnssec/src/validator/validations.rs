//! The validator: validations under way, and what they share.

use super::anchors::Anchors;
use super::answer_validation::AnswerValidation;
use super::cuts::Cuts;
use super::lookups::Lookups;
use super::walk::WalkContext;
use crate::anchor::Anchor;
use crate::current_time::CurrentTime;
use crate::lookup::Lookup;
use crate::reply::Reply;
use crate::validate::Validate;
use crate::validation::Validation;
use crate::verdict::Verdict;
use crate::wire::Wire;
use std::collections::{BTreeMap, VecDeque};

/// Validates answers.
#[derive(Debug, Default)]
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
    /// A validator with these trust anchors and negative ones, as of [`set_anchors`](Validate::set_anchors).
    #[must_use]
    pub fn new(anchors: Vec<Anchor>, insecure: Vec<Wire>) -> Self {
        Self { anchors: Anchors::new(anchors, insecure), ..Self::default() }
    }

    fn go_on(
        &mut self,
        now: CurrentTime,
        validation: Validation,
        mut message: AnswerValidation,
        found: Option<(&Lookup, Option<&Reply>)>,
    ) {
        let mut around = WalkContext { now, anchors: &self.anchors, cuts: &mut self.cuts, found };
        match message.validate(&mut around) {
            Ok(verdict) => self.verdicts.push_back((validation, verdict)),
            Err(lookup) => {
                self.lookups.want(lookup.clone(), validation);
                self.messages.insert(validation, (message, lookup));
            }
        }
    }
}

impl Validate for Validator {
    fn begin(&mut self, now: CurrentTime, name: &[u8], qtype: u16, reply: Reply) -> Validation {
        let validation = Validation(self.next);
        self.next += 1;
        match AnswerValidation::new(reply, name, qtype) {
            Ok(message) => self.go_on(now, validation, message, None),
            Err(verdict) => self.verdicts.push_back((validation, verdict)),
        }
        validation
    }

    fn poll_lookup(&mut self) -> Option<(Validation, Lookup)> {
        self.lookups.poll()
    }

    fn handle_lookup(&mut self, now: CurrentTime, lookup: &Lookup, reply: Option<&Reply>) {
        for validation in self.lookups.end(lookup) {
            if let Some((message, _)) = self.messages.remove(&validation) {
                self.go_on(now, validation, message, Some((lookup, reply)));
            }
        }
    }

    fn poll_verdict(&mut self) -> Option<(Validation, Verdict)> {
        self.verdicts.pop_front()
    }

    fn abandon(&mut self, validation: Validation) {
        if let Some((_, lookup)) = self.messages.remove(&validation) {
            self.lookups.abandon(&lookup, validation);
        }
        self.verdicts.retain(|(number, _)| *number != validation);
    }

    fn set_anchors(&mut self, anchors: Vec<Anchor>, insecure: Vec<Wire>) {
        self.anchors = Anchors::new(anchors, insecure);
        self.cuts.clear();
    }

    fn forget(&mut self) {
        self.cuts.clear();
    }
}
