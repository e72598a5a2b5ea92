//! The settings of a resolver, from the configuration.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sixway_control::dns64::{self as control, Access, Anchor, Limits, Settings};

use super::bounds::Stale;
use super::dnssec::{CheckingDisabled, Dnssec, DnssecOk, ValidatingClients};
use super::domain_name::Name;
use super::reverse::Reverse;
use super::rule::{ARecords, Over, Rule, Synthesis};
use super::section::{Dns64, Ipv4OnlyArpa, SpecialNames, SynthesisedTtl};
use super::upstream::{Transport, Upstream};
use crate::host::HostAddress;
use crate::surroundings::Surroundings;

/// RFC 8767 §5: how long a client waits before it gets a stale answer.
const STALE_ANSWER_CLIENT_TIMEOUT: Duration = Duration::from_millis(1_800);

/// RFC 8767 §4: the TTL of stale records, in seconds.
const STALE_ANSWER_TTL: u32 = 30;

/// How long a client's stream may be idle (RFC 7766 §6.2.3); clients are informed of it (RFC 7828).
const STREAM_IDLE: Duration = Duration::from_secs(30);

/// Servers in an advertisement.
const MOST_SERVERS: usize = 8;

/// Every query has an answer within this time.
const DEADLINE: Duration = Duration::from_secs(5);

impl Dns64 {
    /// The addresses of this DNS64 for hosts on an interface, by UDP at the usual port, for router advertisements (RFC 8106).
    pub(crate) fn servers_on(&self, interface: &str, now: &Surroundings) -> Vec<Ipv6Addr> {
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
    pub(crate) fn interfaces<'a>(&self, addresses: &'a [HostAddress]) -> Vec<&'a str> {
        let heard = |own: &&HostAddress| {
            let any = |it: SocketAddr| it.ip().is_unspecified() && it.is_ipv6() == own.address.is_ipv6();
            self.listening.all().any(|it| it.ip() == own.address || any(it))
        };
        let mut names: Vec<&str> = addresses.iter().filter(heard).map(|own| &*own.interface).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn settings(&self, access: Access, anchors: Vec<Anchor>) -> Settings {
        let reverse_ttl = seconds(self.reverse_ttl);
        Settings {
            upstreams: self.upstreams.iter().map(Upstream::control).collect(),
            upstream_labels: self.upstreams.iter().map(|it| it.address.ip().to_string().into()).collect(),
            prefixes: self.prefixes.clone(),
            rules: self.rules.iter().map(Rule::control).collect(),
            access,
            exclude: self.exclude.clone(),
            exclude4: self.exclude4.clone(),
            exclude_private: self.exclude_private,
            synthesise_reserved: self.synthesise_reserved,
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
            special_names: match self.special_names {
                SpecialNames::Local => control::SpecialNames::Local,
                SpecialNames::Upstream => control::SpecialNames::Upstream,
            },
            hosts: Arc::default(),
            designated: self.clients.designated(&self.listening),
            cookie_secrets: self.clients.secrets.clone(),
            stream_idle: Some(STREAM_IDLE),
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
            // Not divided: all of a client's queries may come to one thread.
            per_client: bounds.queries_per_second.zip(bounds.burst),
            udp_payload: bounds.udp_payload,
            longest_ttl: seconds(bounds.max_ttl),
            longest_negative_ttl: seconds(bounds.max_negative_ttl),
            upstream_questions: bounds.upstream_queries.div_ceil(threads) as usize,
            client_prefix_length: bounds.client_prefix_length,
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
            over: self.over.map(|over| match over {
                Over::Ipv4 => control::Family::Ipv4,
                Over::Ipv6 => control::Family::Ipv6,
            }),
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
            validating_clients: match self.validating_clients {
                ValidatingClients::Untouched => control::ValidatingClients::Untouched,
                ValidatingClients::Unsigned => control::ValidatingClients::Unsigned,
            },
            ad_without_do: self.ad_without_do,
        }
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
