//! Metrics of Teredo's relays.

use crate::view::TeredoRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Writes those of all relays.
pub(super) fn encode(rows: &[TeredoRow], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let mut family =
        encoder.encode_descriptor("teredo_peers", "Teredo clients by state.", None, MetricType::Gauge)?;
    for row in rows {
        let states = [
            ("established", row.established),
            ("trusted", row.trusted),
            ("contacting", row.contacting),
            ("unreachable", row.unreachable),
        ];
        for (state, value) in states {
            let labels = [("mechanism", row.name.as_str()), ("state", state)];
            ConstGauge::new(u64::from(value)).encode(family.encode_family(&labels)?)?;
        }
    }
    let clients: Vec<_> = rows.iter().filter_map(|row| Some((&*row.name, row.client.as_ref()?))).collect();
    if !clients.is_empty() {
        let help = "Whether a Teredo client has an address.";
        let mut family = encoder.encode_descriptor("teredo_qualified", help, None, MetricType::Gauge)?;
        for (name, client) in &clients {
            ConstGauge::new(u64::from(client.address.is_some()))
                .encode(family.encode_family(&[("mechanism", *name)])?)?;
        }
        let help = "Times that the mapping of a Teredo client changed.";
        let mut family =
            encoder.encode_descriptor("teredo_mapping_changes", help, None, MetricType::Counter)?;
        for (name, client) in &clients {
            ConstCounter::new(client.mapping_changes)
                .encode(family.encode_family(&[("mechanism", *name)])?)?;
        }
    }
    let help = "Packets that wait for the answer of a Teredo client.";
    let mut family = encoder.encode_descriptor("teredo_waiting", help, None, MetricType::Gauge)?;
    for row in rows {
        ConstGauge::new(u64::from(row.waiting))
            .encode(family.encode_family(&[("mechanism", row.name.as_str())])?)?;
    }
    for (name, help) in [
        ("teredo_bubbles", "Teredo bubbles sent."),
        ("teredo_bubbles_limited", "Teredo bubbles not sent because of a rate."),
    ] {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for row in rows {
            let value = if name == "teredo_bubbles" { row.bubbles } else { row.bubbles_limited };
            ConstCounter::new(value).encode(family.encode_family(&[("mechanism", row.name.as_str())])?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::metrics::{GatewaySample, encode};
    use crate::view::TeredoRow;

    #[test]
    fn peers_are_counted_by_state() {
        let row = TeredoRow { name: "relay".into(), established: 3, bubbles: 9, ..TeredoRow::default() };
        let text =
            encode(Vec::new(), GatewaySample { teredo: vec![row], ..GatewaySample::default() }).unwrap();
        for line in [
            "sixway_teredo_peers{mechanism=\"relay\",state=\"established\"} 3",
            "sixway_teredo_peers{mechanism=\"relay\",state=\"unreachable\"} 0",
            "sixway_teredo_waiting{mechanism=\"relay\"} 0",
            "sixway_teredo_bubbles_total{mechanism=\"relay\"} 9",
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
    }
}
