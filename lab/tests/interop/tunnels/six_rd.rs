//! 6rd (RFC 5969): the guest and Sixway as customer's edge and border relay, in either part.

use super::carriage::{Ends, NEEDS, Near, SERVER, network, number_site};
use crate::{Interop, SIT_6RD};
use sixway_lab::failure::Result;
use sixway_lab::kernel_peer::{Features, KernelPeer, with_six_rd};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_linux_6rd_customer_edge_reaches_native_ipv6_through_our_border_relay",
        SIX_RD_NEEDS,
        border_relay,
    ),
    Interop::new(
        "our_6rd_customer_edge_reaches_native_ipv6_through_a_linux_border_relay",
        SIX_RD_NEEDS,
        customer_edge,
    ),
];

const SIX_RD_NEEDS: &[&str] =
    &[SIT_6RD, "sixway", "linux.uml", "busybox", "ping", "nginx", "curl", "tcpdump", "ethtool"];

/// All customers are in 192.0.2.0/24, so eight bits of their addresses follow 32 of the prefix: 192.0.2.8 has 3fff:6d:800::/40.
const BORDER_RELAY: &str = r#"[tun]
name = "sixway0"

[six_rd]
role = "border_relay"
prefix = "3fff:6d::/32"
ipv4_mask_length = 24
address = "192.0.2.1"
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

fn border_relay() -> Result<()> {
    assert!(NEEDS.iter().all(|program| SIX_RD_NEEDS.contains(program)));
    let network = network(&[])?;
    let features = Features { instead: with_six_rd(), ..Features::default() };
    let peer = KernelPeer::start_with(&network, "peer", &["up0"], &features)?;
    peer.sh("set -e
        ip address add 192.0.2.8/24 dev eth0
        ip tunnel add rd mode sit local 192.0.2.8 ttl 64
        ip tunnel 6rd dev rd 6rd-prefix 3fff:6d::/32 6rd-relay_prefix 192.0.2.0/24
        ip address add 3fff:6d:800::1/32 dev rd
        ip link set rd up
        ip -6 route add default via ::192.0.2.1 dev rd")?;
    let (near, address) = (Near::Guest(&peer), "3fff:6d:800::1");
    Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "rd" }
        .everything(BORDER_RELAY)
}

/// 192.0.2.1 has 3fff:6d:100::/40; the server is in its first subnet.
const CUSTOMER_EDGE: &str = r#"[tun]
name = "sixway0"

[six_rd]
role = "customer_edge"
prefix = "3fff:6d::/32"
ipv4_mask_length = 24
address = "192.0.2.1"
border_relays = ["192.0.2.8"]
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

fn customer_edge() -> Result<()> {
    let network = network(&["native"])?;
    number_site(&network, "3fff:6d:100:")?;
    network.link(("peer", "in0"), ("native", "up0"))?;
    network.address("native", "up0", "2001:db8:9::2/64")?;
    network.route("native", "default via 2001:db8:9::1")?;
    let features = Features { instead: with_six_rd(), ..Features::default() };
    let peer = KernelPeer::start_with(&network, "peer", &["up0", "in0"], &features)?;
    peer.sh("set -e
        ip address add 192.0.2.8/24 dev eth0
        ip tunnel add rd mode sit local 192.0.2.8 ttl 64
        ip tunnel 6rd dev rd 6rd-prefix 3fff:6d::/32 6rd-relay_prefix 192.0.2.0/24
        ip address add 3fff:6d:800::1/32 dev rd
        ip link set rd up
        ip address add 2001:db8:9::1/64 dev eth1
        echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")?;
    let (near, address, server) = (Near::Behind("native"), "2001:db8:9::2", "3fff:6d:100::2");
    Ends { network: &network, peer: &peer, near, address, server, device: "rd" }.everything(CUSTOMER_EDGE)
}
