//! How a guest's devices replace those of its host.

use crate::failure::Result;
use crate::topology::Network;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A tap device for a guest.
#[derive(Clone, Debug)]
pub struct Tap {
    /// Its name on the host.
    pub name: String,
    /// The link-layer address of the guest's end.
    pub address: String,
}

/// Replaces a host's device with a tap device, for a guest to take. The host itself keeps silent on all of them.
///
/// # Errors
/// `ip` refuses.
pub fn plug(network: &Network, host: &str, device: &str) -> Result<Tap> {
    let (host, bridge, tap) = (network.host(host)?, format!("bridge-{device}"), format!("tap-{device}"));
    host.sysctl("ipv6/conf/all/disable_ipv6", "1")?;
    host.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    host.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
    host.ip(&format!("tuntap add dev {tap} mode tap"))?;
    for port in [device, &tap] {
        host.ip(&format!("link set {port} master {bridge} up"))?;
    }
    host.ip(&format!("link set {bridge} up"))?;
    Ok(Tap { name: tap, address: link_address() })
}

/// A link-layer address of one's own choice that no other guest has.
fn link_address() -> String {
    let [a, b, c, d, e, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
    format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}
