//! What a server counts.

use super::result_code::ResultCode;

/// Why a datagram gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Shorter than a header.
    Short,
    /// A response.
    NotRequest,
    /// From an address that is not inside, or is of several hosts.
    NotInside,
    /// The subscriber sends too many.
    Rate,
    /// All together send too many.
    TotalRate,
}

impl Ignored {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Short, Self::NotRequest, Self::NotInside, Self::Rate, Self::TotalRate];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::NotRequest => "not_request",
            Self::NotInside => "not_inside",
            Self::Rate => "rate",
            Self::TotalRate => "total_rate",
        }
    }
}

/// Datagrams since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests by PCP that were answered, by result code.
    pub results: [u64; ResultCode::ALL.len()],
    /// Requests by NAT-PMP that were answered.
    pub nat_pmp: u64,
    /// Requests that were not answered, by reason.
    pub ignored: [u64; Ignored::ALL.len()],
    /// Mappings that ended since they were not renewed.
    pub expired: u64,
    /// Announcements and mapping updates that were sent.
    pub announced: u64,
}

impl Counts {
    /// Answered with this result.
    pub fn of(&self, result: ResultCode) -> u64 {
        self.results[result as usize]
    }

    /// Ignored for this reason.
    pub fn ignored(&self, reason: Ignored) -> u64 {
        self.ignored[reason as usize]
    }

    pub(super) const fn answered(&mut self, result: ResultCode) {
        self.results[result as usize] += 1;
    }

    pub(super) const fn not_answered(&mut self, reason: Ignored) {
        self.ignored[reason as usize] += 1;
    }
}
