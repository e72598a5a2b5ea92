//! The DNS64 compared with the other sections: who may query it, and what router advertisements say about it.

use std::net::{IpAddr, Ipv6Addr};

use crate::config::Config;
use crate::dns64::{Dns64, Transport};
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::router_advertisement::RouterAdvertisement;
use crate::section::Reader;
use crate::section::place_of;
use crate::surroundings::Surroundings;
use sixway_wire::Prefix6;

impl Config {
    /// Warns of what the DNS64 and the rest of the configuration say otherwise of one another. `advertisements` are the sections as written.
    pub(crate) fn check_dns64(
        &self,
        section: &Reader,
        advertisements: &[Reader],
        host: &HostFacts,
        report: &mut Report,
    ) {
        let Some(dns64) = &self.dns64 else { return };
        let now = Surroundings::of(&host.addresses);
        self.warn_of_foreign(section, host, &now, report);
        self.warn_of_few_clients(dns64, section, host, &now, report);
        dns64.warn_of_trust(section, report);
        dns64.warn_of_descriptors(section, host, report);
        dns64.warn_of_wide_networks(section, report);
        for (it, written) in self.router_advertisements.iter().zip(advertisements) {
            dns64.warn_of_other_prefix(it, &self.hosts_of(it, &now), written, report);
            self.warn_of_other_servers(it, written, &now, report);
            self.warn_of_refused_hosts(dns64, it, written, &now, report);
        }
    }

    /// Addresses to listen at that this host does not have, and is not given with what it advertises.
    fn warn_of_foreign(&self, section: &Reader, host: &HostFacts, now: &Surroundings, report: &mut Report) {
        if host.addresses.is_empty() {
            return;
        }
        let given = self.reach(now).link_addresses;
        let is_here = |address: IpAddr| {
            host.addresses.iter().any(|own| own.address == address)
                || given.iter().any(|own| own.address == address)
        };
        let own = [self.gateway.ipv4_address.map(IpAddr::V4), self.gateway.ipv6_address.map(IpAddr::V6)];
        let mut known = Report::default();
        for key in ["listen", "listen_tls", "listen_https"] {
            let items = section.value(key, &mut known).map(|value| value.items()).unwrap_or_default();
            for item in items {
                let Some(address) = item.socket_at(DNS, &mut known).map(|socket| socket.ip()) else {
                    continue;
                };
                if is_here(address) || address.is_unspecified() || address.is_loopback() {
                    continue;
                }
                let length = if address.is_ipv4() { 32 } else { 128 };
                let what = match own.contains(&Some(address)) {
                    true => "is the gateway's own address, which this host does not have; write an address of this host".to_owned(),
                    false => format!(
                        "is not configured on this host; the DNS64 binds it when it appears: ip address add {address}/{length} dev INTERFACE"
                    ),
                };
                report.warn(&item.place, format!("{address} {what}"));
            }
        }
    }

    /// Where only this host may send queries.
    fn warn_of_few_clients(
        &self,
        dns64: &Dns64,
        section: &Reader,
        host: &HostFacts,
        now: &Surroundings,
        report: &mut Report,
    ) {
        if dns64.allow.is_some() {
            return;
        }
        let key = format!("{}.allow", section.place().key).into();
        let place = Place { key, ..section.place().clone() };
        let access = self.dns64_access(&host.addresses, now);
        let single4 = access.v4.iter().all(|it| it.length() == 32 || it.address().is_loopback());
        let single6 = access.v6.iter().all(|it| it.length() == 128 || it.address().is_unicast_link_local());
        let found = !dns64.interfaces(&host.addresses).is_empty();
        if found && single4 && single6 {
            let what =
                "the networks of the listening addresses have no other hosts; write your clients' prefixes";
            report.warn(&place, format!("is not set, and only this host may query: {what}"));
        }
    }

    /// Hosts whose advertised DNS servers do not include the DNS64 on their link.
    fn warn_of_other_servers(
        &self,
        it: &RouterAdvertisement,
        written: &Reader,
        now: &Surroundings,
        report: &mut Report,
    ) {
        let (Some(told), servers) = (&it.rdnss, self.dns64_servers(it, now)) else { return };
        let Some(first) = servers.first().filter(|_| !told.is_empty()) else { return };
        let listened = |told: &Ipv6Addr| {
            self.dns64.as_ref().is_some_and(|dns64| dns64.listening.all().any(|at| at.ip() == *told))
        };
        if told.iter().any(listened) || told.contains(first) {
            return;
        }
        let what =
            "hosts that query other servers get no addresses for IPv4-only names; add it, or remove rdnss";
        report.warn(
            &place_of(written, "rdnss"),
            format!("leaves out {first}, where [dns64] listens on this link: {what}"),
        );
    }

    /// Hosts that are configured to query a DNS64 which refuses them.
    fn warn_of_refused_hosts(
        &self,
        dns64: &Dns64,
        it: &RouterAdvertisement,
        written: &Reader,
        now: &Surroundings,
        report: &mut Report,
    ) {
        let Some(allow) = &dns64.allow else { return };
        let told = self.advertised(it, now);
        if !told.dns_servers.iter().any(|told| dns64.listening.all().any(|at| at.ip() == *told)) {
            return;
        }
        for row in &told.prefixes {
            let held = allow.v6.iter().any(|p| p.length() <= row.prefix.length() && p.overlaps(row.prefix));
            if !held {
                let what = "hosts there are configured to query [dns64], which would refuse them; add it";
                let prefix = row.prefix;
                report.warn(
                    &place_of(written, "prefixes"),
                    format!("dns64.allow does not contain {prefix}: {what}"),
                );
            }
        }
    }
}

/// RFC 1035 §4.2.
const DNS: u16 = 53;
/// RFC 6177 §2: no site needs a prefix shorter than this one.
const SITE: u8 = 48;

/// File descriptors that are used for other things: sockets of tunnels, files.
const OTHER_DESCRIPTORS: u64 = 512;

impl Dns64 {
    /// More questions than the process may have sockets for: without a socket, a question of any client is refused.
    fn warn_of_descriptors(&self, section: &Reader, host: &HostFacts, report: &mut Report) {
        let connections = u64::from(self.connections.connections);
        let needed = 2 * u64::from(self.bounds.upstream_queries) + connections + OTHER_DESCRIPTORS;
        let Some(limit) = host.descriptors.filter(|limit| *limit < needed) else { return };
        let what = format!(
            "the process may open {limit} files (ulimit -Hn), and {needed} may be needed; raise that limit (LimitNOFILE of the service), or lower this"
        );
        report.warn(&place_of(section, "upstream_queries"), what);
    }

    /// Networks that are so large that they have customers, each with a prefix of its own: if that is shorter than /64, one customer is many clients.
    fn warn_of_wide_networks(&self, section: &Reader, report: &mut Report) {
        let mut quiet = Report::default();
        let length = section.value("client_prefix_length", &mut quiet);
        let is_wide = |prefix: &&Prefix6| {
            let address = prefix.address();
            let is_own = address.is_unique_local() || address.is_unicast_link_local();
            // There is another warning for a prefix that includes all clients.
            (1..SITE).contains(&prefix.length()) && !is_own
        };
        let wide = self.allow.iter().flat_map(|allow| &allow.v6).find(is_wide);
        let (Some(wide), false) = (wide, length.is_some_and(|it| it.is_written())) else { return };
        let what = "a customer with a /56 counts as 256 clients, with 256 shares and rates; write the prefix length of a customer, or 64";
        let message = format!("is not set, and allow has {wide}, which is larger than one site: {what}");
        report.warn(&place_of(section, "client_prefix_length"), message);
    }

    /// AD that an attacker on the path can set.
    fn warn_of_trust(&self, section: &Reader, report: &mut Report) {
        let open = |it: &Transport| !it.is_secured();
        let exposed =
            self.upstreams.iter().find(|it| open(&it.transport) && !it.endpoint().ip().is_loopback());
        let (true, Some(exposed)) = (self.dnssec.trust_upstream_ad && !self.dnssec.validate, exposed) else {
            return;
        };
        let key = format!("{}.dnssec.trust_upstream_ad", section.place().key).into();
        let (address, transport) = (exposed.address, exposed.transport.as_str());
        let what = "anyone on the path can set it (RFC 6840 §5.8); use TLS, or validate = true";
        let place = Place { key, ..section.place().clone() };
        report.warn(&place, format!("the AD bit of {address} is received over {transport}: {what}"));
    }
}
