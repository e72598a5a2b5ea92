//! Metrics of NAT46: its mappings, and the queries that got none.

use crate::view::MappingsRow;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Writes those of all NAT46s.
pub(super) fn encode(rows: &[(String, MappingsRow)], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    type Value = fn(&MappingsRow) -> u64;
    const COUNTERS: [(&str, &str, Value); 2] = [
        ("mappings_made", "Mappings of NAT46 made.", |row| row.made),
        ("mappings_ended", "Mappings of NAT46 that ended, after their resting time.", |row| row.ended),
    ];
    const GAUGES: [(&str, &str, Value); 2] = [
        ("pool_addresses", "Addresses of a pool of NAT46 that all clients share.", |row| {
            row.addresses.into()
        }),
        ("pool_addresses_used", "Those of them that are in use or resting.", |row| row.addresses_used.into()),
    ];
    if rows.is_empty() {
        return Ok(());
    }
    for (name, help, value) in COUNTERS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (mechanism, row) in rows {
            let labels = [("mechanism", mechanism.as_str())];
            ConstCounter::new(value(row)).encode(family.encode_family(&labels)?)?;
        }
    }
    let help = "Queries of clients that got no mapping of NAT46.";
    let mut family = encoder.encode_descriptor("mappings_refused", help, None, MetricType::Counter)?;
    for (mechanism, row) in rows {
        for (reason, refused) in &row.refused {
            let labels = [("mechanism", mechanism.as_str()), ("reason", reason)];
            ConstCounter::new(*refused).encode(family.encode_family(&labels)?)?;
        }
    }
    let shared: Vec<_> = rows.iter().filter(|(_, row)| row.addresses > 0).collect();
    for (name, help, value) in GAUGES.iter().filter(|_| !shared.is_empty()) {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (mechanism, row) in &shared {
            let labels = [("mechanism", mechanism.as_str())];
            ConstGauge::new(value(row)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{GatewaySample, encode};
    use crate::view::MappingsRow;

    #[test]
    fn each_reason_for_which_a_query_got_no_mapping_is_a_counter() {
        let refused = [("pool_empty".to_owned(), 3), ("unproven".to_owned(), 4)].into();
        let row = MappingsRow { made: 7, ended: 2, refused, addresses: 254, addresses_used: 5 };
        let own = MappingsRow::default();
        let nat46 = vec![("nat46".to_owned(), row), ("own".to_owned(), own)];
        let text = encode(Vec::new(), GatewaySample { nat46, ..GatewaySample::default() }).unwrap();
        for line in [
            "sixway_mappings_made_total{mechanism=\"nat46\"} 7",
            "sixway_mappings_ended_total{mechanism=\"nat46\"} 2",
            "sixway_mappings_refused_total{mechanism=\"nat46\",reason=\"pool_empty\"} 3",
            "sixway_mappings_refused_total{mechanism=\"nat46\",reason=\"unproven\"} 4",
            "sixway_pool_addresses{mechanism=\"nat46\"} 254",
            "sixway_pool_addresses_used{mechanism=\"nat46\"} 5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
        assert!(!text.contains("sixway_pool_addresses{mechanism=\"own\"}"), "{text}");
    }
}
