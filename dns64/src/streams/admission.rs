//! Admission of connections: limits in total, per address and per /64. No connection is closed to make room, but the idle timeout is
//! shorter when many are open.

use super::bounds::Bounds;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The open connections.
#[derive(Clone, Debug)]
pub struct Admission {
    bounds: Bounds,
    taken: Arc<Mutex<Usage>>,
}

#[derive(Debug, Default)]
struct Usage {
    all: usize,
    addresses: HashMap<IpAddr, usize>,
    subnets: HashMap<u64, usize>,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The total limit was reached.
    ConnectionLimit,
    /// The limit of its address or /64 was reached.
    AddressLimit,
}

/// One admitted connection, until this is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    address: IpAddr,
    of: Admission,
}

impl Admission {
    /// Without connections.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, taken: Arc::default() }
    }

    /// A place for one more connection of `address`.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit(&self, address: IpAddr) -> Result<ConnectionSlot, Refusal> {
        let address = address.to_canonical();
        let mut taken = self.taken();
        if taken.all >= self.bounds.connections {
            return Err(Refusal::ConnectionLimit);
        }
        let of_address = taken.addresses.get(&address).copied().unwrap_or(0);
        let of_subnet = subnet(address).and_then(|subnet| taken.subnets.get(&subnet)).copied().unwrap_or(0);
        if of_address >= self.bounds.per_address || of_subnet >= self.bounds.per_subnet {
            return Err(Refusal::AddressLimit);
        }
        taken.all += 1;
        *taken.addresses.entry(address).or_default() += 1;
        if let Some(subnet) = subnet(address) {
            *taken.subnets.entry(subnet).or_default() += 1;
        }
        Ok(ConnectionSlot { address, of: self.clone() })
    }

    /// How long a connection may be idle at present.
    pub fn idle_time(&self) -> Duration {
        let crowded = self.taken().all > self.bounds.connections / 4 * 3;
        if crowded { self.bounds.idle_when_crowded } else { self.bounds.idle }
    }

    /// The bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Connections that there are.
    pub fn connections(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Usage> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all = taken.all.saturating_sub(1);
        one_less(&mut taken.addresses, &self.address);
        if let Some(subnet) = subnet(self.address) {
            one_less(&mut taken.subnets, &subnet);
        }
    }
}

/// The /64, of all addresses but IPv4 ones.
fn subnet(address: IpAddr) -> Option<u64> {
    match address {
        IpAddr::V4(_) | IpAddr::V6(Ipv6Addr::LOCALHOST) => None,
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).ok(),
    }
}

fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission() -> Admission {
        Admission::new(Bounds { connections: 8, per_address: 2, per_subnet: 4, ..Bounds::default() })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_and_a_subnet_have_their_share_and_give_it_back() {
        let admission = admission();
        let one = admission.admit(address("2001:db8::1")).unwrap();
        let _two = admission.admit(address("2001:db8::1")).unwrap();
        assert_eq!(admission.admit(address("2001:db8::1")).unwrap_err(), Refusal::AddressLimit);
        let _three = admission.admit(address("2001:db8::2")).unwrap();
        let _four = admission.admit(address("2001:db8::3")).unwrap();
        assert_eq!(admission.admit(address("2001:db8::4")).unwrap_err(), Refusal::AddressLimit);
        drop(one);
        assert!(admission.admit(address("2001:db8::4")).is_ok());
    }

    #[test]
    fn ipv4_addresses_are_the_same_however_they_are_written() {
        let admission = admission();
        let _one = admission.admit(address("192.0.2.1")).unwrap();
        let _two = admission.admit(address("::ffff:192.0.2.1")).unwrap();
        assert!(admission.admit(address("192.0.2.1")).is_err());
        assert!(admission.admit(address("192.0.2.2")).is_ok());
    }

    #[test]
    fn beyond_all_places_nobody_is_admitted_and_before_that_the_idle_go_sooner() {
        let admission = admission();
        let idle = admission.idle_time();
        let places: Vec<ConnectionSlot> =
            (0..8).map(|host| admission.admit(IpAddr::from([192, 0, 2, host])).unwrap()).collect();
        assert_eq!(admission.admit(address("192.0.2.99")).unwrap_err(), Refusal::ConnectionLimit);
        assert!(admission.idle_time() < idle);
        drop(places);
        assert_eq!((admission.connections(), admission.idle_time()), (0, idle));
        assert!(admission.taken().addresses.is_empty() && admission.taken().subnets.is_empty());
    }
}
