//! Metrics of the event log.

use crate::view::SinkRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// A metric of a sink: its name, its help, whether it counts, and its value.
type OfSink = (&'static str, &'static str, bool, fn(&SinkRow) -> u64);

/// The metrics of sinks.
const OF_SINKS: [OfSink; 4] = [
    ("events_written", "Records of the event log that a sink wrote or sent.", true, |row| row.written),
    ("events_lost", "Records of the event log that a sink lost.", true, |row| row.lost),
    ("events_spooled_bytes", "Octets that wait in the spool of a sink of the event log.", false, |row| {
        row.spooled_octets
    }),
    ("events_sink_away", "Whether a sink of the event log is unavailable.", false, |row| {
        u64::from(row.away_seconds.is_some())
    }),
];

/// Writes all of them.
pub(super) fn encode(rows: &[SinkRow], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    for (name, help, is_counter, value) in OF_SINKS {
        let kind = if is_counter { MetricType::Counter } else { MetricType::Gauge };
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for row in rows {
            let labels = [("sink", row.name.clone())];
            let encoder = family.encode_family(&labels)?;
            match is_counter {
                true => ConstCounter::new(value(row)).encode(encoder)?,
                false => ConstGauge::new(value(row)).encode(encoder)?,
            }
        }
    }
    Ok(())
}
