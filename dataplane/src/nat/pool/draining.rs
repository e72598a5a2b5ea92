//! A pool of which some addresses are being drained: hosts that are paired with one keep it, others get none there.

use super::{NatProtocol, OPEN_AT_START, Pool, PoolSlot};
use crate::nat::draining::{Draining, DrainingRow};
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

impl Pool {
    /// Drains these addresses, or gives them to hosts again.
    pub fn drain(&mut self, prefix: Prefix4, drains: bool) {
        if drains {
            self.draining.add(prefix);
        } else {
            self.draining.remove(prefix);
            // Those that were passed over meanwhile.
            self.visited = 0;
        }
        let Self { draining, prefixes, .. } = self;
        let all: Vec<Prefix4> = prefixes.iter().map(|(_, prefix)| *prefix).collect();
        let rest: u64 = draining.rest_of(&all).iter().map(|prefix| 1_u64 << (32 - prefix.length())).sum();
        self.drained.addresses = self.total - rest;
        (self.drained.open, self.drained.taken) = (0, [[0; 2]; 3]);
        for slot in 0..self.open.len() {
            let open = &mut self.open[slot];
            open.is_draining = self.draining.contains(open.address);
            if open.is_draining {
                self.drained.open += 1;
                let taken = self.drained.taken.as_flattened_mut().iter_mut().zip(open.taken.as_flattened());
                taken.for_each(|(sum, taken)| *sum += u64::from(*taken));
            }
            for protocol in NatProtocol::ALL {
                self.sort_in(slot as u32, protocol);
            }
        }
        while self.open.len() as u64 - self.drained.open < OPEN_AT_START && self.open_another() {}
    }

    /// Whether the address of a slot is being drained.
    pub fn is_draining(&self, slot: PoolSlot) -> bool {
        self.open[slot.0 as usize].is_draining
    }

    /// The addresses that are being drained.
    pub const fn draining(&self) -> &Draining {
        &self.draining
    }

    /// A host is paired with the address of a slot, or no longer.
    pub fn paired(&mut self, slot: PoolSlot, is_paired: bool) {
        let hosts = &mut self.open[slot.0 as usize].hosts;
        *hosts = if is_paired { *hosts + 1 } else { hosts.saturating_sub(1) };
    }

    /// Adds what is left at an open address that is being drained to the row of its prefix, which is returned. `not_bound`: endpoints of a
    /// protocol that are taken there without a binding.
    pub fn count_draining<'r>(
        &self,
        slot: PoolSlot,
        not_bound: impl Fn(Ipv4Addr, NatProtocol) -> u32,
        rows: &'r mut [DrainingRow],
    ) -> Option<&'r mut DrainingRow> {
        let open = self.open.get(slot.0 as usize).filter(|open| open.is_draining)?;
        let row = self.draining.find(open.address).and_then(|at| rows.get_mut(at))?;
        for protocol in NatProtocol::ALL {
            let taken = open.taken_of(protocol);
            row.bindings += u64::from(taken.saturating_sub(not_bound(open.address, protocol)));
        }
        row.hosts += u64::from(open.hosts);
        Some(row)
    }

    /// Whether the addresses that hosts get have many bindings on average: one more is to be opened.
    pub(super) fn is_crowded(&self) -> bool {
        let taken: u64 = self.drained.taken.as_flattened().iter().sum();
        let open = self.open.len() as u64 - self.drained.open;
        self.bindings.saturating_sub(taken) > open * super::BINDINGS_PER_OPEN_ADDRESS
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outside, Ownership, PoolConfig};
    use super::*;
    use crate::nat::PortRange;
    use crate::nat::Spread;
    use crate::verdict::WorkerId;
    use core::net::Ipv6Addr;
    use sixway_wire::Endpoint4;
    use std::collections::BTreeSet;
    use std::ops::RangeInclusive;

    fn pool(addresses: &str, ports: RangeInclusive<u16>) -> Pool {
        let config = PoolConfig { addresses: vec![addresses.parse().unwrap()], ports: vec![ports] };
        let ownership = Ownership::<Ipv6Addr>::striped(1, Spread::new([1, 2], 64));
        Pool::new(&config, &ownership, WorkerId(0), [11, 12])
    }

    fn prefix(text: &str) -> Prefix4 {
        text.parse().unwrap()
    }

    /// All endpoints that further hosts get.
    fn all(pool: &mut Pool) -> BTreeSet<(Ipv4Addr, u16)> {
        let drawn = std::iter::from_fn(|| pool.allocate(None, NatProtocol::Udp, 5_000));
        drawn.map(|(_, outside)| (outside.0.address, outside.0.port)).collect()
    }

    #[test]
    fn further_hosts_get_the_other_addresses_and_all_of_them() {
        let mut pool = pool("192.0.2.0/29", 2_000..=2_003);
        let held: Vec<_> = (0..32).map(|_| pool.allocate(None, NatProtocol::Udp, 5_000).unwrap()).collect();
        for (slot, outside) in held {
            pool.release(slot, NatProtocol::Udp, outside.0.port);
        }
        pool.drain(prefix("192.0.2.4/30"), true);
        assert_eq!(pool.free_anywhere(NatProtocol::Udp, &PortRange::ALL), 16);
        let given = all(&mut pool);
        assert_eq!(given.len(), 16);
        assert!(given.iter().all(|(address, _)| *address < Ipv4Addr::new(192, 0, 2, 4)), "{given:?}");
        pool.drain(prefix("192.0.2.6/31"), false);
        assert_eq!(pool.free_anywhere(NatProtocol::Udp, &PortRange::ALL), 8);
        let given = all(&mut pool);
        assert!(given.iter().all(|(address, _)| *address >= Ipv4Addr::new(192, 0, 2, 6)), "{given:?}");
        assert_eq!(given.len(), 8);
    }

    #[test]
    fn what_is_taken_at_a_draining_address_stays_and_does_not_become_free_for_others() {
        let mut pool = pool("192.0.2.0/31", 2_000..=2_003);
        let at = |last, port| Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, last), port));
        let slot = pool.take(NatProtocol::Udp, at(0, 2_000)).unwrap();
        pool.paired(slot, true);
        pool.drain(prefix("192.0.2.0/32"), true);
        assert_eq!(
            pool.free_anywhere(NatProtocol::Udp, &PortRange::ALL),
            4,
            "what is taken there is not missing elsewhere"
        );
        let counted = |pool: &Pool, not_bound| {
            let mut rows =
                [DrainingRow { prefix: prefix("192.0.2.0/32"), bindings: 0, hosts: 0, portless: 0 }];
            pool.count_draining(slot, |_, _| not_bound, &mut rows);
            rows[0]
        };
        let row = |pool: &Pool| counted(pool, 0);
        let expected = DrainingRow { prefix: prefix("192.0.2.0/32"), bindings: 1, hosts: 1, portless: 0 };
        assert_eq!(row(&pool), expected);
        let (same, outside) = pool.allocate(Some(slot), NatProtocol::Udp, 5_000).unwrap();
        assert_eq!((same, outside.0.address), (slot, at(0, 0).0.address), "its host keeps the address");
        assert_eq!(row(&pool).bindings, 2);
        for port in [2_000, outside.0.port] {
            pool.release(slot, NatProtocol::Udp, port);
        }
        pool.paired(slot, false);
        assert_eq!(row(&pool), DrainingRow { bindings: 0, hosts: 0, ..expected });
        assert_eq!(pool.free_anywhere(NatProtocol::Udp, &PortRange::ALL), 4);
        assert_eq!(all(&mut pool), (2_000..=2_003).map(|port| (at(1, 0).0.address, port)).collect());
        assert_eq!(counted(&pool, 1).bindings, 0);
        assert_eq!(pool.free_anywhere(NatProtocol::Udp, &PortRange::ALL), 0, "all others are taken");
    }

    #[test]
    fn an_address_that_is_drained_has_no_room_for_more_bindings() {
        let mut pool = pool("192.0.2.0/31", 1_024..=65_535);
        pool.drain(prefix("192.0.2.0/32"), true);
        let at = |port| Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, 1), port));
        for port in 1_024..=2_047 {
            assert!(pool.take(NatProtocol::Udp, at(port)).is_some());
        }
        assert!(!pool.is_crowded());
        assert!(pool.take(NatProtocol::Udp, at(2_048)).is_some());
        assert!(pool.is_crowded(), "as if it were alone");
    }

    #[test]
    fn a_paired_host_has_the_ports_of_its_draining_address_to_the_last_one() {
        let mut pool = pool("192.0.2.0/31", 2_000..=2_003);
        let (slot, _) = pool.allocate(None, NatProtocol::Tcp, 5_000).unwrap();
        pool.drain(Prefix4::holding(pool.address_of(slot), 32), true);
        for _ in 1..4 {
            assert_eq!(pool.allocate(Some(slot), NatProtocol::Tcp, 5_000).unwrap().0, slot);
        }
        assert_eq!(pool.allocate(Some(slot), NatProtocol::Tcp, 5_000), None);
    }

    #[test]
    fn a_large_pool_opens_other_addresses_than_those_that_are_drained() {
        let mut pool = pool("10.0.0.0/16", 5_000..=5_999);
        pool.drain(prefix("10.0.0.0/17"), true);
        let mut given = BTreeSet::new();
        for _ in 0..1_000 {
            given.insert(pool.allocate(None, NatProtocol::Udp, 7_000).unwrap().1.0.address);
        }
        assert!(given.iter().all(|address| *address >= Ipv4Addr::new(10, 0, 128, 0)), "{given:?}");
        assert!(given.len() > 50, "hosts spread over as many addresses as ever: {}", given.len());
        // Addresses that are drained before they were opened are passed over, and not forgotten.
        let before = pool.open.len();
        pool.drain(prefix("10.0.0.0/17"), false);
        while pool.open_another() {}
        assert_eq!((pool.open.len(), before < 300), (65_536, true));
    }

    #[test]
    fn what_is_taken_at_draining_addresses_opens_no_others() {
        let mut pool = pool("10.0.0.0/16", 1_024..=65_535);
        pool.drain(prefix("10.0.0.0/31"), true);
        let before = pool.open.len();
        for (last, port) in (0..2).flat_map(|last| (1_024..=60_000).map(move |port| (last, port))) {
            let outside = Outside(Endpoint4::new(Ipv4Addr::new(10, 0, 0, last), port));
            assert!(pool.take(NatProtocol::Udp, outside).is_some());
        }
        assert!(!pool.is_crowded(), "117,954 bindings, but none elsewhere");
        let open = pool.open.iter().filter(|open| open.is_draining).count() as u64;
        assert_eq!((pool.drained.open, open), (2, 2));
        assert!(pool.open.len() <= before + 2);
    }

    #[test]
    fn a_block_that_moves_brings_no_port_of_a_draining_address() {
        let mut pool = pool("192.0.2.0/31", 61_056..=61_119);
        pool.drain(prefix("192.0.2.0/32"), true);
        pool.lose(954);
        pool.gain(954);
        let given = all(&mut pool);
        assert_eq!(given.len(), 64);
        assert!(given.iter().all(|(address, _)| *address == Ipv4Addr::new(192, 0, 2, 1)), "{given:?}");
    }
}
