//! The host's routes: as commands for the kernel, and as a table in which the longest prefix is searched the slow way.

use super::scene::{Port, SHORT};
use sixway_wire::{Prefix4, Prefix6};
use std::net::IpAddr;
use std::sync::LazyLock;

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the engine.
    Tun,
    /// To the neighbour there; with an MTU of its own.
    Neighbour(Port, Option<u16>),
    /// To a neighbour whose MAC address is unknown.
    Unknown,
    /// It is an address of this host, or no packet's destination.
    Local,
    Nowhere,
}

/// A destination and where it leads.
pub type Route = (&'static str, Target);

/// Destinations beyond each kind of next hop, the same in each scene: what follows is added to them.
const AROUND: &[Route] = &[
    ("0.0.0.0/0", Target::Neighbour(Port::Outer, None)),
    ("45.2.0.0/16", Target::Neighbour(Port::Tagged, None)),
    ("45.3.0.0/16", Target::Neighbour(Port::Narrow, None)),
    ("45.4.0.0/16", Target::Unknown),
    ("45.5.0.0/16", Target::Neighbour(Port::Unhooked, None)),
    ("45.6.0.0/16", Target::Neighbour(Port::Outer, Some(SHORT))),
    ("45.7.0.0/16", Target::Nowhere),
    ("::/0", Target::Neighbour(Port::Inner, None)),
    ("2a02::/32", Target::Neighbour(Port::Tagged, None)),
    ("2a03::/32", Target::Neighbour(Port::Narrow, None)),
    ("2a04::/32", Target::Unknown),
    ("2a05::/32", Target::Neighbour(Port::Unhooked, None)),
    ("2a06::/32", Target::Neighbour(Port::Inner, Some(SHORT))),
    ("2a07::/32", Target::Nowhere),
];

/// The whole table.
#[derive(Clone, Debug)]
pub struct Routes {
    all: Vec<Route>,
    local: Vec<IpAddr>,
    /// Sources whose packets go to the engine wherever they are for, but to each other.
    inside: Vec<Prefix4>,
}

impl Routes {
    /// Those of every scene, with others in their place or next to them.
    pub fn with(others: &[Route], local: &[IpAddr]) -> Self {
        let mut all = others.to_vec();
        all.extend(AROUND.iter().filter(|(prefix, _)| others.iter().all(|(other, _)| other != prefix)));
        Self { all, local: local.to_vec(), inside: Vec::new() }
    }

    /// With policy rules by these sources.
    pub fn inside(self, inside: Vec<Prefix4>) -> Self {
        Self { inside, ..self }
    }

    /// Where a packet is sent.
    pub fn between(&self, source: IpAddr, destination: IpAddr) -> Target {
        let is_inside = |address: IpAddr| match address {
            IpAddr::V4(four) => self.inside.iter().any(|prefix| prefix.contains(four)),
            IpAddr::V6(_) => false,
        };
        match self.of(destination) {
            Target::Local => Target::Local,
            _ if is_inside(source) && !is_inside(destination) => Target::Tun,
            target => target,
        }
    }

    pub fn of(&self, destination: IpAddr) -> Target {
        if self.is_local(destination) {
            return Target::Local;
        }
        if let Some(port) = Port::ALL.into_iter().find(|port| is_on_link(*port, destination)) {
            // The neighbours that are known end in .2; they are looked up by no packet here.
            return if ends_in_2(destination) { Target::Neighbour(port, None) } else { Target::Unknown };
        }
        let lengths =
            self.all.iter().filter_map(|(prefix, target)| Some((matching(prefix, destination)?, *target)));
        lengths.max_by_key(|(length, _)| *length).map_or(Target::Nowhere, |(_, target)| target)
    }

    fn is_local(&self, destination: IpAddr) -> bool {
        let is_martian = match destination {
            IpAddr::V4(four) => {
                four.is_multicast() || four.octets()[0] == 0 || four.octets()[0] >= 240 || four.is_loopback()
            }
            IpAddr::V6(six) => {
                six.is_multicast()
                    || six.is_loopback()
                    || six.is_unspecified()
                    || six.segments()[0] & 0xffc0 == 0xfe80
            }
        };
        is_martian || self.local.contains(&destination) || is_of_device(destination)
    }

    /// `ip` commands.
    pub fn commands(&self) -> String {
        let mut all: String = self.all.iter().map(|(prefix, target)| command(prefix, *target)).collect();
        for from in &self.inside {
            for to in &self.inside {
                all += &format!("rule add from {from} to {to} lookup main pref 6296\n");
            }
            all += &format!("rule add from {from} lookup 100 pref 6297\n");
        }
        if !self.inside.is_empty() {
            all += "route add default dev tun table 100\n";
        }
        all
    }
}

fn command(prefix: &str, target: Target) -> String {
    let by = |port: Port, last: u8| {
        let number = port as u8 + 1;
        let gateway = if prefix.contains(':') {
            format!("2001:db8:ff0{number}::{last}")
        } else {
            format!("10.20{number}.0.{last}")
        };
        format!("via {gateway} dev {}", port.name())
    };
    let rest = match target {
        Target::Tun => "dev tun".into(),
        Target::Neighbour(port, None) => by(port, 2),
        // Of an IPv6 route the kernel follows only a locked MTU when it forwards.
        Target::Neighbour(port, Some(mtu)) => format!("{} mtu lock {mtu}", by(port, 2)),
        Target::Unknown => by(Port::Outer, 77),
        Target::Nowhere => return format!("route add unreachable {prefix}\n"),
        Target::Local => return String::new(),
    };
    format!("route add {prefix} {rest}\n")
}

fn matching(prefix: &str, address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(four) if !prefix.contains(':') => {
            let prefix: Prefix4 = prefix.parse().unwrap();
            prefix.contains(four).then(|| prefix.length())
        }
        IpAddr::V6(six) if prefix.contains(':') => {
            let prefix: Prefix6 = prefix.parse().unwrap();
            prefix.contains(six).then(|| prefix.length())
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

fn is_on_link(port: Port, address: IpAddr) -> bool {
    let number = port as u8 + 1;
    matching(&format!("10.20{number}.0.0/24"), address).is_some()
        || matching(&format!("2001:db8:ff0{number}::/64"), address).is_some()
}

fn ends_in_2(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.octets()[3] == 2,
        IpAddr::V6(six) => six.to_bits() as u64 == 2,
    }
}

/// Whether the lowest address of an IPv4 network is a broadcast address, as it was before Linux 5.14.
fn is_lowest_broadcast() -> bool {
    static IS_BROADCAST: LazyLock<bool> = LazyLock::new(|| {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        is_before_5_14(&release)
    });
    *IS_BROADCAST
}

fn is_before_5_14(release: &str) -> bool {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map(|it| it.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (5, 14)
}

#[test]
fn the_lowest_address_of_a_network_is_a_hosts_since_linux_5_14() {
    let old = ["4.19.0-27-amd64", "5.10.0-34-amd64", "5.13.19"].map(is_before_5_14);
    let new = ["5.14.0", "5.15.0-130-generic", "6.1.0-42-amd64", "6.18.44-x"].map(is_before_5_14);
    assert_eq!((old, new), ([true; 3], [false; 4]));
}

/// The devices' own addresses, and those of their networks that no host has.
fn is_of_device(address: IpAddr) -> bool {
    Port::ALL.into_iter().any(|port| is_on_link(port, address))
        && match address {
            IpAddr::V4(four) => {
                matches!(four.octets()[3], 1 | 255) || four.octets()[3] == 0 && is_lowest_broadcast()
            }
            IpAddr::V6(six) => matches!(six.to_bits() as u64, 0 | 1),
        }
}
