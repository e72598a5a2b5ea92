//! Clients of the same link find each other by multicast (RFC 4380 §5.2.8).

use super::chance::Chance;
use super::refused::Refused;
use super::settings::Local;
use crate::neighbour_discovery::ALL_NODES;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::teredo::{Prologue, TEREDO_PORT, TeredoAddress, bubble, is_bubble, is_global_unicast};
use sixway_wire::{Endpoint4, Ipv6Header};

/// RFC 4380 §2.17: the Teredo IPv4 Discovery Address, with the Teredo port.
pub const DISCOVERY: Endpoint4 = Endpoint4::new(Ipv4Addr::new(224, 0, 0, 253), TEREDO_PORT);
/// RFC 4380 §5.2.8: 200 to 300 s.
const INTERVAL: [Duration; 2] = [Duration::from_secs(200), Duration::from_secs(300)];
/// Clients of the link that are answered in a second; the link's hosts share it.
const ANSWERS: u8 = 16;

/// When the next bubble is due, and how many were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discovery {
    due: Instant,
    since: Instant,
    answered: u8,
}

impl Discovery {
    pub(super) fn new(chance: &mut Chance, now: Instant) -> Self {
        let due = now + chance.between(INTERVAL[0], INTERVAL[1]);
        Self { due, since: now, answered: 0 }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// The bubble that is due.
    pub(super) fn step(&mut self, own: TeredoAddress, chance: &mut Chance, now: Instant) -> Option<Vec<u8>> {
        if now < self.due {
            return None;
        }
        self.due = now + chance.between(INTERVAL[0], INTERVAL[1]);
        Some(bubble(own.address(), ALL_NODES, 1).to_vec())
    }

    /// Reads a bubble that came to the discovery address, and returns its sender.
    pub(super) fn read(
        &mut self,
        (from, payload): (Endpoint4, &[u8]),
        own: TeredoAddress,
        local: &Local,
        now: Instant,
    ) -> Result<Ipv6Addr, Refused> {
        if from == local.endpoint {
            return Err(Refused::Own);
        }
        let of_link = local.subnets.iter().any(|subnet| subnet.contains(from.address));
        if !of_link || local.is_broadcast(from.address) || from.port == 0 {
            return Err(Refused::NotOfLink);
        }
        let (_, packet) = Prologue::split(payload).map_err(|_| Refused::Malformed)?;
        let header = Ipv6Header::read(packet).map_err(|_| Refused::Malformed)?;
        if packet.len() != payload.len() || !is_bubble(packet) || header.destination != ALL_NODES {
            return Err(Refused::NotDiscovery);
        }
        let client = TeredoAddress::of(header.source).ok_or(Refused::NotDiscovery)?;
        if !is_global_unicast(client.mapped().address) || client.mapped().port == 0 {
            return Err(Refused::NotDiscovery);
        }
        if client == own {
            return Err(Refused::Own);
        }
        if client.mapped().address != own.mapped().address {
            return Err(Refused::NotBehindSameNat);
        }
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.since, self.answered) = (now, 0);
        }
        if self.answered >= ANSWERS {
            return Err(Refused::TooMany);
        }
        self.answered += 1;
        Ok(header.source)
    }
}
