//! 6to4 (RFC 3056).

use super::carriage::{Ends, NEEDS, Near, SERVER, gro, network, number_site, pings_come_back};
use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::kernel_peer::KernelPeer;
use sixway_lab::namespace::command;
use sixway_lab::process::RunsCommands;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_linux_6to4_host_reaches_native_ipv6_through_our_relay", NEEDS, relay_for_a_host),
    Interop::new(
        "a_6to4_relay_is_one_hop_both_ways",
        &["sixway", "linux.uml", "busybox", "tracepath"],
        relay_is_one_hop,
    ),
    Interop::new("a_site_behind_a_linux_6to4_router_reaches_native_ipv6", NEEDS, relay_for_a_site),
    Interop::new(
        "our_6to4_site_reaches_a_linux_6to4_host_and_native_ipv6_through_a_linux_relay",
        NEEDS,
        our_site,
    ),
    Interop::new("our_6to4_host_speaks_with_a_linux_6to4_host", NEEDS, our_host),
];

/// As a relay. A tunnel MTU of 1,480 lets 1,400 octets pass whole.
const RELAY: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "relay"
address = "192.0.2.1"
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const SIX_TO_FOUR: &str = "set -e
ip address add 192.0.2.8/24 dev eth0
ip tunnel add six mode sit remote any local 192.0.2.8 ttl 64
ip address add 2002:c000:208::1/16 dev six
ip link set six up
ip -6 route add default via ::192.0.2.1 dev six";

fn relay_for_a_host() -> Result<()> {
    let network = network(&[])?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh(SIX_TO_FOUR)?;
    let (near, address) = (Near::Guest(&peer), "2002:c000:208::1");
    Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "six" }.everything(RELAY)
}

/// Seen from each end the relay is the first hop, and the other end the second.
fn relay_is_one_hop() -> Result<()> {
    let network = network(&[])?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh(SIX_TO_FOUR)?;
    run_sixway(&network, &RELAY.replace("STEERING", "auto"))?;
    let tracepath = |to: &str| {
        let mut tracepath = command("tracepath")?;
        tracepath.args(["-6", "-n", "-m", "5", to]);
        Ok::<_, Failure>(tracepath)
    };
    let limit = Duration::from_secs(20);
    for said in [
        RunsCommands::run(&peer, tracepath(SERVER)?, limit)?.stdout,
        network.host("server")?.run(tracepath("2002:c000:208::1")?, limit)?.stdout,
    ] {
        assert!(said.contains(" 1:  2001:db8:2::1") && said.contains("hops 2 back 2"), "{said}");
    }
    Ok(())
}

fn relay_for_a_site() -> Result<()> {
    let network = network(&["site"])?;
    network.link(("peer", "in0"), ("site", "up0"))?;
    network.address("site", "up0", "2002:c000:208:1::2/64")?;
    network.route("site", "default via 2002:c000:208:1::1")?;
    let peer = KernelPeer::start(&network, "peer", &["up0", "in0"])?;
    peer.sh(SIX_TO_FOUR)?;
    peer.sh("ip address add 2002:c000:208:1::1/64 dev eth1; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")?;
    let (near, address) = (Near::Behind("site"), "2002:c000:208:1::2");
    Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "six" }.everything(RELAY)
}

/// As the router of a site: the server is a host of it.
const ROUTER: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "router"
address = "192.0.2.1"
relay = "192.0.2.8"
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// The guest is a 6to4 host and a relay at the same time; behind it is a native host.
fn our_site() -> Result<()> {
    let network = network(&["native"])?;
    number_site(&network, "2002:c000:201:2:")?;
    network.link(("peer", "in0"), ("native", "up0"))?;
    network.address("native", "up0", "2001:db8:9::2/64")?;
    network.route("native", "default via 2001:db8:9::1")?;
    let peer = KernelPeer::start(&network, "peer", &["up0", "in0"])?;
    peer.sh("set -e
        ip address add 192.0.2.8/24 dev eth0
        ip tunnel add six mode sit remote any local 192.0.2.8 ttl 64
        ip address add 2002:c000:208::1/16 dev six
        ip link set six up
        ip address add 2001:db8:9::1/64 dev eth1
        echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")?;
    for (near, address) in
        [(Near::Guest(&peer), "2002:c000:208::1"), (Near::Behind("native"), "2001:db8:9::2")]
    {
        let server = "2002:c000:201:2::2";
        Ends { network: &network, peer: &peer, near, address, server, device: "six" }.everything(ROUTER)?;
    }
    Ok(())
}

/// Sixway's host itself is the other end: it has an address of its 6to4 prefix.
fn our_host() -> Result<()> {
    let network = network(&[])?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh(SIX_TO_FOUR)?;
    for steering in ["on", "off"] {
        let configuration = ROUTER.replace("role = \"router\"", "role = \"host\"");
        let process = run_sixway(&network, &configuration.replace("STEERING", steering))?;
        for with_gro in [false, true] {
            gro(&network, "gateway", "out0", with_gro)?;
            for octets in [56, 1_400, 4_000] {
                pings_come_back(network.host("gateway")?, "2002:c000:208::1", octets)?;
                pings_come_back(&peer, "2002:c000:201::1", octets)?;
            }
        }
        network.with_process(process, |process| process.stop())?;
    }
    Ok(())
}
