//! The answers of each DNS64 to the same queries, in a few words. The interop tests compare every server with its column, and the document is generated from it.

use super::expected::Expected;
use super::flags::{AD, BOTH, CD, DO, Flags, PLAIN};
use super::query::Reply;
use super::server::Server;
use std::net::IpAddr;

/// A query and the answers of validating servers, in the order of [`Server::ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What is queried, in words.
    pub what: &'static str,
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: &'static str,
    /// The client's flags.
    pub flags: Flags,
    /// In the words of [`words`].
    pub said: [&'static str; 4],
}

impl Case {
    /// A server's column.
    pub fn of(&self, server: Server) -> &'static str {
        self.said[Server::ALL.iter().position(|one| *one == server).unwrap_or(0)]
    }
}

const fn aaaa(what: &'static str, name: &'static str, flags: Flags, said: [&'static str; 4]) -> Case {
    Case { what, name, kind: "AAAA", flags, said }
}

const fn ptr(what: &'static str, name: &'static str, flags: Flags, said: [&'static str; 4]) -> Case {
    Case { what, name, kind: "PTR", flags, said }
}

/// 64:ff9b::45.64.0.5, whose IPv4 address has a name.
const NAMED: &str = "5.0.0.0.0.4.d.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
/// 64:ff9b::45.64.1.5, whose IPv4 address has none.
const NAMELESS: &str = "5.0.1.0.0.4.d.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";

/// Servers that the tests hold to their columns.
pub const HELD: &[Server] = &[Server::Unbound, Server::Bind, Server::Recursor, Server::Sixway];

/// The table.
pub const CASES: &[Case] = &[
    aaaa(
        "A only, unsigned",
        "versionfour-0.plain.test",
        PLAIN,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A (1 d), denial (1 min)",
        "host.brief.test",
        PLAIN,
        ["synthesised (86400 s)", "synthesised (60 s)", "synthesised (86400 s)", "synthesised (60 s)"],
    ),
    aaaa("AAAA only", "versionsix-1.plain.test", PLAIN, ["forwarded", "forwarded", "forwarded", "forwarded"]),
    aaaa("both", "both-2.plain.test", PLAIN, ["forwarded", "forwarded", "forwarded", "forwarded"]),
    aaaa(
        "CNAME to A only",
        "alias-3.plain.test",
        PLAIN,
        ["CNAME, synthesised", "CNAME, synthesised", "CNAME, synthesised", "CNAME, synthesised"],
    ),
    aaaa(
        "CNAME to another zone",
        "aliasacross-4.plain.test",
        PLAIN,
        ["CNAME, synthesised", "CNAME, synthesised", "CNAME, synthesised", "CNAME, synthesised"],
    ),
    aaaa(
        "chain of CNAMEs",
        "chain-5.plain.test",
        PLAIN,
        ["5 CNAME, synthesised", "5 CNAME, synthesised", "5 CNAME, synthesised", "5 CNAME, synthesised"],
    ),
    aaaa(
        "below a DNAME",
        "host.branch-6.plain.test",
        PLAIN,
        [
            "DNAME, CNAME, synthesised",
            "DNAME, CNAME, synthesised",
            "2 DNAME, CNAME, synthesised",
            "DNAME, CNAME, synthesised",
        ],
    ),
    aaaa(
        "AAAA in ::ffff:0:0/96 only",
        "excludedonly-7.plain.test",
        PLAIN,
        ["forwarded", "synthesised", "forwarded", "synthesised"],
    ),
    aaaa(
        "such an AAAA and another",
        "excludedbeside-8.plain.test",
        PLAIN,
        ["forwarded", "forwarded", "forwarded", "forwarded"],
    ),
    aaaa(
        "wildcard with an A",
        "any.wildcard-9.plain.test",
        PLAIN,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa("empty non-terminal", "emptynonterminal-10.plain.test", PLAIN, ["empty", "empty", "empty", "empty"]),
    aaaa("no address", "text-11.plain.test", PLAIN, ["empty", "empty", "empty", "empty"]),
    aaaa("no such name", "missing-12.plain.test", PLAIN, ["NXDOMAIN", "NXDOMAIN", "NXDOMAIN", "NXDOMAIN"]),
    aaaa(
        "CNAME to no such name",
        "danglingalias-13.plain.test",
        PLAIN,
        ["CNAME, NXDOMAIN", "CNAME, NXDOMAIN", "CNAME, NXDOMAIN", "CNAME, NXDOMAIN"],
    ),
    aaaa(
        "ipv4only.arpa",
        "ipv4only.arpa",
        PLAIN,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa("ipv4only.arpa", "ipv4only.arpa", BOTH, ["empty", "synthesised", "synthesised", "synthesised"]),
    ptr(
        "PTR in 64:ff9b::/96",
        NAMED,
        PLAIN,
        ["PTR", "CNAME (600 s), PTR", "CNAME (0 s), PTR", "CNAME (600 s), PTR"],
    ),
    ptr(
        "the same, without a name",
        NAMELESS,
        PLAIN,
        ["NXDOMAIN", "CNAME (600 s), NXDOMAIN", "CNAME (0 s), NXDOMAIN", "NXDOMAIN"],
    ),
    aaaa(
        "A only, unsigned",
        "versionfour-0.plain.test",
        DO,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, unsigned",
        "versionfour-0.plain.test",
        CD,
        ["empty", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, unsigned",
        "versionfour-0.plain.test",
        BOTH,
        ["empty", "synthesised", "synthesised", "empty"],
    ),
    aaaa(
        "A only, signed",
        "versionfour-0.signed.test",
        PLAIN,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, signed",
        "versionfour-0.signed.test",
        AD,
        ["synthesised, AD", "synthesised, AD", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, signed",
        "versionfour-0.signed.test",
        DO,
        ["synthesised, AD", "empty, proof, AD", "synthesised, proof", "synthesised, AD"],
    ),
    aaaa(
        "A only, signed",
        "versionfour-0.signed.test",
        CD,
        ["empty", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, signed",
        "versionfour-0.signed.test",
        BOTH,
        ["empty, proof, AD", "empty, proof, AD", "synthesised, proof", "empty, proof"],
    ),
    aaaa(
        "A only, NSEC3",
        "versionfour-0.hashed.test",
        PLAIN,
        ["synthesised", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa(
        "A only, NSEC3",
        "versionfour-0.hashed.test",
        DO,
        ["synthesised, AD", "empty, proof, AD", "synthesised, proof", "synthesised, AD"],
    ),
    aaaa(
        "A only, NSEC3",
        "versionfour-0.hashed.test",
        BOTH,
        ["empty, proof, AD", "empty, proof, AD", "synthesised, proof", "empty, proof"],
    ),
    aaaa(
        "CNAME, signed",
        "alias-3.signed.test",
        DO,
        [
            "CNAME, synthesised, RRSIG, AD",
            "CNAME, empty, RRSIG, proof, AD",
            "CNAME, synthesised, RRSIG, proof",
            "CNAME, synthesised, RRSIG, AD",
        ],
    ),
    aaaa(
        "DNAME, signed",
        "host.branch-6.signed.test",
        DO,
        [
            "DNAME, CNAME, synthesised, RRSIG, AD",
            "DNAME, CNAME, empty, RRSIG, proof, AD",
            "2 DNAME, CNAME, synthesised, RRSIG, proof",
            "DNAME, CNAME, synthesised, RRSIG, AD",
        ],
    ),
    aaaa(
        "wildcard, signed",
        "any.wildcard-9.signed.test",
        DO,
        ["synthesised, proof, AD", "empty, proof, AD", "synthesised, RRSIG, proof", "synthesised, proof, AD"],
    ),
    aaaa(
        "AAAA only, signed",
        "versionsix-1.signed.test",
        DO,
        ["forwarded, RRSIG, AD", "forwarded, RRSIG, AD", "forwarded, RRSIG, AD", "forwarded, RRSIG, AD"],
    ),
    aaaa(
        "AAAA only, signed",
        "versionsix-1.signed.test",
        PLAIN,
        ["forwarded", "forwarded", "forwarded", "forwarded"],
    ),
    aaaa(
        "no such name, signed",
        "missing-12.signed.test",
        DO,
        ["NXDOMAIN, proof, AD", "NXDOMAIN, proof, AD", "NXDOMAIN, proof, AD", "NXDOMAIN, proof, AD"],
    ),
    aaaa("bogus A", "bad-a-0.bogus.test", PLAIN, ["SERVFAIL", "SERVFAIL", "synthesised", "SERVFAIL"]),
    aaaa("bogus A", "bad-a-0.bogus.test", DO, ["SERVFAIL", "SERVFAIL", "synthesised, proof", "SERVFAIL"]),
    aaaa("bogus A", "bad-a-0.bogus.test", CD, ["empty", "synthesised", "synthesised", "synthesised"]),
    aaaa(
        "bogus A",
        "bad-a-0.bogus.test",
        BOTH,
        ["empty, proof, AD", "empty, proof, AD", "synthesised, proof", "empty, proof"],
    ),
    aaaa(
        "bogus proof of no AAAA",
        "bad-nsec-0.bogus.test",
        PLAIN,
        ["synthesised", "SERVFAIL", "synthesised", "SERVFAIL"],
    ),
    aaaa(
        "bogus proof of no AAAA",
        "bad-nsec-0.bogus.test",
        DO,
        ["synthesised, AD", "SERVFAIL", "synthesised", "SERVFAIL"],
    ),
    aaaa(
        "bogus proof of no AAAA",
        "bad-nsec-0.bogus.test",
        CD,
        ["empty", "synthesised", "synthesised", "synthesised"],
    ),
    aaaa("bogus AAAA", "bad-aaaa-0.bogus.test", PLAIN, ["SERVFAIL", "SERVFAIL", "SERVFAIL", "SERVFAIL"]),
    aaaa("bogus AAAA", "bad-aaaa-0.bogus.test", CD, ["forwarded", "forwarded", "forwarded", "forwarded"]),
    aaaa(
        "expired signatures",
        "versionfour-0.expired.test",
        PLAIN,
        ["SERVFAIL", "SERVFAIL", "synthesised", "SERVFAIL"],
    ),
    aaaa(
        "expired signatures",
        "versionfour-0.expired.test",
        CD,
        ["empty", "synthesised", "synthesised", "synthesised"],
    ),
];

/// A reply in words: the chain, what it ends in, whether DNSSEC records prove it, AD.
pub fn words(reply: &Reply) -> String {
    let count = |kind: &str| reply.data(kind).len();
    let has = |kinds: &[&str]| reply.authority.iter().any(|row| kinds.contains(&row.kind.as_str()));
    let mut words = Vec::new();
    for kind in ["DNAME", "CNAME"] {
        let zero = reply.answer.iter().find(|row| row.kind == kind && row.owner.ends_with(".ip6.arpa"));
        match (count(kind), zero) {
            (0, _) => {}
            (1, Some(row)) => words.push(format!("{kind} ({} s)", row.ttl)),
            (1, None) => words.push(kind.to_owned()),
            (several, _) => words.push(format!("{several} {kind}")),
        }
    }
    // A second may have passed since it was fetched.
    let brief = reply.answer.iter().find(|row| row.owner.ends_with(".brief.test"));
    let synthesised =
        |address: &IpAddr| matches!(address, IpAddr::V6(six) if six.segments()[..2] == [0x64, 0xff9b]);
    match reply.addresses("AAAA") {
        Ok(Expected::Addresses(all)) if all.iter().all(synthesised) => words.push(match brief {
            Some(row) => format!("synthesised ({} s)", row.ttl.next_multiple_of(10)),
            None => "synthesised".to_owned(),
        }),
        Ok(Expected::Addresses(_)) => words.push("forwarded".to_owned()),
        Ok(Expected::Empty) if count("PTR") > 0 => words.push("PTR".to_owned()),
        Ok(Expected::Empty) => words.push("empty".to_owned()),
        Ok(Expected::NameError | Expected::Failure) | Err(_) => words.push(reply.rcode.clone()),
    }
    if count("RRSIG") > 0 {
        words.push("RRSIG".to_owned());
    }
    if has(&["NSEC", "NSEC3"]) {
        words.push("proof".to_owned());
    }
    if reply.authentic {
        words.push("AD".to_owned());
    }
    words.join(", ")
}
