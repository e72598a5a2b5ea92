//! The engine, as a worker drives it. Mechanisms are numbered in the order of the configuration: stateful translators
//! first, then stateless ones.

use super::core::{BindingEntry, Core, Position, SessionEntry, Table};
use crate::admin::Filter;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::siit::dynamic_pool::{Changes, DynamicPool, HostRow, Record, WallClock};
use sixway_dataplane::{Counters, Frame, Instant, Outbox};
use sixway_wire::{Endpoint4, Endpoint6};

/// Hosts of a dynamic pool that are read at a time.
const HOSTS: u32 = 512;

impl Core for Engine {
    fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        Engine::process(self, frames, now, out);
    }

    fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        Engine::process(self, frames, now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Outbox) {
        Engine::tick(self, now, out);
    }

    fn counters(&self) -> Counters {
        Engine::counters(self).clone()
    }

    fn tables(&mut self) -> Vec<Table> {
        self.siit()
            .iter_mut()
            .map(|siit| siit.dynamic_pool().map_or_else(Table::default, |pool| pool_table(pool)))
            .collect()
    }

    fn sessions(
        &mut self,
        _: Position,
        _: usize,
        _: usize,
        _: &Filter,
        _: Instant,
        _: &mut Vec<SessionEntry>,
    ) -> Option<Position> {
        None
    }

    fn bindings(
        &mut self,
        from: Position,
        budget: usize,
        room: usize,
        filter: &Filter,
        now: Instant,
        rows: &mut Vec<BindingEntry>,
    ) -> Option<Position> {
        let count = self.siit().len();
        let next_mechanism = || {
            (usize::from(from.mechanism) + 1 < count)
                .then(|| Position { mechanism: from.mechanism + 1, slot: 0 })
        };
        let Some(pool) = pool(self, from.mechanism) else { return next_mechanism() };
        // Each place yields at most one row.
        let limit = u32::try_from(budget.min(room)).unwrap_or(u32::MAX);
        let (hosts, next) = pool.hosts_from(from.slot, limit, WallClock { now, unix_seconds: 0 });
        let entries = hosts.iter().map(|host| host_entry(from.mechanism, host));
        rows.extend(entries.filter(|entry| {
            filter.protocol.is_none() && filter.admits_binding(0, entry.inside, entry.outside)
        }));
        next.map(|slot| Position { slot, ..from }).or_else(next_mechanism)
    }

    fn pool_changes(&mut self, mechanism: u16, wall: WallClock) -> Changes {
        pool(self, mechanism).map(|pool| pool.take_changes(wall)).unwrap_or_default()
    }

    fn pool_hosts(&mut self, mechanism: u16, from: u32, wall: WallClock) -> (Vec<Record>, Option<u32>) {
        let Some(pool) = pool(self, mechanism) else { return (Vec::new(), None) };
        let (rows, next) = pool.hosts_from(from, HOSTS, wall);
        (rows.into_iter().map(|row| row.record).collect(), next)
    }

    fn restore_pool(&mut self, mechanism: u16, records: &[Record], wall: WallClock) -> usize {
        pool(self, mechanism).map_or(0, |pool| pool.restore(records.iter().copied(), wall).hosts)
    }
}

fn pool(engine: &mut Engine, mechanism: u16) -> Option<&mut DynamicPool> {
    engine.siit().get_mut(usize::from(mechanism))?.dynamic_pool()
}

fn pool_table(pool: &DynamicPool) -> Table {
    let live = u64::from(pool.live());
    Table {
        bindings: live,
        bindings_capacity: live + u64::from(pool.remembered()) + u64::from(pool.free()),
        ..Table::default()
    }
}

fn host_entry(mechanism: u16, host: &HostRow) -> BindingEntry {
    BindingEntry {
        mechanism,
        protocol: None,
        inside: Endpoint6::new(host.record.host, 0),
        outside: Endpoint4::new(host.record.address, 0),
        kind: if host.live { "dynamic" } else { "remembered" },
        sessions: 0,
    }
}
