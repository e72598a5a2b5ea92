//! Pools whose addresses are this host's own: it keeps most ports, a translator gets a range of them.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use sixway_wire::Prefix4;

use crate::fault::{Place, Report, did_you_mean};
use crate::host::HostFacts;
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::ports::{Ports, Range};
use crate::surroundings::Surroundings;
use crate::value::Value;

/// Most ranges of ports of one address that packets can be steered for: what the program at tc ingress has room for.
pub const SHARED_RANGES: usize = 8;

/// The value where the host's settings are not known.
const USUAL: RangeInclusive<u16> = 61_000..=65_535;

/// Reports what cannot be one of this host's addresses, and warns of addresses that it does not have at the moment: an address by DHCP
/// comes later.
pub(crate) fn check_addresses(addresses: &[Prefix4], place: &Place, host: &HostFacts, report: &mut Report) {
    for prefix in addresses {
        if prefix.length() != 32 {
            report.fault(
                place,
                format!(
                    "{prefix} is a network; write this host's own addresses one by one, or remove `shared`"
                ),
            );
        } else if !host.addresses.is_empty() && !is_own(host, prefix.address()) {
            let address = prefix.address();
            let what = "is not configured on this host; no packets are received until it is";
            let mend = format!("ip address add {address}/32 dev INTERFACE, or remove `shared`");
            report.warn(place, format!("{address} {what}: {mend}"));
        }
    }
}

/// The address of the interface that a pool follows, or none if it has none yet.
pub(crate) fn address_of(
    name: &str,
    is_shared: bool,
    place: &Place,
    host: &HostFacts,
    report: &mut Report,
) -> Option<Vec<Prefix4>> {
    if !is_interface_name(name) {
        report.fault(place, NO_INTERFACE);
        return None;
    }
    if !is_shared {
        report.fault(place, "is this host's own address; write shared = true and the ports of the pool");
        return None;
    }
    let found = Surroundings::of(&host.addresses).ipv4_of(name);
    if found.is_none() && !host.addresses.is_empty() {
        let names = host.addresses.iter().map(|own| &*own.interface);
        let near = did_you_mean(name, names).filter(|near| *near != name);
        let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        report.warn(place, format!("has no IPv4 address yet; the pool has no ports until it has one{near}"));
    }
    Some(found.map(|address| Prefix4::holding(address, 32)).into_iter().collect())
}

/// Reports ports of a shared pool that cannot be shared with the host.
pub(crate) fn check_ports(ports: &Ports, value: &Value, host: &HostFacts, report: &mut Report) {
    let free = free_range(host);
    if !value.is_written() {
        report.fault(&value.place, format!("is missing; write ports = \"{}\"", Range(&free)));
        return;
    }
    if let Some(overlap) = host.local_ports.as_ref().and_then(|local| ports.overlap(local)) {
        let what = "overlaps net.ipv4.ip_local_port_range; the host's own connections would collide";
        report.fault(
            &value.place,
            format!("{} {what}; choose other ports, such as {}", Range(&overlap), Range(&free)),
        );
    }
    let count = ports.ranges().len();
    if count > SHARED_RANGES {
        report.fault(
            &value.place,
            format!(
                "{count} ranges are too many: packets can be steered for at most {SHARED_RANGES}; merge some"
            ),
        );
    }
}

/// The larger part of the unprivileged ports that the host's own connections leave.
pub(crate) fn free_range(host: &HostFacts) -> RangeInclusive<u16> {
    let Some(local) = &host.local_ports else { return USUAL };
    let below = 1_024..=local.start().saturating_sub(1);
    let above = local.end().saturating_add(1)..=u16::MAX;
    // Services listen at low ports: those above are better if they are enough for anything.
    if above.len() >= 1_024 || above.len() >= below.len() { above } else { below }
}

fn is_own(host: &HostFacts, address: Ipv4Addr) -> bool {
    host.addresses.iter().any(|own| own.address == IpAddr::V4(address))
}
