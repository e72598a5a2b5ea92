//! Filtering (RFC 6146 §3.5.1, RFC 4787 §5): which remote endpoints may send to an outside endpoint, if no session has both.
//!
//! A remote address is let in as long as a session leads to it. The sessions of a pair (outside endpoint, remote address)
//! are counted here, so that the question costs one lookup however many sessions there are.

use super::growing_index::GrowingIndex;
use super::inside_key::address_word;
use super::keyed::{Purpose, TupleHash};
use super::protocol::NatProtocol;
use super::sides::Outside;
use super::slab::Slab;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

/// The filtering of packets from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// Any remote may send to an endpoint that has a binding.
    #[default]
    EndpointIndependent,
    /// Only remotes whose address a session leads to.
    AddressDependent,
    /// Only remotes whose address and port a session leads to.
    AddressAndPortDependent,
}

#[derive(Clone, Copy, Debug)]
struct Permit {
    outside: Outside<Endpoint4>,
    remote: Ipv4Addr,
    protocol: NatProtocol,
    sessions: u32,
}

/// The permits. Only address-dependent filtering needs a table.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    filtering: Filtering,
    table: Option<(Slab<Permit>, GrowingIndex)>,
    hash: TupleHash,
}

impl Permits {
    /// Permits for at most `most` sessions.
    pub(super) fn new(filtering: Filtering, most: u32, seed: [u64; 2]) -> Self {
        let table = match filtering {
            Filtering::EndpointIndependent | Filtering::AddressAndPortDependent => None,
            Filtering::AddressDependent => Some((Slab::new(most), GrowingIndex::new(most))),
        };
        Self { filtering, table, hash: TupleHash::new(seed, Purpose::Permits) }
    }

    fn tag(&self, protocol: NatProtocol, outside: Outside<Endpoint4>, remote: Ipv4Addr) -> u32 {
        let addresses = address_word(outside.0.address) << 32 | address_word(remote);
        self.hash.pair(addresses, u64::from(outside.0.port) << 8 | protocol as u64)
    }

    fn find(&self, protocol: NatProtocol, outside: Outside<Endpoint4>, remote: Ipv4Addr) -> Option<u32> {
        let (permits, index) = self.table.as_ref()?;
        index.find(self.tag(protocol, outside, remote), |slot| {
            let permit = &permits[slot];
            permit.outside == outside && permit.remote == remote && permit.protocol == protocol
        })
    }

    /// Whether only the remote endpoints of sessions are let in.
    pub(crate) fn are_sessions_alone(&self) -> bool {
        self.filtering == Filtering::AddressAndPortDependent
    }

    /// Whether the remote address may send to the outside endpoint with which it has no session by this port.
    pub(crate) fn admits(
        &self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        remote: Ipv4Addr,
    ) -> bool {
        match self.filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => self.find(protocol, outside, remote).is_some(),
            Filtering::AddressAndPortDependent => false,
        }
    }

    /// A session leads from the outside endpoint to the remote address. There is room for as many pairs as there may be sessions,
    /// so that no session is without its permit.
    pub(super) fn add(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, remote: Ipv4Addr) {
        let found = self.find(protocol, outside, remote);
        let tag = self.tag(protocol, outside, remote);
        let Some((permits, index)) = &mut self.table else { return };
        match found {
            Some(slot) => permits[slot].sessions += 1,
            None => {
                if let Some(slot) = permits.insert(Permit { outside, remote, protocol, sessions: 1 }) {
                    index.insert(tag, slot);
                }
            }
        }
    }

    /// A session of this pair has ended.
    pub(super) fn remove(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, remote: Ipv4Addr) {
        let Some(slot) = self.find(protocol, outside, remote) else { return };
        let tag = self.tag(protocol, outside, remote);
        let Some((permits, index)) = &mut self.table else { return };
        permits[slot].sessions -= 1;
        if permits[slot].sessions == 0 {
            index.remove(tag, slot);
            permits.release(slot);
        }
    }

    /// Memory in octets.
    pub(crate) fn memory(&self) -> usize {
        self.table.as_ref().map_or(0, |(permits, index)| permits.memory() + index.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_let_in_as_long_as_a_session_leads_to_it() {
        let mut permits = Permits::new(Filtering::AddressDependent, 4, [1, 2]);
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 2_000));
        let remote = "203.0.113.1".parse().unwrap();
        let admits = |permits: &Permits| permits.admits(NatProtocol::Udp, outside, remote);
        assert!(!admits(&permits));
        permits.add(NatProtocol::Udp, outside, remote);
        permits.add(NatProtocol::Udp, outside, remote);
        assert!(admits(&permits));
        assert!(!permits.admits(NatProtocol::Tcp, outside, remote));
        assert!(!permits.admits(NatProtocol::Udp, outside, "203.0.113.2".parse().unwrap()));
        permits.remove(NatProtocol::Udp, outside, remote);
        assert!(admits(&permits));
        permits.remove(NatProtocol::Udp, outside, remote);
        assert!(!admits(&permits));
    }

    /// Each part of a pair counts to its place in the index: many pairs that differ in one part alone do not meet there.
    #[test]
    fn pairs_are_spread_by_each_of_their_parts() {
        let permits = Permits::new(Filtering::AddressDependent, 4, [1, 2]);
        let tag = |address: u32, port: u16, remote: u32, protocol| {
            let outside = Outside(Endpoint4::new(Ipv4Addr::from_bits(address), port));
            permits.tag(protocol, outside, Ipv4Addr::from_bits(remote))
        };
        let of = |tags: Vec<u32>| tags.into_iter().collect::<std::collections::BTreeSet<u32>>().len();
        let many = || 0..1_000_u32;
        assert_eq!(of(many().map(|n| tag(0xc000_0200 + n, 2_000, 1, NatProtocol::Udp)).collect()), 1_000);
        assert_eq!(of(many().map(|n| tag(1, 2_000 + n as u16, 1, NatProtocol::Udp)).collect()), 1_000);
        assert_eq!(of(many().map(|n| tag(1, 2_000, 0xcb00_7100 + n, NatProtocol::Udp)).collect()), 1_000);
        assert_eq!(of(NatProtocol::ALL.iter().map(|protocol| tag(1, 2_000, 1, *protocol)).collect()), 3);
        // Two parts that are exchanged are another pair.
        assert_ne!(tag(1, 2_000, 2, NatProtocol::Udp), tag(2, 2_000, 1, NatProtocol::Udp));
        assert_ne!(tag(1, 1, 1, NatProtocol::Tcp), tag(1, 0, 1, NatProtocol::Udp));
    }

    #[test]
    fn a_full_table_lets_nobody_new_in_and_keeps_whom_it_let_in() {
        const MOST: u32 = 64;
        let mut permits = Permits::new(Filtering::AddressDependent, MOST, [1, 2]);
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 2_000));
        let remote = |number: u32| Ipv4Addr::from_bits(0xcb00_7100 + number);
        let admits =
            |permits: &Permits, number: u32| permits.admits(NatProtocol::Udp, outside, remote(number));
        for number in 0..MOST {
            permits.add(NatProtocol::Udp, outside, remote(number));
        }
        assert!((0..MOST).all(|number| admits(&permits, number)));
        // One too many is not let in, and its end takes nothing away from others.
        permits.add(NatProtocol::Udp, outside, remote(MOST));
        assert!(!admits(&permits, MOST));
        permits.remove(NatProtocol::Udp, outside, remote(MOST));
        assert!((0..MOST).all(|number| admits(&permits, number)));
        // Further sessions of a pair that is let in need no room, and the end of the last makes some.
        permits.add(NatProtocol::Udp, outside, remote(0));
        permits.remove(NatProtocol::Udp, outside, remote(0));
        assert!(admits(&permits, 0));
        permits.remove(NatProtocol::Udp, outside, remote(0));
        permits.add(NatProtocol::Udp, outside, remote(MOST));
        assert!(!admits(&permits, 0));
        assert!((1..=MOST).all(|number| admits(&permits, number)));
    }

    #[test]
    fn endpoint_independent_filtering_lets_everyone_in() {
        let permits = Permits::new(Filtering::EndpointIndependent, 4, [1, 2]);
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 2_000));
        assert!(permits.admits(NatProtocol::Udp, outside, "203.0.113.1".parse().unwrap()));
        assert_eq!(permits.memory(), 0);
    }
}
