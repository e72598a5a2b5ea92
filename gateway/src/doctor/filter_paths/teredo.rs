//! The paths of Teredo's relays: UDP packets of clients to this host, and what is in them to the networks that are served.

use super::super::facts::REMOTE4;
use super::super::trial_packets::udp4;
use super::{HTTPS, PathRule, Paths, TRIED, neighbour, path};
use crate::doctor::probe::Packet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A client of the server 198.51.100.77, mapped to port 40000 of 198.51.100.78.
const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0, 0xc633, 0x644d, 0, 0x63bf, 0x39cc, 0x9bb1);

impl Paths<'_> {
    pub(super) fn teredo(&mut self) {
        for relay in self.config.others.teredo_relay.iter().take(TRIED) {
            let Some(own) = relay.local.found else { continue };
            let Some((link, from)) = self.way_to(own) else { continue };
            let (mark, port) = (self.next(), relay.port);
            self.plan.packets.push(Packet {
                into: link.clone(),
                service: Some(format!("{own}:{port}")),
                mark,
                octets: udp4(mark, (from, mark), (own, port)),
                ..Packet::default()
            });
            self.rules.push(PathRule {
                name: format!(
                    "packets of Teredo clients from {link} to {} at {own}, UDP port {port}",
                    relay.name
                ),
                nft: format!("iifname \"{link}\" udp dport {port} accept"),
                iptables: format!("-i {link} -p udp --dport {port} -j ACCEPT"),
                is_ipv6: false,
                is_input: true,
                within: None,
                is_private: false,
            });
            self.inside_of_teredo();
        }
    }

    /// Packets of clients to the networks that are served, and the replies.
    fn inside_of_teredo(&mut self) {
        self.plan.routes.push((format!("{CLIENT}/128"), self.device.clone()));
        let facts = self.facts;
        for (host, lan) in facts.inside.iter().take(TRIED) {
            // Between the same interfaces: once.
            if !self.rules.iter().any(|rule| rule.name == path(lan, &self.device, true, "").name) {
                self.inner("", (*host, lan), (CLIENT, HTTPS));
            }
        }
    }

    /// The interface by which packets come in for an address of this host, and who sends them: a host of the Internet, or a neighbour where
    /// that is another interface. An address of no network (on `lo`, or with a length of 32) is reached by the uplink.
    pub(super) fn way_to(&mut self, address: Ipv4Addr) -> Option<(String, Ipv4Addr)> {
        let facts = self.facts;
        let own = facts.addresses.iter().find(|own| own.address == IpAddr::V4(address))?;
        let is_of_no_network = own.length == 32 || own.interface == "lo";
        if !is_of_no_network && self.uplink.as_ref() != Some(&own.interface) {
            return Some((own.interface.clone(), neighbour(address)));
        }
        let uplink = self.uplink.clone()?;
        if own.interface == "lo"
            && let Some((_, addresses)) = self.plan.interfaces.iter_mut().find(|(name, _)| *name == uplink)
        {
            addresses.push(format!("{address}/32"));
        }
        Some((uplink, REMOTE4))
    }
}
