//! The addresses that may connect. Other connections are closed before anything is read.

use sixway_control::dns64::Access;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// The list, which changes as this host's addresses do.
#[derive(Clone, Debug)]
pub struct Gate(Arc<RwLock<Access>>);

impl Gate {
    /// For these.
    pub fn new(access: Access) -> Self {
        Self(Arc::new(RwLock::new(access)))
    }

    /// For others from now on.
    pub fn set(&self, access: Access) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// Whether this one may connect.
    pub fn admits(&self, address: IpAddr) -> bool {
        let access = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match address.to_canonical() {
            IpAddr::V4(address) => access.v4.iter().any(|prefix| prefix.contains(address)),
            IpAddr::V6(address) => access.v6.iter().any(|prefix| prefix.contains(address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_moment_decides_and_mapped_addresses_are_ipv4() {
        let gate = Gate::new(Access { v4: vec!["192.0.2.0/24".parse().unwrap()], ..Access::default() });
        let admits = |text: &str| gate.admits(text.parse().unwrap());
        assert!(admits("192.0.2.7") && admits("::ffff:192.0.2.7"));
        assert!(!admits("198.51.100.1") && !admits("2001:db8::1"));
        gate.set(Access { v6: vec!["2001:db8::/32".parse().unwrap()], ..Access::default() });
        assert!(admits("2001:db8::1") && !admits("192.0.2.7"));
    }
}
