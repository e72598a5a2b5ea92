//! GSO packets that are a tunnel's: outside they look like one of UDP, but they are cut inside, and each piece gets all headers again. Only
//! the kernel can cut them, so the fast path leaves them alone.

use super::conversation::Conversation;
use crate::Interop;
use crate::counters::no_checksum_is_wrong;
use crate::tunnels::capture::Capture;
use sixway_lab::failure::Result;
use sixway_lab::fast_path::{Hook, carried, offloads, shown};
use sixway_lab::forwarder::SIIT;
use sixway_lab::gateway::run_sixway_on;
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use sixway_lab::topology::{Network, client_gateway_server};
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "super_frames_of_a_vxlan_are_left_to_the_kernel_at_tc",
    &["sixway", "ethtool", "tcpdump", "ping"],
    gso_packets_of_a_vxlan,
)];

/// A VXLAN between client and server, over IPv6 at the one end and IPv4 at the other.
fn joined_by_a_vxlan() -> Result<Network> {
    let network = client_gateway_server()?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let kind = "type vxlan id 7 dstport 4789";
    client.ip(&format!("link add vx0 {kind} local 2001:db8:1::2 remote 2001:db8:64::203.0.113.2"))?;
    // The translator needs a checksum; over IPv6 there is one anyway.
    server.ip(&format!("link add vx0 {kind} local 203.0.113.2 remote 192.0.2.2 udpcsum"))?;
    for (host, name, address) in [(client, "client", "10.9.0.1/24"), (server, "server", "10.9.0.2/24")] {
        // 1,300 octets of IPv4 with all headers, DF clear: the IPv6 packet is cut (RFC 7915 section 4), which it is not if a piece is measured
        // without what its tunnel puts in front.
        host.ip("link set vx0 mtu 1250 up")?;
        network.address(name, "vx0", address)?;
    }
    Ok(network)
}

/// Packets that the fast path left to the kernel for what they carry.
fn left(network: &Network) -> Result<u64> {
    let shown = shown(network)?;
    let rows = shown["passed"].as_array().into_iter().flatten();
    Ok(rows.filter(|row| row["cause"] == "protocol").filter_map(|row| row["packets"].as_u64()).sum())
}

fn gso_packets_of_a_vxlan() -> Result<()> {
    let network = joined_by_a_vxlan()?;
    run_sixway_on(&network, "gateway", &format!("{SIIT}{}", Hook::Tc.section()))?;
    interrupt::wait_until(Duration::from_secs(5), "an answer through the VXLAN", || {
        Ok(ping(network.host("client")?, "10.9.0.2", 1, 56, Duration::ZERO)?.answered == 1)
    })?;
    let before = carried(&network)?;
    ping(network.host("client")?, "10.9.0.2", 20, 56, Duration::from_millis(20))?;
    assert!(carried(&network)? - before >= 30, "single packets are as any: {}", shown(&network)?);
    // What leaves is cut by the gateway, and seen at the hosts as it would be on a wire.
    for device in ["in0", "out0"] {
        let off =
            ["tx", "off", "tso", "off", "tx-udp-segmentation", "off", "tx-udp_tnl-csum-segmentation", "off"];
        offloads(network.host("gateway")?, device, &off)?;
    }
    let large = Capture::start(&network, "client", "up0", "inbound and greater 1295")?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let conversation = Conversation::open(client, "10.9.0.2", server, "10.9.0.2", 9_000)?;
    let before = left(&network)?;
    conversation.exchange(2_000_000)?;
    let left = left(&network)? - before;
    let seen = large.end()?;
    assert!(seen.trim().is_empty(), "larger than 1,280 octets: {seen}");
    assert!(left >= 40, "{left} GSO packets of 4 MB were left to the kernel: {}", shown(&network)?);
    no_checksum_is_wrong(&network)
}
