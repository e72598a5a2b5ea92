//! The abilities of an upstream, as its replies show: EDNS, and the case of names in replies.

use crate::Instant;
use core::time::Duration;

/// How long a detected ability is assumed before it is tested again: servers are replaced.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// The same for missing EDNS support, shorter: there is no DNSSEC without it.
const EDNS_REMEMBERED: Duration = Duration::from_secs(900);

/// The number of questions in a row that must be refused with EDNS and answered without.
const REFUSED_EDNS: u8 = 2;

/// The number of questions that must be answered only without EDNS before silence is attributed to EDNS: a datagram may be lost.
const SILENT_TO_EDNS: u8 = 2;

/// After this number of replies in another case it is asked by stream.
const OTHER_CASE: u8 = 3;

/// The number of streams in a row that must fail before an upstream that changes the case is asked by datagrams nevertheless.
const NO_STREAM: u8 = 2;

/// How names are sent by datagrams, or whether they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// In random case, which must come back.
    Random,
    /// It does not repeat the case: query over a stream, which cannot be forged off path.
    ByStream(Instant),
    /// It does not come back, and there is no stream: the ID and the port must do.
    Plain(Instant),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Abilities {
    /// It has replied to a query with EDNS.
    knows_edns: bool,
    /// Questions that were answered without EDNS after silence to EDNS.
    silent_to_edns: u8,
    /// Questions that were answered without EDNS after a refusal with EDNS.
    refused_edns: u8,
    /// The last of them.
    counted: Option<Instant>,
    without_edns: Option<Instant>,
    case: Case,
    other_case: u8,
    no_stream: u8,
}

impl Abilities {
    pub(super) const fn new() -> Self {
        Self {
            knows_edns: false,
            silent_to_edns: 0,
            refused_edns: 0,
            counted: None,
            without_edns: None,
            case: Case::Random,
            other_case: 0,
            no_stream: 0,
        }
    }

    /// Forgets what was found out too long ago.
    pub(super) fn refresh(&mut self, now: Instant) {
        if self.without_edns.is_some_and(|until| until <= now) {
            (self.without_edns, self.knows_edns) = (None, false);
            (self.silent_to_edns, self.refused_edns) = (0, 0);
        }
        if let Case::ByStream(until) | Case::Plain(until) = self.case
            && until <= now
        {
            (self.case, self.other_case, self.no_stream) = (Case::Random, 0, 0);
        }
    }

    /// It is asked with EDNS.
    pub(super) fn edns(&self) -> bool {
        self.without_edns.is_none()
    }

    /// Silence may be because of EDNS.
    pub(super) fn may_hate_edns(&self) -> bool {
        !self.knows_edns
    }

    pub(super) fn case(&self) -> Case {
        self.case
    }

    /// It replied to a query with EDNS, and not that it does not understand.
    pub(super) fn understood_edns(&mut self) {
        (self.knows_edns, self.without_edns) = (true, None);
        (self.silent_to_edns, self.refused_edns) = (0, 0);
    }

    /// It did not understand a question with EDNS, sent then, and answered the same without; whether it is asked without from now on. A single
    /// odd reply says nothing; of many at the same time, one counts.
    pub(super) fn refused_edns(&mut self, now: Instant, sent: Instant) -> bool {
        if self.counted.is_some_and(|counted| sent < counted) {
            return false;
        }
        self.counted = Some(now);
        self.refused_edns = self.refused_edns.saturating_add(1);
        self.refused_edns >= REFUSED_EDNS && self.turns_edns_off(now)
    }

    fn turns_edns_off(&mut self, now: Instant) -> bool {
        self.without_edns.replace(now + EDNS_REMEMBERED).is_none()
    }

    /// It was silent to a question with EDNS, sent then, and answered the same without; whether it is asked without from now on. Of many that were
    /// lost at the same time, one counts.
    pub(super) fn ignored_edns(&mut self, now: Instant, sent: Instant) -> bool {
        if self.knows_edns || self.counted.is_some_and(|counted| sent < counted) {
            return false;
        }
        self.counted = Some(now);
        self.silent_to_edns = self.silent_to_edns.saturating_add(1);
        self.silent_to_edns >= SILENT_TO_EDNS && self.turns_edns_off(now)
    }

    /// A name came back in its random case.
    pub(super) fn kept_case(&mut self) {
        self.other_case = 0;
    }

    /// A name came back in another case; whether it is asked by stream from now on.
    pub(super) fn changed_case(&mut self, now: Instant) -> bool {
        self.other_case = self.other_case.saturating_add(1);
        let turns = self.case == Case::Random && self.other_case >= OTHER_CASE;
        if turns {
            self.case = Case::ByStream(now + REMEMBERED);
        }
        turns
    }

    /// It replied by stream.
    pub(super) fn has_stream(&mut self) {
        self.no_stream = 0;
    }

    /// A stream to it failed, or was silent; whether it is asked by datagrams without random case from now on.
    pub(super) fn stream_failed(&mut self, now: Instant) -> bool {
        self.no_stream = self.no_stream.saturating_add(1);
        let turns = matches!(self.case, Case::ByStream(_)) && self.no_stream >= NO_STREAM;
        if turns {
            self.case = Case::Plain(now + REMEMBERED);
        }
        turns
    }
}
