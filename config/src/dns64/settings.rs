//! From the configuration to what a resolver is told.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sixway_control::dns64::{self as control, Access, Anchor, Limits, Settings};
use sixway_wire::{Prefix4, Prefix6};

use super::super::host::HostAddress;
use super::super::load::Config;
use super::super::surroundings::Surroundings;
use super::bounds::Stale;
use super::dnssec::{CheckingDisabled, Dnssec, DnssecOk};
use super::domain_name::Name;
use super::reverse::Reverse;
use super::rule::{ARecords, Rule, Synthesis};
use super::upstream::{Transport, Upstream};
use super::{Dns64, Ipv4OnlyArpa, SynthesisedTtl};

/// RFC 8767 §5: so long a client waits before it gets what is stale.
const STALE_ANSWER_CLIENT_TIMEOUT: Duration = Duration::from_millis(1_800);

/// RFC 8767 §4: the TTL of what is stale, in seconds.
const STALE_ANSWER_TTL: u32 = 30;

/// Servers that an advertisement tells of.
const MOST_SERVERS: usize = 8;

/// Every query has an answer within this time.
const DEADLINE: Duration = Duration::from_secs(5);

impl Config {
    /// What each of the DNS64's threads is told; memory and waiting queries are shared out to them. `access` is
    /// [`Config::dns64_access`], `anchors` what is believed at the start: [`Dnssec::anchors`] and what has come since.
    pub fn dns64_settings(&self, access: Access, anchors: Vec<Anchor>) -> Option<Settings> {
        self.dns64.as_ref().map(|dns64| dns64.settings(access, anchors))
    }

    /// Who may ask the DNS64, with the addresses of the moment: as written, else the networks of the listening interfaces, the prefixes
    /// that hosts there are told, link-local addresses and this host itself.
    pub fn dns64_access(&self, addresses: &[HostAddress], now: &Surroundings) -> Access {
        let Some(dns64) = &self.dns64 else { return Access::default() };
        if let Some(allow) = &dns64.allow {
            return Access { v4: allow.v4.clone(), v6: allow.v6.clone() };
        }
        let mut access = Access {
            v4: vec![Prefix4::holding([127, 0, 0, 0].into(), 8)],
            v6: vec![
                Prefix6::holding(Ipv6Addr::LOCALHOST, 128),
                Prefix6::holding(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
            ],
        };
        let interfaces = dns64.interfaces(addresses);
        for own in addresses.iter().filter(|own| interfaces.contains(&&*own.interface)) {
            match own.address {
                // A network of length 0 is not known.
                _ if own.length == 0 => {}
                IpAddr::V4(address) => access.v4.push(Prefix4::holding(address, own.length)),
                IpAddr::V6(address) => access.v6.push(Prefix6::holding(address, own.length)),
            }
        }
        for it in &self.router_advertisements {
            if it.interface.as_deref().is_some_and(|name| interfaces.contains(&name)) {
                access.v6.extend(self.advertised(it, now).prefixes.iter().map(|row| row.prefix));
            }
        }
        access.v4.sort_unstable();
        access.v4.dedup();
        access.v6.sort_unstable();
        access.v6.dedup();
        access
    }
}

impl Dns64 {
    /// Where hosts on an interface find this DNS64, by UDP at the usual port: what router advertisements tell them (RFC 8106).
    pub(in super::super) fn servers_on(&self, interface: &str, now: &Surroundings) -> Vec<Ipv6Addr> {
        let here = || now.ipv6_of(interface);
        let mut servers: Vec<Ipv6Addr> = Vec::new();
        for it in self.listening.listen.iter().filter(|it| it.port() == 53) {
            let found = match it.ip() {
                IpAddr::V4(_) => None,
                IpAddr::V6(any) if any.is_unspecified() => {
                    here().find(|address| !address.is_unicast_link_local()).or_else(|| here().next())
                }
                IpAddr::V6(address) => here().find(|own| *own == address),
            };
            servers.extend(found.filter(|found| !servers.contains(found) && !found.is_loopback()));
        }
        servers.truncate(MOST_SERVERS);
        servers
    }

    /// The interfaces that have the listening addresses; with one that is unspecified, all of its family.
    pub(super) fn interfaces<'a>(&self, addresses: &'a [HostAddress]) -> Vec<&'a str> {
        let heard = |own: &&HostAddress| {
            let any = |it: SocketAddr| it.ip().is_unspecified() && it.is_ipv6() == own.address.is_ipv6();
            self.listening.all().any(|it| it.ip() == own.address || any(it))
        };
        let mut names: Vec<&str> = addresses.iter().filter(heard).map(|own| &*own.interface).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn settings(&self, access: Access, anchors: Vec<Anchor>) -> Settings {
        let reverse_ttl = seconds(self.reverse_ttl);
        Settings {
            upstreams: self.upstreams.iter().map(Upstream::control).collect(),
            prefixes: self.prefixes.clone(),
            rules: self.rules.iter().map(Rule::control).collect(),
            access,
            exclude: self.exclude.clone(),
            synthesised_ttl: match self.synthesised_ttl {
                SynthesisedTtl::Negative => control::SynthesisedTtl::Negative,
                SynthesisedTtl::A => control::SynthesisedTtl::A,
            },
            reverse: match &self.reverse {
                Reverse::Off => control::Reverse::Off,
                Reverse::Cname => control::Reverse::Cname { ttl: reverse_ttl },
                Reverse::Ptr => control::Reverse::Rewrite,
                Reverse::Name(name) => control::Reverse::Name { name: name.wire(), ttl: reverse_ttl },
            },
            local_ipv4only: self.ipv4only_arpa == Ipv4OnlyArpa::Local,
            parallel: self.parallel && !self.dnssec.validate,
            dnssec: self.dnssec.control(anchors),
            stale: match self.bounds.stale {
                Stale::Off => None,
                Stale::For(longest) => Some(control::Stale {
                    longest,
                    patience: STALE_ANSWER_CLIENT_TIMEOUT,
                    ttl: STALE_ANSWER_TTL,
                }),
            },
            prefetch: self.bounds.prefetch,
            minimal_any: self.minimal_any,
            limits: self.limits(),
        }
    }

    fn limits(&self) -> Limits {
        let bounds = &self.bounds;
        let threads = u32::from(bounds.threads.max(1));
        Limits {
            cache: usize::try_from(bounds.cache / u64::from(threads)).unwrap_or(usize::MAX),
            waiting: bounds.waiting.div_ceil(threads) as usize,
            // Not shared out: all of a client's queries may come to one thread.
            per_client: bounds.queries_per_second.zip(bounds.burst),
            udp_payload: bounds.udp_payload,
            longest_ttl: seconds(bounds.max_ttl),
            longest_negative_ttl: seconds(bounds.max_negative_ttl),
            deadline: DEADLINE,
        }
    }
}

impl Upstream {
    fn control(&self) -> control::Upstream {
        control::Upstream {
            names: self.names.iter().map(Name::wire).collect(),
            datagrams: self.transport == Transport::Udp,
        }
    }
}

impl Rule {
    fn control(&self) -> control::Rule {
        let clients = self.clients.clone().unwrap_or_default();
        control::Rule {
            clients6: clients.v6,
            clients4: clients.v4,
            names: self.names.iter().map(Name::wire).collect(),
            addresses: self.addresses.clone(),
            synthesis: match self.synthesis {
                Synthesis::Normal => control::Synthesis::Normal,
                Synthesis::Never => control::Synthesis::Never,
                Synthesis::Always => control::Synthesis::Always,
            },
            prefixes: self.prefixes.clone(),
            hide_a: self.a_records == ARecords::Hide,
        }
    }
}

impl Dnssec {
    fn control(&self, anchors: Vec<Anchor>) -> control::Dnssec {
        control::Dnssec {
            validate: self.validate,
            anchors,
            trust_upstream: self.trust_upstream_ad && !self.validate,
            insecure: self.insecure.iter().map(Name::wire).collect(),
            checking_disabled: match self.checking_disabled {
                CheckingDisabled::Synthesise => control::CheckingDisabled::Synthesise,
                CheckingDisabled::PassOn => control::CheckingDisabled::PassOn,
            },
            dnssec_ok: match self.dnssec_ok {
                DnssecOk::Synthesise => control::DnssecOk::Synthesise,
                DnssecOk::PassOn => control::DnssecOk::PassOn,
            },
            ad_without_do: self.ad_without_do,
        }
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
