//! Which worker owns an inside host, and which an outside endpoint: a table, so that both directions of a flow meet at the
//! worker that holds its state.
//!
//! The ports of every outside address are cut into blocks, dealt to the workers in stripes; a worker's allocator only
//! takes ports from its own blocks. Inside hosts are spread over the workers by their address. The exceptions are static
//! bindings: their outside endpoints and their inside hosts belong to worker 0, whatever block they lie in.

use super::inside_key::{InsideHost, Subscriber};
use super::protocol::NatProtocol;
use super::sides::{Inside, Outside};
use crate::verdict::WorkerId;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// Ports in a block: small enough that sixteen workers have well-known ports too.
pub const PORTS_PER_BLOCK: u16 = 64;

const BLOCKS: usize = 65_536 / PORTS_PER_BLOCK as usize;

/// The table.
#[derive(Clone, Debug)]
pub struct Ownership<H = Ipv6Addr> {
    workers: u8,
    blocks: Box<[WorkerId]>,
    /// Outside endpoints of static bindings.
    outside: BTreeSet<(NatProtocol, Outside<Endpoint4>)>,
    /// Inside hosts of static bindings, and how many they have.
    inside: BTreeMap<H, u32>,
}

impl<H: InsideHost> Ownership<H> {
    /// The default: blocks dealt in stripes to so many workers (at least one).
    pub fn striped(workers: u8) -> Self {
        let workers = workers.max(1);
        let blocks = (0..BLOCKS).map(|block| WorkerId((block % usize::from(workers)) as u8)).collect();
        Self { workers, blocks, outside: BTreeSet::new(), inside: BTreeMap::new() }
    }

    /// The worker that owns the sessions and bindings of an inside host.
    #[inline]
    pub fn worker_of_inside(&self, host: H) -> WorkerId {
        if self.workers == 1 || self.inside.contains_key(&host) {
            return WorkerId(0);
        }
        // Fixed, so that whoever steers packets before they reach a worker can compute it too.
        let Subscriber([high, low]) = host.subscriber(H::BITS);
        let mixed = (high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        WorkerId(((mixed * u64::from(self.workers)) >> 32) as u8)
    }

    /// The worker that owns an outside endpoint.
    #[inline]
    pub fn worker_of_outside(&self, protocol: NatProtocol, endpoint: Endpoint4) -> WorkerId {
        if self.workers == 1 || self.outside.contains(&(protocol, Outside(endpoint))) {
            return WorkerId(0);
        }
        self.worker_of_block(endpoint.port)
    }

    /// The worker in whose blocks the port lies, static bindings left aside.
    #[inline]
    pub fn worker_of_block(&self, port: u16) -> WorkerId {
        self.blocks[usize::from(port / PORTS_PER_BLOCK)]
    }

    /// Gives the endpoints of a static binding to worker 0.
    pub fn add_static(&mut self, protocol: NatProtocol, inside: Inside<H>, outside: Outside<Endpoint4>) {
        if self.outside.insert((protocol, outside)) {
            *self.inside.entry(inside.0).or_default() += 1;
        }
    }

    /// Takes a static binding out: its port belongs to its block's worker again, its host to the worker of its address
    /// when it has no other.
    pub fn remove_static(&mut self, protocol: NatProtocol, inside: Inside<H>, outside: Outside<Endpoint4>) {
        if !self.outside.remove(&(protocol, outside)) {
            return;
        }
        if let Some(count) = self.inside.get_mut(&inside.0) {
            *count -= 1;
            if *count == 0 {
                self.inside.remove(&inside.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_striped_and_every_worker_has_ports_of_both_ranges_and_parities() {
        let table = Ownership::<Ipv6Addr>::striped(4);
        assert_eq!(table.worker_of_block(0), WorkerId(0));
        assert_eq!(table.worker_of_block(63), WorkerId(0));
        assert_eq!(table.worker_of_block(64), WorkerId(1));
        assert_eq!(table.worker_of_block(65_535), WorkerId(3));
        for worker in 0..16 {
            let table = Ownership::<Ipv6Addr>::striped(16);
            assert!((0..1_024).any(|port| table.worker_of_block(port) == WorkerId(worker)));
        }
    }

    #[test]
    fn inside_hosts_spread_over_the_workers() {
        let table = Ownership::striped(4);
        let mut hosts = [0; 4];
        for host in 0..1_000u128 {
            hosts[usize::from(table.worker_of_inside(Ipv6Addr::from_bits((0x2001_0db8 << 96) + host)).0)] +=
                1;
        }
        assert!(hosts.iter().all(|count| (150..350).contains(count)), "{hosts:?}");
    }

    #[test]
    fn a_static_binding_and_its_host_belong_to_worker_0_until_it_is_removed() {
        let mut table = Ownership::striped(4);
        let host =
            (1..).map(Ipv6Addr::from_bits).find(|host| table.worker_of_inside(*host) != WorkerId(0)).unwrap();
        let at = |port| Endpoint4::new("192.0.2.1".parse().unwrap(), port);
        table.add_static(NatProtocol::Tcp, Inside(host), Outside(at(64)));
        table.add_static(NatProtocol::Tcp, Inside(host), Outside(at(65)));
        assert_eq!(table.worker_of_outside(NatProtocol::Tcp, at(64)), WorkerId(0));
        assert_eq!(table.worker_of_outside(NatProtocol::Udp, at(64)), WorkerId(1));
        table.remove_static(NatProtocol::Tcp, Inside(host), Outside(at(64)));
        table.remove_static(NatProtocol::Tcp, Inside(host), Outside(at(64)));
        assert_eq!(table.worker_of_outside(NatProtocol::Tcp, at(64)), WorkerId(1));
        assert_eq!(table.worker_of_inside(host), WorkerId(0), "one static binding is left");
        table.remove_static(NatProtocol::Tcp, Inside(host), Outside(at(65)));
        assert_ne!(table.worker_of_inside(host), WorkerId(0));
    }
}
