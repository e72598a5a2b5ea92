//! Questions and exchanges in progress.

use super::super::ask::QueryTransport;
use super::super::shares::Place;
use super::query_message::Style;
use super::question::{Question, Reply};
use super::zone_health::ZoneKeys;
use crate::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;

/// A question has its outcome within this time.
pub const DEADLINE: Duration = Duration::from_millis(4_500);

/// How many times a question is sent, to any upstreams.
pub const MAX_TRIES: usize = 6;

/// How a try ended, or whether it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its time has not passed.
    Waiting,
    /// Its time has passed; a late reply is still welcome.
    Silent,
    /// It could not be sent for lack of room here.
    NoRoom,
    /// It said something that is not an answer.
    Failed,
    /// It could not be reached this way.
    NoWay,
    /// A datagram will not do: the reply was truncated, or an attacker was guessing.
    ByStream,
    /// It did not understand EDNS.
    NotUnderstood,
    /// It knows EDNS, and did not understand this question with it.
    OddWithEdns,
    /// Its reply had the name in another case.
    OtherCase,
    /// Its stream was closed, for the first time.
    Closed,
}

/// One putting of a question to an upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    pub(super) upstream: usize,
    pub(super) way: QueryTransport,
    pub(super) edns: bool,
    pub(super) sent: Instant,
    /// The exchange, while it is open.
    pub(super) exchange: Option<u64>,
    pub(super) end: End,
}

/// A question that has no outcome yet. At least one of its exchanges is open.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    name: Box<[u8]>,
    fields: Question<'static>,
    /// The outcome is due.
    pub(super) until: Instant,
    /// The last try's time has passed.
    pub(super) due: Instant,
    pub(super) tries: ArrayVec<Try, MAX_TRIES>,
    /// What is passed on if no upstream says anything better.
    pub(super) kept: Option<Reply>,
    /// An upstream said something that cannot be passed on.
    pub(super) useless: bool,
    /// Until it is over.
    pub(super) place: Option<Place>,
    /// When it was asked.
    pub(super) since: Instant,
    /// The key of the zone of its name.
    pub(super) zone: ZoneKeys,
    /// The zones in which it counts as open.
    pub(super) counted: ZoneKeys,
    /// Its timeout has been counted for its zone.
    pub(super) is_silent: bool,
}

impl OpenQuestion {
    pub(super) fn new(now: Instant, question: &Question<'_>, place: Place) -> Self {
        let Question {
            qtype,
            qclass,
            dnssec_ok,
            dnssec_needed,
            checking_disabled,
            authentic_data,
            unlike,
            payer,
            ..
        } = *question;
        let fields = Question {
            name: &[],
            qtype,
            qclass,
            dnssec_ok,
            dnssec_needed,
            checking_disabled,
            authentic_data,
            unlike,
            payer,
        };
        let until = now + DEADLINE;
        Self {
            name: question.name.into(),
            fields,
            until,
            due: until,
            tries: ArrayVec::new(),
            kept: None,
            useless: false,
            place: Some(place),
            since: now,
            zone: ZoneKeys::new(),
            counted: ZoneKeys::new(),
            is_silent: false,
        }
    }

    pub(super) fn question(&self) -> Question<'_> {
        Question { name: &self.name, ..self.fields }
    }

    /// The upstream that is better not asked has another place now, or none.
    pub(super) fn move_unlike(&mut self, place: impl Fn(usize) -> Option<usize>) {
        self.fields.unlike = self.fields.unlike.and_then(place);
    }

    /// Something was said already: then no upstream is asked twice.
    pub(super) fn something_was_said(&self) -> bool {
        self.useless || self.kept.is_some()
    }

    /// Keeps a failure to pass it on: SERVFAIL before any other, else the first.
    pub(super) fn keep(&mut self, reply: Reply) {
        const SERVFAIL: u8 = 2;
        let is_servfail = |reply: &Reply| reply.message.get(3).is_some_and(|flags| flags & 0x0f == SERVFAIL);
        if self.kept.as_ref().is_none_or(|kept| is_servfail(&reply) && !is_servfail(kept)) {
            self.kept = Some(reply);
        }
    }

    /// Tries that had no reply in their time.
    pub(super) fn silences(&self) -> usize {
        self.tries.iter().filter(|tried| tried.end == End::Silent).count()
    }

    /// A reply may still come, late.
    pub(super) fn is_open(&self) -> bool {
        self.tries.iter().any(|tried| tried.exchange.is_some())
    }

    pub(super) fn tries_at(&self, upstream: usize) -> impl Iterator<Item = &Try> {
        self.tries.iter().filter(move |tried| tried.upstream == upstream)
    }
}

/// What an exchange is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A question's try.
    Question { number: u64, at: usize },
    /// A copy of a question, to measure an upstream that is not asked otherwise.
    Measure,
    /// A probe of one that is not known to be alive.
    Probe,
}

/// An exchange that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) owner: Owner,
    pub(super) upstream: usize,
    pub(super) way: QueryTransport,
    pub(super) style: Style,
    pub(super) dnssec_ok: bool,
    pub(super) id: u16,
    /// The question section as it was sent.
    pub(super) question: Box<[u8]>,
    pub(super) sent: Instant,
    /// It has been handed out.
    pub(super) transmitted: bool,
    /// Replies that were not to its question.
    pub(super) strange: u8,
}
