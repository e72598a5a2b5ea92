//! The network of a site, before anything forwards.

use super::lan_host::{HOSTS, Kind};
use crate::failure::Result;
use crate::name_service::serve;
use crate::topology::Network;

/// The box's only public address.
pub const PUBLIC: &str = "203.0.113.1";
/// Its addresses on the LAN.
pub const INSIDE4: &str = "192.168.1.1";
/// The same of IPv6, where its DNS64 is.
pub const INSIDE6: &str = "2001:db8:1::1";
/// The provider's router, which is its DNS server as well.
pub(super) const PROVIDER: &str = "203.0.113.2";

/// The programs that a site takes.
pub const PROGRAMS: [&str; 7] = ["nsd", "taskset", "unshare", "dnsmasq", "busybox", "nft", "ping"];

/// A server outside.
#[derive(Debug, PartialEq, Eq)]
pub struct OutsideServer {
    /// Its role in the network.
    pub role: &'static str,
    /// Which protocols it has.
    pub kind: Kind,
    /// Its address.
    pub address: &'static str,
    /// Its name, which has only this address.
    pub name: &'static str,
}

impl OutsideServer {
    /// Its address where a port follows.
    pub fn in_brackets(&self) -> String {
        if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.to_owned() }
    }
}

/// The IPv4 Internet. The well-known prefix embeds global addresses alone (RFC 6052 §3.1).
pub const SERVER4: OutsideServer =
    OutsideServer { role: "server4", kind: Kind::Ipv4, address: "1.2.3.4", name: "v4.example" };
/// [`SERVER4`] for hosts without IPv4.
pub const EMBEDDED4: &str = "64:ff9b::102:304";
/// The IPv6 Internet.
pub const SERVER6: OutsideServer =
    OutsideServer { role: "server6", kind: Kind::Ipv6, address: "2001:db8:6::2", name: "v6.example" };

/// The network, where nothing forwards yet. The provider routes the LAN's prefix to the box, and tries its private addresses as well.
///
/// # Errors
/// The kernel refuses.
pub fn network() -> Result<Network> {
    let network = Network::new(&["four", "six", "dual", "gateway", "server", "server4", "server6"])?;
    let gateway = network.host("gateway")?;
    gateway.ip("link add lan0 type bridge")?;
    for host in &HOSTS {
        let port = format!("lan-{}", host.role);
        network.link((host.role, "up0"), ("gateway", &port))?;
        gateway.ip(&format!("link set {port} master lan0"))?;
        host.prepare(&network)?;
    }
    gateway.ip("link set lan0 up")?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.link(("server", "s4"), ("server4", "up0"))?;
    network.link(("server", "s6"), ("server6", "up0"))?;
    for (host, device, address) in [
        ("gateway", "lan0", "192.168.1.1/24"),
        ("gateway", "lan0", "2001:db8:1::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("gateway", "out0", "2001:db8:f::1/64"),
        ("server", "up0", "203.0.113.2/24"),
        ("server", "up0", "2001:db8:f::2/64"),
        ("server", "s4", "1.2.3.1/24"),
        ("server", "s6", "2001:db8:6::1/64"),
        ("server4", "up0", "1.2.3.4/24"),
        ("server6", "up0", "2001:db8:6::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("gateway", "default via 203.0.113.2"),
        ("gateway", "default via 2001:db8:f::2"),
        ("server", "2001:db8:1::/64 via 2001:db8:f::1"),
        ("server", "192.168.1.0/24 via 203.0.113.1"),
        ("server4", "default via 1.2.3.1"),
        ("server6", "default via 2001:db8:6::1"),
    ] {
        network.route(host, route)?;
    }
    network.forwards("server")?;
    gateway.sysctl("ipv4/ip_forward", "0")?;
    gateway.sysctl("ipv6/conf/all/forwarding", "0")?;
    serve(&network, "v4 A 1.2.3.4\nv6 AAAA 2001:db8:6::2\n")?;
    Ok(network)
}
