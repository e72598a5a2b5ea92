//! What the configuration is checked against: facts about this host.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use sixway_wire::Prefix4;

/// An address of one of this host's interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The interface's name.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Length of its network's prefix, in bits.
    pub length: u8,
}

/// A tunnel device of the kernel that takes protocol 41 (link kind sit).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTunnel {
    /// Its name.
    pub name: String,
    /// The address that it takes packets for; `None`: any.
    pub local: Option<Ipv4Addr>,
    /// Whether it is up.
    pub up: bool,
}

impl KernelTunnel {
    /// The command that removes it. The first one is the module's own.
    pub fn how_to_remove(&self) -> String {
        match &*self.name {
            "sit0" => "modprobe -r sit (or, while a container needs it, ip link set sit0 down)".into(),
            name => format!("ip link delete {name}"),
        }
    }
}

/// Facts about this host, as far as they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The addresses of its interfaces.
    pub addresses: Vec<HostAddress>,
    /// The names of its interfaces, with those that have no address.
    pub interfaces: Vec<String>,
    /// Its tunnel devices that take protocol 41.
    pub tunnels: Vec<KernelTunnel>,
    /// `net.ipv4.ip_local_port_range`: the ports that the host's own connections take.
    pub local_ports: Option<RangeInclusive<u16>>,
    /// The CPUs that this process may use; 0 if unknown.
    pub cpus: usize,
}

impl HostFacts {
    /// The network whose broadcast address this is, and the interface there. Links of two addresses or one have none (RFC 3021 §2.1).
    pub(super) fn broadcast(&self, address: Ipv4Addr) -> Option<(Prefix4, &str)> {
        self.addresses.iter().find_map(|own| {
            let IpAddr::V4(there) = own.address else { return None };
            let network = (1..31).contains(&own.length).then(|| Prefix4::holding(there, own.length))?;
            (network.last() == address).then_some((network, &*own.interface))
        })
    }

    /// Asks the kernel. What it does not tell is left out: no check then depends on it.
    pub fn of_this_host() -> Self {
        Self {
            addresses: addresses(),
            interfaces: interfaces(),
            tunnels: crate::host::kernel_tunnels(),
            local_ports: std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
                .ok()
                .and_then(|text| port_range(&text)),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
        }
    }
}

/// The addresses of this host's interfaces; none if the kernel does not say.
pub(crate) fn addresses() -> Vec<HostAddress> {
    addresses_now().unwrap_or_default()
}

/// The addresses of this host's interfaces; `None`: the kernel does not say, for want of descriptors or of memory perhaps.
pub(crate) fn addresses_now() -> Option<Vec<HostAddress>> {
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

    #[test]
    fn the_kernels_port_range_is_two_numbers() {
        assert_eq!(port_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(port_range("32768"), None);
    }

    #[test]
    fn this_host_has_at_least_its_loopback_address() {
        let facts = HostFacts::of_this_host();
        assert!(facts.cpus > 0);
        assert!(facts.addresses.iter().all(|a| !a.interface.is_empty()));
        let loopback = facts.addresses.iter().find(|own| own.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(loopback.is_none_or(|own| own.length == 8), "{loopback:?}");
    }
}
