//! Leases that a DNS thread waits for: its answer is sent when the workers have them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a DNS thread waits. Its client asks again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Addresses of which not all workers know.
#[derive(Debug, Default)]
struct Addresses {
    all: BTreeSet<Ipv4Addr>,
    /// Nothing was passed to the workers since a query waited without success: no other query of this thread waits as well.
    is_stuck: bool,
}

/// The same, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Untold {
    addresses: Mutex<Addresses>,
    told: Condvar,
    hurry: Notify,
}

impl Untold {
    /// The workers are to know of this one.
    pub(super) fn add(&self, address: Ipv4Addr) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).all.insert(address);
        self.hurry.notify_one();
    }

    /// The workers know of these.
    pub(super) fn remove(&self, known: impl Iterator<Item = Ipv4Addr>) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.is_stuck = false;
        if addresses.all.is_empty() {
            return;
        }
        for address in known {
            addresses.all.remove(&address);
        }
        self.told.notify_all();
    }

    /// Waits until the workers know an address; returns whether they do. While control is slow, one query waits and the others do not.
    pub(super) fn wait(&self, address: Ipv4Addr) -> bool {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unknown = |them: &mut Addresses| them.all.contains(&address) && !them.is_stuck;
        let waited = self.told.wait_timeout_while(addresses, PATIENCE, is_unknown);
        let (mut addresses, time) = waited.unwrap_or_else(PoisonError::into_inner);
        addresses.is_stuck |= time.timed_out();
        !addresses.all.contains(&address)
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
    use std::time::Instant;

    #[test]
    fn an_answer_waits_until_the_workers_know_of_the_lease_but_not_for_long() {
        let (untold, address) = (Arc::new(Untold::default()), Ipv4Addr::new(192, 0, 2, 1));
        assert!(untold.wait(address));
        untold.add(address);
        let begun = Instant::now();
        assert!((0..100).all(|_| !untold.wait(address)));
        assert!(begun.elapsed() < 40 * PATIENCE, "one of them waited");
        untold.remove(core::iter::empty());
        let other = Arc::clone(&untold);
        let waits = thread::spawn(move || other.wait(address));
        untold.remove([address].into_iter());
        assert!(waits.join().unwrap());
    }
}
