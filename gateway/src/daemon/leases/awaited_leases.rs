//! Leases that a DNS thread waits for: its answer is sent when the workers have them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a DNS thread waits. Its client asks again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Addresses whose leases not all workers have.
#[derive(Debug, Default)]
struct Addresses {
    all: BTreeSet<Ipv4Addr>,
    /// Nothing was passed to the workers since a query waited without success: no other query of this thread waits as well.
    is_stuck: bool,
}

/// The same, with notifications of the threads that wait for them.
#[derive(Debug)]
pub(super) struct AwaitedLeases {
    /// How long a DNS thread waits.
    pub(super) patience: Duration,
    addresses: Mutex<Addresses>,
    installed: Condvar,
    added: Notify,
}

impl Default for AwaitedLeases {
    fn default() -> Self {
        Self {
            patience: PATIENCE,
            addresses: Mutex::default(),
            installed: Condvar::new(),
            added: Notify::new(),
        }
    }
}

impl AwaitedLeases {
    /// Adds a lease that the workers do not have yet.
    pub(super) fn add(&self, address: Ipv4Addr) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).all.insert(address);
        self.added.notify_one();
    }

    /// Removes leases that the workers have.
    pub(super) fn remove(&self, known: impl Iterator<Item = Ipv4Addr>) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.is_stuck = false;
        if addresses.all.is_empty() {
            return;
        }
        for address in known {
            addresses.all.remove(&address);
        }
        self.installed.notify_all();
    }

    /// Waits until the workers have the lease of an address; returns whether they do. If the control thread is slow, only one query waits.
    pub(super) fn wait(&self, address: Ipv4Addr) -> bool {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unknown = |them: &mut Addresses| them.all.contains(&address) && !them.is_stuck;
        let waited = self.installed.wait_timeout_while(addresses, self.patience, is_unknown);
        let (mut addresses, time) = waited.unwrap_or_else(PoisonError::into_inner);
        addresses.is_stuck |= time.timed_out();
        !addresses.all.contains(&address)
    }

    /// Returns when a lease is added.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn an_answer_waits_a_bounded_time_until_the_workers_have_the_lease() {
        let (awaited, address) = (Arc::new(AwaitedLeases::default()), Ipv4Addr::new(192, 0, 2, 1));
        assert!(awaited.wait(address));
        awaited.add(address);
        let begun = Instant::now();
        assert!((0..100).all(|_| !awaited.wait(address)));
        assert!(begun.elapsed() < 40 * PATIENCE, "one of them waited");
        awaited.remove(core::iter::empty());
        assert!(!awaited.wait(address));
        assert!(begun.elapsed() >= 2 * PATIENCE, "news for another: one more may wait");
    }

    #[test]
    fn an_answer_that_waits_is_sent_when_the_workers_have_the_lease() {
        let patience = Duration::from_secs(60);
        let (awaited, address) =
            (Arc::new(AwaitedLeases { patience, ..Default::default() }), Ipv4Addr::new(192, 0, 2, 1));
        awaited.add(address);
        let other = Arc::clone(&awaited);
        let begun = Instant::now();
        let waits = thread::spawn(move || other.wait(address));
        // It waits now.
        thread::sleep(PATIENCE);
        awaited.remove([address].into_iter());
        assert!(waits.join().unwrap());
        assert!(begun.elapsed() < patience / 2, "nothing woke it");
    }
}
