//! The paths of the ICMP errors that the gateway sends itself: their source is its own address, which a rule for the pool or for the hosts'
//! addresses does not include. Without these errors, path MTU discovery through the gateway fails.

use super::super::trial_packets::{fragmentation_needed, packet_too_big};
use super::{PathRule, Paths, path};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Paths<'_> {
    /// Fragmentation Needed of the gateway to the sender of `about`, a packet that came in by the interface `to`. `within`: the path of
    /// others' packets in this direction.
    pub(super) fn own_error4(
        &mut self,
        (from, to, suffix): (&str, &str, &str),
        sender: Ipv4Addr,
        about: &[u8],
        within: usize,
    ) {
        let Some(own) = self.config.ipv4_address() else { return };
        let mark = self.next();
        let error = fragmentation_needed(mark, (own, sender), about);
        let rule = path(from, to, false, suffix).only_own_errors(own.into(), within);
        self.try_path(rule, from, Some(to), mark, error);
    }

    /// Packet Too Big, in the same way.
    pub(super) fn own_error6(
        &mut self,
        (from, to, suffix): (&str, &str, &str),
        sender: Ipv6Addr,
        about: &[u8],
        within: usize,
    ) {
        let Some(own) = self.config.gateway.ipv6_address else { return };
        let mark = self.next();
        let error = packet_too_big(mark, (own, sender), about);
        let rule = path(from, to, true, suffix).only_own_errors(own.into(), within);
        self.try_path(rule, from, Some(to), mark, error);
    }
}

impl PathRule {
    fn only_own_errors(self, own: IpAddr, within: usize) -> Self {
        let (what, of_source, of_errors) = match own {
            IpAddr::V4(_) => ("Fragmentation Needed", "ip saddr", "icmp type destination-unreachable"),
            IpAddr::V6(_) => ("Packet Too Big", "ip6 saddr", "icmpv6 type packet-too-big"),
        };
        let rule = self.only(&format!("{of_source} {own}"), &format!("-s {own}"));
        rule.only_errors(&format!("the gateway's own {what}"), of_errors, within)
    }
}
