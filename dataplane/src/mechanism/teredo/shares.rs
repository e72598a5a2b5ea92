//! The number of peers in the list that each sender may cause. Addresses with the same hash share a counter.

use crate::drop_reason::DropReason;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::fast::FixedState;
use sixway_wire::teredo::TeredoAddress;

/// Counters of each kind.
const COUNTERS: usize = 1 << 16;
/// A sender may have this part of the list as peers that have not answered: a site, whose prefix has 48 bits.
const OF_SENDER: u32 = 64;
/// Bits of an IPv6 address that a site can choose: those after its /48.
const SITE: u32 = 128 - 48;
/// The same of an IPv4 address, behind which many clients may be.
const OF_ADDRESS: u32 = 64;
/// The same for one sender's unanswered peers with one IPv4 address, so that other senders can reach peers behind that address.
const OF_BOTH: u32 = 512;
/// The share of each sender in a small list.
const LEAST: u32 = 16;

/// The sender without a share: this host itself, at a client.
pub(super) const OWN: u16 = 0;

/// The counters.
#[derive(Debug)]
pub(super) struct Shares {
    hash: FixedState,
    /// Peers that have not answered, by who sent to them.
    senders: Vec<u32>,
    /// Peers by the IPv4 address that theirs contains.
    addresses: Vec<u32>,
    /// Peers that have not answered, by both.
    both: Vec<u32>,
    most: u32,
}

impl Shares {
    pub(super) fn new(most: u32, seed: u64) -> Self {
        Self {
            hash: FixedState::with_seed(seed),
            senders: vec![0; COUNTERS],
            addresses: vec![0; COUNTERS],
            both: vec![0; COUNTERS],
            most,
        }
    }

    /// The counter of a sender: that of a client is its IPv4 address.
    pub(super) fn creator(&self, sender: Ipv6Addr) -> u16 {
        let site = match TeredoAddress::of(sender) {
            Some(client) => return self.creator4(client.mapped().address),
            None => (sender.to_bits() >> SITE) as u64,
        };
        (self.hash.hash_one(site) as u16).max(OWN + 1)
    }

    /// The counter of an IPv4 sender.
    pub(super) fn creator4(&self, address: Ipv4Addr) -> u16 {
        (self.hash.hash_one(u64::from(address.to_bits())) as u16).max(OWN + 1)
    }

    /// Octets of memory.
    pub(super) fn memory_used(&self) -> usize {
        (self.senders.len() + self.addresses.len() + self.both.len()) * size_of::<u32>()
    }

    fn of_address(&self, address: Ipv4Addr) -> usize {
        self.hash.hash_one(address.to_bits()) as usize % COUNTERS
    }

    fn of_both(&self, creator: u16, address: Ipv4Addr) -> usize {
        self.hash.hash_one((creator, address.to_bits())) as usize % COUNTERS
    }

    /// Whether a sender may have another peer with this IPv4 address.
    pub(super) fn check(&self, creator: u16, address: Option<Ipv4Addr>) -> Result<(), DropReason> {
        let share = |part: u32| (self.most / part).max(LEAST);
        let of_sender = self.senders[usize::from(creator)];
        let of_address = address.map_or(0, |address| self.addresses[self.of_address(address)]);
        let of_both = address.map_or(0, |address| self.both[self.of_both(creator, address)]);
        let is_over = of_sender >= share(OF_SENDER) || of_both >= share(OF_BOTH);
        if creator != OWN && is_over || of_address >= share(OF_ADDRESS) {
            return Err(DropReason::TeredoPeersFull);
        }
        Ok(())
    }

    /// A peer that has not answered is new.
    pub(super) fn add(&mut self, creator: u16, address: Option<Ipv4Addr>) {
        self.claim(creator, address);
        if let Some(address) = address {
            let at = self.of_address(address);
            self.addresses[at] += 1;
        }
    }

    /// A peer that has not answered counts for this sender.
    pub(super) fn claim(&mut self, creator: u16, address: Option<Ipv4Addr>) {
        self.senders[usize::from(creator)] += 1;
        if let Some(address) = address {
            let at = self.of_both(creator, address);
            self.both[at] += 1;
        }
    }

    /// A peer has answered for the first time, or counts for another sender.
    pub(super) fn release(&mut self, creator: u16, address: Option<Ipv4Addr>) {
        self.senders[usize::from(creator)] -= 1;
        if let Some(address) = address {
            let at = self.of_both(creator, address);
            self.both[at] -= 1;
        }
    }

    /// A peer was removed.
    pub(super) fn remove(&mut self, creator: u16, address: Option<Ipv4Addr>, is_unproven: bool) {
        if is_unproven {
            self.release(creator, address);
        }
        if let Some(address) = address {
            let at = self.of_address(address);
            self.addresses[at] -= 1;
        }
    }
}
