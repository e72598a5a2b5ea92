//! Names of hosts whose IPv4 addresses are leased: a query for A begins a lease.

use crate::Instant;
use core::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};

/// The known data about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasedAddress {
    /// It is not the name of such a host.
    NotListed,
    /// Its host has this address, certainly for this number of seconds.
    Has(Ipv4Addr, u32),
    /// No lease for a client whose address may be forged: the client must repeat the query over TCP.
    Unproven,
    /// The host cannot get a lease at the moment.
    None,
}

/// The hosts with such names.
pub trait LeasedNames: Debug + Send + Sync {
    /// The address of the host that has this name, in lower-case wire form, for a client, and whether the client's address
    /// is certain, as by a stream. Packets to the leased address may come when this returns.
    fn address(&self, name: &[u8], client: (IpAddr, bool), now: Instant) -> LeasedAddress;
}
