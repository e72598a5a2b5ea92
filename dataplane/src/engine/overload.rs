//! A batch while the engine is overloaded: packets above their senders' shares are dropped before they are parsed.

use super::assembly::Engine;
use super::bounds::STRIDE;
use crate::drop_reason::DropReason;
use crate::fair_share::{FairShares, SenderTable};
use crate::frame::{Frame, Ingress};
use crate::instant::Instant;
use crate::outbox::Outbox;
use crate::verdict::Verdict;
use arrayvec::ArrayVec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::{DESTINATION_OPTIONS, IPV4, IPV6, TCP, UDP};

impl Engine {
    /// Has filters in front of its queues drop packets of heavy senders while it is overloaded. They must be of all its queues, in the realms of
    /// its devices.
    pub fn set_filters(&mut self, filters: Vec<Box<dyn SenderTable>>) {
        if let Some(shares) = &mut self.shares {
            shares.set_filters(filters);
        }
    }

    /// As [`Engine::process`], for frames that have been counted. `handed_over`: another worker received them.
    #[inline(never)]
    pub(super) fn process_in_shares(
        &mut self,
        frames: &mut [Frame],
        now: Instant,
        out: &mut Outbox,
        handed_over: bool,
    ) {
        let in_front = self.drops_in_front();
        let is_overloaded =
            self.shares.as_mut().is_some_and(|shares| shares.batch(frames.len(), now, in_front));
        match is_overloaded {
            true => self.process_by_shares(frames, now, out, handed_over),
            false => self.process_counted(frames, now, out),
        }
    }

    /// Whether senders have shares now: then [`Self::tick`] is to be called in each [`crate::fair_share::INTERVAL`], although nothing arrives.
    pub fn is_overloaded(&self) -> bool {
        self.shares.as_ref().is_some_and(FairShares::is_overloaded)
    }

    /// Time passes for the shares, and what filters have dropped is counted.
    #[inline]
    pub(super) fn turn_shares(&mut self, now: Instant) {
        let in_front = self.drops_in_front();
        let Some(shares) = &mut self.shares else { return };
        shares.turn(now, in_front);
        let dropped = shares.take_dropped();
        if dropped > 0 {
            let counters = &mut self.path.effects.counters;
            counters.received += dropped;
            counters.drop_frames(DropReason::Overload, dropped);
        }
    }

    /// A filter does not look inside of tunnel packets.
    fn drops_in_front(&self) -> bool {
        self.relays.is_empty()
    }

    /// Packets that are admitted are moved together and processed as a batch, in which their cache misses overlap, and moved back.
    #[cold]
    fn process_by_shares(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox, handed_over: bool) {
        for frames in frames.chunks_mut(STRIDE) {
            let mut places = ArrayVec::<usize, STRIDE>::new();
            for place in 0..frames.len() {
                if self.is_in_share(&frames[place], handed_over) {
                    frames.swap(places.len(), place);
                    places.push(place);
                }
            }
            let (admitted, refused) = frames.split_at_mut(places.len());
            for frame in &mut *refused {
                frame.verdict = Verdict::Dropped(DropReason::Overload);
            }
            self.path.effects.counters.drop_frames(DropReason::Overload, refused.len() as u64);
            if !admitted.is_empty() {
                self.process_counted(admitted, now, out);
            }
            for (moved, place) in places.iter().enumerate().rev() {
                frames.swap(moved, *place);
            }
        }
    }

    /// Whether the packet's sender has room in its share. Packets that are not IP are admitted here, and dropped by the parser.
    fn is_in_share(&mut self, frame: &Frame, handed_over: bool) -> bool {
        let Some(shares) = &mut self.shares else { return true };
        let Some((sender, is_behind)) = sender(frame.bytes(), &self.relays) else { return true };
        // The hosts of a translator have few addresses outside.
        let port = match (is_behind, frame.passes > 0) {
            (true, _) => BEHIND_A_RELAY,
            (false, true) => port(frame.bytes()).unwrap_or(0),
            (false, false) => 0,
        };
        let has_passed = !handed_over && frame.passes == 0 && matches!(frame.ingress, Ingress::Device(_));
        shares.admits(frame.realm(), (sender, port), has_passed)
    }
}

/// In place of a port, for senders behind a relay: who forges a source there uses no share of the host that has the address. Translators use no
/// such port.
const BEHIND_A_RELAY: u16 = 1;
/// Bits of the prefix that a sender behind a relay has: it may have all prefixes of a site.
const SITE: u32 = 48;

/// Who sends a packet: its source, and whether it is behind a relay. Of a tunnel packet the source is the tunnel's remote end, which is a subscriber or
/// its router; behind one of `relays`, which are sorted, anybody may be, so that the source of the packet inside counts.
fn sender(packet: &[u8], relays: &[IpAddr]) -> Option<(IpAddr, bool)> {
    let outer = source(packet)?;
    let inner = match relays.binary_search(&outer) {
        Ok(_) => inside(packet).and_then(source),
        Err(_) => None,
    };
    Some(inner.map_or((outer, false), |inner| (of_site(inner), true)))
}

/// The prefix of an IPv6 address that a site has.
fn of_site(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => source,
        IpAddr::V6(source) => {
            Ipv6Addr::from_bits(source.to_bits() & (u128::MAX << (u128::BITS - SITE))).into()
        }
    }
}

/// The source address of a packet, which is not checked otherwise.
fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*packet.get(12..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*packet.get(8..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

/// The source port of TCP or UDP, which is not checked otherwise.
fn port(packet: &[u8]) -> Option<u16> {
    let (protocol, at) = match packet.first()? {
        first if first >> 4 == 4 => (*packet.get(9)?, usize::from(first & 15) * 4),
        _ => (*packet.get(6)?, 40),
    };
    let octets = packet.get(at..).filter(|_| matches!(protocol, TCP | UDP))?;
    octets.first_chunk().map(|port| u16::from_be_bytes(*port))
}

/// The beginning of the packet inside a tunnel packet. A fragment that is not the first has none.
fn inside(packet: &[u8]) -> Option<&[u8]> {
    let first = packet.first()?;
    let (protocol, at) = if first >> 4 == 4 {
        let offset = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff;
        (*packet.get(9)?, if offset == 0 { usize::from(first & 15) * 4 } else { usize::MAX })
    } else {
        match *packet.get(6)? {
            // The encapsulation limit is in them (RFC 2473 §4.1.1).
            DESTINATION_OPTIONS => (*packet.get(40)?, 48 + usize::from(*packet.get(41)?) * 8),
            protocol => (protocol, 40),
        }
    };
    packet.get(at..).filter(|_| matches!(protocol, IPV4 | IPV6))
}
