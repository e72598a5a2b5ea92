//! The settings of a [`Resolver`](super::Resolver).

use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A domain name in wire form (RFC 1035 §3.1), without compression, in lower case, its root label included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wire(pub Box<[u8]>);

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

/// An exception. All that is not empty must match; of all rules, the first that matches decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Clients within these IPv6 prefixes, or …
    pub clients6: Vec<Prefix6>,
    /// … within these IPv4 prefixes; both empty: all clients.
    pub clients4: Vec<Prefix4>,
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

/// What becomes of PTR queries for addresses within our prefixes (RFC 6147 §5.3.1).
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

/// A key that is believed in without proof (RFC 4033 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The zone.
    pub zone: Wire,
    /// Its key.
    pub key: AnchorKey,
}

/// A trust anchor's key, or its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorKey {
    /// RDATA of a DS record (RFC 4034 §5.1).
    Ds(Box<[u8]>),
    /// RDATA of a DNSKEY record (RFC 4034 §2.1).
    Dnskey(Box<[u8]>),
}

/// DNSSEC (RFC 6147 §5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dnssec {
    /// Answers are validated here.
    pub validate: bool,
    /// What is believed in at the start.
    pub anchors: Vec<Anchor>,
    /// AD of an upstream counts as a validation.
    pub trust_upstream: bool,
    /// Names at and below which nothing is validated (RFC 7646).
    pub insecure: Vec<Wire>,
    /// CD=1, DO=0.
    pub checking_disabled: CheckingDisabled,
    /// CD=0, DO=1.
    pub dnssec_ok: DnssecOk,
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
    /// Queries a second of one client (a /64 or an IPv4 address), and how many at the same time; `None`: any number.
    pub per_client: Option<(u32, u32)>,
    /// The largest answer by UDP, in octets.
    pub udp_payload: u16,
    /// The longest time to live that is believed, in seconds.
    pub longest_ttl: u32,
    /// The longest that a negative answer is believed, in seconds (RFC 2308 §5).
    pub longest_negative_ttl: u32,
    /// A client's query is answered within this time.
    pub deadline: Duration,
}

/// What a resolver does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where questions go; at least one.
    pub upstreams: Vec<Upstream>,
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
    /// The TTL of what is made.
    pub synthesised_ttl: SynthesisedTtl,
    /// PTR queries for our prefixes.
    pub reverse: Reverse,
    /// `ipv4only.arpa` is answered here (RFC 8880 §7.1).
    pub local_ipv4only: bool,
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
