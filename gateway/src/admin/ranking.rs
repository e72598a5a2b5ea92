//! The order of the displayed subscribers, and their maximum number.

use super::filter::{FilterError, Query};
use crate::view::SubscriberRow;
use serde::{Deserialize, Serialize};
use sixway_wire::Prefix6;

/// Rows without `top`.
pub const DEFAULT_TOP: usize = 20;
/// The most rows.
pub const MAX_TOP: usize = 10_000;

/// The sort key of subscribers, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Ports and identifiers of all protocols.
    #[default]
    Ports,
    /// Sessions.
    Sessions,
    /// New sessions a second.
    Rate,
    /// New sessions and bindings that were refused.
    Refused,
}

impl By {
    /// The sort key of a row.
    pub fn key(self, row: &SubscriberRow) -> u64 {
        match self {
            Self::Ports => {
                u64::from(row.tcp_ports) + u64::from(row.udp_ports) + u64::from(row.icmp_identifiers)
            }
            Self::Sessions => row.sessions.into(),
            Self::Rate => row.new_sessions_per_second.into(),
            Self::Refused => row.refused,
        }
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Sessions => "sessions",
            Self::Rate => "rate",
            Self::Refused => "refused",
        }
    }
}

/// A request for subscribers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranking {
    /// Only subscribers in this prefix: `ADDRESS` or `PREFIX/LENGTH`.
    pub inside: Option<String>,
    /// Their order.
    pub by: Option<By>,
    /// The most rows.
    pub top: Option<usize>,
    /// Of the end of a subscriber: the name of the translator; without it, the one that has the inside hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
}

impl Ranking {
    /// The prefix.
    ///
    /// # Errors
    /// It is not one.
    pub fn prefix(&self) -> Result<Option<Prefix6>, FilterError> {
        let query = Query { inside: self.inside.clone(), ..Query::default() };
        Ok(query.filter()?.inside.map(|(prefix, _)| prefix))
    }
}
