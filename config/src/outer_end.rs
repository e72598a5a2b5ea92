//! The other ends of tunnels: addresses that the packets around IPv6 go to.

use std::net::Ipv4Addr;

use sixway_wire::Prefix4;

use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report};
use crate::host::HostFacts;

/// Claims the address of another end, and reports one that no single host has.
pub(crate) fn check(
    address: Ipv4Addr,
    place: &Place,
    host: &HostFacts,
    claims: &mut Claims,
    report: &mut Report,
) {
    claims.v4(Prefix4::holding(address, 32), Owner::OuterEnd, place);
    if let Some((network, interface)) = host.broadcast(address) {
        report.fault(
            place,
            format!("{address} is the broadcast address of {network} on {interface}; write a host address"),
        );
    }
}
