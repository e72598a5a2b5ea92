//! The keys of a NAT that bound its tables, `max_sessions` and so on, and what one subscriber may have.

use crate::fault::Report;
use crate::pool::Pool;
use crate::port_blocks::{Given, PortBlocks};
use crate::section::Reader;
use crate::text;
use crate::translator_prefix::read_prefixes4;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use sixway_dataplane::nat::{Deterministic, NatProtocol, StateLimits, SubscriberLimits, SubscriberPolicy};
use sixway_wire::{Prefix4, Prefix6};
use std::fmt::Display;
use std::sync::Arc;

pub(crate) fn read(section: &Reader, report: &mut Report) -> Option<StateLimits> {
    let mut read = |key| section.value(key, report).and_then(|v| v.integer(report));
    let (sessions, bindings) = (read("max_sessions"), read("max_bindings"));
    let quarantined_ports = read("max_quarantined_ports");
    let of_subscriber = SUBSCRIBER.map(|(key, _)| read(key));
    let mut limits = SubscriberLimits::NONE;
    for ((_, place), limit) in SUBSCRIBER.into_iter().zip(of_subscriber) {
        *place(&mut limits) = limit?;
    }
    Some(StateLimits {
        sessions: sessions?,
        bindings: bindings?,
        quarantined_ports: quarantined_ports?,
        of_subscriber: limits,
    })
}

/// Where a limit is.
type Place = fn(&mut SubscriberLimits) -> &mut u32;

/// The keys of a subscriber's limits, and where each is.
const SUBSCRIBER: [(&str, Place); 7] = [
    ("max_bindings_per_subscriber", |limits| &mut limits.bindings),
    ("max_tcp_bindings_per_subscriber", |limits| &mut limits.bindings_of[NatProtocol::Tcp as usize]),
    ("max_udp_bindings_per_subscriber", |limits| &mut limits.bindings_of[NatProtocol::Udp as usize]),
    ("max_icmp_bindings_per_subscriber", |limits| &mut limits.bindings_of[NatProtocol::Icmp as usize]),
    ("max_sessions_per_subscriber", |limits| &mut limits.sessions),
    ("max_new_bindings_per_second", |limits| &mut limits.new_bindings_per_second),
    ("max_new_sessions_per_second", |limits| &mut limits.new_sessions_per_second),
];

/// With the names of the keys.
pub(crate) fn serialize<S: Serializer>(limits: &StateLimits, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("max_sessions", &limits.sessions)?;
    map.serialize_entry("max_bindings", &limits.bindings)?;
    map.serialize_entry("max_quarantined_ports", &limits.quarantined_ports)?;
    let mut of_subscriber = limits.of_subscriber;
    for (key, place) in SUBSCRIBER {
        map.serialize_entry(key, place(&mut of_subscriber))?;
    }
    map.end()
}

/// The prefix length of a subscriber, and the subscribers without limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(bound = "P: Display")]
pub struct Subscribers<P> {
    /// Length of a subscriber's prefix.
    #[serde(rename = "subscriber_prefix_length")]
    pub prefix_length: u8,
    /// Prefixes of subscribers without limits.
    #[serde(
        rename = "exempt_subscribers",
        serialize_with = "text::many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub exempt: Vec<P>,
    /// Destinations whose sessions do not count.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub exempt_destinations: Vec<Prefix4>,
    /// How they get port blocks.
    #[serde(flatten)]
    pub blocks: PortBlocks,
}

/// A prefix of inside hosts.
pub trait InsidePrefix: Copy + Display {
    /// The same of their addresses as IPv6 ones: those of IPv4 are mapped.
    fn mapped(self) -> Prefix6;

    /// The length of a prefix of such hosts, as that of an IPv6 one.
    fn mapped_length(length: u8) -> u8;
}

impl InsidePrefix for Prefix6 {
    fn mapped(self) -> Prefix6 {
        self
    }

    fn mapped_length(length: u8) -> u8 {
        length
    }
}

impl InsidePrefix for Prefix4 {
    fn mapped(self) -> Prefix6 {
        Prefix6::holding(self.address().to_ipv6_mapped(), Self::mapped_length(self.length()))
    }

    fn mapped_length(length: u8) -> u8 {
        96 + length
    }
}

impl<P: InsidePrefix> Subscribers<P> {
    /// Which block each subscriber has, with these prefixes of inside hosts and this pool; `None`: any.
    pub fn mapping(&self, inside: &[P], pool: Option<&Pool>) -> Option<Arc<Deterministic>> {
        let inside: Vec<Prefix6> = inside.iter().map(|prefix| prefix.mapped()).collect();
        let bits = P::mapped_length(self.prefix_length);
        self.blocks.deterministic(Given { inside: &inside, bits, pool })
    }

    /// `exempt` are the prefixes of `exempt_subscribers`.
    pub(crate) fn read(
        section: &Reader,
        exempt: Option<Vec<P>>,
        (inside, pool): (Option<Vec<Prefix6>>, Option<&Pool>),
        report: &mut Report,
    ) -> Option<Self> {
        let prefix_length = section.value("subscriber_prefix_length", report).and_then(|v| v.integer(report));
        if let (Some(bits), Some(exempt), Some(v)) =
            (prefix_length, &exempt, section.value("exempt_subscribers", report))
        {
            for prefix in exempt.iter().filter(|prefix| prefix.mapped().length() > P::mapped_length(bits)) {
                let what = format!(
                    "{prefix} is a part of a subscriber, whose prefix has a length of {bits}; write a prefix of {bits} bits or fewer, or a greater subscriber_prefix_length"
                );
                report.fault(&v.place, what);
            }
        }
        let exempt_destinations = read_prefixes4(section, "exempt_destinations", report);
        // What has a fault is not checked further.
        let is_known = inside.is_some() && prefix_length.is_some();
        let (inside, bits) = (inside.unwrap_or_default(), prefix_length.map_or(128, P::mapped_length));
        let given = Given { inside: &inside, bits, pool: pool.filter(|_| is_known) };
        let blocks = PortBlocks::read(section, given, report);
        Some(Self {
            prefix_length: prefix_length?,
            exempt: exempt?,
            exempt_destinations: exempt_destinations?,
            blocks: blocks?,
        })
    }

    pub(crate) fn engine(&self, inside: &[P], pool: Option<&Pool>) -> SubscriberPolicy<P> {
        let deterministic = self.mapping(inside, pool);
        SubscriberPolicy {
            blocks: self.blocks.engine(deterministic.as_deref()),
            deterministic,
            bits: self.prefix_length,
            exempt: self.exempt.clone(),
            exempt_destinations: self.exempt_destinations.clone(),
        }
    }
}
