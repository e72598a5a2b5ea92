//! Who may have how many peers in the list. Counters belong to all addresses with one hash.

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
/// Bits of an IPv6 address that are one site's to choose.
const SITE: u32 = 128 - 48;
/// The same of an IPv4 address, behind which many clients may be.
const OF_ADDRESS: u32 = 64;
/// What everybody may have of a small list.
const LEAST: u32 = 16;

/// Whose packets have no share: this host itself, at a client.
pub(super) const OWN: u16 = 0;

/// The counters.
#[derive(Debug)]
pub(super) struct Shares {
    hash: FixedState,
    /// Peers that have not answered, by who sent to them.
    senders: Vec<u32>,
    /// Peers by the IPv4 address that theirs contains.
    addresses: Vec<u32>,
    most: u32,
}

impl Shares {
    pub(super) fn new(most: u32, seed: u64) -> Self {
        Self {
            hash: FixedState::with_seed(seed),
            senders: vec![0; COUNTERS],
            addresses: vec![0; COUNTERS],
            most,
        }
    }

    /// The counter of a sender: that of a client is its IPv4 address.
    pub(super) fn creator(&self, sender: Ipv6Addr) -> u16 {
        let site = match TeredoAddress::of(sender) {
            Some(client) => client.mapped().address.to_bits().into(),
            None => (sender.to_bits() >> SITE) as u64,
        };
        (self.hash.hash_one(site) as u16).max(OWN + 1)
    }

    /// Octets of memory.
    pub(super) fn memory_used(&self) -> usize {
        (self.senders.len() + self.addresses.len()) * size_of::<u32>()
    }

    fn of_address(&self, address: Ipv4Addr) -> usize {
        self.hash.hash_one(address.to_bits()) as usize % COUNTERS
    }

    /// Whether a sender may have another peer with this IPv4 address.
    pub(super) fn check(&self, creator: u16, address: Option<Ipv4Addr>) -> Result<(), DropReason> {
        let of_sender = self.senders[usize::from(creator)];
        let of_address = address.map_or(0, |address| self.addresses[self.of_address(address)]);
        if creator != OWN && of_sender >= (self.most / OF_SENDER).max(LEAST)
            || of_address >= (self.most / OF_ADDRESS).max(LEAST)
        {
            return Err(DropReason::TeredoPeersFull);
        }
        Ok(())
    }

    /// A peer that has not answered is new.
    pub(super) fn add(&mut self, creator: u16, address: Option<Ipv4Addr>) {
        self.senders[usize::from(creator)] += 1;
        if let Some(address) = address {
            let at = self.of_address(address);
            self.addresses[at] += 1;
        }
    }

    /// A peer has answered for the first time.
    pub(super) fn proven(&mut self, creator: u16) {
        self.senders[usize::from(creator)] -= 1;
    }

    /// A peer is gone.
    pub(super) fn remove(&mut self, creator: u16, address: Option<Ipv4Addr>, is_unproven: bool) {
        self.senders[usize::from(creator)] -= u32::from(is_unproven);
        if let Some(address) = address {
            let at = self.of_address(address);
            self.addresses[at] -= 1;
        }
    }
}
