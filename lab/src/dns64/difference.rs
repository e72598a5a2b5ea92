//! Known wrong answers of a peer for generated names, with the reason. A difference that is not listed fails the test.

use super::kind::Kind;
use super::sample::Sample;
use super::server::Server;

/// A known difference.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// Whose.
    pub server: Server,
    /// Which names.
    pub what: &'static str,
    /// The reason.
    pub why: &'static str,
    /// Whether a name is one of them.
    pub concerns: fn(&Sample) -> bool,
    /// Whether the difference appears in every run; otherwise it depends on earlier queries.
    pub always: bool,
}

fn excluded(sample: &Sample) -> bool {
    matches!(sample.kind, Kind::ExcludedOnly | Kind::ExcludedBeside)
}

fn bad(sample: &Sample, what: &str) -> bool {
    sample.name.starts_with(what)
}

fn below(sample: &Sample, zone: &str) -> bool {
    sample.name.ends_with(zone)
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        server: Server::Recursor,
        what: "AAAA records within ::ffff:0:0/96",
        why: "it does not exclude address ranges (RFC 6147 §5.1.4)",
        concerns: excluded,
        always: true,
    },
    Difference {
        server: Server::Recursor,
        what: "a name below a DNAME in a zone with NSEC3",
        why: "it does not query again what cached NSEC3 records deny (`aggressive-nsec-cache-size`), and does not look for the DNAME",
        concerns: |sample| sample.kind == Kind::Branch && below(sample, ".hashed.test"),
        always: false,
    },
    Difference {
        server: Server::Recursor,
        what: "expired signatures, a bogus A, a bogus proof",
        why: "a bogus AAAA answer is taken for an empty one, and the A is not validated",
        concerns: |sample| below(sample, ".expired.test") || bad(sample, "bad-a-") || bad(sample, "bad-nsec"),
        always: true,
    },
];

/// The difference that explains one.
pub fn explained(server: Server, sample: &Sample) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|difference| difference.server == server && (difference.concerns)(sample))
}
