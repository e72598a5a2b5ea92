//! Rules by the prefixes of their clients: found by one lookup for each prefix length that occurs.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use sixway_wire::{Prefix4, Prefix6};
use std::net::IpAddr;

/// A prefix of either family: whether it is IPv4, its first address, its length.
type Prefix = (bool, u128, u8);

/// Places of rules, ascending, at the prefixes of their clients.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    lists: HashMap<Prefix, Vec<u32>, FixedState>,
    /// The lengths that occur, of IPv6 and of IPv4 prefixes.
    lengths: [Vec<u8>; 2],
}

impl Default for Clients {
    fn default() -> Self {
        Self { lists: HashMap::with_hasher(FixedState::default()), lengths: Default::default() }
    }
}

impl Clients {
    /// Puts a rule at its clients' prefixes. Rules come in order.
    pub(super) fn insert(&mut self, place: u32, v4: &[Prefix4], v6: &[Prefix6]) {
        let v4 = v4.iter().map(|prefix| (true, u128::from(prefix.address().to_bits()), prefix.length()));
        let v6 = v6.iter().map(|prefix| (false, prefix.address().to_bits(), prefix.length()));
        for prefix in v4.chain(v6) {
            let lengths = &mut self.lengths[usize::from(prefix.0)];
            if !lengths.contains(&prefix.2) {
                lengths.push(prefix.2);
            }
            self.lists.entry(prefix).or_default().push(place);
        }
    }

    /// The lists of the prefixes that the client is within; an IPv4-mapped address counts as IPv4.
    pub(super) fn lists(&self, client: IpAddr) -> impl Iterator<Item = &[u32]> {
        let client = client.to_canonical();
        self.lengths[usize::from(client.is_ipv4())].iter().filter_map(move |length| {
            let prefix = match client {
                IpAddr::V4(client) => u128::from(Prefix4::holding(client, *length).address().to_bits()),
                IpAddr::V6(client) => Prefix6::holding(client, *length).address().to_bits(),
            };
            self.lists.get(&(client.is_ipv4(), prefix, *length)).map(Vec::as_slice)
        })
    }
}
