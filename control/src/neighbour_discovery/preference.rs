//! Router preferences (RFC 4191).

/// How much a router, or its route, is preferred (RFC 4191 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preference {
    /// 11
    Low,
    /// 00, also the value before RFC 4191.
    #[default]
    Medium,
    /// 01
    High,
}

impl Preference {
    /// The two bits on the wire.
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::High => 1,
            Self::Medium => 0,
            Self::Low => 3,
        }
    }

    /// From the two lowest bits; `None` for the reserved value.
    pub(super) const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 3 {
            0 => Some(Self::Medium),
            1 => Some(Self::High),
            3 => Some(Self::Low),
            _ => None,
        }
    }
}
