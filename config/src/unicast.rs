//! Addresses that a host can have.

use std::net::Ipv4Addr;

use crate::fault::Report;
use crate::value::Value;

/// Whether a host can have the address: not 0/8, 127/8, 224/4 or 240/4 (RFC 6890).
pub(crate) fn is_unicast(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

/// Unicast addresses; `None` if one cannot be read.
pub(crate) fn read_unicast(items: Vec<Value>, report: &mut Report) -> Option<Vec<Ipv4Addr>> {
    let mut whole = true;
    let mut addresses = Vec::with_capacity(items.len());
    for item in items {
        match item.address4(report) {
            Some(address) if is_unicast(address) => addresses.push(address),
            Some(address) => {
                report.fault(&item.place, format!("{address} is not a valid host address"));
                whole = false;
            }
            None => whole = false,
        }
    }
    whole.then_some(addresses)
}
