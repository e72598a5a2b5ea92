//! The remote addresses with which sessions are allowed.

use crate::drop_reason::DropReason;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// Remote addresses that the operator excludes, and this host's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remotes {
    /// Remote IPv4 addresses with which sessions are not allowed (RFC 6888 REQ-6).
    excluded: Vec<Prefix4>,
    /// This host's IPv4 addresses, ascending.
    host4: Vec<Ipv4Addr>,
    /// Those of them that hosts may create sessions to; and the pool, whose addresses may be this host's.
    allowed_own: Vec<Prefix4>,
}

impl Remotes {
    /// `allowed_own` are the pool's addresses, and those of this host that inside hosts may reach.
    pub(crate) const fn new(excluded: Vec<Prefix4>, allowed_own: Vec<Prefix4>) -> Self {
        Self { excluded, host4: Vec::new(), allowed_own }
    }

    /// This host's addresses from now on.
    pub(crate) fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.host4 = host4.to_vec();
        self.host4.sort_unstable();
    }

    /// Whether an inside host may open a session to this address.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn refuse_destination(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        if self.excluded.is_empty() && self.host4.is_empty() {
            return Ok(());
        }
        self.refuse_excluded(remote)?;
        self.refuse_own(remote)
    }

    /// Whether there may be sessions with this address.
    ///
    /// # Errors
    /// It is excluded.
    pub(crate) fn refuse_excluded(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        let is_excluded = self.excluded.iter().any(|prefix| prefix.contains(remote));
        if is_excluded { Err(DropReason::ExcludedIpv4) } else { Ok(()) }
    }

    /// The kernel delivers packets for this host's addresses to its own services, whatever interface they were bound for: those
    /// services have not agreed to be reachable through a translator.
    ///
    /// # Errors
    /// It is this host's, and not one that is allowed.
    pub(crate) fn refuse_own(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        let is_own = self.host4.binary_search(&remote).is_ok()
            && !self.allowed_own.iter().any(|prefix| prefix.contains(remote));
        if is_own { Err(DropReason::DestinationIsHost) } else { Ok(()) }
    }
}
