//! The counters of a server.

use super::refusal::Refusal;
use super::sent::Sent;

/// Datagrams since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Solicitations that were answered.
    pub advertised: u64,
    /// Those among them that were authentic.
    pub authentic: u64,
    /// Bubbles and echo messages sent to clients.
    pub forwarded: u64,
    /// Echo messages sent to native hosts.
    pub native: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Default for Counts {
    fn default() -> Self {
        Self { advertised: 0, authentic: 0, forwarded: 0, native: 0, refused: [0; Refusal::ALL.len()] }
    }
}

impl Counts {
    /// Those that were discarded, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.iter().copied().zip(self.refused)
    }

    /// Those that were discarded for this reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.refused.get(reason as usize).copied().unwrap_or_default()
    }

    /// All that were received.
    pub fn received(&self) -> u64 {
        self.advertised + self.forwarded + self.native + self.refused.iter().sum::<u64>()
    }

    pub(super) fn count(&mut self, outcome: &Result<Outcome, Refusal>) {
        match outcome {
            Ok(Outcome::Advertised { authentic, .. }) => {
                self.advertised += 1;
                self.authentic += u64::from(*authentic);
            }
            Ok(Outcome::Forwarded(Sent::Udp { .. })) => self.forwarded += 1,
            Ok(Outcome::Forwarded(Sent::Native(_))) => self.native += 1,
            Err(reason) => {
                if let Some(count) = self.refused.get_mut(*reason as usize) {
                    *count += 1;
                }
            }
        }
    }
}

/// The outcome of a datagram that is not discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// An answer to a solicitation.
    Advertised { sent: Sent, authentic: bool },
    /// Another packet.
    Forwarded(Sent),
}

impl Outcome {
    pub(super) const fn sent(self) -> Sent {
        match self {
            Self::Advertised { sent, .. } | Self::Forwarded(sent) => sent,
        }
    }
}
