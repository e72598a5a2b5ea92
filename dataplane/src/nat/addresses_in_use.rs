//! Which addresses of a pool have bindings, at any worker. Only the first fragment of a packet has the port, so that the worker that holds
//! it cannot know which binding its packet needs; but it can know that there is no binding at all.

use super::protocol::NatProtocol;
use crate::verdict::WorkerId;
use core::sync::atomic::{AtomicU64, Ordering};

/// Addresses of a larger pool are taken to be in use.
const MOST_ADDRESSES: u64 = 1 << 16;

/// One bit for each worker, of each protocol and address.
#[derive(Debug)]
pub struct AddressesInUse {
    words: Box<[[AtomicU64; 3]]>,
}

impl AddressesInUse {
    /// For a pool of this many addresses, none of which has bindings.
    pub fn new(addresses: u64) -> Self {
        let count = if addresses > MOST_ADDRESSES { 0 } else { addresses };
        Self { words: (0..count).map(|_| Default::default()).collect() }
    }

    /// A worker has bindings at an address, or has none.
    pub(super) fn set(&self, number: u64, protocol: NatProtocol, worker: WorkerId, is_used: bool) {
        let Some((word, bit)) = self.word(number, protocol).zip(1_u64.checked_shl(worker.0.into())) else {
            return;
        };
        if is_used {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Whether any worker may have bindings at an address.
    pub(super) fn any(&self, number: u64, protocol: NatProtocol) -> bool {
        self.word(number, protocol).is_none_or(|word| word.load(Ordering::Relaxed) != 0)
    }

    fn word(&self, number: u64, protocol: NatProtocol) -> Option<&AtomicU64> {
        self.words.get(usize::try_from(number).ok()?).map(|words| &words[protocol as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_use_as_long_as_one_worker_has_bindings_there() {
        let in_use = AddressesInUse::new(2);
        for worker in [0, 63] {
            in_use.set(1, NatProtocol::Udp, WorkerId(worker), true);
        }
        in_use.set(1, NatProtocol::Udp, WorkerId(0), false);
        assert!(in_use.any(1, NatProtocol::Udp));
        in_use.set(1, NatProtocol::Udp, WorkerId(63), false);
        assert!(!in_use.any(1, NatProtocol::Udp));
        assert!(in_use.any(2, NatProtocol::Udp), "of an address that is not recorded nothing is known");
    }
}
