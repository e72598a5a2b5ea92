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
        "Packets that the fast path left to the engine, by cause; \"lost\": dropped.",
        None,
        MetricType::Counter,
    )?;
    for passed in &row.passed {
        let labels = [("cause", passed.cause.clone())];
        ConstCounter::new(passed.packets).encode(family.encode_family(&labels)?)?;
    }
    let gauges = [
        ("fastpath_flows", "Flows that the fast path carries.", row.summary.flows),
        ("fastpath_flows_capacity", "How many flows it has room for.", row.summary.flows_capacity),
        ("fastpath_next_hops", "Next hops that the fast path sends to.", row.next_hops),
    ];
    for (name, help, value) in gauges {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)?;
    }
    Ok(())
}

fn carried(row: &FastPathRow, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let packets =
        "Packets that the fast path carried, segments of super-frames each, by mechanism and direction.";
    let octets = "Their octets of IP packets, as they came.";
    for (name, help, is_packets) in [("fastpath_packets", packets, true), ("fastpath_octets", octets, false)]
    {
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
