//! Prefixes of translators (RFC 6052).

use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::Prefix4;

use crate::fault::Report;
use crate::section::Reader;
use crate::value::Value;

/// Reads a prefix that can embed IPv4 addresses (RFC 6052 §2.2).
pub(crate) fn read_prefix(value: &Value, non_global: bool, report: &mut Report) -> Option<Rfc6052> {
    let prefix = value.prefix6(report)?;
    Rfc6052::new(prefix, non_global).map_err(|error| report.fault(&value.place, error.to_string())).ok()
}

/// A list of IPv4 prefixes; empty if the key is missing.
pub(crate) fn read_prefixes4(section: &Reader, key: &str, report: &mut Report) -> Option<Vec<Prefix4>> {
    let written = section.value(key, report).map(|v| v.items()).unwrap_or_default();
    written.iter().map(|item| item.prefix4(report)).collect()
}
