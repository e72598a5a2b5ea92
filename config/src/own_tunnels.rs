//! Tunnels of this gateway whose packets its NAT44 translates, and what their remote ends have to know.

use std::net::Ipv4Addr;

use sixway_dataplane::mechanism::nat44::PortlessProtocol;

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::nat44::Nat44;
use crate::pool::Pool;
use crate::section::Reader;
use crate::tunnel_locals::{BehindNat, TunnelLocal, locals};

/// The outside address of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    /// A static binding says it.
    Bound(Ipv4Addr),
    /// The pool has only this one.
    Only(Ipv4Addr),
    /// An unpredictable address of the pool.
    Any,
}

/// Reports tunnels that would not work with `translate_own_tunnels`.
pub(crate) fn check(config: &Config, section: &Reader, report: &mut Report) {
    let Some(nat44) = config.nat44.as_ref().filter(|nat44| nat44.translate_own_tunnels) else { return };
    let Some(pool) = config.pool(&nat44.pool) else { return };
    let Some(value) = section.value("translate_own_tunnels", &mut Report::default()) else { return };
    let place = value.place;
    if pool.shared {
        let what = "has no effect: the pool is at this host's own address, where tunnels end themselves";
        return report.warn(&place, format!("{what} (pool {})", pool.name));
    }
    let tunnels = locals(config).filter(|it| it.nat != BehindNat::Never);
    let (mut inside, mut is_known) = (Vec::new(), true);
    for tunnel in tunnels {
        match tunnel.address {
            None => is_known = false,
            Some(address) if nat44.inside.iter().any(|prefix| prefix.contains(address)) => {
                inside.push((tunnel, address));
            }
            Some(_) => {}
        }
    }
    if inside.is_empty() && is_known {
        let what = "has no effect: no 6to4, configured or IP-in-IP tunnel has its local end at an address in `inside`";
        return report.warn(&place, what);
    }
    for (tunnel, local) in inside {
        check_one((nat44, pool), (&tunnel, local), &place, report);
    }
}

fn check_one(
    (nat44, pool): (&Nat44, &Pool),
    (tunnel, local): (&TunnelLocal<'_>, Ipv4Addr),
    place: &Place,
    report: &mut Report,
) {
    let TunnelLocal { section, name, protocol, nat, .. } = *tunnel;
    let tunnel = format!("{section} {name}");
    let outside = outside((nat44, pool), local, protocol);
    let binding = |outside: &dyn std::fmt::Display| {
        let protocol = if protocol == PortlessProtocol::Ipip { "ipip" } else { "ipv6" };
        format!(
            "add [[nat44.static]] with protocol = \"{protocol}\", inside = \"{local}\" and outside = \"{outside}\""
        )
    };
    if let BehindNat::ManyRemotes(Some(site)) = nat {
        match outside {
            Outside::Bound(found) | Outside::Only(found) if found == site => {}
            _ if !pool.holds(site) => {
                let what = format!("{site}, the nat_address of {tunnel}, is not in pool {}", pool.name);
                return report.fault(place, format!("{what}; write an address of the pool there"));
            }
            Outside::Bound(found) => {
                let what = format!("packets of {tunnel} leave with {found}, but its nat_address is {site}");
                return report.fault(place, format!("{what}; write one address in both"));
            }
            Outside::Only(_) | Outside::Any => {
                let what = format!("packets of {tunnel} may leave with another address than its nat_address");
                return report.fault(place, format!("{what}; {}", binding(&site)));
            }
        }
    }
    let mend = || match pool.addresses.first() {
        Some(first) => binding(&first.address()),
        None => binding(&"ADDRESS"),
    };
    match outside {
        Outside::Bound(_) => {}
        Outside::Only(_) | Outside::Any if nat44.portless.sessions == 0 => {
            let what = format!("no packet of {tunnel} is translated, because max_portless_sessions is 0");
            report.fault(place, format!("{what}; {}", mend()));
        }
        Outside::Any => {
            let what = format!(
                "the outside address of {tunnel} may be any address of the pool, but its remote end must know it"
            );
            report.warn(place, format!("{what}; {}", mend()));
        }
        Outside::Only(_) if nat != BehindNat::OneRemote => {
            let what = format!(
                "each remote end of {tunnel} takes one of max_portless_sessions_per_subscriber, and none can send first"
            );
            report.warn(place, format!("{what}; {}", mend()));
        }
        Outside::Only(_) => {}
    }
}

/// The outside address of a tunnel with this local end.
fn outside((nat44, pool): (&Nat44, &Pool), local: Ipv4Addr, protocol: PortlessProtocol) -> Outside {
    let mut statics = nat44.static_bindings.portless.iter();
    if let Some(found) = statics.find(|it| it.protocol == protocol && it.inside == local) {
        return Outside::Bound(found.outside);
    }
    match &pool.addresses[..] {
        [only] if only.length() == 32 => Outside::Only(only.address()),
        _ => Outside::Any,
    }
}
