//! Datagrams to a Teredo server.

use super::{PathRule, Paths, udp4};
use crate::doctor::probe::Packet;
use sixway_wire::teredo::TEREDO_PORT;
use std::net::{Ipv4Addr, SocketAddrV4};

impl Paths<'_> {
    /// From the Internet, or from a neighbour where that is on another interface, to each address of the server.
    pub(super) fn teredo_server(&mut self) {
        let addresses: Vec<Ipv4Addr> =
            self.config.teredo_server.iter().flat_map(|server| server.addresses()).collect();
        for address in addresses {
            let Some((link, from)) = self.way_to(address) else { continue };
            let (mark, at) = (self.next(), SocketAddrV4::new(address, TEREDO_PORT));
            self.plan.packets.push(Packet {
                into: link.clone(),
                service: Some(at.to_string()),
                mark,
                octets: udp4(mark, (from, mark), (address, TEREDO_PORT)),
                ..Packet::default()
            });
            self.rules.push(PathRule {
                name: format!("datagrams from {link} to the Teredo server at {at}"),
                nft: format!("iifname \"{link}\" ip daddr {address} udp dport {TEREDO_PORT} accept"),
                iptables: format!("-i {link} -d {address} -p udp --dport {TEREDO_PORT} -j ACCEPT"),
                is_ipv6: false,
                is_input: true,
                within: None,
                is_private: false,
            });
        }
    }
}
