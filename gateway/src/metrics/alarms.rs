//! Metrics of alarms.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Writes all of them: 1 while an alarm is raised.
pub(super) fn encode(
    rows: &[(String, &'static str, bool)],
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let help = "1 while the alarm about high use of this resource is raised.";
    let mut family = encoder.encode_descriptor("alarm", help, None, MetricType::Gauge)?;
    for (mechanism, resource, is_raised) in rows {
        let labels = [("mechanism", mechanism.as_str()), ("resource", resource)];
        ConstGauge::new(u64::from(*is_raised)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
