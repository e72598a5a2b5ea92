//! The paths of a NAT44's packets.

use super::super::trial_packets::{fragmentation_needed, tcp4};
use super::{HTTPS, Paths, TRIED, neighbour, path};
use crate::config::Nat44;
use sixway_dataplane::parse::{ACK, SYN};
use std::net::{IpAddr, Ipv4Addr};

/// What hosts inside talk to: routed into the device, as rules by source do with any destination. Of TEST-NET-2, as what others try.
const REMOTE_OF_INSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 78);

impl Paths<'_> {
    /// Interfaces with inside hosts, and one of these at each.
    pub(super) fn inside4(&self, nat44: &Nat44) -> Vec<(Ipv4Addr, String)> {
        let named = |interface: &String| nat44.interfaces.is_empty() || nat44.interfaces.contains(interface);
        let hosts = self.facts.addresses.iter().filter_map(|own| match own.address {
            IpAddr::V4(address) if own.length <= 30 && own.interface != self.device => {
                let host = neighbour(address);
                let is_inside = nat44.inside.iter().any(|prefix| prefix.contains(host));
                (is_inside && named(&own.interface)).then(|| (host, own.interface.clone()))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        });
        hosts.take(TRIED).collect()
    }

    pub(super) fn nat44(&mut self, nat44: &Nat44) {
        let Some(pool) = self.config.pool(&nat44.pool) else { return };
        let (Some(first), Some(ports)) = (pool.addresses.first(), pool.ports.ranges().first()) else {
            return;
        };
        let device = self.device.clone();
        if !pool.shared {
            let routes = pool.addresses.iter().map(|prefix| (prefix.to_string(), device.clone()));
            self.plan.routes.extend(routes);
        }
        self.plan.routes.push((format!("{REMOTE_OF_INSIDE}/32"), device.clone()));
        let suffix = self.suffix(&nat44.name);
        for (host, lan) in self.inside4(nat44) {
            self.plan.routes.push((format!("{host}/32"), lan.clone()));
            let mark = self.next();
            let about = tcp4(mark, (host, mark), (REMOTE_OF_INSIDE, HTTPS), SYN);
            self.try_path(path(&lan, &device, false, &suffix), &lan, Some(&device), mark, about.clone());
            let mark = self.next();
            let back = tcp4(mark, (REMOTE_OF_INSIDE, mark), (host, mark), SYN | ACK);
            let rule = path(&device, &lan, false, &suffix);
            let within = self.try_path(rule, &device, Some(&lan), mark, back);
            let mark = self.next();
            let error = fragmentation_needed(mark, (REMOTE_OF_INSIDE, host), &about);
            let rule = path(&device, &lan, false, &suffix);
            let rule = rule.only_errors("Fragmentation Needed", "icmp type destination-unreachable", within);
            self.try_path(rule, &device, Some(&lan), mark, error);
        }
        let pool = if pool.shared { Vec::new() } else { pool.addresses.clone() };
        self.outside4(&suffix, (first.address(), *ports.end()), &pool);
    }
}
