//! Configured tunnels (RFC 4213).

use super::carriage::{Ends, NEEDS, Near, SERVER, network};
use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::kernel_peer::KernelPeer;

pub const TESTS: &[Interop] =
    &[Interop::new("a_linux_kernel_is_the_other_end_of_a_configured_tunnel", NEEDS, linux_is_the_other_end)];

const TUNNEL: &str = r#"[tun]
name = "sixway0"

[[tunnel]]
local = "192.0.2.1"
remote = "192.0.2.8"
prefixes = ["2001:db8:8::/48"]
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

fn linux_is_the_other_end() -> Result<()> {
    let network = network(&[])?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh("set -e
        ip address add 192.0.2.8/24 dev eth0
        ip tunnel add fixed mode sit remote 192.0.2.1 local 192.0.2.8 ttl 64
        ip address add 2001:db8:8::1/48 dev fixed
        ip link set fixed up
        ip -6 route add default dev fixed")?;
    let (near, address) = (Near::Guest(&peer), "2001:db8:8::1");
    Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "fixed" }.everything(TUNNEL)
}
