//! Private networks of this host that a translator reaches.

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::section::Reader;
use sixway_dataplane::translate::address::rfc6052::WELL_KNOWN_PREFIX;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr};

/// RFC 1918 §3 and RFC 6598 §7.
pub(crate) const PRIVATE: [Prefix4; 4] = [
    Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(172, 16, 0, 0), 12),
    Prefix4::holding(Ipv4Addr::new(192, 168, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10),
];

/// A translator with a prefix of the network's own represents private addresses too (the well-known one does not, RFC 6052 §3.1). If this host is in such a network, clients of
/// the translator reach the network; that may be intended, and is reported.
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
        let mut reached: Vec<(Prefix4, &str)> = Vec::new();
        for own in &host.addresses {
            let IpAddr::V4(address) = own.address else { continue };
            let network = Prefix4::holding(address, own.length.min(32));
            let is_private = PRIVATE.iter().any(|private| private.contains(address));
            // The outside is meant to be reached.
            let is_outside = pools.iter().any(|pool| pool.overlaps(network));
            let is_known = |it: &Prefix4| it.contains(network.address()) && it.length() <= network.length();
            let mut known = excluded.iter().chain(reached.iter().map(|(network, _)| network));
            if is_private && !is_outside && !known.any(is_known) {
                reached.push((network, &own.interface));
            }
        }
        if reached.is_empty() {
            continue;
        }
        let place =
            Place { key: format!("{}.exclude_ipv4", section.place().key).into(), ..section.place().clone() };
        report.warn(&place, warning(prefix, excluded, &reached));
    }
}

/// The remark on private networks that a translator with this prefix reaches: the whole key, so that it can be copied.
fn warning(prefix: Prefix6, excluded: &[Prefix4], reached: &[(Prefix4, &str)]) -> String {
    let found: Vec<String> =
        reached.iter().map(|(network, interface)| format!("{network} on {interface}")).collect();
    let all = excluded.iter().chain(reached.iter().map(|(network, _)| network));
    let all: Vec<String> = all.map(|network| format!("\"{network}\"")).collect();
    let what = if found.len() == 1 { "that network" } else { "these networks" };
    let (found, all) = (found.join(", "), all.join(", "));
    format!(
        "does not list {found}: who uses {prefix} reaches {what}; if that is not wanted, write exclude_ipv4 = [{all}]"
    )
}
