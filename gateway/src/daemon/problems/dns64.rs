//! Upstreams that do not answer, and too many queries.

use crate::view::{Dns64Row, ProblemKind, ProblemRow};

/// From this many queries a second on, those that are refused for lack of room are not a coincidence.
const OVERLOADED: f64 = 1.0;

/// Upstreams of the DNS64 that do not answer.
pub(in crate::daemon) fn dns64(row: &Dns64Row) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::UpstreamDown;
    let down: Vec<&str> =
        row.upstreams.iter().filter(|one| one.health == "down").map(|one| one.name.as_str()).collect();
    let all = down.len() == row.upstreams.len();
    let problem = |name: &&str| {
        let text = format!("dns64: the upstream {name} does not answer");
        let advice = "`sixway doctor` queries it; check the route to it and dns64.upstream";
        if all { ProblemRow::error(KIND, text, advice) } else { ProblemRow::warning(KIND, text, advice) }
    };
    let warnings = row.warnings.iter().map(|warning| {
        ProblemRow::warning(
            ProblemKind::Dns64,
            format!("dns64: {warning}"),
            "`sixway show dns64` has the details",
        )
    });
    let overload = row.outcomes.iter().find(|it| it.outcome == "overload" && it.per_second >= OVERLOADED);
    let overloaded = overload.map(|it| {
        let text = format!(
            "dns64: {:.0} queries a second get SERVFAIL: their clients, or all clients together, have too many waiting queries",
            it.per_second
        );
        let advice = "find the clients: dns64.query_log; see \"When something is full\" in the page of the DNS64";
        ProblemRow::warning(ProblemKind::Dns64, text, advice)
    });
    down.iter().map(problem).chain(warnings).chain(overloaded).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::{OutcomeRow, Severity, UpstreamRow};

    #[test]
    fn an_upstream_that_is_down_is_named_and_all_of_them_are_an_error() {
        let upstream = |name: &str, health: &str| UpstreamRow {
            name: name.into(),
            health: health.into(),
            ..UpstreamRow::default()
        };
        let mut row = Dns64Row {
            upstreams: vec![upstream("192.0.2.53:53", "down"), upstream("192.0.2.54:53", "suspected")],
            ..Dns64Row::default()
        };
        let text = "dns64: the upstream 192.0.2.53:53 does not answer";
        assert_eq!(said(&dns64(&row)), [(Severity::Warning, text)]);
        row.upstreams.pop();
        assert_eq!(said(&dns64(&row)), [(Severity::Error, text)]);
        row.upstreams.clear();
        assert_eq!(dns64(&row), []);
        let overload =
            |per_second| OutcomeRow { outcome: "overload".into(), per_second, ..OutcomeRow::default() };
        row.outcomes = vec![overload(0.4)];
        assert_eq!(dns64(&row), [], "one query a few seconds ago");
        row.outcomes = vec![overload(81.2)];
        let text = "dns64: 81 queries a second get SERVFAIL: their clients, or all clients together, have too many waiting queries";
        assert_eq!(said(&dns64(&row)), [(Severity::Warning, text)]);
    }
}
