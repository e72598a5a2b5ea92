//! Options that make Sixway answer as a peer does: the tests compare the named cells with the peer's, and all others with Sixway's own.

use super::flags::{AD, BOTH, CD, DO, Flags, PLAIN};
use super::server::Server;
use super::table::Case;

/// An option and whose cells it gives.
#[derive(Clone, Copy, Debug)]
pub struct Likeness {
    /// Keys of `[dns64]` …
    pub keys: &'static str,
    /// … and of `[dns64.dnssec]`.
    pub dnssec: &'static str,
    /// Whose cells.
    pub like: Server,
    /// Which: all with one of these beginnings, and these flags.
    pub cells: &'static [(&'static str, Flags)],
    /// Cells that it also changes, to an answer that no peer gives.
    pub own: &'static [(&'static str, Flags, &'static str)],
}

impl Likeness {
    /// Whether a case's answer is to be the peer's.
    pub fn concerns(&self, case: &Case) -> bool {
        self.cells.iter().any(|(what, flags)| case.what.starts_with(what) && case.flags == *flags)
    }

    /// Sixway's answer to a case with this option.
    pub fn of(&self, case: &Case) -> &'static str {
        let own = self.own.iter().find(|(what, flags, _)| case.what == *what && case.flags == *flags);
        match own {
            Some((_, _, said)) => said,
            None => case.of(if self.concerns(case) { self.like } else { Server::Sixway }),
        }
    }

    /// The option as one writes it.
    pub fn written(&self) -> &'static str {
        if self.keys.is_empty() { self.dnssec } else { self.keys }
    }
}

const fn keys(keys: &'static str, like: Server, cells: &'static [(&'static str, Flags)]) -> Likeness {
    Likeness { keys, dnssec: "", like, cells, own: &[] }
}

const fn dnssec(dnssec: &'static str, like: Server, cells: &'static [(&'static str, Flags)]) -> Likeness {
    Likeness { keys: "", dnssec, like, cells, own: &[] }
}

/// All of them.
pub const LIKENESSES: &[Likeness] = &[
    dnssec(
        "checking_disabled = \"pass_on\"",
        Server::Unbound,
        &[("A only", CD), ("bogus A", CD), ("bogus proof", CD), ("expired", CD)],
    ),
    Likeness {
        // The A records are not queried, so none can be bogus.
        own: &[("bogus A", DO, "empty, proof, AD")],
        ..dnssec(
            "dnssec_ok = \"pass_on\"",
            Server::Bind,
            &[
                ("A only, signed", DO),
                ("A only, NSEC3", DO),
                ("CNAME, signed", DO),
                ("DNAME", DO),
                ("wildcard", DO),
            ],
        )
    },
    dnssec("ad_without_do = true", Server::Unbound, &[("A only, signed", AD)]),
    dnssec("ad_without_do = true", Server::Bind, &[("A only, signed", AD)]),
    keys("reverse = \"ptr\"", Server::Unbound, &[("PTR", PLAIN)]),
    keys("reverse_ttl = \"0 s\"", Server::Recursor, &[("PTR", PLAIN)]),
    keys("ipv4only_arpa = \"upstream\"", Server::Unbound, &[("ipv4only.arpa", BOTH)]),
    keys("exclude = []", Server::Unbound, &[("AAAA in ::ffff:0:0/96", PLAIN)]),
];
