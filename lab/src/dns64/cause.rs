//! Why Sixway and a peer answer the same question differently. A difference without a known cause fails the test.

use super::facet::Facet::{self, Addresses, Authentic, Lifetime, Proof, Signatures};
use super::flags::{BOTH, CD, DO, Flags};
use super::kind::Kind;
use super::sample::{Sample, Trust};
use super::server::Server;

/// Whom the RFC supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTheRight {
    /// Sixway has.
    Sixway,
    /// The RFC leaves it to the server.
    Either,
}

impl InTheRight {
    /// As a table says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sixway => "sixway",
            Self::Either => "either",
        }
    }
}

/// A cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Whose answers differ from Sixway's.
    pub peers: &'static [Server],
    /// To which questions.
    pub what: &'static str,
    /// In what.
    pub facets: &'static [Facet],
    /// The reason.
    pub why: &'static str,
    /// Where it is written what is right.
    pub clause: &'static str,
    /// Who is.
    pub right: InTheRight,
    /// Whether a question is one of them.
    pub concerns: fn(&Sample, Flags) -> bool,
    /// Whether the difference appears in every run; otherwise it depends on earlier queries.
    pub always: bool,
}

impl Cause {
    /// The cause of one difference: the first that fits.
    pub fn of(peer: Server, sample: &Sample, flags: Flags, facet: Facet) -> Option<usize> {
        CAUSES.iter().position(|cause| {
            cause.peers.contains(&peer) && cause.facets.contains(&facet) && (cause.concerns)(sample, flags)
        })
    }
}

fn excluded(sample: &Sample) -> bool {
    matches!(sample.kind, Kind::ExcludedOnly | Kind::ExcludedBeside)
}

/// Whether there are A records and no AAAA records at all.
fn version_four(sample: &Sample) -> bool {
    !sample.four.is_empty() && sample.six.is_empty()
}

/// Whether the answer for AAAA records is signed, and valid; that of the zone of a CNAME's target is.
fn signed(sample: &Sample) -> bool {
    sample.trust[1] == Trust::Secure || sample.kind == Kind::AliasAcross
}

fn alias(sample: &Sample) -> bool {
    use Kind::{Alias, AliasAcross, Branch, Chain, DanglingAlias};
    matches!(sample.kind, Alias | AliasAcross | Branch | Chain | DanglingAlias)
}

const UNBOUND: &[Server] = &[Server::Unbound];
const BIND: &[Server] = &[Server::Bind];

/// All causes; the first that matches applies.
pub const CAUSES: &[Cause] = &[
    Cause {
        peers: UNBOUND,
        what: "AAAA records within ::ffff:0:0/96, unless CD and DO are set",
        facets: &[Addresses, Signatures, Authentic, Lifetime],
        why: "it does not exclude address ranges",
        clause: "RFC 6147 §5.1.4",
        right: InTheRight::Sixway,
        concerns: |sample, flags| excluded(sample) && flags != BOTH,
        always: true,
    },
    Cause {
        peers: UNBOUND,
        what: "a bogus proof that there is no AAAA record",
        facets: &[Addresses, Authentic, Lifetime],
        why: "it synthesises from a valid A without having validated the proof, and sets AD",
        clause: "RFC 6147 §5.5, case 2",
        right: InTheRight::Sixway,
        concerns: |sample, flags| sample.name.starts_with("bad-nsec") && !flags.checking_disabled,
        always: true,
    },
    Cause {
        peers: UNBOUND,
        what: "A only, with CD alone",
        facets: &[Addresses, Lifetime],
        why: "it never synthesises for clients that set CD; here `checking_disabled` decides",
        clause: "RFC 6147 §5.5 has no such case",
        right: InTheRight::Either,
        concerns: |sample, flags| version_four(sample) && flags == CD,
        always: true,
    },
    Cause {
        peers: UNBOUND,
        what: "A only, without CD",
        facets: &[Lifetime],
        why: "it gives the TTL of the A record, however soon there may be an AAAA record",
        clause: "RFC 6147 §5.1.7",
        right: InTheRight::Sixway,
        concerns: |sample, flags| version_four(sample) && !flags.checking_disabled,
        always: true,
    },
    Cause {
        peers: UNBOUND,
        what: "a name below a DNAME, with CD and DO",
        facets: &[Lifetime],
        why: "the CNAME has a TTL of 0, not the DNAME's",
        clause: "RFC 6672 §3.1",
        right: InTheRight::Sixway,
        concerns: |sample, flags| sample.kind == Kind::Branch && flags == BOTH,
        always: true,
    },
    Cause {
        peers: UNBOUND,
        what: "a bogus AAAA record, with CD",
        facets: &[Lifetime],
        why: "it gives the minute for which it remembers that the record is bogus; Sixway gives the record's own TTL",
        clause: "RFC 4035 §4.7",
        right: InTheRight::Either,
        concerns: |sample, flags| sample.name.starts_with("bad-aaaa") && flags.checking_disabled,
        always: true,
    },
    Cause {
        peers: BIND,
        what: "A only, in a signed zone, with DO alone",
        facets: &[Addresses, Proof, Lifetime],
        why: "it forwards the proof, and synthesises from unsigned zones only; here `dnssec_ok = \"pass_on\"` does so",
        clause: "RFC 6147 §5.5, case 2",
        right: InTheRight::Either,
        concerns: |sample, flags| version_four(sample) && signed(sample) && flags == DO,
        always: true,
    },
    Cause {
        peers: BIND,
        what: "AAAA records within ::ffff:0:0/96 in a signed zone, with DO alone",
        facets: &[Addresses, Signatures, Authentic, Lifetime],
        why: "it excludes nothing that is signed",
        clause: "RFC 6147 §5.1.4",
        right: InTheRight::Sixway,
        concerns: |sample, flags| excluded(sample) && signed(sample) && flags == DO,
        always: true,
    },
    Cause {
        peers: BIND,
        what: "A only, or an excluded range, in an unsigned zone, with CD and DO",
        facets: &[Addresses, Lifetime],
        why: "it synthesises and excludes, though the client is to do so itself",
        clause: "RFC 6147 §5.5, case 3",
        right: InTheRight::Sixway,
        concerns: |sample, flags| {
            (version_four(sample) || excluded(sample)) && !signed(sample) && flags == BOTH
        },
        always: true,
    },
    Cause {
        peers: BIND,
        what: "an excluded range only, unless CD and DO are set",
        facets: &[Lifetime],
        why: "the answer to the AAAA query came without SOA record, so 600 s is the most; it gives the TTL of the A record",
        clause: "RFC 6147 §5.1.7",
        right: InTheRight::Sixway,
        concerns: |sample, flags| sample.kind == Kind::ExcludedOnly && flags != BOTH,
        always: true,
    },
    Cause {
        peers: BIND,
        what: "A only behind a bogus proof, with CD alone",
        facets: &[Lifetime],
        why: "it gives the TTL of the SOA record; Sixway gives the half minute for which it keeps what does not validate",
        clause: "RFC 4035 §4.7",
        right: InTheRight::Either,
        concerns: |sample, flags| version_four(sample) && sample.trust[1] == Trust::Bogus && flags == CD,
        always: true,
    },
    Cause {
        peers: BIND,
        what: "a wildcard in a zone with NSEC, without DO",
        facets: &[Addresses, Lifetime],
        why: "it does not query again what a cached NSEC record denies (`synth-from-dnssec`), and such an answer is not synthesised",
        clause: "RFC 6147 §5.1.6",
        right: InTheRight::Sixway,
        concerns: |sample, flags| {
            sample.kind == Kind::Wildcard && sample.name.ends_with(".signed.test") && !flags.dnssec_ok
        },
        always: false,
    },
    Cause {
        peers: &[Server::Unbound, Server::Bind],
        what: "a signed answer, with CD and DO",
        facets: &[Authentic],
        why: "it validates for those clients too and sets AD; Sixway leaves validation to them",
        clause: "RFC 6147 §5.5, case 3",
        right: InTheRight::Either,
        concerns: |sample, flags| signed(sample) && flags == BOTH,
        always: true,
    },
    Cause {
        peers: &[Server::Unbound, Server::Bind],
        what: "a CNAME to what is signed and is not there",
        facets: &[Lifetime],
        why: "Sixway keeps a validated answer as a whole: the CNAME's TTL is not above that of the proof behind it",
        clause: "RFC 4035 §5.3.3",
        right: InTheRight::Either,
        concerns: |sample, _| alias(sample) && signed(sample),
        always: true,
    },
];
