//! Facts about this host that the configuration is checked against, read from the kernel.

use super::links::kernel_tunnels;
use crate::config::{HostAddress, HostFacts, Surroundings};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Facts about this host. What the kernel does not tell is left out: no check then depends on it.
pub fn host_facts() -> HostFacts {
    HostFacts {
        addresses: addresses(),
        interfaces: interfaces(),
        tunnels: kernel_tunnels(),
        local_ports: std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
            .ok()
            .and_then(|text| port_range(&text)),
        descriptors: nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)
            .ok()
            .map(|(_, hard)| hard),
        resolvers: super::resolvers::resolvers(),
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
    }
}

/// The addresses that this host has at the moment, and nothing learnt.
pub fn surroundings() -> Surroundings {
    surroundings_now(Surroundings::default())
}

/// The same with the addresses that this host has at the moment; unchanged where the kernel does not say.
pub fn surroundings_now(before: Surroundings) -> Surroundings {
    let Some(now) = addresses_now() else { return before };
    let number = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    let named = now.iter().filter(|own| own.address.is_ipv4()).map(|own| own.interface.clone());
    let numbers = named.filter_map(|name| Some((number(&name)?, name))).map(|(number, name)| (name, number));
    before.with_addresses(&now, numbers.collect())
}

/// The addresses of this host's interfaces; none if the kernel does not say.
pub fn addresses() -> Vec<HostAddress> {
    addresses_now().unwrap_or_default()
}

/// The addresses of this host's interfaces; `None`: the kernel does not say, for lack of descriptors or of memory perhaps.
pub fn addresses_now() -> Option<Vec<HostAddress>> {
    let addresses = nix::ifaddrs::getifaddrs()
        .ok()?
        .filter_map(|interface| {
            let socket = interface.address?;
            let address = match (socket.as_sockaddr_in(), socket.as_sockaddr_in6()) {
                (Some(v4), _) => IpAddr::V4(v4.ip()),
                (None, Some(v6)) => IpAddr::V6(v6.ip()),
                (None, None) => return None,
            };
            let length = match interface.netmask {
                None => 0,
                Some(mask) => match (mask.as_sockaddr_in(), mask.as_sockaddr_in6()) {
                    (Some(v4), _) => v4.ip().to_bits().leading_ones(),
                    (None, Some(v6)) => v6.ip().to_bits().leading_ones(),
                    (None, None) => 0,
                },
            };
            Some(HostAddress { interface: interface.interface_name, address, length: length as u8 })
        })
        .collect();
    Some(addresses)
}

/// The names of this host's interfaces; none if the kernel does not say.
fn interfaces() -> Vec<String> {
    let all = nix::net::if_::if_nameindex().ok();
    let all = all.iter().flat_map(|all| all.iter());
    all.filter_map(|one| Some(one.name().to_str().ok()?.to_owned())).collect()
}

fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_kernels_port_range_is_two_numbers() {
        assert_eq!(port_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(port_range("32768"), None);
    }

    #[test]
    fn this_host_has_at_least_its_loopback_address() {
        let facts = host_facts();
        assert!(facts.cpus > 0);
        assert!(facts.addresses.iter().all(|a| !a.interface.is_empty()));
        let loopback = facts.addresses.iter().find(|own| own.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(loopback.is_none_or(|own| own.length == 8), "{loopback:?}");
    }
}
