//! Prefixes of translators (RFC 6052).

use std::net::Ipv6Addr;

use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

use crate::fault::Report;
use crate::section::Reader;
use crate::value::Value;

/// Where translation prefixes are: the well-known prefix (RFC 6052 §2.1), those for local use (RFC 8215), global unicast (RFC 4291 §2.4)
/// and unique local addresses (RFC 4193).
const IN_USE: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
];

/// Reads a prefix that can embed IPv4 addresses (RFC 6052 §2.2).
pub(crate) fn read_prefix(value: &Value, non_global: bool, report: &mut Report) -> Option<Rfc6052> {
    let prefix = value.prefix6(report)?;
    if !IN_USE.iter().any(|(network, length)| Prefix6::holding(*network, *length).contains(prefix.address()))
    {
        report.warn(
            &value.place,
            "is neither global unicast (2000::/3) nor unique local (fc00::/7); did you mean 64:ff9b::/96?",
        );
    }
    Rfc6052::new(prefix, non_global).map_err(|error| report.fault(&value.place, error.to_string())).ok()
}

/// A list of IPv4 prefixes; empty if the key is missing.
pub(crate) fn read_prefixes4(section: &Reader, key: &str, report: &mut Report) -> Option<Vec<Prefix4>> {
    let written = section.value(key, report).map(|v| v.items()).unwrap_or_default();
    written.iter().map(|item| item.prefix4(report)).collect()
}
