//! The sinks of the event log, in `sixway show`.

use super::quantity::{count, duration, plural, scaled};
use crate::view::SinkRow;

/// A line for each sink; nothing without a log.
pub(super) fn sinks(rows: &[SinkRow]) -> String {
    rows.iter().map(line).collect()
}

/// What the workers record themselves: their rows are not a sink that is written to.
const WORKERS: &str = "workers";

fn line(row: &SinkRow) -> String {
    let mut text = match &*row.name {
        WORKERS => format!("event log: {} from the workers", plural(row.written, "event")),
        name => format!("event log: {name} · {} written", count(row.written)),
    };
    if row.spooled_octets > 0 {
        text.push_str(&format!(" · {}B in the spool", scaled(row.spooled_octets as f64)));
    }
    if row.lost > 0 {
        text.push_str(&format!(" · {} lost", count(row.lost)));
    }
    if let Some(seconds) = row.away_seconds {
        let why = row.reason.as_deref().unwrap_or_default();
        text.push_str(&format!(" · away for {}: {why}", duration(seconds)));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_says_what_it_has_and_since_when_it_is_away() {
        let good = SinkRow { name: "workers".into(), written: 12_000, ..SinkRow::default() };
        let away = SinkRow {
            name: "syslog udp 192.0.2.5:514".into(),
            spooled_octets: 2_500_000,
            lost: 7,
            away_seconds: Some(65),
            reason: Some("Connection refused".into()),
            ..SinkRow::default()
        };
        assert_eq!(
            sinks(&[good, away]),
            "event log: 12,000 events from the workers\n\
             event log: syslog udp 192.0.2.5:514 · 0 written · 2.5 MB in the spool · 7 lost · away for 1 m 5 s: Connection refused\n"
        );
        assert_eq!(sinks(&[]), "");
    }
}
