//! The paths of a NAT46's packets.

use super::super::facts::REMOTE6;
use super::super::trial_packets::{packet_too_big, tcp6};
use super::{HTTPS, Paths, TRIED, path};
use crate::config::Nat46;
use sixway_dataplane::parse::{ACK, SYN};
use sixway_wire::Prefix6;

impl Paths<'_> {
    /// Between the clients and the device, and between the device and the servers.
    pub(super) fn nat46(&mut self, nat46: &Nat46) {
        let suffix = self.suffix(&nat46.name);
        let device = self.device.clone();
        let prefix = nat46.prefix.prefix();
        self.plan.routes.push((nat46.pool.to_string(), device.clone()));
        self.plan.routes.push((prefix.to_string(), device.clone()));
        let hosts = self.hosts4(&nat46.clients, &[]);
        self.inner4(&suffix, hosts, nat46.pool.last());
        let Some(uplink) = self.facts.uplink6.as_ref().map(|hop| hop.interface.clone()) else { return };
        let Some(client) = nat46.clients.first() else { return };
        let client = self.hosts4(&nat46.clients, &[]).first().map_or(client.address(), |(host, _)| *host);
        let image = nat46.prefix.embed_any(client);
        self.plan.routes.push((format!("{REMOTE6}/128"), uplink.clone()));
        let mark = self.next();
        let first = (image, mark);
        let about = tcp6(mark, first, (REMOTE6, HTTPS), SYN);
        let out = path(&device, &uplink, true, &suffix);
        let outward = self.try_path(out, &device, Some(&uplink), mark, about.clone());
        let to_images = || path(&uplink, &device, true, &suffix).only_to6(prefix);
        let mark = self.next();
        let back = tcp6(mark, (REMOTE6, HTTPS), first, SYN | ACK);
        let within = self.try_path(to_images(), &uplink, Some(&device), mark, back.clone());
        let mark = self.next();
        let error = packet_too_big(mark, (REMOTE6, image), &about);
        let rule = to_images().only_errors("Packet Too Big", "icmpv6 type packet-too-big", within);
        self.try_path(rule, &uplink, Some(&device), mark, error);
        self.own_error6((&device, &uplink, &suffix), REMOTE6, &back, outward);
    }

    /// Interfaces towards its clients and its servers.
    pub(super) fn links_of_nat46(&self) -> Vec<String> {
        let Some(nat46) = self.config.nat46() else { return Vec::new() };
        let clients = self.hosts4(&nat46.clients, &[]).into_iter().take(TRIED).map(|(_, lan)| lan);
        clients.chain(self.facts.uplink6.iter().map(|hop| hop.interface.clone())).collect()
    }
}

impl super::PathRule {
    fn only_to6(self, destination: Prefix6) -> Self {
        self.only(&format!("ip6 daddr {destination}"), &format!("-d {destination}"))
    }
}
