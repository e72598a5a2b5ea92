//! NATs of eight kinds, as RFC 6081 §3 and RFC 4787 tell them apart. Slow and obvious.

use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_control::Instant;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;

/// A kind of NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// None: hosts have public addresses.
    Absent,
    /// One mapping for all destinations; anybody reaches it.
    Cone,
    /// One mapping for all destinations; addresses reach it that were sent to.
    AddressRestricted,
    /// One mapping for all destinations; endpoints reach it that were sent to.
    PortRestricted,
    /// A mapping for each destination address.
    AddressSymmetric,
    /// A mapping for each destination endpoint.
    PortSymmetric,
    /// The same; the first mapping of a port has its number.
    PortPreservingSymmetric,
    /// The same; each new mapping has the next number.
    SequentialSymmetric,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Absent,
        Self::Cone,
        Self::AddressRestricted,
        Self::PortRestricted,
        Self::AddressSymmetric,
        Self::PortSymmetric,
        Self::PortPreservingSymmetric,
        Self::SequentialSymmetric,
    ];

    pub const fn is_symmetric(self) -> bool {
        match self {
            Self::AddressSymmetric
            | Self::PortSymmetric
            | Self::PortPreservingSymmetric
            | Self::SequentialSymmetric => true,
            Self::Absent | Self::Cone | Self::AddressRestricted | Self::PortRestricted => false,
        }
    }

    /// What of a destination belongs to a mapping.
    const fn key(self, to: Endpoint4) -> (u32, u16) {
        match self {
            Self::Absent | Self::Cone | Self::AddressRestricted | Self::PortRestricted => (0, 0),
            Self::AddressSymmetric => (to.address.to_bits(), 0),
            Self::PortSymmetric | Self::PortPreservingSymmetric | Self::SequentialSymmetric => {
                (to.address.to_bits(), to.port)
            }
        }
    }

    /// Whether one who was sent to at `sent` may answer from `from`.
    fn admits(self, sent: Endpoint4, from: Endpoint4) -> bool {
        match self {
            Self::Absent | Self::Cone => true,
            Self::AddressRestricted | Self::AddressSymmetric => sent.address == from.address,
            Self::PortRestricted
            | Self::PortSymmetric
            | Self::PortPreservingSymmetric
            | Self::SequentialSymmetric => sent == from,
        }
    }
}

/// The options of a NAT.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub kind: Kind,
    /// Whether the local port is taken if it is free, also by kinds that are not named after it.
    pub preserves_ports: bool,
    /// Whether hosts behind it reach each other by their mapped endpoints.
    pub hairpins: bool,
    /// After how long without a datagram from inside a mapping ends.
    pub timeout: Duration,
}

struct Mapping {
    inside: Endpoint4,
    outside: u16,
    /// The destinations of its packets.
    sent: Vec<Endpoint4>,
    last: Instant,
}

/// A NAT with one public address.
pub struct Nat {
    pub options: Options,
    pub outside: Ipv4Addr,
    mappings: BTreeMap<(Endpoint4, (u32, u16)), Mapping>,
    next: u16,
    random: u64,
}

impl Nat {
    pub fn new(options: Options, outside: Ipv4Addr, seed: u64) -> Self {
        let next = 20_000 + (seed % 20_000) as u16;
        Self { options, outside, mappings: BTreeMap::new(), next, random: seed }
    }

    /// Forgets everything, and has another address perhaps.
    pub fn reboot(&mut self, outside: Option<Ipv4Addr>) {
        self.mappings.clear();
        self.next = self.next.wrapping_add(1_000);
        self.outside = outside.unwrap_or(self.outside);
    }

    fn expire(&mut self, now: Instant) {
        let timeout = self.options.timeout;
        self.mappings.retain(|_, mapping| now.since(mapping.last) < timeout);
    }

    fn free_port(&mut self, inside: u16) -> u16 {
        let is_free =
            |port: u16| port >= 1_024 && self.mappings.values().all(|mapping| mapping.outside != port);
        let preserves = self.options.preserves_ports || self.options.kind == Kind::PortPreservingSymmetric;
        if preserves && is_free(inside) {
            return inside;
        }
        let mut port = self.next;
        let mut random = self.random;
        loop {
            if self.options.kind != Kind::SequentialSymmetric {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                port = (random >> 48) as u16;
            }
            if is_free(port) {
                (self.next, self.random) = (port.wrapping_add(1), random);
                return port;
            }
            port = port.wrapping_add(1);
        }
    }

    /// A datagram from inside: its source outside.
    pub fn outbound(&mut self, inside: Endpoint4, to: Endpoint4, now: Instant) -> Endpoint4 {
        self.expire(now);
        let key = (inside, self.options.kind.key(to));
        if !self.mappings.contains_key(&key) {
            let outside = self.free_port(inside.port);
            self.mappings.insert(key, Mapping { inside, outside, sent: Vec::new(), last: now });
        }
        let mapping = self.mappings.get_mut(&key).unwrap();
        mapping.last = now;
        if !mapping.sent.contains(&to) {
            mapping.sent.push(to);
        }
        Endpoint4::new(self.outside, mapping.outside)
    }

    /// A datagram from outside: its destination inside, unless it is dropped.
    pub fn inbound(&mut self, from: Endpoint4, port: u16, now: Instant) -> Option<Endpoint4> {
        self.expire(now);
        let kind = self.options.kind;
        let mapping = self.mappings.values().find(|mapping| mapping.outside == port)?;
        mapping.sent.iter().any(|sent| kind.admits(*sent, from)).then_some(mapping.inside)
    }
}
