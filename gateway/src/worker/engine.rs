//! The engine, as a worker drives it. Mechanisms are numbered in the order of the configuration: stateful translators
//! first, then stateless ones.

use super::explicit::{self, ExplicitAnswer, ExplicitRequest};
use super::portless;
use super::translator::{
    BindingEntry, Edited, Position, Scan, SessionEntry, SubscriberEntry, Table, TeredoPage, Translator,
};
use super::tunnels::TunnelSet;
use crate::admin::{Edit, Filter};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::fair_share::SenderTable;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat46::{MappingCounts, MappingRow, Mappings};
use sixway_dataplane::mechanism::siit::dynamic_pool::{
    Changes, DynamicPool, HostRow, Record, Restored, WallClock,
};
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_dataplane::nat::{
    AddressBlocks, BindingRow, BlockMove, Blocks, DrainingRow, NatProtocol, NotBound, SavedSession,
    Selection, SessionRow,
};
use sixway_dataplane::stateful::Stateful;
use sixway_dataplane::{Counters, Frame, Instant, Outbox, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, protocol};
use std::net::Ipv4Addr;

/// Places from here on are those of protocols without ports.
const PORTLESS: u32 = 1 << 31;
/// Addresses of a pool whose port blocks are counted at a time.
const ADDRESSES: u32 = 1_024;
/// Peers of a Teredo relay or client that are read at a time.
const PEERS: usize = 512;
/// Hosts of a dynamic pool that are read at a time.
const HOSTS: u32 = 512;
/// Places of a table that are examined in one call when a gateway is taken over; nothing else is done then.
const EXPORTED_AT_ONCE: u32 = 65_536;
/// Sessions of a binding that are ended at a time.
const ENDED_AT_ONCE: usize = 256;

impl Translator for Engine {
    fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        Engine::process(self, frames, now, out);
    }

    fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        Engine::take_over(self, frames, now, out);
    }

    fn refused_handover(&mut self, frame: &mut Frame) {
        Engine::refused_handover(self, frame);
    }

    fn tick(&mut self, now: Instant, out: &mut Outbox) {
        Engine::tick(self, now, out);
    }

    fn emptied(&mut self, now: Instant) {
        Engine::emptied(self, now);
    }

    fn caught_up(&mut self) {
        Engine::caught_up(self);
    }

    fn is_overloaded(&self) -> bool {
        Engine::is_overloaded(self)
    }

    fn set_filters(&mut self, filters: Vec<Box<dyn SenderTable>>) {
        Engine::set_filters(self, filters);
    }

    fn settle(&mut self, now: Instant) {
        Engine::settle(self, now);
    }

    fn end_fast_path(&mut self) {
        Engine::clear_fast_path(self);
    }

    fn export(&mut self, now: Instant) -> Vec<(Identity, SavedSession)> {
        self.take_back_under_way();
        let mut all = Vec::new();
        for translator in self.stateful() {
            let mut saved = Vec::new();
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                cursor = translator.export(from, EXPORTED_AT_ONCE, now, &mut saved);
            }
            all.extend(saved.into_iter().map(|session| (translator.identity(), session)));
        }
        all
    }

    fn counters(&self) -> Counters {
        Engine::counters(self).clone()
    }

    fn tables(&mut self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.stateful().map(|it| table(it)).collect();
        let pools = self.siit().iter_mut().map(|siit| siit.dynamic_pool());
        tables.extend(pools.map(|pool| pool.map_or_else(Table::default, |pool| pool_table(pool))));
        // All workers have one table: the first one's answer counts.
        let is_first = self.worker() == WorkerId(0);
        tables.extend(self.nat46().iter().map(|nat46| match is_first {
            true => mapping_table(nat46.mappings()),
            false => Table::default(),
        }));
        tables
    }

    fn sessions(&mut self, scan: Scan<'_>, rows: &mut Vec<SessionEntry>) -> Option<Position> {
        let Scan { from, budget, room, filter, now } = scan;
        let count = self.stateful().count();
        let translator = self.stateful().nth(from.mechanism.into())?;
        if from.slot >= PORTLESS {
            let next = in_steps(from.slot - PORTLESS, budget, room, rows, |slot, slots, rows| {
                portless::sessions(
                    translator.without_ports(),
                    (from.mechanism, filter),
                    (slot, slots, now),
                    rows,
                )
            });
            return position(from, next.map(|slot| slot + PORTLESS), count);
        }
        let selection = selection(filter);
        let mut found = Vec::new();
        let next = in_steps(from.slot, budget, room, rows, |slot, slots, rows| {
            found.clear();
            let next = translator.sessions(slot, slots, &selection, now, &mut found);
            rows.extend(found.iter().map(|row| session_entry(from.mechanism, row)).filter(|entry| {
                entry
                    .sides()
                    .any(|inside| filter.admits_session(entry.protocol, inside, entry.outside, entry.remote))
            }));
            next
        });
        let next = next.or(translator.without_ports().has_any().then_some(PORTLESS));
        position(from, next, count)
    }

    fn bindings(&mut self, scan: Scan<'_>, rows: &mut Vec<BindingEntry>) -> Option<Position> {
        let Scan { from, budget, room, filter, now } = scan;
        let stateful = self.stateful().count();
        let translators = stateful + self.siit().len();
        let count = translators + self.nat46().len();
        let mechanism = usize::from(from.mechanism);
        let next = if mechanism < stateful {
            let translator = self.stateful().nth(mechanism)?;
            if from.slot >= PORTLESS {
                let next = in_steps(from.slot - PORTLESS, budget, room, rows, |slot, slots, rows| {
                    portless::bindings(
                        translator.without_ports(),
                        (from.mechanism, filter),
                        (slot, slots),
                        rows,
                    )
                });
                return position(from, next.map(|slot| slot + PORTLESS), count);
            }
            let selection = selection(filter);
            let mut found = Vec::new();
            let next = in_steps(from.slot, budget, room, rows, |slot, slots, rows| {
                found.clear();
                let next = translator.bindings(slot, slots, &selection, &mut found);
                rows.extend(found.iter().map(|row| binding_entry(from.mechanism, row)).filter(|entry| {
                    let admits = |number| {
                        entry.sides().any(|inside| filter.admits_binding(number, inside, entry.outside))
                    };
                    entry.protocol.is_some_and(admits)
                }));
                next
            });
            next.or(translator.without_ports().has_any().then_some(PORTLESS))
        } else if mechanism >= translators {
            // One table of all workers, which the first one shows.
            let is_shown = self.worker() == WorkerId(0) && filter.protocol.is_none();
            let nat46 = self.nat46().get(mechanism - translators).filter(|_| is_shown);
            nat46.and_then(|nat46| {
                let mut found = Vec::new();
                in_steps(from.slot, budget, room, rows, |slot, slots, rows| {
                    found.clear();
                    let next = nat46.mappings().rows(slot, slots, now, &mut found);
                    let entries = found.iter().map(|row| mapping_entry(from.mechanism, row));
                    rows.extend(
                        entries.filter(|entry| filter.admits_binding(0, entry.inside, entry.outside)),
                    );
                    next
                })
            })
        } else {
            // A host of a dynamic pool has an address for all protocols.
            let pool = pool(self, from.mechanism).filter(|_| filter.protocol.is_none());
            let wall = WallClock { now, unix_seconds: 0 };
            pool.and_then(|pool| {
                in_steps(from.slot, budget, room, rows, |slot, slots, rows| {
                    let (hosts, next) = pool.hosts_from(slot, slots, wall);
                    let entries = hosts.iter().map(|host| host_entry(from.mechanism, host));
                    rows.extend(
                        entries.filter(|entry| filter.admits_binding(0, entry.inside, entry.outside)),
                    );
                    next
                })
            })
        };
        position(from, next, count)
    }

    fn subscribers(&mut self, scan: Scan<'_>, rows: &mut Vec<SubscriberEntry>) -> Option<Position> {
        let Scan { from, budget, room, filter, now } = scan;
        let count = self.stateful().count();
        let inside = filter.inside.map(|(prefix, _)| prefix);
        let translator = self.stateful().nth(from.mechanism.into())?;
        let mut found = Vec::new();
        let next = in_steps(from.slot, budget, room, rows, |slot, slots, rows| {
            found.clear();
            let next = translator.subscribers(slot, slots, inside, now, &mut found);
            rows.extend(found.iter().map(|row| SubscriberEntry { mechanism: from.mechanism, row: *row }));
            next
        });
        position(from, next, count)
    }

    fn pool_changes(&mut self, mechanism: u16, wall: WallClock) -> Changes {
        pool(self, mechanism).map(|pool| pool.take_changes(wall)).unwrap_or_default()
    }

    fn pool_hosts(&mut self, mechanism: u16, from: u32, wall: WallClock) -> (Vec<Record>, Option<u32>) {
        let Some(pool) = pool(self, mechanism) else { return (Vec::new(), None) };
        let (rows, next) = pool.hosts_from(from, HOSTS, wall);
        (rows.into_iter().map(|row| row.record).collect(), next)
    }

    fn draining(&mut self, from: Position, now: Instant) -> (Vec<(u16, DrainingRow)>, Option<Position>) {
        let count = self.stateful().count();
        let Some(translator) = self.stateful().nth(from.mechanism.into()) else { return (Vec::new(), None) };
        let (rows, next) = translator.draining_rows(from.slot, now);
        let rows = rows.into_iter().map(|row| (from.mechanism, row)).collect();
        (rows, position(from, next, count))
    }

    fn address_blocks(&mut self, from: Position) -> (Vec<(u16, AddressBlocks)>, Option<Position>) {
        let count = self.stateful().count();
        let Some(translator) = self.stateful().nth(from.mechanism.into()) else { return (Vec::new(), None) };
        let (rows, next) = translator.address_blocks(from.slot, ADDRESSES);
        let rows = rows.into_iter().map(|row| (from.mechanism, row)).collect();
        (rows, position(from, next, count))
    }

    fn edit(&mut self, mechanism: u16, edit: &Edit) -> Edited {
        let Some((translator, counters)) = self.stateful_at(mechanism.into()) else { return Edited::Absent };
        let ended = |done: Option<bool>| match done {
            Some(true) => Edited::Done,
            Some(false) => Edited::More,
            None => Edited::Absent,
        };
        match edit {
            Edit::Bind(binding) => match translator.add_static(binding) {
                Ok(()) => Edited::Done,
                Err(error) => Edited::Refused(error.to_string()),
            },
            Edit::Unbind(binding) => ended(translator.remove_static(binding, ENDED_AT_ONCE, counters)),
            Edit::EndBinding(protocol, outside) => {
                ended(translator.end_binding(*protocol, *outside, ENDED_AT_ONCE, counters))
            }
            Edit::EndPortless(protocol, inside, remote) => {
                let without_ports = translator.without_ports_mut();
                ended(without_ports.end(*protocol, *inside, *remote, counters).then_some(true))
            }
            Edit::Drain(prefix, drains) => {
                translator.drain(*prefix, *drains);
                Edited::Done
            }
            Edit::EndSession(protocol, inside, remote) => {
                ended(translator.end_session(*protocol, *inside, *remote, counters).then_some(true))
            }
        }
    }

    fn explicit(&mut self, mechanism: u16, request: &ExplicitRequest, now: Instant) -> ExplicitAnswer {
        match self.stateful_at(mechanism.into()) {
            Some((translator, counters)) => explicit::answer(translator, request, now, counters),
            None => ExplicitAnswer::NotBound(NotBound::NotInside),
        }
    }

    fn set_tunnels(&mut self, set: &TunnelSet) {
        Engine::set_own6(self, set.own6);
        Engine::set_tunnels(self, &set.tunnels, &set.host4, &set.host6);
    }

    fn change_leases(&mut self, index: u16, changes: &[(Prefix4, Option<Binding>)]) {
        let Some(concentrator) = self.four_over_six().get_mut(usize::from(index)) else { return };
        for (ipv4, binding) in changes {
            // It may have been another host's until now.
            concentrator.unbind(*ipv4);
            if let Some(binding) = binding
                && let Err(fault) = concentrator.bind(*binding)
            {
                tracing::warn!("{ipv4} not bound: {fault}");
            }
        }
    }

    fn change_teredo(&mut self, index: u16, change: &TeredoChange, now: Instant) {
        Engine::change_teredo(self, index, change, now);
    }

    fn teredo_peers(&mut self, index: u16, from: u32, now: Instant) -> TeredoPage {
        let Some(teredo) = self.teredo().get(usize::from(index)) else { return TeredoPage::default() };
        let (peers, next) = teredo.peers(from, PEERS, now);
        (teredo.row(), peers, next)
    }

    fn learn_path_error(&mut self, error: &[u8], now: Instant) {
        Engine::learn_path_error(self, error, now);
    }

    fn take_path_errors(&mut self) -> Vec<Vec<u8>> {
        Engine::take_path_errors(self)
    }

    fn blocks(&mut self, mechanism: u16) -> Blocks {
        self.stateful().nth(mechanism.into()).map(|it| it.blocks()).unwrap_or_default()
    }

    fn wants_blocks(&mut self, mechanism: u16) -> bool {
        self.stateful().nth(mechanism.into()).is_some_and(|it| it.wants_blocks())
    }

    fn give_blocks(&mut self, mechanism: u16, to: WorkerId, owned: u32) -> Vec<BlockMove> {
        let translator = self.stateful().nth(mechanism.into());
        translator.map(|it| it.give_blocks(to, owned)).unwrap_or_default()
    }

    fn give_wanted(&mut self, mechanism: u16, port: u16, to: WorkerId) -> Option<BlockMove> {
        self.stateful().nth(mechanism.into())?.give_wanted(port, to)
    }

    fn block_moved(&mut self, mechanism: u16, moved: BlockMove) -> bool {
        self.stateful().nth(mechanism.into()).is_some_and(|it| it.block_moved(moved))
    }

    fn steers_by(&mut self, mechanism: u16, block: u16) -> bool {
        let Some(size) = self.stateful().next().map(|it| it.ports_per_block()) else { return false };
        let Some(first) = block.checked_mul(size) else { return false };
        self.steering_index(first) == usize::from(mechanism)
    }

    fn restore_pool(&mut self, mechanism: u16, records: &[Record], wall: WallClock) -> Restored {
        pool(self, mechanism).map(|pool| pool.restore(records.iter().copied(), wall)).unwrap_or_default()
    }
}

/// Reads on from `slot`, at most `budget` places, and never more places than there is room for rows, since each place may
/// yield one. `read` gets a start and the number of places to read.
fn in_steps<E>(
    slot: u32,
    budget: usize,
    room: usize,
    rows: &mut Vec<E>,
    mut read: impl FnMut(u32, u32, &mut Vec<E>) -> Option<u32>,
) -> Option<u32> {
    let (mut slot, mut budget, full) = (slot, budget, rows.len() + room);
    while budget > 0 && rows.len() < full {
        let step = budget.min(full - rows.len());
        slot = read(slot, u32::try_from(step).unwrap_or(u32::MAX), rows)?;
        budget -= step;
    }
    Some(slot)
}

/// The next place: in this mechanism's table, or at the start of the next mechanism's, of `count`.
fn position(from: Position, next: Option<u32>, count: usize) -> Option<Position> {
    let following = Position { mechanism: from.mechanism + 1, slot: 0 };
    match next {
        Some(slot) => Some(Position { slot, ..from }),
        None => (usize::from(following.mechanism) < count).then_some(following),
    }
}

fn pool(engine: &mut Engine, mechanism: u16) -> Option<&mut DynamicPool> {
    let index = usize::from(mechanism).checked_sub(engine.stateful().count())?;
    engine.siit().get_mut(index)?.dynamic_pool()
}

fn table(translator: &dyn Stateful) -> Table {
    let occupancy = translator.occupancy();
    let (portless, portless_capacity) = translator.without_ports().occupancy();
    Table {
        portless_sessions: portless.into(),
        portless_capacity: portless_capacity.into(),
        sessions: occupancy.sessions.into(),
        sessions_capacity: occupancy.max_sessions.into(),
        bindings: occupancy.bindings.into(),
        bindings_capacity: occupancy.max_bindings.into(),
        ports: occupancy.addresses * u64::from(occupancy.ports),
        ports_used: occupancy.taken,
        blocks: translator.block_counts().unwrap_or_default(),
        mappings: MappingCounts::default(),
    }
}

fn mapping_table(mappings: &Mappings) -> Table {
    let counts = mappings.counts();
    Table {
        bindings: u64::from(counts.mappings) + u64::from(counts.statics),
        bindings_capacity: u64::from(counts.max_mappings) + u64::from(counts.statics),
        mappings: counts,
        ..Table::default()
    }
}

fn pool_table(pool: &DynamicPool) -> Table {
    let live = u64::from(pool.live());
    Table {
        bindings: live,
        bindings_capacity: live + u64::from(pool.remembered()) + u64::from(pool.free()),
        ..Table::default()
    }
}

/// What the NAT's own selection can ask for; the rest is examined row by row.
fn selection(filter: &Filter) -> Selection {
    Selection {
        protocol: filter.protocol.and_then(NatProtocol::of),
        inside: filter.inside.map(|(prefix, _)| prefix),
        inside_port: filter.inside.and_then(|(_, port)| port),
        outside: filter.outside.map(|(prefix, _)| prefix),
        outside_port: filter.outside.and_then(|(_, port)| port),
        remote: filter.remote.map(|(prefix, _)| prefix),
        remote_port: filter.remote.and_then(|(_, port)| port),
    }
}

fn number(nat: NatProtocol) -> u8 {
    match nat {
        NatProtocol::Tcp => protocol::TCP,
        NatProtocol::Udp => protocol::UDP,
        NatProtocol::Icmp => protocol::ICMPV4,
    }
}

fn session_entry(mechanism: u16, row: &SessionRow) -> SessionEntry {
    SessionEntry {
        mechanism,
        protocol: number(row.protocol),
        softwire: row.softwire,
        inside: row.inside.map(|inside| inside.0),
        outside: row.outside.0,
        remote: row.remote,
        state: row.state,
        idle: Some(row.idle),
        ends_in: row.ends_in,
        packets: Some((row.packets_out, row.packets_in)),
        octets: Some((row.octets_out, row.octets_in)),
        offloaded: row.offloaded,
    }
}

fn binding_entry(mechanism: u16, row: &BindingRow) -> BindingEntry {
    BindingEntry {
        mechanism,
        protocol: Some(number(row.protocol)),
        softwire: row.softwire,
        inside: row.inside.0,
        outside: row.outside.0,
        kind: match (row.is_static, row.is_explicit) {
            (true, _) => "static",
            (false, true) => "explicit",
            (false, false) => "dynamic",
        },
        sessions: row.sessions.into(),
        server: None,
    }
}

fn host_entry(mechanism: u16, host: &HostRow) -> BindingEntry {
    BindingEntry {
        mechanism,
        protocol: None,
        softwire: None,
        inside: Endpoint6::new(host.record.host, 0),
        outside: Endpoint4::new(host.record.address, 0),
        kind: if host.live { "dynamic" } else { "remembered" },
        sessions: 0,
        server: None,
    }
}

fn mapping_entry(mechanism: u16, row: &MappingRow) -> BindingEntry {
    BindingEntry {
        mechanism,
        protocol: None,
        softwire: None,
        inside: Endpoint6::new(row.client.unwrap_or(Ipv4Addr::UNSPECIFIED).to_ipv6_mapped(), 0),
        outside: Endpoint4::new(row.address, 0),
        kind: row.state.name(),
        sessions: 0,
        server: Some(row.server),
    }
}
