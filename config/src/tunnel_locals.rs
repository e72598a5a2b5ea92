//! The local ends of all tunnels over IPv4.

use std::net::{IpAddr, Ipv4Addr};

use sixway_dataplane::mechanism::nat44::PortlessProtocol;

use crate::config::Config;
use crate::local_address::LocalAddress;

/// The local end of a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TunnelLocal<'c> {
    /// The section of the tunnel.
    pub section: &'static str,
    /// Its name.
    pub name: &'c str,
    /// Its address, if it is known.
    pub address: Option<Ipv4Addr>,
    /// The protocol of its packets.
    pub protocol: PortlessProtocol,
    /// How its packets may pass a NAT44.
    pub nat: BehindNat,
}

/// Whether a tunnel works with an outside address that is not its local end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BehindNat {
    /// No: its prefix embeds the local end.
    Never,
    /// Its only remote end knows the outside address.
    OneRemote,
    /// Its prefix embeds the outside address, if this is written, and it has many remote ends.
    ManyRemotes(Option<Ipv4Addr>),
}

/// Those of a configuration.
pub(crate) fn locals(config: &Config) -> impl Iterator<Item = TunnelLocal<'_>> {
    fn of<'c>(section: &'static str, name: &'c str, local: &LocalAddress) -> TunnelLocal<'c> {
        let (address, protocol) = (local.found, PortlessProtocol::Ipv6);
        TunnelLocal { section, name, address, protocol, nat: BehindNat::Never }
    }
    let six_to_four = config.six_to_four.iter().map(|it| TunnelLocal {
        nat: BehindNat::ManyRemotes(it.nat_address),
        ..of("six_to_four", &it.name, &it.local)
    });
    let six_rd = config.six_rd.iter().map(|it| of("six_rd", &it.name, &it.local));
    let configured = config
        .configured_tunnels
        .iter()
        .map(|it| TunnelLocal { nat: BehindNat::OneRemote, ..of("tunnel", &it.name, &it.local) });
    let isatap = config.isatap.iter().map(|it| of("isatap", &it.name, &it.local));
    let ip_in_ip = config.others.locals().into_iter().filter_map(|(name, local)| match local {
        IpAddr::V4(local) => Some(TunnelLocal {
            section: "ip_in_ip",
            name,
            address: Some(local),
            protocol: PortlessProtocol::Ipip,
            nat: BehindNat::OneRemote,
        }),
        IpAddr::V6(_) => None,
    });
    six_to_four.chain(six_rd).chain(configured).chain(isatap).chain(ip_in_ip)
}
