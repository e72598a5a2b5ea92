//! What holds for both ends of a static binding, of whatever family the inside is.

use sixway_dataplane::nat::NatProtocol;
use sixway_wire::Endpoint4;

use crate::fault::{Place, Report};
use crate::pool::Pool;
use crate::word::Word as _;

/// The outside endpoint is one of the pool's.
pub(crate) fn check_outside(outside: Endpoint4, pool: Option<&Pool>, place: &Place, report: &mut Report) {
    let Some(pool) = pool else { return };
    let (name, ports) = (&pool.name, &pool.ports);
    if !pool.holds(outside.address) {
        let first = pool.addresses.first();
        let such = first.map(|p| format!(" such as {}", p.address())).unwrap_or_default();
        report.fault(place, format!("is not an address of pool {name}; write one{such}"));
    } else if pool.shared && !ports.contain(outside.port) {
        let what = format!("is outside the ports of the shared pool {name} ({ports})");
        report.fault(place, format!("{what}; write a port in this range"));
    }
}

/// Ports are not 0; identifiers may be.
pub(crate) fn check_ports(
    protocol: Option<NatProtocol>,
    ports: [Option<(u16, &Place)>; 2],
    report: &mut Report,
) {
    let is_icmp = protocol == Some(NatProtocol::Icmp);
    for (_, place) in ports.into_iter().flatten().filter(|(port, _)| *port == 0 && !is_icmp) {
        report.fault(place, "port 0 is not valid; write 1 to 65535");
    }
}

/// An endpoint has a static binding already.
pub(crate) fn is_same(
    protocol: NatProtocol,
    endpoint: &str,
    there: &Place,
    place: &Place,
    report: &mut Report,
) {
    let (protocol, there) = (protocol.as_str(), there.seen_from(place));
    report.fault(place, format!("{protocol} {endpoint} already has a static binding ({there}); remove one"));
}
