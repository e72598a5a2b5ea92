//! The interface of a validator.

use crate::anchor::Anchor;
use crate::current_time::CurrentTime;
use crate::lookup::Lookup;
use crate::reply::Reply;
use crate::validation::Validation;
use crate::verdict::Verdict;
use crate::wire::Wire;

/// A validator of answers, as a state machine: it does no I/O, and time is an argument.
///
/// The caller bounds the number of concurrent validations; the validator bounds the cost of each.
pub trait Validate {
    /// Begins to validate what was said about a name, which is in wire form, in any case.
    ///
    /// The reply's answer section has the whole chain of CNAME and DNAME records and what is at its end, and nothing else.
    fn begin(&mut self, now: CurrentTime, name: &[u8], qtype: u16, reply: Reply) -> Validation;

    /// The next question, and the first validation that waits for it. Each is asked once, however many wait for it, and is to be answered in every case
    /// with [`handle_lookup`](Self::handle_lookup), immediately or later.
    fn poll_lookup(&mut self) -> Option<(Validation, Lookup)>;

    /// The outcome of a lookup; `None`: nothing usable, within the time that there was.
    fn handle_lookup(&mut self, now: CurrentTime, lookup: &Lookup, reply: Option<&Reply>);

    /// The next verdict. Each validation that is not abandoned has one.
    fn poll_verdict(&mut self) -> Option<(Validation, Verdict)>;

    /// No one waits for this validation any more: it has no verdict.
    fn abandon(&mut self, validation: Validation);

    /// `anchors` are trusted from now on, and nothing is validated at and below the names in `insecure`, the negative trust anchors
    /// (RFC 7646). Of anchors of both kinds the one nearest to a name decides. What was found with the old ones is forgotten.
    fn set_anchors(&mut self, anchors: Vec<Anchor>, insecure: Vec<Wire>);

    /// What was found so far is forgotten: it is to be looked up again.
    fn forget(&mut self);
}
