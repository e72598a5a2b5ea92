//! The DNSSEC flags of a client's query.

/// A client's DNSSEC flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// CD: it validates itself.
    pub checking_disabled: bool,
    /// DO: it requests DNSSEC records.
    pub dnssec_ok: bool,
    /// AD: it asks whether the answer was validated (RFC 6840 §5.7).
    pub authentic: bool,
}

impl Flags {
    /// None of them.
    pub const NONE: Self = Self { checking_disabled: false, dnssec_ok: false, authentic: false };

    /// The four settings that RFC 6147 §5.5 distinguishes.
    pub const OF_A_VALIDATOR: [Self; 4] = [
        Self::NONE,
        Self { dnssec_ok: true, ..Self::NONE },
        Self { checking_disabled: true, ..Self::NONE },
        Self { checking_disabled: true, dnssec_ok: true, authentic: false },
    ];
}

/// As a table shows it.
impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set = [(self.checking_disabled, "CD"), (self.dnssec_ok, "DO"), (self.authentic, "AD")];
        let set: Vec<_> = set.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        f.write_str(&set.join(" "))
    }
}

/// No flag.
pub const PLAIN: Flags = Flags::NONE;
/// AD.
pub const AD: Flags = Flags { authentic: true, ..PLAIN };
/// DO.
pub const DO: Flags = Flags { dnssec_ok: true, ..PLAIN };
/// CD.
pub const CD: Flags = Flags { checking_disabled: true, ..PLAIN };
/// CD and DO.
pub const BOTH: Flags = Flags { checking_disabled: true, ..DO };
