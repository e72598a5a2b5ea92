//! Ports that are kept for the host that has the port of the same number of the other protocol by request (RFC 6886 §3.3).
//!
//! ```text
//!     TCP 192.0.2.1:8080 ▶ a host, by NAT-PMP          UDP 192.0.2.1:8080: taken in the pool, so that no host gets it,
//!                                                      assigned to the host by its request, and reserved again when the host has released it
//! ```
//!
//! Both ports are of one block, and so this worker's. Where subscribers have blocks of their own, the other port is theirs in any case.

use super::pool::PoolSlot;
use super::protocol::NatProtocol;
use super::quarantine::Key;
use std::collections::BTreeMap;

/// The same endpoint of the other protocol.
pub(super) const fn companion((protocol, outside): Key) -> Option<Key> {
    match protocol {
        NatProtocol::Tcp => Some((NatProtocol::Udp, outside)),
        NatProtocol::Udp => Some((NatProtocol::Tcp, outside)),
        NatProtocol::Icmp => None,
    }
}

/// The ports that are kept. As many as there are explicit bindings, at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Companions(BTreeMap<Key, Option<PoolSlot>>);

impl Companions {
    /// Whether this is one that has to be kept.
    pub(super) fn has(&self, key: Key) -> bool {
        self.0.contains_key(&key)
    }

    /// Whether it is kept, and no host has it.
    pub(super) fn is_unused(&self, key: Key) -> bool {
        matches!(self.0.get(&key), Some(Some(_)))
    }

    /// Keeps it: `slot`, it is taken in the pool for this; `None`, its host has it. What was taken before.
    pub(super) fn keep(&mut self, key: Key, slot: Option<PoolSlot>) -> Option<PoolSlot> {
        self.0.insert(key, slot).flatten()
    }

    /// Keeps it no longer. What was taken in the pool.
    pub(super) fn forget(&mut self, key: Key) -> Option<PoolSlot> {
        self.0.remove(&key).flatten()
    }
}
