//! Metrics of the Teredo server: every outcome with its help text from the one list.

use crate::view::TeredoServerRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

pub(super) fn encode(row: &TeredoServerRow, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Datagrams received by the Teredo server, by outcome.";
    let mut family = encoder.encode_descriptor("teredo_server_datagrams", help, None, MetricType::Counter)?;
    for counted in row.handled.iter().chain(&row.refused) {
        let labels = [("outcome", counted.name.as_str())];
        ConstCounter::new(counted.value).encode(family.encode_family(&labels)?)?;
    }
    let help = "Description of each outcome of the Teredo server.";
    let mut family = encoder.encode_descriptor("teredo_server_outcome", help, None, MetricType::Gauge)?;
    for counted in row.handled.iter().chain(&row.refused) {
        let labels = [("outcome", counted.name.as_str()), ("help", counted.help.as_str())];
        ConstGauge::new(1).encode(family.encode_family(&labels)?)?;
    }
    for counted in &row.counters {
        let name = format!("teredo_server_{}", counted.name);
        let encoder = encoder.encode_descriptor(&name, &counted.help, None, MetricType::Counter)?;
        ConstCounter::new(counted.value).encode(encoder)?;
    }
    let help = "Addresses of the Teredo server that this host does not have, or at which another program has the port.";
    let encoder = encoder.encode_descriptor("teredo_server_waiting", help, None, MetricType::Gauge)?;
    ConstGauge::new((row.waits.len() + row.troubles.len()) as u64).encode(encoder)
}
