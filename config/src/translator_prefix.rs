//! Prefixes of translators (RFC 6052).

use sixway_dataplane::translate::address::rfc6052::Rfc6052;

use crate::fault::Report;
use crate::value::Value;

/// Reads a prefix that can embed IPv4 addresses (RFC 6052 §2.2).
pub(crate) fn read_prefix(value: &Value, non_global: bool, report: &mut Report) -> Option<Rfc6052> {
    let prefix = value.prefix6(report)?;
    Rfc6052::new(prefix, non_global).map_err(|error| report.fault(&value.place, error.to_string())).ok()
}
