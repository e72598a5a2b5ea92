//! The remote ends of tunnels: destinations of outer packets.

use std::net::Ipv4Addr;

use sixway_wire::Prefix4;

use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report};
use crate::host::HostFacts;

/// Claims the address of a remote end, and reports one that no single host can have.
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
