//! The settings of a [`Resolver`](super::Resolver).

pub use sixway_dnssec::{Anchor, AnchorKey, Wire};

use super::cookie::CookieSecret;
use super::hosts::Hosts;
use super::name::is_within;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// An upstream, as far as it matters here; where it is, the gateway knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// It is queried for these names and names below them only; empty: for all names without an upstream of their own. The longest match decides.
    pub names: Vec<Wire>,
    /// Queried by datagrams first, and by a stream when a reply is truncated; else by its stream only.
    pub datagrams: bool,
}

/// Which clients may query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// IPv4 clients within these.
    pub v4: Vec<Prefix4>,
    /// IPv6 clients within these.
    pub v6: Vec<Prefix6>,
    /// This host's IPv4 addresses.
    pub host4: Vec<Ipv4Addr>,
}

/// Whether AAAA records are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synthesis {
    /// Where there is no usable AAAA record.
    #[default]
    Normal,
    /// Never.
    Never,
    /// From each A record; existing AAAA records are ignored.
    Always,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// An exception. All that is not empty must match; of all rules, the first that matches decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Clients within these IPv6 prefixes, or …
    pub clients6: Vec<Prefix6>,
    /// … within these IPv4 prefixes; both empty: all clients.
    pub clients4: Vec<Prefix4>,
    /// Clients whose queries come over this version of IP; `None`: over either. A client that queries over IPv4 has IPv4.
    pub over: Option<Family>,
    /// Names at or below these; empty: all names.
    pub names: Vec<Wire>,
    /// A records with addresses within these; empty: all. A rule with addresses is judged for each A record.
    pub addresses: Vec<Prefix4>,
    /// Whether AAAA records are made.
    pub synthesis: Synthesis,
    /// With these prefixes, one record each; empty: the settings'.
    pub prefixes: Vec<Rfc6052>,
    /// A records are not given out: the answer to a query for them is empty.
    pub hide_a: bool,
}

/// How long AAAA records that are made live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynthesisedTtl {
    /// No longer than the A record and the "no" for AAAA (RFC 6147 §5.1.7).
    #[default]
    Negative,
    /// As long as the A record; after a failure of AAAA 600 s at most, since that is soon over.
    A,
}

/// The handling of PTR queries for addresses within our prefixes (RFC 6147 §5.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverse {
    /// They are forwarded as they are.
    Off,
    /// A CNAME record leads to the name under in-addr.arpa: the RFC's second option.
    Cname {
        /// The CNAME's.
        ttl: u32,
    },
    /// The records of the name under in-addr.arpa, as if they were at the queried name.
    Rewrite,
    /// This name for every address: the RFC's first option.
    Name {
        /// The name.
        name: Wire,
        /// The record's.
        ttl: u32,
    },
}

/// The answer to a query with CD=1 and DO=0, which RFC 6147 §5.5 does not cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckingDisabled {
    /// Synthesis of what was not validated.
    #[default]
    Synthesise,
    /// The upstream's answer, unchanged.
    PassOn,
}

/// What a query with CD=0 and DO=1 gets (RFC 6147 §5.5 case 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnssecOk {
    /// Synthesis, with AD if all of it is secure.
    #[default]
    Synthesise,
    /// The upstream's answer with its proofs, where it is secure.
    PassOn,
}

/// Where queries for special-use names, and for reverse names of addresses that are not global, are answered (RFC 6761, RFC 6303).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialNames {
    /// The resolver itself: they do not exist, unless an upstream is responsible for them.
    #[default]
    Local,
    /// The upstreams, as for any name.
    Upstream,
}

/// What a query with CD=1 and DO=1 gets (RFC 6147 §5.5 case 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidatingClients {
    /// The upstream's answer.
    #[default]
    Untouched,
    /// The same, but synthesis where both answers are proven to be unsigned: there the client has nothing to validate.
    Unsigned,
}

/// By what a designated resolver is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesignatedTransport {
    /// TLS.
    Tls,
    /// HTTPS, at this path, a URI template (RFC 9461 §5).
    Https(Box<str>),
}

/// Where this DNS64 is asked by TLS or HTTPS (RFC 9462).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Designated {
    /// The name in its certificate.
    pub name: Wire,
    /// By what.
    pub transport: DesignatedTransport,
    /// At this port.
    pub port: u16,
    /// At these addresses; none: at those of the name.
    pub v4: Vec<Ipv4Addr>,
    /// The same, of IPv6.
    pub v6: Vec<Ipv6Addr>,
}

/// DNSSEC (RFC 6147 §5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dnssec {
    /// Answers are validated here.
    pub validate: bool,
    /// The initial trust anchors.
    pub anchors: Vec<Anchor>,
    /// AD of an upstream counts as a validation.
    pub trust_upstream: bool,
    /// Names at and below which nothing is validated (RFC 7646).
    pub insecure: Vec<Wire>,
    /// CD=1, DO=0.
    pub checking_disabled: CheckingDisabled,
    /// CD=0, DO=1.
    pub dnssec_ok: DnssecOk,
    /// CD=1, DO=1.
    pub validating_clients: ValidatingClients,
    /// AD is set for clients that set AD and not DO (RFC 6840 §5.8); against RFC 6147 §5.5 case 1.
    pub ad_without_do: bool,
}

/// Answers from entries that have expired (RFC 8767).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// How long after its expiry an entry may still be used.
    pub longest: Duration,
    /// How long a client waits for a fresh one first (RFC 8767 §5: 1.8 s).
    pub patience: Duration,
    /// The TTL of what is stale (RFC 8767 §4: 30 s).
    pub ttl: u32,
}

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of the cache.
    pub cache: usize,
    /// Clients' queries that wait.
    pub waiting: usize,
    /// Queries a second of one subscriber, and how many at the same time; `None`: any number.
    pub per_client: Option<(u32, u32)>,
    /// The largest answer by UDP, in octets.
    pub udp_payload: u16,
    /// The maximum TTL, in seconds.
    pub longest_ttl: u32,
    /// The maximum TTL of a negative answer, in seconds (RFC 2308 §5).
    pub longest_negative_ttl: u32,
    /// Questions to upstreams that are open.
    pub upstream_questions: usize,
    /// IPv6 clients with this number of first bits in common are one subscriber's.
    pub client_prefix_length: u8,
    /// A client's query is answered within this time.
    pub deadline: Duration,
}

/// What a resolver does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where questions go; at least one.
    pub upstreams: Vec<Upstream>,
    /// What the upstreams are called in extended errors, in the same order; where that is missing, "the upstream".
    pub upstream_labels: Vec<Box<str>>,
    /// Pref64::/n, one synthesised record each; at least one.
    pub prefixes: Vec<Rfc6052>,
    /// Exceptions.
    pub rules: Vec<Rule>,
    /// Which clients may query.
    pub access: Access,
    /// AAAA records within these count as absent (RFC 6147 §5.1.4).
    pub exclude: Vec<Prefix6>,
    /// IPv4 addresses that are not embedded in a prefix: its translator refuses them.
    pub exclude4: Vec<(Prefix6, Vec<Prefix4>)>,
    /// Whether no AAAA record is synthesised from private IPv4 addresses, nor from this host's: a guard against DNS rebinding.
    pub exclude_private: bool,
    /// Whether AAAA records are synthesised from reserved addresses, 240.0.0.0/4.
    pub synthesise_reserved: bool,
    /// The TTL of what is made.
    pub synthesised_ttl: SynthesisedTtl,
    /// PTR queries for our prefixes.
    pub reverse: Reverse,
    /// `ipv4only.arpa` is answered here (RFC 8880 §7.1).
    pub local_ipv4only: bool,
    /// Names of special use.
    pub special_names: SpecialNames,
    /// Records of this network.
    pub hosts: Arc<Hosts>,
    /// What `_dns.resolver.arpa` leads to, the best first.
    pub designated: Vec<Designated>,
    /// Secrets of DNS cookies: the first is used for new ones, all are accepted. Empty: a random one of this server.
    pub cookie_secrets: Vec<CookieSecret>,
    /// How long a client's stream may be idle, as it learns (RFC 7828); `None`: it learns nothing.
    pub stream_idle: Option<Duration>,
    /// Query AAAA and A in parallel (RFC 6147 §5.1.8); never where answers are validated.
    pub parallel: bool,
    /// DNSSEC.
    pub dnssec: Dnssec,
    /// Serving stale answers; `None`: disabled.
    pub stale: Option<Stale>,
    /// Prefetch: entries that are used shortly before they expire are refreshed.
    pub prefetch: bool,
    /// QTYPE=ANY gets one record (RFC 8482 §4.2).
    pub minimal_any: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Settings {
    /// The cause of this failure, in words.
    pub(super) fn blames(&self, upstream: usize, reply: &[u8]) -> Box<str> {
        let rcode = match reply.get(3).map_or(0, |octet| octet & 15) {
            1 => "FORMERR",
            2 => "SERVFAIL",
            4 => "NOTIMP",
            5 => "REFUSED",
            _ => "an error",
        };
        match self.upstream_labels.get(upstream) {
            Some(label) => format!("upstream {label} said {rcode}").into(),
            None => format!("the upstream said {rcode}").into(),
        }
    }

    /// Octets of the name of the zone that this upstream is responsible for, where the question has this name.
    pub(super) fn zone(&self, upstream: usize, name: &[u8]) -> u8 {
        let names = self.upstreams.get(upstream).into_iter().flat_map(|upstream| &upstream.names);
        let longest = names.map(|zone| &zone.0).filter(|zone| is_within(name, zone)).map(|zone| zone.len());
        longest.max().and_then(|octets| u8::try_from(octets).ok()).unwrap_or(1)
    }
}
