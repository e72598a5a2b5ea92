//! The table and the list of differences as a document; a test holds both together.

use super::cause::CAUSES;
use super::difference::DIFFERENCES;
use super::likeness::LIKENESSES;
use super::table::{CASES, HELD};
use std::fmt::Write as _;

/// `docs/conformance/dns64-peers.md`.
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut heading = "| Name | Type | Flags |".to_owned();
    HELD.iter().for_each(|server| write!(heading, " {} |", server.name()).unwrap_or_default());
    writeln!(text, "{heading}\n|---|---|---|{}", "---|".repeat(HELD.len())).unwrap_or_default();
    for case in CASES {
        let said: Vec<_> = HELD.iter().map(|server| case.of(*server)).collect();
        let said = said.join(" | ");
        writeln!(text, "| {} | {} | {} | {said} |", case.what, case.kind, case.flags).unwrap_or_default();
    }
    text += LIKENESS_INTRODUCTION;
    for likeness in LIKENESSES {
        let cells: Vec<_> = likeness.cells.iter().map(|(what, flags)| format!("{what} {flags}")).collect();
        let cells: Vec<_> = cells.iter().map(|cell| cell.trim()).collect();
        let (option, like) = (likeness.written(), likeness.like.name());
        writeln!(text, "| `{option}` | {like} | {} |", cells.join("; ")).unwrap_or_default();
    }
    text += CAUSES_INTRODUCTION;
    for cause in CAUSES {
        let peers = cause.peers.iter().map(|peer| peer.name()).collect::<Vec<_>>().join(", ");
        let facets = cause.facets.iter().map(|facet| facet.name()).collect::<Vec<_>>().join(", ");
        let (what, why, clause, right) = (cause.what, cause.why, cause.clause, cause.right.name());
        let when = if cause.always { "" } else { " (after some queries)" };
        writeln!(text, "| {peers} | {what}{when} | {facets} | {why} | {clause} | {right} |")
            .unwrap_or_default();
    }
    text += DIFFERENCES_INTRODUCTION;
    for difference in DIFFERENCES {
        let (server, what, why) = (difference.server.name(), difference.what, difference.why);
        let when = if difference.always { "always" } else { "after some queries" };
        writeln!(text, "| {server} | {what} | {when} | {why} |").unwrap_or_default();
    }
    text
}

const INTRODUCTION: &str = "# DNS64 compared with its peers

Generated from the tables in `lab/src/dns64`. The interop tests send these queries to each server, in front of the same zones, and compare the answers
with its column. All servers validate (RFC 6147 §5.5), under a root of the lab's own. unbound is 1.17, BIND 9.18, pdns-recursor 4.8.

*Synthesised*: AAAA records within the prefix, from A records. *Forwarded*: the existing AAAA records. *Empty*: NOERROR without an address. In front of
it is the CNAME or DNAME chain; behind it are RRSIG records in the answer, NSEC or NSEC3 records (proof) in the authority section, and the AD bit.
Flags are the client's: CD, DO, and AD (\"was it validated?\", RFC 6840 §5.7).

";

const LIKENESS_INTRODUCTION: &str = "
## Options that match another server

With these options Sixway's cells match another server's. The tests check that each option does so and changes nothing else. Cells are named by the
beginning of their name, with their flags.

| Option | As | Cells |
|---|---|---|
";

const CAUSES_INTRODUCTION: &str = "
## Sixway, unbound and BIND, name by name

The test queries about a thousand generated names of every kind that a DNS64 meets: A only, AAAA only, both, CNAMEs within and across zones, chains of them, DNAMEs, excluded ranges, wildcards,
empty non-terminals, missing names; unsigned, signed with NSEC and NSEC3, expired, and with wrong signatures. Each is queried with the four settings of CD and DO. The generator knows the correct
answer of a validating DNS64, and Sixway gives it for every name. Its answers are compared with unbound's and BIND's in six respects: addresses (or why there are none), the CNAMEs and DNAMEs before them,
RRSIG records, the owners of the NSEC or NSEC3 records (proof), AD, and the lowest TTL. Every difference must have a cause below, and every cause must occur, or the test fails. The last column names the server that
the clause supports.

| Peer | Question | Differs in | Why | Clause | Correct |
|---|---|---|---|---|---|
";

const DIFFERENCES_INTRODUCTION: &str = "
## pdns-recursor and the same names

Wrong answers to queries without flags; any other difference fails the test.

| Server | Names | When | Why |
|---|---|---|---|
";
