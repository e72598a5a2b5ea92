//! Packets that end at this host: router solicitations of the LANs' hosts, their requests for leases and mappings, and their queries to
//! dnsmasq; router advertisements of the provider.

use super::super::trial_packets::{router_advertisement, router_solicitation, udp4};
use super::{PathRule, Paths, TRIED, neighbour};
use crate::doctor::probe::Packet;
use sixway_control::pcp;
use std::net::{IpAddr, Ipv4Addr};

/// RFC 2131 §4.1: the port of clients.
const DHCP_CLIENT: u16 = 68;
/// The same of servers.
const DHCP_SERVER: u16 = 67;
/// RFC 1035 §4.2.
const DNS: u16 = 53;

impl Paths<'_> {
    /// From the hosts of each LAN.
    pub(super) fn lan_services(&mut self) {
        for lan in self.advertised_links() {
            self.discovery("router solicitations", &lan, router_solicitation);
        }
        if let Some(uplink) = self.native_uplink().filter(|_| !self.native_hosts().is_empty()) {
            // Where they are dropped, so are the answers of neighbours.
            self.discovery("router advertisements", &uplink, router_advertisement);
        }
        for (lan, own) in self.mapped_links() {
            let host = neighbour(own);
            self.datagram("PCP requests", &lan, (host, None), (own, pcp::SERVER_PORT));
        }
        let Some(dnsmasq) = &self.facts.dnsmasq else { return };
        for own in dnsmasq.listen.iter().copied() {
            let Some(lan) = self.link_of(own) else { continue };
            let broadcast = (Ipv4Addr::UNSPECIFIED, Some(DHCP_CLIENT));
            self.datagram("DHCP requests", &lan, broadcast, (Ipv4Addr::BROADCAST, DHCP_SERVER));
            if dnsmasq.answers_dns {
                self.datagram("queries to dnsmasq", &lan, (neighbour(own), None), (own, DNS));
            }
        }
    }

    /// A message of neighbour discovery (RFC 4861).
    fn discovery(&mut self, what: &str, link: &str, message: fn(u16) -> Vec<u8>) {
        let mark = self.next();
        self.plan.packets.push(Packet {
            into: link.to_owned(),
            is_discovery: true,
            mark,
            octets: message(mark),
            ..Packet::default()
        });
        let (nft, iptables) = ("meta l4proto ipv6-icmp", "-p ipv6-icmp");
        let name = format!("{what} from {link}");
        self.rules.push(PathRule { is_ipv6: true, ..to_this_host(name, link, nft, iptables) });
    }

    /// From this address, and port or any, to a UDP port of this host.
    fn datagram(
        &mut self,
        what: &str,
        lan: &str,
        (from, from_port): (Ipv4Addr, Option<u16>),
        to: (Ipv4Addr, u16),
    ) {
        let mark = self.next();
        let (address, port) = to;
        let own = if address.is_broadcast() { Ipv4Addr::UNSPECIFIED } else { address };
        self.plan.packets.push(Packet {
            into: lan.to_owned(),
            service: Some(format!("{own}:{port}")),
            mark,
            octets: udp4(mark, (from, from_port.unwrap_or(mark)), to),
            ..Packet::default()
        });
        let protocols: &[&str] = if port == DNS { &["udp", "tcp"] } else { &["udp"] };
        let nft = format!("meta l4proto {{ {} }} th dport {port}", protocols.join(", "));
        let iptables =
            protocols.iter().map(|protocol| format!("-i {lan} -p {protocol} --dport {port} -j ACCEPT"));
        let iptables = iptables.collect::<Vec<_>>().join("\n");
        let nft = if port == DNS { nft } else { format!("udp dport {port}") };
        let rule = to_this_host(format!("{what} from {lan}"), lan, &nft, "");
        self.rules.push(PathRule { iptables, ..rule });
    }

    /// Links on which this host advertises itself.
    fn advertised_links(&self) -> Vec<String> {
        let links = self.config.router_advertisements.iter().filter_map(|it| it.interface.clone());
        links
            .filter(|link| self.facts.addresses.iter().any(|own| own.interface == *link))
            .take(TRIED)
            .collect()
    }

    /// Links whose hosts may ask for mappings over IPv4, with this host's address there.
    fn mapped_links(&self) -> Vec<(String, Ipv4Addr)> {
        let interfaces = self.config.pcp.iter().filter(|_| self.config.nat44.is_some());
        let interfaces = interfaces.flat_map(|pcp| &pcp.interfaces);
        let own = interfaces.filter_map(|link| {
            let its = self.facts.addresses.iter().filter(|own| own.interface == *link && own.length <= 30);
            let first = its.filter_map(|own| match own.address {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            });
            Some((link.clone(), first.take(1).next()?))
        });
        own.take(TRIED).collect()
    }

    fn link_of(&self, address: Ipv4Addr) -> Option<String> {
        let own =
            self.facts.addresses.iter().find(|own| own.address == IpAddr::V4(address) && own.length <= 30)?;
        Some(own.interface.clone())
    }

    /// The interfaces of these hosts.
    pub(super) fn served_links(&self) -> Vec<String> {
        let leased = self.facts.dnsmasq.iter().flat_map(|it| &it.listen).filter_map(|own| self.link_of(*own));
        let mapped = self.mapped_links().into_iter().map(|(link, _)| link);
        leased.chain(mapped).chain(self.advertised_links()).collect()
    }
}

fn to_this_host(name: String, lan: &str, nft: &str, iptables: &str) -> PathRule {
    PathRule {
        name,
        nft: format!("iifname \"{lan}\" {nft} accept"),
        iptables: format!("-i {lan} {iptables} -j ACCEPT"),
        is_ipv6: false,
        is_input: true,
        within: None,
        is_private: false,
    }
}
