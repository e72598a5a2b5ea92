//! The paths of native IPv6 between the LANs that this host advertises itself on and the IPv6 Internet: the kernel forwards it, and nothing
//! translates it.

use super::super::facts::REMOTE6;
use super::super::trial_packets::{packet_too_big, tcp6};
use super::{HTTPS, PathRule, Paths, TRIED, path};
use sixway_dataplane::parse::{ACK, SYN};
use sixway_wire::Prefix6;
use std::net::Ipv6Addr;

impl Paths<'_> {
    /// Both ways, with an error from the Internet. What leaves by the device is a tunnel's, and has paths of its own.
    pub(super) fn native(&mut self) {
        let Some(uplink) = self.native_uplink() else { return };
        self.plan.routes.push((format!("{REMOTE6}/128"), uplink.clone()));
        for (host, lan) in self.native_hosts() {
            self.plan.routes.push((format!("{host}/128"), lan.clone()));
            let mark = self.next();
            let first = (host, mark);
            let about = tcp6(mark, first, (REMOTE6, HTTPS), SYN);
            let outward =
                self.try_path(path(&lan, &uplink, true, ""), &lan, Some(&uplink), mark, about.clone());
            let mark = self.next();
            // An answer of the same connection, which is known only if that went out.
            let back = tcp6(mark, (REMOTE6, HTTPS), first, SYN | ACK);
            let rule = PathRule { within: Some(outward), ..path(&uplink, &lan, true, "").only_answers() };
            let within = self.try_path(rule, &uplink, Some(&lan), mark, back);
            let mark = self.next();
            let error = packet_too_big(mark, (REMOTE6, host), &about);
            let rule = path(&uplink, &lan, true, "");
            let rule = rule.only_errors("Packet Too Big", "icmpv6 type packet-too-big", within);
            self.try_path(rule, &uplink, Some(&lan), mark, error);
        }
    }

    /// The interface by which it leaves, if that is not the gateway's device. What is translated by NPTv6 takes other ways.
    pub(super) fn native_uplink(&self) -> Option<String> {
        let is_translated = self.config.others.all().into_iter().any(|it| it.inside_sources().is_some());
        let hop = self.facts.uplink6.as_ref().filter(|hop| !is_translated && hop.interface != self.device)?;
        Some(hop.interface.clone())
    }

    /// A host of each LAN that is advertised this host as a router, in its first global prefix.
    pub(super) fn native_hosts(&self) -> Vec<(Ipv6Addr, String)> {
        let Some(uplink) = self.native_uplink() else { return Vec::new() };
        let links = self.config.router_advertisements.iter().filter(|it| !it.router_lifetime.is_zero());
        let hosts = links.filter_map(|it| {
            let lan = it.interface.clone().filter(|lan| *lan != uplink)?;
            let prefix = it.prefixes.iter().filter_map(|one| one.prefix).find(is_global)?;
            Some((Ipv6Addr::from_bits(prefix.address().to_bits() | 0x5157), lan))
        });
        hosts.take(TRIED).collect()
    }

    /// Its interfaces.
    pub(super) fn native_links(&self) -> Vec<String> {
        let hosts = self.native_hosts();
        let uplink = self.native_uplink().filter(|_| !hosts.is_empty());
        hosts.into_iter().map(|(_, lan)| lan).chain(uplink).collect()
    }
}

/// RFC 4291 §2.4: 2000::/3 is what the IPv6 Internet routes.
fn is_global(prefix: &Prefix6) -> bool {
    prefix.address().to_bits() >> 125 == 1
}
