//! Sinks of the event log that are unavailable or lose events.

use crate::show::plural;
use crate::view::{ProblemKind, ProblemRow, SinkRow};

/// Seconds for which a loss is a problem.
const LATELY: u64 = 60;

/// Sinks of the event log that are unavailable, and those that lost events recently.
pub(in crate::daemon) fn event_log(rows: &[SinkRow]) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::EventLog;
    let lately = |row: &&SinkRow| row.lost_seconds.is_some_and(|seconds| seconds < LATELY);
    let lost = rows.iter().filter(lately).map(|row| {
        let text = format!("event log: {} lost {}", row.name, plural(row.lost, "event"));
        let advice = match row.has_spool {
            true => "remove the cause; log.spool_size limits the stored events",
            false => "remove the cause",
        };
        ProblemRow::error(KIND, text, advice)
    });
    let away = rows.iter().filter_map(|row| {
        let (reason, seconds) = (row.reason.as_ref()?, row.away_seconds?);
        let text = format!("event log: {} has not been available for {seconds} s: {reason}", row.name);
        Some(match row.has_spool {
            true => ProblemRow::warning(
                KIND,
                text,
                "its events are stored in log.spool, and are sent when it is available again",
            ),
            false => ProblemRow::error(KIND, text, "its events are lost until it can be written again"),
        })
    });
    lost.chain(away).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::Severity;

    #[test]
    fn a_sink_that_is_away_is_a_warning_and_a_loss_an_error_for_a_minute() {
        let row = SinkRow { name: "syslog".into(), lost: 7, ..SinkRow::default() };
        assert_eq!(event_log(&[SinkRow { lost_seconds: Some(60), ..row.clone() }]), []);
        let lost = event_log(&[SinkRow { lost_seconds: Some(59), ..row.clone() }]);
        assert_eq!(said(&lost), [(Severity::Error, "event log: syslog lost 7 events")]);
        let away = SinkRow { away_seconds: Some(3), reason: Some("refused".into()), ..row };
        let text = "event log: syslog has not been available for 3 s: refused";
        let of_file = event_log(std::slice::from_ref(&away));
        assert_eq!(said(&of_file), [(Severity::Error, text)], "without a spool, events are lost");
        let of_server = event_log(&[SinkRow { has_spool: true, ..away }]);
        assert_eq!(said(&of_server), [(Severity::Warning, text)]);
    }
}
