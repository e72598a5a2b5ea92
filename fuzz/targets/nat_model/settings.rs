//! What a run of the model is about: the family inside, the limits, and how ports are given.

use super::model::{POOL, SECOND};
use sixway_dataplane::nat::{
    BlockPolicy, Deterministic, Filtering, Inside, Named, PoolConfig, SubscriberLimits,
};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The family inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv6: a NAT64.
    Six,
    /// IPv4: a NAT44.
    Four,
    /// IPv4 in softwires: an AFTR. A host is named by its B4; all of them have the same IPv4 address.
    Softwire,
}

impl Family {
    /// A host inside. The first and the third are of one subscriber.
    pub(crate) fn host(self, number: u8) -> Ipv6Addr {
        match self {
            Self::Six | Self::Softwire => {
                let subscriber = u128::from(number % 2) << 64;
                Ipv6Addr::from_bits((0x2001_0db8 << 96) + subscriber + u128::from(number) + 1)
            }
            Self::Four => Ipv4Addr::new(10, 0, number % 2, number + 1).to_ipv6_mapped(),
        }
    }

    /// An inside endpoint in IPv4.
    pub(crate) fn plain(self, inside: Endpoint6) -> Endpoint4 {
        let address = match self {
            Self::Six => Ipv4Addr::UNSPECIFIED,
            Self::Four => inside.address.to_ipv4_mapped().unwrap_or(Ipv4Addr::UNSPECIFIED),
            Self::Softwire => BEHIND_B4,
        };
        Endpoint4::new(address, inside.port)
    }

    /// How operators name an inside endpoint: the softwire, and the endpoint.
    pub(crate) fn named(self, inside: Endpoint6) -> Named {
        match self {
            Self::Six | Self::Four => Inside(inside).into(),
            Self::Softwire => Named {
                softwire: Some(inside.address),
                inside: Inside(Endpoint6::new(BEHIND_B4.to_ipv6_mapped(), inside.port)),
            },
        }
    }

    /// The prefixes of all hosts, as IPv6 prefixes.
    pub(crate) fn inside(self) -> Prefix6 {
        match self {
            Self::Six | Self::Softwire => Prefix6::holding(self.host(0), 63),
            Self::Four => Prefix6::holding(self.host(0), 96 + 23),
        }
    }

    /// The prefixes of all hosts of a NAT44.
    pub(crate) fn inside4() -> Prefix4 {
        Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 23)
    }

    /// Bits of a subscriber's prefix, of an IPv6 address or an IPv4 address.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Self::Six | Self::Softwire => 64,
            Self::Four => 24,
        }
    }

    /// The subscriber of a host.
    pub(crate) fn subscriber(self, host: Ipv6Addr) -> u128 {
        match self {
            Self::Six | Self::Softwire => host.to_bits() >> 64,
            Self::Four => host.to_bits() >> 8,
        }
    }
}

/// The address of each host behind a B4.
const BEHIND_B4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

/// How ports are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giving {
    /// Each for itself: a few on either side of 1024, so that each kind runs out now and then.
    Single,
    /// In blocks, this number for each subscriber at most, which are returned after this number of seconds.
    Blocks { most: u32, idle: u32 },
    /// One block for each subscriber, by its address.
    Deterministic,
}

/// Ports of a block.
pub(crate) const BLOCK: u16 = 64;

/// Of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub family: Family,
    pub filtering: Filtering,
    pub giving: Giving,
    pub limits: SubscriberLimits,
    /// Whether the subscriber of the second host is exempt from them.
    pub has_exempt: bool,
    /// The workers, of which the first is examined.
    pub workers: u8,
    pub seed: [u64; 2],
}

impl Settings {
    pub(crate) fn most_sessions(&self) -> usize {
        if self.giving == Giving::Single { 14 } else { 230 }
    }

    pub(crate) fn most_bindings(&self) -> usize {
        if self.giving == Giving::Single { 9 } else { 200 }
    }

    /// The ports of all workers.
    pub(crate) fn ports(&self) -> RangeInclusive<u16> {
        match self.giving {
            Giving::Single => 1_021..=1_026,
            // The ports behind the last whole block are not given.
            Giving::Blocks { .. } | Giving::Deterministic => 1_024..=1_024 + 4 * BLOCK + 9,
        }
    }

    pub(crate) fn pool(&self) -> PoolConfig {
        PoolConfig { addresses: vec![Prefix4::holding(POOL[0], 31)], ports: vec![self.ports()] }
    }

    /// Whether a subscriber is exempt from limits.
    pub(crate) fn is_exempt(&self, subscriber: u128) -> bool {
        self.has_exempt && subscriber == self.family.subscriber(self.family.host(1))
    }

    pub(crate) fn in_blocks(&self) -> bool {
        self.giving != Giving::Single
    }

    /// Whether a port is the first worker's.
    pub(crate) fn is_ours(&self, port: u16) -> bool {
        let is_others = self.workers > 1 && !(port / BLOCK).is_multiple_of(self.workers.into());
        self.ports().contains(&port) && (!is_others || self.giving == Giving::Deterministic)
    }

    /// First ports of the blocks of an address that the first worker may give.
    pub(crate) fn blocks(&self) -> Vec<u16> {
        let whole = |first: &u16| self.ports().contains(&(first + (BLOCK - 1)));
        (1_024..u16::MAX - BLOCK)
            .step_by(BLOCK.into())
            .filter(whole)
            .filter(|first| self.is_ours(*first))
            .collect()
    }

    pub(crate) fn policy(&self) -> Option<BlockPolicy> {
        let policy = |most, idle_seconds| BlockPolicy { size: BLOCK, most, idle_seconds };
        match self.giving {
            Giving::Single => None,
            Giving::Blocks { most, idle } => Some(policy(most, idle)),
            Giving::Deterministic => Some(policy(1, 300)),
        }
    }

    pub(crate) fn mapping(&self) -> Option<Deterministic> {
        if self.giving != Giving::Deterministic {
            return None;
        }
        let bits = if self.family == Family::Six { 64 } else { 96 + 24 };
        let PoolConfig { addresses, ports } = self.pool();
        Deterministic::new(&[self.family.inside()], bits, (&addresses, &ports), BLOCK).ok()
    }
}

/// Seconds of a time, rounded up.
pub(crate) fn ceil(time: u64) -> u64 {
    time.div_ceil(SECOND)
}
