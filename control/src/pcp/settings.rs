//! What a server is configured with.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use sixway_dataplane::rates::Rate;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

/// Bounds of lifetimes (RFC 6887 §15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// No mapping ends earlier, unless the client deletes it.
    pub least: Duration,
    /// None lasts longer without renewal.
    pub most: Duration,
}

impl Lifetimes {
    /// The lifetime that a client gets for this request, in seconds.
    pub(super) fn grant(self, requested: u32) -> u32 {
        requested.max(seconds(self.least)).min(seconds(self.most))
    }

    /// The same by NAT-PMP, which SHOULD NOT grant more than is requested (RFC 6886 §3.3).
    pub(super) fn grant_at_most(self, requested: u32) -> u32 {
        requested.min(seconds(self.most))
    }
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

/// What a server is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether MAP is answered.
    pub map: bool,
    /// Whether PEER is answered.
    pub peer: bool,
    /// Whether NAT-PMP is answered.
    pub nat_pmp: bool,
    /// Clients that may make mappings for others (THIRD_PARTY).
    pub third_party: Vec<(IpAddr, u8)>,
    /// Bounds of lifetimes.
    pub lifetimes: Lifetimes,
    /// Ports in all mappings together, and outbound mappings by PEER.
    pub max_mappings: u32,
    /// Those of a subscriber.
    pub mappings_per_subscriber: u32,
    /// Ports of a set (RFC 7753); 1 disables sets.
    pub max_port_set: u16,
    /// The length of the prefix that is a subscriber's, of IPv6 hosts.
    pub subscriber_bits: u8,
    /// Requests of a subscriber.
    pub rate: Rate,
    /// Requests of all together.
    pub total_rate: Rate,
    /// Prefixes of NAT64s (RFC 7225).
    pub prefixes64: Vec<Rfc6052>,
    /// All external addresses. When they are others, the Epoch Time begins again (RFC 6887 §8.5).
    pub external: Vec<Prefix4>,
    /// The external address, if there is only one.
    pub external_address: Option<Ipv4Addr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            map: true,
            peer: true,
            nat_pmp: true,
            third_party: Vec::new(),
            lifetimes: Lifetimes { least: Duration::from_secs(120), most: Duration::from_secs(86_400) },
            max_mappings: 65_536,
            mappings_per_subscriber: 128,
            max_port_set: 32,
            subscriber_bits: 64,
            rate: Rate { rate: 20, burst: 60 },
            total_rate: Rate { rate: 5_000, burst: 5_000 },
            prefixes64: Vec::new(),
            external: Vec::new(),
            external_address: None,
        }
    }
}

impl Settings {
    /// The subscriber of a host.
    pub(super) fn subscriber(&self, host: IpAddr) -> IpAddr {
        match host {
            IpAddr::V4(_) => host,
            IpAddr::V6(address) => {
                IpAddr::V6(Prefix6::holding(address, self.subscriber_bits.min(128)).address())
            }
        }
    }

    /// Whether a client may make mappings for others.
    pub(super) fn may_speak_for_others(&self, client: IpAddr) -> bool {
        self.third_party.iter().any(|(network, length)| match (client, network) {
            (IpAddr::V4(client), IpAddr::V4(network)) => Prefix4::holding(*network, *length).contains(client),
            (IpAddr::V6(client), IpAddr::V6(network)) => Prefix6::holding(*network, *length).contains(client),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        })
    }
}
