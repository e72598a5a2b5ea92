//! Prefixes of hosts' addresses.

use std::net::Ipv6Addr;

use sixway_wire::{Prefix4, Prefix6};

use crate::fault::Report;
use crate::value::Value;

/// The message about a prefix that is not [of hosts](is_of_hosts).
pub(crate) const NO_HOSTS: &str = "is link-local or multicast; write a prefix of hosts' addresses";

/// Whether hosts beyond one link can have addresses of it (RFC 4291 §2.4).
pub(crate) fn is_of_hosts(prefix: Prefix6) -> bool {
    let nobodys = [
        Prefix6::holding(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
        Prefix6::holding(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
    ];
    !nobodys.iter().any(|nobody| nobody.length() <= prefix.length() && nobody.overlaps(prefix))
}

/// IPv4 prefixes, none if nothing is written. An empty list is refused: it would mean all addresses instead of none. `None` if one cannot
/// be read.
pub(crate) fn read_prefixes(value: Option<Value>, report: &mut Report) -> Option<Vec<Prefix4>> {
    let place = value.as_ref().map(|v| v.place.clone());
    let items = value.map(Value::items).unwrap_or_default();
    if let Some(place) = place.filter(|_| items.is_empty()) {
        report.fault(&place, "is empty; write networks such as [\"192.0.2.0/28\"], or remove it");
    }
    let read: Vec<Prefix4> = items.iter().filter_map(|item| item.prefix4(report)).collect();
    (read.len() == items.len()).then_some(read)
}
