//! `sixway show dns64`.

use super::colour::Colour;
use super::quantity::{count, memory, plural};
use super::table::Table;
use crate::view::{AnchorRow, CountedRow, Dns64Row, OutcomeRow, UpstreamRow};

/// The DNS64: a few lines, then what became of queries, the upstreams, and what else was counted.
pub fn dns64(row: &Option<Dns64Row>, colour: Colour) -> String {
    let Some(row) = row else { return "[dns64] is not configured.\n".into() };
    let mut text = format!("{}\n", row.serves);
    text.push_str(&format!("{} · {}\n", queries(row), state(row)));
    text.push_str(&format!(
        "{} of {} · {} of {} waiting · {}\n",
        memory(row.cache_octets),
        memory(row.cache_capacity),
        count(row.waiting),
        count(row.waiting_capacity),
        plural(row.connections, "connection"),
    ));
    for warning in &row.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    let tables =
        [upstreams(&row.upstreams, colour), outcomes(&row.outcomes, colour), anchors(&row.anchors, colour)];
    for table in tables.into_iter().chain([counted(row.counters.iter().chain(&row.streams), colour)]) {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table);
        }
    }
    text
}

/// Queries a second, for the summary.
pub(super) fn queries(row: &Dns64Row) -> String {
    format!("{} q/s", count(row.queries_per_second as u64))
}

/// How much comes from the cache, for the summary.
pub(super) fn state(row: &Dns64Row) -> String {
    let answers = plural(row.cache_answers, "answer");
    match row.cache_hit_ratio {
        Some(part) => format!("cache {:.0} % · {answers}", part * 100.0),
        None => format!("cache {answers}"),
    }
}

fn upstreams(rows: &[UpstreamRow], colour: Colour) -> String {
    let titles = [
        "UPSTREAM",
        "HEALTH",
        "LATENCY",
        "QUERIES",
        "REPLIES",
        "FAILURES",
        "TIMEOUTS",
        "UNREACHABLE",
        "REJECTED",
        "NOTES",
    ];
    let mut table = Table::new(&titles);
    for row in rows {
        table.row(vec![
            row.name.clone(),
            row.health.clone(),
            row.latency_seconds.map_or("–".into(), |seconds| format!("{:.1} ms", seconds * 1_000.0)),
            count(row.queries),
            count(row.replies),
            count(row.failures),
            count(row.timeouts),
            count(row.unreachable),
            count(row.rejected),
            row.notes.clone(),
        ]);
    }
    table.text(colour)
}

/// Greatest count first; what never happened is left out.
fn outcomes(rows: &[OutcomeRow], colour: Colour) -> String {
    let mut rows: Vec<&OutcomeRow> = rows.iter().filter(|row| row.count > 0).collect();
    if rows.is_empty() {
        return "No queries yet.\n".into();
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    let mut table = Table::new(&["OUTCOME", "COUNT", "Q/S", "MEANING"]);
    for row in rows {
        let per_second = count(row.per_second as u64);
        table.row(vec![row.outcome.clone(), count(row.count), per_second, row.help.clone()]);
    }
    table.text(colour)
}

fn anchors(rows: &[AnchorRow], colour: Colour) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["TRUST ANCHOR", "KEY", "STATE"]);
    for row in rows {
        table.row(vec![row.zone.clone(), row.tag.to_string(), row.state.clone()]);
    }
    table.text(colour)
}

fn counted<'r>(rows: impl Iterator<Item = &'r CountedRow>, colour: Colour) -> String {
    let rows: Vec<&CountedRow> = rows.filter(|row| row.value > 0).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["COUNTER", "VALUE", "DESCRIPTION"]);
    for row in rows {
        table.row(vec![row.name.clone(), count(row.value), row.help.clone()]);
    }
    table.text(colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_happened() {
        let row = Dns64Row {
            serves: "[2001:db8:1::1]:53 · 64:ff9b::/96 from nat64 · upstream 1 of 1 healthy".into(),
            queries_per_second: 1_204.4,
            cache_hit_ratio: Some(0.92),
            cache_answers: 38_112,
            cache_octets: 9 << 20,
            cache_capacity: 64 << 20,
            waiting: 3,
            waiting_capacity: 10_000,
            outcomes: vec![
                OutcomeRow { outcome: "stale".into(), ..OutcomeRow::default() },
                OutcomeRow { outcome: "no_data".into(), count: 7, per_second: 1.0, help: "nothing".into() },
                OutcomeRow {
                    outcome: "synthesised".into(),
                    count: 9_000,
                    per_second: 700.0,
                    help: "made".into(),
                },
            ],
            counters: vec![CountedRow { name: "asked".into(), help: "Questions.".into(), value: 0 }],
            upstreams: vec![UpstreamRow {
                name: "192.0.2.53:53".into(),
                health: "up".into(),
                latency_seconds: Some(0.0123),
                ..UpstreamRow::default()
            }],
            warnings: vec!["look".into()],
            ..Dns64Row::default()
        };
        let text = dns64(&Some(row), Colour::Never);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "1,204 q/s · cache 92 % · 38,112 answers");
        assert_eq!(lines[2], "9.0 MiB of 64.0 MiB · 3 of 10,000 waiting · 0 connections");
        assert_eq!(lines[3], "warning: look");
        assert!(lines[6].starts_with("192.0.2.53:53  up      12.3 ms  0"), "{text}");
        assert!(lines[9].starts_with("synthesised  9,000  700  made"), "{text}");
        assert_eq!(lines.len(), 11, "{text}");
        assert!(dns64(&None, Colour::Never).contains("[dns64] is not"));
    }
}
