//! The table and the list of differences as a document; a test holds both together.

use super::cause::CAUSES;
use super::difference::DIFFERENCES;
use super::likeness::LIKENESSES;
use super::table::{CASES, HELD};
use std::fmt::Write as _;

/// `docs/conformance/dns64-peers.md`.
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut heading = "| Asked for | Type | Flags |".to_owned();
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
        let when = if cause.always { "" } else { " (after some questions)" };
        writeln!(text, "| {peers} | {what}{when} | {facets} | {why} | {clause} | {right} |")
            .unwrap_or_default();
    }
    text += DIFFERENCES_INTRODUCTION;
    for difference in DIFFERENCES {
        let (server, what, why) = (difference.server.name(), difference.what, difference.why);
        let when = if difference.always { "always" } else { "after some questions" };
        writeln!(text, "| {server} | {what} | {when} | {why} |").unwrap_or_default();
    }
    text
}

const INTRODUCTION: &str = "# DNS64 beside its peers

Made from the tables in `lab/src/dns64`; the interop tests ask these questions of each server, before the same zones, and hold it to its column. All
of them validate (RFC 6147 §5.5), under a root of the lab's own. unbound is 1.17, BIND 9.18, pdns-recursor 4.8.

*Synthesised*: AAAA records within the prefix, from A records. *Passed on*: the AAAA records that are there. *Empty*: NOERROR without an address. What stands before is the
chain to it, what follows: RRSIG records in the answer, NSEC or NSEC3 records (proof) in the authority section, and the AD bit. Flags are the
client's: CD, DO, and AD (\"tell me whether it was validated\", RFC 6840 §5.7).

";

const LIKENESS_INTRODUCTION: &str = "
## To be as another is

Options with which Sixway's cells become another's; the tests hold each option to it, and to changing nothing else. Cells are named by how they begin,
with their flags.

| Option | As | Cells |
|---|---|---|
";

const CAUSES_INTRODUCTION: &str = "
## Sixway beside unbound and BIND, name by name

About a thousand generated names are asked for, of every kind that a DNS64 meets: A only, AAAA only, both, CNAMEs within and across zones, chains of them, DNAMEs, excluded ranges, wildcards,
empty non-terminals, no such names; unsigned, signed with NSEC and NSEC3, expired, and with signatures that are wrong. Each is asked with the four settings of CD and DO. Who made the names knows
what is right of a DNS64 that validates, and Sixway says it to all of them. Its answers are compared with unbound's and BIND's in six respects: addresses (or why there are none), the CNAMEs and DNAMEs before them,
RRSIG records, the owners of the NSEC or NSEC3 records (proof), AD, and the least TTL. Where they are not the same there is a cause below, or the test fails; so it does when a cause is gone. The last column says whom the
clause has in the right.

| Peer | Question | Differs in | Why | Clause | In the right |
|---|---|---|---|---|---|
";

const DIFFERENCES_INTRODUCTION: &str = "
## pdns-recursor and the same names

Where it does not say what is right, without flags; any other difference fails the test.

| Server | Names | When | Why |
|---|---|---|---|
";
