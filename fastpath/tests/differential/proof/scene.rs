//! The host that the packets come to: a network namespace with a TUN device and Ethernet devices around it, whose neighbours are known.
//! What its kernel does with a packet is written down a second time in a table, to judge by.
//!
//! ```text
//!     inner ── hosts, IPv6 default route            tun ── the engine
//!     outer ── IPv4 default route                   narrow ── MTU 1,300
//!     trunk ── VLAN 7, whose device is `tagged`     unhooked ── no program may send there
//! ```

use super::namespace;
use super::routes::{Routes, Target};
use sixway_link::sysctl::Sysctl;
use sixway_link::{Tun, TunConfig, interface};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};

/// The Ethernet devices, in the order of [`Port`].
pub const NAMES: [&str; 6] = ["inner", "outer", "narrow", "trunk", "tagged", "unhooked"];
/// The VLAN of `tagged`.
pub const VLAN: u16 = 7;
/// MTU of `narrow`, in octets.
pub const NARROW: u16 = 1_300;
/// MTU that the routes for [`routes::SHORT`] have, in octets.
pub const SHORT: u16 = 1_340;

/// An Ethernet device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    Inner,
    Outer,
    Narrow,
    Trunk,
    /// The device of the VLAN on `Trunk`. The kernel at hand need not know VLANs: any device with a MAC address will do.
    Tagged,
    Unhooked,
}

impl Port {
    pub const ALL: [Self; 6] =
        [Self::Inner, Self::Outer, Self::Narrow, Self::Trunk, Self::Tagged, Self::Unhooked];

    pub fn mac(self) -> [u8; 6] {
        [2, 0, 0, 0, 0, self as u8 + 1]
    }

    /// MAC address of the neighbour there.
    pub fn neighbour(self) -> [u8; 6] {
        [2, 0, 0, 0, 1, self as u8 + 1]
    }

    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The namespace of the calling thread, set up.
pub struct Scene {
    /// It is removed with its owner.
    _tun: Tun,
    pub tun_index: u32,
    /// Indices of the devices, in the order of [`Port`].
    pub indices: [u32; 6],
    pub routes: Routes,
}

impl Scene {
    /// Sets the calling thread's namespace up. `local`: addresses of this host in addition to the devices'.
    pub fn new(routes: Routes, local: &[IpAddr]) -> Self {
        let tun = namespace::open(&TunConfig { name: "tun".into(), ..TunConfig::default() });
        for path in ["net/ipv4/conf/all/forwarding", "net/ipv6/conf/all/forwarding"] {
            Sysctl::set(format!("/proc/sys/{path}"), "1").unwrap().keep();
        }
        devices();
        for address in local {
            let nodad = if address.is_ipv6() { " nodad" } else { "" };
            namespace::ip(&format!("addr add {address} dev lo{nodad}"));
        }
        batch(&routes.commands());
        let tun_index = interface::index(&tun.name).unwrap();
        let indices = NAMES.map(|name| interface::index(name).unwrap());
        Self { _tun: tun, tun_index, indices, routes }
    }

    pub fn index(&self, port: Port) -> u32 {
        self.indices[port as usize]
    }

    /// Where the kernel sends a packet from this source.
    pub fn sent(&self, source: IpAddr, destination: IpAddr) -> Target {
        self.routes.between(source, destination)
    }

    /// Where the kernel sends a packet for this destination, from no source that matters.
    pub fn target(&self, destination: IpAddr) -> Target {
        self.routes.of(destination)
    }
}

/// The devices, each with an address of either family and one neighbour.
fn devices() {
    let mut commands = String::new();
    for port in Port::ALL {
        let (name, number) = (port.name(), port as u8 + 1);
        let mtu = if port == Port::Narrow { NARROW } else { 1_500 };
        commands += &format!(
            "link add {name} address {} mtu {mtu} type veth peer name {name}_far mtu {mtu}\n",
            text(port.mac())
        );
        commands += &format!("link set {name} addrgenmode none\nlink set {name}_far addrgenmode none\n");
        commands += &format!("link set {name} up\nlink set {name}_far up\n");
        commands += &format!("addr add {} dev {name}\n", network(number));
        commands += &format!("addr add 2001:db8:ff0{number}::1/64 dev {name} nodad\n");
        let neighbour = text(port.neighbour());
        commands += &format!("neigh replace 10.20{number}.0.2 lladdr {neighbour} nud permanent dev {name}\n");
        commands +=
            &format!("neigh replace 2001:db8:ff0{number}::2 lladdr {neighbour} nud permanent dev {name}\n");
    }
    batch(&commands);
}

fn network(number: u8) -> String {
    format!("{}/24", Ipv4Addr::new(10, 200 + number, 0, 1))
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

/// Runs many `ip` commands in one batch.
pub fn batch(commands: &str) {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    ip.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    let output = ip.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\nof\n{commands}", String::from_utf8_lossy(&output.stderr));
}
