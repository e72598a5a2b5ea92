//! Tunnels of this host that end at addresses of a NAT44's pool.

use std::net::Ipv4Addr;

use sixway_dataplane::mechanism::nat44::PortlessProtocol;

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::schema::NAT44_STATIC;
use crate::section::Reader;
use crate::tunnel_locals::{TunnelLocal, locals};

/// Reports addresses of the pool at which tunnels of this host end: the tunnel gets their IPv6 in IPv4 packets.
pub(crate) fn check(config: &Config, section: &Reader, report: &mut Report) {
    let Some(nat44) = &config.nat44 else { return };
    let Some(pool) = config.pool(&nat44.pool) else { return };
    let rows = section.sections("static", &NAT44_STATIC, &mut Report::default());
    let place = |key: &str, of: &Place| Place { key: format!("{}.{key}", of.key).into(), ..of.clone() };
    for tunnel in locals(config).filter(|it| it.protocol == PortlessProtocol::Ipv6) {
        let TunnelLocal { section: kind, name, address: Some(address), .. } = tunnel else { continue };
        let statics = nat44.static_bindings.portless.iter();
        let taken = statics.filter(|it| it.protocol == PortlessProtocol::Ipv6 && it.outside == address);
        let mut is_told = false;
        for binding in taken {
            let row = rows.iter().find(|row| is_row(row, binding.inside, address));
            let at = row.map_or_else(|| section.place().clone(), |row| place("outside", row.place()));
            let what = "packets of IPv6 in IPv4 for it are the tunnel's; use another address of the pool";
            report.fault(&at, format!("{address} is the local end of {kind} {name}: {what}"));
            is_told = true;
        }
        if !is_told && pool.holds(address) && !pool.shared {
            let what = "packets of IPv6 in IPv4 for it are the tunnel's, and not those of an inside host";
            let at = place("pool", section.place());
            report.warn(&at, format!("{address} is the local end of {kind} {name}: {what}"));
        }
    }
}

fn is_row(row: &Reader, inside: Ipv4Addr, outside: Ipv4Addr) -> bool {
    let read = |key: &str| row.value(key, &mut Report::default())?.address4(&mut Report::default());
    read("inside") == Some(inside) && read("outside") == Some(outside)
}
