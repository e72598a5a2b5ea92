//! The kinds of names that a generated zone has.

/// What there is at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One to three A records.
    VersionFour,
    /// AAAA records only.
    VersionSix,
    /// Both.
    Both,
    /// A CNAME to a name of the same zone with A records only.
    Alias,
    /// A CNAME to a name of another zone with A records only.
    AliasAcross,
    /// Five CNAMEs, the last to a name with A records only.
    Chain,
    /// A name below a DNAME; its target has A records only.
    Branch,
    /// An AAAA record within ::ffff:0:0/96 (RFC 6147 §5.1.4), and an A record.
    ExcludedOnly,
    /// The same together with a usable AAAA record.
    ExcludedBeside,
    /// Covered by a wildcard that has an A record.
    Wildcard,
    /// Nothing, but there is a name below.
    EmptyNonTerminal,
    /// A TXT record only.
    Text,
    /// No such name.
    Missing,
    /// A CNAME to no such name.
    DanglingAlias,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::VersionFour,
        Self::VersionSix,
        Self::Both,
        Self::Alias,
        Self::AliasAcross,
        Self::Chain,
        Self::Branch,
        Self::ExcludedOnly,
        Self::ExcludedBeside,
        Self::Wildcard,
        Self::EmptyNonTerminal,
        Self::Text,
        Self::Missing,
        Self::DanglingAlias,
    ];
}
