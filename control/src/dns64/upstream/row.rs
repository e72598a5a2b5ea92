//! The displayed state of an upstream, and its log messages.

use core::time::Duration;

/// Whether an upstream answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// It does, as far as is known.
    #[default]
    Up,
    /// It has been silent or unreachable for some questions in a row, and is probed.
    Suspected,
    /// The probes were not answered either. It is probed in the background, and queried only if there is no other.
    Down,
}

/// An upstream, as `show` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Whether it answers.
    pub health: Health,
    /// Smoothed time from question to reply, of the way it is asked by; `None` before the first reply.
    pub latency: Option<Duration>,
    /// Exchanges that are open.
    pub open: usize,
    /// Questions put to it, probes included.
    pub asked: u64,
    /// Accepted replies, whatever their contents.
    pub replies: u64,
    /// Of these, such as were of no use: SERVFAIL, REFUSED, FORMERR, NOTIMP, referrals, malformed ones.
    pub failed: u64,
    /// Queries without a reply in time.
    pub unanswered: u64,
    /// Questions that could not be put to it, or whose stream was closed.
    pub unreachable: u64,
    /// Replies that were rejected: of another ID, to another question, in another case.
    pub rejected: u64,
    /// Replies that were truncated.
    pub truncated: u64,
    /// It is asked without EDNS, which it does not understand.
    pub without_edns: bool,
    /// It is asked by stream although it is set up for datagrams, since its replies do not keep the case of names.
    pub by_stream: bool,
}

impl Row {
    /// Replies and silences of two.
    pub(super) fn with(self, other: &Self) -> Self {
        Self { replies: self.replies + other.replies, unanswered: self.unanswered + other.unanswered, ..self }
    }
}

/// Events of an upstream. Each is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It no longer answers.
    Down {
        /// The place in the settings.
        upstream: usize,
    },
    /// It answers again.
    Up {
        /// The place in the settings.
        upstream: usize,
        /// So long it did not.
        after: Duration,
    },
    /// It does not understand EDNS and is asked without: no DNSSEC records, no large datagrams.
    WithoutEdns {
        /// The place in the settings.
        upstream: usize,
    },
    /// It changes the case of names and is asked by stream (0x20 is not possible).
    ByStream {
        /// The place in the settings.
        upstream: usize,
    },
    /// It changes the case of names and has no stream: it is asked by datagrams, which the ID and the port alone guard.
    WithoutCase {
        /// The place in the settings.
        upstream: usize,
    },
}
