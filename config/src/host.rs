//! What the configuration is checked against: facts about this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
    /// The local address of its packets; `None`: any.
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
    /// How many files a process may open (RLIMIT_NOFILE, the hard limit).
    pub descriptors: Option<u64>,
    /// Its DNS servers, as `/etc/resolv.conf` has them.
    pub resolvers: Vec<SocketAddr>,
}

impl HostFacts {
    /// The network with this broadcast address, and the interface there. Links of two addresses or one have none (RFC 3021 §2.1).
    pub(crate) fn broadcast(&self, address: Ipv4Addr) -> Option<(Prefix4, &str)> {
        self.addresses.iter().find_map(|own| {
            let IpAddr::V4(there) = own.address else { return None };
            let network = (1..31).contains(&own.length).then(|| Prefix4::holding(there, own.length))?;
            (network.last() == address).then_some((network, &*own.interface))
        })
    }
}
