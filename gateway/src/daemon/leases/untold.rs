//! Leases that a DNS thread waits for: its answer leaves when the workers know of them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a DNS thread waits. Its client asks again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Addresses of which not all workers know.
#[derive(Debug, Default)]
pub(super) struct Untold {
    addresses: Mutex<BTreeSet<Ipv4Addr>>,
    told: Condvar,
    hurry: Notify,
}

impl Untold {
    /// The workers are to know of this one.
    pub(super) fn add(&self, address: Ipv4Addr) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        self.hurry.notify_one();
    }

    /// The workers know of these.
    pub(super) fn remove(&self, known: impl Iterator<Item = Ipv4Addr>) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.is_empty() {
            return;
        }
        for address in known {
            addresses.remove(&address);
        }
        self.told.notify_all();
    }

    /// Waits until the workers know of an address. Whether they do.
    pub(super) fn wait(&self, address: Ipv4Addr) -> bool {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(addresses, PATIENCE, |them| them.contains(&address));
        let (addresses, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !addresses.contains(&address)
    }

    /// Until one is added.
    pub(super) async fn hurried(&self) {
        self.hurry.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn an_answer_waits_until_the_workers_know_of_the_lease_but_not_for_long() {
        let (untold, address) = (Arc::new(Untold::default()), Ipv4Addr::new(192, 0, 2, 1));
        assert!(untold.wait(address));
        untold.add(address);
        assert!(!untold.wait(address));
        let other = Arc::clone(&untold);
        let waits = thread::spawn(move || other.wait(address));
        untold.remove([address].into_iter());
        assert!(waits.join().unwrap());
    }
}
