//! The keys of a NAT that bound its tables: `max_sessions` and so on.

use crate::fault::Report;
use crate::section::Reader;
use serde::Serializer;
use serde::ser::SerializeMap;
use sixway_dataplane::nat::StateLimits;

pub(crate) fn read(section: &Reader, report: &mut Report) -> Option<StateLimits> {
    let mut read = |key| section.value(key, report).and_then(|v| v.integer(report));
    let (sessions, bindings) = (read("max_sessions"), read("max_bindings"));
    let quarantined_ports = read("max_quarantined_ports");
    let bindings_per_subscriber = read("max_bindings_per_subscriber");
    Some(StateLimits {
        sessions: sessions?,
        bindings: bindings?,
        bindings_per_subscriber: bindings_per_subscriber?,
        quarantined_ports: quarantined_ports?,
    })
}

/// With the names of the keys.
pub(crate) fn serialize<S: Serializer>(limits: &StateLimits, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(4))?;
    map.serialize_entry("max_sessions", &limits.sessions)?;
    map.serialize_entry("max_bindings", &limits.bindings)?;
    map.serialize_entry("max_quarantined_ports", &limits.quarantined_ports)?;
    map.serialize_entry("max_bindings_per_subscriber", &limits.bindings_per_subscriber)?;
    map.end()
}
