//! The dual device setup of RFC 8219 §4.2 for double translation: the CLAT and the PLAT of 464XLAT (RFC 6877) between the tester's ends, which are IPv4
//! hosts. The CLAT is stateless, and the PLAT a stateful NAT64.

use super::dual::{both, network};
use super::topology::{POOL, PREFIX, Scene};
use crate::device::{Clat, Nat64, Task};
use crate::experiment::contract::Line;
use crate::failure::Result;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The near end, and the IPv6 address that the CLAT gives it.
const HOST: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 168, 18, 2), Ipv6Addr::new(0x2001, 2, 0, 0x301, 0, 0, 0, 2));

/// Builds the network, and starts both devices.
pub fn scene(line: &Line<'_>) -> Result<Scene> {
    let network = Arc::new(network(line.cores)?);
    network.route("second", "2001:2:0:301::/64 via 2001:2:0:300::1")?;
    let clat = Clat { prefix: PREFIX.to_owned(), hosts: vec![HOST] };
    let plat = Nat64 { prefix: PREFIX.to_owned(), pool: vec![POOL.to_owned()], sessions: None };
    both(line, network, Task::Clat(clat), Task::Nat64(plat))
}
