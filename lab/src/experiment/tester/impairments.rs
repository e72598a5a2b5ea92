//! What is injected.

use crate::impair::Impairment;

/// One impairment at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 1 % of the packets are lost.
    Loss,
    /// All are delayed by 10 ms.
    Delay,
    /// Delays vary around 10 ms with a standard deviation of 1 ms.
    Jitter,
    /// 0.5 % of the packets come twice.
    Duplicates,
    /// 1 % of the packets wait until three others have passed.
    Reordering,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Loss, Self::Delay, Self::Jitter, Self::Duplicates, Self::Reordering];

    /// The series of its cells.
    pub const fn series(self) -> &'static str {
        match self {
            Self::Loss => "injected-loss",
            Self::Delay => "injected-delay",
            Self::Jitter => "injected-jitter",
            Self::Duplicates => "injected-duplicates",
            Self::Reordering => "injected-reordering",
        }
    }

    /// What is injected, in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "how many packets are lost",
            Self::Delay => "how long packets are delayed",
            Self::Jitter => "how far delays deviate",
            Self::Duplicates => "how many packets come twice",
            Self::Reordering => "how many packets are reordered",
        }
    }

    /// What the process is to do.
    pub fn impairment(self, seed: u64) -> Impairment {
        let none = Impairment { seed, ..Impairment::default() };
        match self {
            Self::Loss => Impairment { loss: 0.01, ..none },
            Self::Delay => Impairment { delay: 10.0, ..none },
            Self::Jitter => Impairment { delay: 10.0, jitter: 1.0, ..none },
            Self::Duplicates => Impairment { duplicate: 0.005, ..none },
            Self::Reordering => Impairment { reorder: 0.01, ..none },
        }
    }
}
