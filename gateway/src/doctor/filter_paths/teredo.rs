//! The paths of Teredo's relays: UDP packets of clients to this host, and what is in them to the networks that are served.

use super::super::trial_packets::udp4;
use super::{PathRule, Paths, REMOTE_OF_INSIDE, TRIED};
use crate::doctor::probe::Packet;
use std::net::IpAddr;

impl Paths<'_> {
    pub(super) fn teredo(&mut self) {
        for relay in self.config.others.teredo_relay.iter().take(TRIED) {
            let Some(own) = relay.local.found else { continue };
            let facts = self.facts;
            let link = facts.addresses.iter().find(|it| it.address == IpAddr::V4(own));
            let Some(link) = link.map(|it| it.interface.clone()) else { continue };
            let mark = self.next();
            self.plan.packets.push(Packet {
                into: link.clone(),
                service: Some(format!("{own}:{}", relay.port)),
                mark,
                octets: udp4(mark, (REMOTE_OF_INSIDE, mark), (own, relay.port)),
                ..Packet::default()
            });
            let port = relay.port;
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
        }
    }
}
