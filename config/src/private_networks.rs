//! Private networks of this host that a translator reaches.

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::section::Reader;
use sixway_dataplane::translate::address::rfc6052::WELL_KNOWN_PREFIX;
use sixway_wire::Prefix4;
use std::net::{IpAddr, Ipv4Addr};

/// RFC 1918 §3 and RFC 6598 §7.
const PRIVATE: [Prefix4; 4] = [
    Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(172, 16, 0, 0), 12),
    Prefix4::holding(Ipv4Addr::new(192, 168, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10),
];

/// A translator with a prefix of the network's own represents private addresses too (the well-known one does not, RFC 6052 §3.1). Where this host is in such a network, those who
/// may use the translator reach it; that may be wanted, and is said.
pub(crate) fn check(
    config: &Config,
    host: &HostFacts,
    nat64: &[Reader],
    siit: &[Reader],
    report: &mut Report,
) {
    let pools: Vec<Prefix4> = config.pools.iter().flat_map(|pool| pool.addresses.iter().copied()).collect();
    let nat64 = config
        .nat64
        .iter()
        .zip(nat64)
        .map(|(it, section)| (Some(it.prefix.prefix()), &it.exclude_ipv4, section));
    let siit = config
        .siit
        .iter()
        .zip(siit)
        .map(|(it, section)| (it.prefix.map(|it| it.prefix()), &it.exclude_ipv4, section));
    for (prefix, excluded, section) in nat64.chain(siit) {
        let Some(prefix) = prefix.filter(|prefix| *prefix != WELL_KNOWN_PREFIX) else { continue };
        for private in PRIVATE {
            let own = host.addresses.iter().find_map(|own| match own.address {
                IpAddr::V4(address) if private.contains(address) => {
                    let network = Prefix4::holding(address, own.length.min(32));
                    // The outside is meant to be reached.
                    let is_outside = pools.iter().any(|pool| pool.overlaps(network));
                    let is_excluded = excluded
                        .iter()
                        .any(|it| it.contains(network.address()) && it.length() <= network.length());
                    (!is_outside && !is_excluded).then_some((network, &own.interface))
                }
                IpAddr::V4(_) | IpAddr::V6(_) => None,
            });
            let Some((network, interface)) = own else { continue };
            let place = Place {
                key: format!("{}.exclude_ipv4", section.place().key).into(),
                ..section.place().clone()
            };
            report.warn(
                &place,
                format!("does not list {network} on {interface}: who uses {prefix} reaches that network; if that is not wanted, write exclude_ipv4 = [\"{network}\"]"),
            );
        }
    }
}
