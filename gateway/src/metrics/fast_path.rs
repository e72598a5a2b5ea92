//! Metrics of the fast path.

use crate::view::FastPathRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Writes all of them.
pub(super) fn encode(row: &FastPathRow, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    carried(row, encoder)?;
    let mut family = encoder.encode_descriptor(
        "fastpath_passed",
        "Packets that the fast path passed to the engine, by cause; \"lost\": dropped.",
        None,
        MetricType::Counter,
    )?;
    for passed in &row.passed {
        let labels = [("cause", passed.cause.clone())];
        ConstCounter::new(passed.packets).encode(family.encode_family(&labels)?)?;
    }
    let gauges = [
        ("fastpath_flows", "Flows in the fast path.", row.summary.flows),
        ("fastpath_flows_capacity", "Maximum number of flows in the fast path.", row.summary.flows_capacity),
        ("fastpath_next_hops", "Next hops in use by the fast path.", row.next_hops),
    ];
    for (name, help, value) in gauges {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)?;
    }
    Ok(())
}

fn carried(row: &FastPathRow, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let packets = "Packets forwarded by the fast path, by mechanism and direction; each segment of a GSO packet counts.";
    let octets = "Octets of IP packets forwarded by the fast path, as received.";
    for (name, help, is_packets) in [("fastpath_packets", packets, true), ("fastpath_bytes", octets, false)] {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for one in &row.carried {
            let values = match is_packets {
                true => [("out", one.packets_out), ("in", one.packets_in)],
                false => [("out", one.octets_out), ("in", one.octets_in)],
            };
            for (direction, value) in values {
                let labels = [("mechanism", one.mechanism.as_str()), ("direction", direction)];
                ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}
