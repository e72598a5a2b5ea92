//! Tunnels of DS-Lite, of 4over6 and of IP in IP: their ends, and the links that their outer packets leave by.

use crate::config::{Config, DsLite, FourOverSixEnd, HostAddress, Route, Surroundings};
use crate::host::Hop;
use sixway_wire::Prefix6;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A tunnel, or one of many with the same local end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Softwire {
    /// Its name.
    pub name: String,
    /// This end.
    pub local: IpAddr,
    /// The other end, or one of many.
    pub remote: IpAddr,
    /// What the other end is, in words.
    pub whose: &'static str,
    /// What a route has to lead to: the prefix of many, or the other end.
    pub to: String,
    /// Whether packets to the other end are routed into the device, and so into the tunnel again.
    pub is_circle: bool,
    /// The link towards it; `None`: there is no route, or a loop.
    pub link: Option<String>,
    /// Whether it carries IPv4.
    pub has_ipv4: bool,
    /// Whether it carries IPv6.
    pub has_ipv6: bool,
}

/// A host of a prefix.
fn host_in(prefix: &Prefix6) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.address().to_bits() | (u128::from(prefix.length() < 112) * 0x5157))
}

/// Those of the configuration whose ends are known; `anywhere`: an address of the IPv6 Internet, and where packets to a destination are sent.
pub(super) fn softwires(
    config: &Config,
    (addresses, aftrs): (&[HostAddress], &BTreeMap<String, Ipv6Addr>),
    (anywhere, toward): (Ipv6Addr, impl Fn(IpAddr) -> Option<Hop>),
) -> Vec<Softwire> {
    let mut now = Surroundings::of(addresses);
    now.aftrs.clone_from(aftrs);
    let of_ds_lite = config.ds_lite.iter().filter_map(|it| match it {
        DsLite::B4(b4) => {
            // The destination of a name that cannot be resolved is unknown: the IPv6 Internet is assumed.
            let remote = b4.aftr_now(&now).unwrap_or(anywhere);
            Some(ipv4_in_ipv6(&b4.name, b4.local.now(&now)?, remote, "AFTR"))
        }
        DsLite::Aftr(aftr) => {
            let (local, clients) = (aftr.addresses.first()?, aftr.clients.first()?);
            Some(Softwire {
                to: clients.to_string(),
                ..ipv4_in_ipv6(&aftr.name, *local, host_in(clients), "clients")
            })
        }
    });
    let of_four_over_six = config.others.four_over_six.iter().filter_map(|it| match &it.end {
        FourOverSixEnd::Concentrator(end) => {
            let (local, clients) = (end.addresses.first()?, end.clients.first()?);
            Some(Softwire {
                to: clients.to_string(),
                ..ipv4_in_ipv6(&it.name, *local, host_in(clients), "clients")
            })
        }
        FourOverSixEnd::Host(end) => {
            Some(ipv4_in_ipv6(&it.name, end.local, end.concentrator, "concentrator"))
        }
    });
    let of_ip_in_ip = config.others.ip_in_ip().iter().map(|it| Softwire {
        name: it.name.clone(),
        local: it.local,
        remote: it.remote,
        whose: "remote",
        to: it.remote.to_string(),
        is_circle: false,
        link: None,
        has_ipv4: it.prefixes.iter().any(|prefix| matches!(prefix, Route::V4(_))),
        has_ipv6: it.prefixes.iter().any(|prefix| matches!(prefix, Route::V6(_))),
    });
    let device = &config.tun.name;
    of_ds_lite
        .chain(of_four_over_six)
        .chain(of_ip_in_ip)
        .map(|it| {
            let link = toward(it.remote).map(|hop| hop.interface).filter(|name| name != "lo");
            let is_circle = link.as_ref() == Some(device);
            Softwire { is_circle, link: link.filter(|_| !is_circle), ..it }
        })
        .collect()
}

fn ipv4_in_ipv6(name: &str, local: Ipv6Addr, remote: Ipv6Addr, whose: &'static str) -> Softwire {
    let (local, remote) = (IpAddr::V6(local), IpAddr::V6(remote));
    let (to, is_circle, link) = (remote.to_string(), false, None);
    Softwire { name: name.into(), local, remote, whose, to, is_circle, link, has_ipv4: true, has_ipv6: false }
}
