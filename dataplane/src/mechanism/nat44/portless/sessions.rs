//! Protocols without ports: static bindings, and sessions that inside hosts open.

use super::config::{PORTLESS_MIN, PortlessBinding, PortlessConfig};
use super::outside_addresses::OutsideAddresses;
use super::protocol::PortlessProtocol;
use super::table::Table;
use super::tuple::{Seen, Sent};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::{Draining, Inside, NatEvent, Outside};
use crate::stateful::{PortlessBindingRow, PortlessRow, WithoutPorts};
use crate::verdict::WorkerId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// Slots that are examined in a step of counting what is left.
const LOOKED_AT: u32 = 4_096;

/// A packet as it is decided on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    pub(crate) protocol: PortlessProtocol,
    /// What is behind the IP header.
    pub(crate) octets: &'a [u8],
    /// The remote host.
    pub(crate) remote: Ipv4Addr,
    /// Packets on the wire, and their octets, IP headers included.
    pub(crate) counts: (u32, u32),
    pub(crate) now: Instant,
}

/// One worker's share of them.
pub struct PortlessSessions {
    by_inside: BTreeMap<(PortlessProtocol, Inside<Ipv4Addr>), Outside<Ipv4Addr>>,
    by_outside: BTreeMap<(PortlessProtocol, Outside<Ipv4Addr>), Inside<Ipv4Addr>>,
    /// Whether this worker's rows include them.
    shows_bindings: bool,
    addresses: OutsideAddresses,
    table: Table,
}

impl PortlessSessions {
    /// With these addresses of the pool. Hosts get them by `key`. Of two bindings of one address the first holds.
    pub(crate) fn new(
        config: &PortlessConfig,
        pool: &[Prefix4],
        worker: WorkerId,
        seed: [u64; 2],
        key: [u64; 2],
    ) -> Self {
        let limits = (config.sessions, config.sessions_per_subscriber);
        let mut made = Self {
            by_inside: BTreeMap::new(),
            by_outside: BTreeMap::new(),
            shows_bindings: worker == WorkerId(0),
            addresses: OutsideAddresses::new(pool, key),
            table: Table::new(limits, config.subscriber_bits, config.timeout.max(PORTLESS_MIN), seed),
        };
        for PortlessBinding { protocol, inside, outside } in config.bindings.iter().copied() {
            let is_taken = made.by_inside.contains_key(&(protocol, inside))
                || made.by_outside.contains_key(&(protocol, outside));
            if !is_taken && pool.iter().any(|prefix| prefix.contains(outside.0)) {
                made.by_inside.insert((protocol, inside), outside);
                made.by_outside.insert((protocol, outside), inside);
            }
        }
        made
    }

    /// The outside address of a packet from `inside`. A new session gets `paired`, the address that the host has for other protocols, if that
    /// can be. `may_go_out` is asked unless there is a session.
    ///
    /// # Errors
    /// Why it is dropped.
    pub(crate) fn outbound(
        &mut self,
        inside: Ipv4Addr,
        packet: Passing<'_>,
        paired: Option<Ipv4Addr>,
        may_go_out: impl FnOnce() -> Result<(), DropReason>,
        counters: &mut Counters,
    ) -> Result<Ipv4Addr, DropReason> {
        let Passing { protocol, octets, remote, counts, now } = packet;
        if let Some(outside) = self.by_inside.get(&(protocol, Inside(inside))) {
            may_go_out()?;
            return Ok(outside.0);
        }
        if self.table.most() == 0 {
            return Err(DropReason::ProtocolUnsupported);
        }
        let sent = Sent { inside, remote, protocol, id: protocol.id(octets)? };
        let (slot, outside) = match self.table.find_sent(&sent, now) {
            Some(found) => {
                self.table.wait_again(found.0, now);
                found
            }
            None => {
                may_go_out()?;
                counters.portless_ended += self.table.make_room(now);
                // Before an address is looked for, which takes longer.
                self.table.may_begin(inside)?;
                let seen = self.seen(sent, paired, now).ok_or(DropReason::RemoteInUse)?;
                let slot = self.table.insert(sent, seen, protocol.shown_id(octets), now)?;
                counters.portless_made += 1;
                (slot, seen.outside)
            }
        };
        self.table.count(slot, Direction::Out, counts, now);
        Ok(outside)
    }

    /// How a new session is seen outside.
    fn seen(&self, sent: Sent, paired: Option<Ipv4Addr>, now: Instant) -> Option<Seen> {
        let Sent { inside, remote, protocol, id } = sent;
        let seen = |outside| Seen { outside, remote, protocol };
        // The remote host knows it by this address.
        if let Some((_, known)) = self.table.find_between(inside, remote, protocol, now) {
            return Some(seen(known)).filter(|seen| self.table.may_be_seen(inside, *seen, id, now));
        }
        let all = paired.into_iter().chain(self.addresses.of(inside));
        let mut free =
            all.filter(|outside| !self.by_outside.contains_key(&(protocol, Outside(*outside)))).map(seen);
        free.find(|seen| self.table.may_be_seen(inside, *seen, id, now))
    }

    /// The inside host of a packet to `outside`. `may_come_in` is asked unless there is a session.
    ///
    /// # Errors
    /// Why it is dropped.
    pub(crate) fn inbound(
        &mut self,
        outside: Ipv4Addr,
        packet: Passing<'_>,
        may_come_in: impl FnOnce() -> Result<(), DropReason>,
    ) -> Result<Ipv4Addr, DropReason> {
        let Passing { protocol, octets, remote, counts, now } = packet;
        if let Some(inside) = self.by_outside.get(&(protocol, Outside(outside))) {
            may_come_in()?;
            return Ok(inside.0);
        }
        if self.table.most() == 0 {
            return Err(DropReason::ProtocolUnsupported);
        }
        let seen = Seen { outside, remote, protocol };
        let found = self.table.find_received(seen, protocol.id(octets)?, now);
        let (slot, inside) = found.ok_or(DropReason::Filtered)?;
        self.table.count(slot, Direction::In, counts, now);
        Ok(inside)
    }

    /// Whether a packet from `remote` to `outside` could come in.
    pub(crate) fn may_come(&self, outside: Ipv4Addr, remote: Ipv4Addr, protocol: PortlessProtocol) -> bool {
        self.by_outside.contains_key(&(protocol, Outside(outside)))
            || self.table.has_seen(Seen { outside, remote, protocol })
    }

    /// The outside address of the session that a host inside reports an error about: the quoted packet came to `inside`.
    pub(crate) fn error_from_inside(
        &self,
        inside: Ipv4Addr,
        (remote, protocol): (Ipv4Addr, PortlessProtocol),
        now: Instant,
    ) -> Option<Ipv4Addr> {
        let bound = self.by_inside.get(&(protocol, Inside(inside))).map(|outside| outside.0);
        bound.or_else(|| self.table.find_between(inside, remote, protocol, now).map(|(_, outside)| outside))
    }

    /// The inside host that an error from outside is for: the quoted packet went from `outside` to `remote`, which began with these
    /// octets behind its IP header.
    pub(crate) fn error_from_outside(
        &self,
        outside: Ipv4Addr,
        (remote, protocol): (Ipv4Addr, PortlessProtocol),
        octets: &[u8],
        now: Instant,
    ) -> Option<Ipv4Addr> {
        let bound = self.by_outside.get(&(protocol, Outside(outside))).map(|inside| inside.0);
        let seen = Seen { outside, remote, protocol };
        bound.or_else(|| self.table.find_quoted(seen, protocol.id(octets).ok(), now))
    }

    /// Whether there are neither sessions nor events.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.table.len() == 0 && !self.table.has_events()
    }

    /// Whether there are events.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        self.table.has_events()
    }

    /// Events since the last call.
    #[cold]
    pub(crate) fn take_events(&mut self) -> Vec<NatEvent> {
        self.table.take_events()
    }

    /// Ends what is overdue, examining at most `budget` sessions.
    #[cold]
    #[inline(never)]
    pub(crate) fn expire(&mut self, now: Instant, budget: usize, counters: &mut Counters) {
        counters.portless_ended += self.table.expire(now, budget);
    }
}

impl WithoutPorts for PortlessSessions {
    fn occupancy(&self) -> (u32, u32) {
        (self.table.len(), self.table.most())
    }

    fn has_any(&self) -> bool {
        self.table.most() > 0 || !self.by_inside.is_empty()
    }

    fn sessions(&self, cursor: u32, slots: u32, now: Instant, rows: &mut Vec<PortlessRow>) -> Option<u32> {
        let end = cursor.saturating_add(slots).min(self.table.slots());
        for slot in cursor..end {
            let Some(session) = self.table.live(slot, now) else { continue };
            let idle = now.since(session.last);
            rows.push(PortlessRow {
                protocol: session.seen.protocol.number(),
                inside: session.inside,
                outside: session.seen.outside,
                remote: session.seen.remote,
                idle,
                ends_in: self.table.lifetime().saturating_sub(idle),
                packets: session.packets,
                octets: session.octets,
            });
        }
        (end < self.table.slots()).then_some(end)
    }

    fn bindings(&self, cursor: u32, slots: u32, rows: &mut Vec<PortlessBindingRow>) -> Option<u32> {
        if !self.shows_bindings {
            return None;
        }
        let end = (cursor as usize).saturating_add(slots as usize);
        let these = self.by_inside.iter().take(end).skip(cursor as usize);
        rows.extend(these.map(|((protocol, inside), outside)| PortlessBindingRow {
            protocol: protocol.number(),
            inside: inside.0,
            outside: outside.0,
        }));
        (end < self.by_inside.len()).then_some(end as u32)
    }

    fn drain(&mut self, draining: &Draining) {
        self.addresses.drain(draining);
    }

    fn sessions_at(&self, draining: &Draining, from: u32, now: Instant) -> (Vec<u64>, Option<u32>) {
        let end = from.saturating_add(LOOKED_AT).min(self.table.slots());
        let sessions = (from..end).filter_map(|slot| self.table.live(slot, now));
        // With the first ones: they are as many as are written in the configuration.
        let shows = self.shows_bindings && from == 0;
        let mine = self.by_outside.keys().filter(|_| shows).map(|(_, outside)| outside.0);
        let mut counts = vec![0; draining.prefixes().len()];
        for address in sessions.map(|session| session.seen.outside).chain(mine) {
            let count = draining.find(address).and_then(|at| counts.get_mut(at));
            count.into_iter().for_each(|count| *count += 1);
        }
        (counts, (end < self.table.slots()).then_some(end))
    }

    fn end(&mut self, protocol: u8, inside: Ipv4Addr, remote: Ipv4Addr, counters: &mut Counters) -> bool {
        let Some(protocol) = PortlessProtocol::of(protocol) else { return false };
        let ended = self.table.end_between(inside, remote, protocol);
        counters.portless_ended += ended;
        ended > 0
    }

    fn keep_events(&mut self) {
        self.table.keep_events();
    }
}
