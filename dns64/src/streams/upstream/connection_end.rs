//! How a connection to an upstream ended.

use super::backlog::Waiting;
use super::connect::Fault;

/// A connection's end.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    /// Queries sent and not answered.
    pub(super) unanswered: Vec<Waiting>,
    /// How many it answered.
    pub(super) answered: usize,
    /// What was wrong.
    pub(super) fault: Option<Fault>,
    /// Whether the connection was established.
    pub(super) was_open: bool,
    /// It was closed here, since nothing was heard for a time: names without servers do that, whatever the upstream is like.
    pub(super) was_silent: bool,
}

impl ConnectionEnd {
    pub(super) fn before_use(fault: Fault) -> Self {
        Self { unanswered: Vec::new(), answered: 0, fault: Some(fault), was_open: false, was_silent: false }
    }
}
