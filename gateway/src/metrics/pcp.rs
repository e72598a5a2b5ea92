//! Metrics of the PCP server.

use crate::view::PcpRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

pub(super) fn encode(row: &PcpRow, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Requests by PCP that were answered, by result code (RFC 6887 §7.4).";
    let mut family = encoder.encode_descriptor("pcp_requests", help, None, MetricType::Counter)?;
    for counted in &row.results {
        ConstCounter::new(counted.value)
            .encode(family.encode_family(&[("result", counted.name.as_str())])?)?;
    }
    let help = "Requests by PCP and NAT-PMP that were not answered, by reason.";
    let mut family = encoder.encode_descriptor("pcp_ignored", help, None, MetricType::Counter)?;
    for counted in &row.ignored {
        ConstCounter::new(counted.value)
            .encode(family.encode_family(&[("reason", counted.name.as_str())])?)?;
    }
    for counted in &row.counters {
        let name = format!("pcp_{}", counted.name);
        let encoder = encoder.encode_descriptor(&name, &counted.help, None, MetricType::Counter)?;
        ConstCounter::new(counted.value).encode(encoder)?;
    }
    for (name, help, value) in [
        ("pcp_mappings", "Mappings by PCP and NAT-PMP.", row.mappings),
        ("pcp_ports", "Ports in mappings, and outbound mappings by PEER.", row.ports),
        ("pcp_ports_capacity", "The most of these that there may be.", row.max_mappings),
        ("pcp_waiting", "Sockets of the PCP server that are not open.", row.waits.len() as u64),
    ] {
        let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)?;
    }
    Ok(())
}
