//! A packet in words.

use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::parse::{self, ACK, Addresses, FIN, RST, SYN, Transport};
use sixway_wire::{Prefix4, Prefix6, protocol};
use std::net::IpAddr;

/// How much of addresses is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All.
    Whole,
    /// The IPv4 /24, the IPv6 /48: enough to find the network, not the host.
    Prefixes,
}

impl Detail {
    fn of(self, address: IpAddr) -> String {
        match (self, address) {
            (Self::Whole, address) => address.to_string(),
            (Self::Prefixes, IpAddr::V4(address)) => Prefix4::holding(address, 24).to_string(),
            (Self::Prefixes, IpAddr::V6(address)) => Prefix6::holding(address, 48).to_string(),
        }
    }
}

/// A packet in words: `IPv6, TCP, SYN, 60 octets, hop limit 64, [2001:db8::1]:50122 > [64:ff9b::cb00:7102]:443`.
pub fn described(octets: &[u8]) -> String {
    in_words(octets, Detail::Whole)
}

/// A packet in words, in this detail.
pub fn in_words(octets: &[u8], detail: Detail) -> String {
    let Ok(packet) = parse::parse(octets) else {
        return format!("{} octets that are not an IP packet", octets.len());
    };
    let (version, hops) = match packet.addresses {
        Addresses::V4 { .. } => ("IPv4", "TTL"),
        Addresses::V6 { .. } => ("IPv6", "hop limit"),
    };
    let (source, destination): (IpAddr, IpAddr) = match packet.addresses {
        Addresses::V4 { source, destination } => (source.into(), destination.into()),
        Addresses::V6 { source, destination } => (source.into(), destination.into()),
    };
    let (source, destination) = (detail.of(source), detail.of(destination));
    let at = |address: &str, port: u16| match address.contains(':') {
        false => format!("{address}:{port}"),
        true => format!("[{address}]:{port}"),
    };
    let (transport, ends) = match packet.transport {
        Transport::Ports { source: from, destination: to, tcp_flags } => (
            transport_name(packet.protocol, tcp_flags),
            format!("{} > {}", at(&source, from), at(&destination, to)),
        ),
        Transport::IcmpQuery { kind, identifier, .. } => {
            (format!("ICMP type {kind}, identifier {identifier}"), format!("{source} > {destination}"))
        }
        Transport::IcmpError { .. } => ("ICMP error".into(), format!("{source} > {destination}")),
        Transport::Opaque => (without_ports(packet.protocol), format!("{source} > {destination}")),
    };
    let fragment = if packet.fragment.is_some() { ", fragment" } else { "" };
    format!("{version}, {transport}{fragment}, {} octets, {hops} {}, {ends}", packet.length, packet.hops)
}

fn without_ports(number: u8) -> String {
    match PortlessProtocol::of(number) {
        Some(PortlessProtocol::Gre) => "GRE".into(),
        Some(PortlessProtocol::Esp) => "ESP".into(),
        Some(PortlessProtocol::Ipv6) => "protocol 41 (IPv6)".into(),
        Some(PortlessProtocol::Ipip) => "protocol 4 (IPv4)".into(),
        None => format!("protocol {number}"),
    }
}

fn transport_name(number: u8, flags: u8) -> String {
    if number != protocol::TCP {
        return if number == protocol::UDP { "UDP".into() } else { format!("protocol {number}") };
    }
    let set = [(SYN, "SYN"), (ACK, "ACK"), (FIN, "FIN"), (RST, "RST")];
    let names: Vec<&str> = set.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "TCP".into() } else { format!("TCP, {}", names.join("+")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::packet::{Asked, Kind};

    #[test]
    fn prefixes_tell_the_network_and_not_the_host() {
        let words = |from: &str, to: &str| {
            let asked = Asked {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
                kind: Kind::Udp(53, 4_000),
                size: 0,
            };
            in_words(&asked.octets().unwrap(), Detail::Prefixes)
        };
        assert!(words("203.0.113.2", "192.0.2.1").ends_with(", 203.0.113.0/24:53 > 192.0.2.0/24:4000"));
        assert!(
            words("2001:db8:1:2::3", "64:ff9b::1").ends_with(", [2001:db8:1::/48]:53 > [64:ff9b::/48]:4000")
        );
    }
}
