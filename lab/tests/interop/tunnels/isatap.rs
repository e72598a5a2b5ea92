//! ISATAP (RFC 5214): the guest as a host of the site, with Debian's `isatapd`, which asks the routers of its list, Sixway being the router; and
//! Sixway as a host that asks a guest with radvd.

use super::carriage::{Ends, NEEDS, Near, SERVER, network, pings_come_back};
use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::KernelPeer;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_linux_isatap_host_gets_its_address_and_its_way_from_our_router", ISATAP_NEEDS, router),
    Interop::new(
        "our_isatap_host_gets_its_address_and_its_way_from_a_linux_router",
        &["sixway", "linux.uml", "busybox", "ping", "radvd", "ethtool"],
        host,
    ),
];

const ISATAP_NEEDS: &[&str] =
    &["isatapd", "sixway", "linux.uml", "busybox", "ping", "nginx", "curl", "tcpdump", "ethtool"];

const ROUTER: &str = r#"[tun]
name = "sixway0"

[isatap]
name = "isatap"
role = "router"
address = "192.0.2.1"
prefix = "2001:db8:5efe:1::/64"
mtu = 1480

[[router_advertisement]]
over = "isatap"

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// To Linux 192.0.2.8 is not a unique address, so the universal bit of the identifier is zero (RFC 5214 §6.1).
const ADDRESS: &str = "2001:db8:5efe:1:0:5efe:192.0.2.8";

fn router() -> Result<()> {
    assert!(NEEDS.iter().all(|program| ISATAP_NEEDS.contains(program)));
    let network = network(&[])?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh("ip address add 192.0.2.8/24 dev eth0")?;
    // The host learns its address and its default route from the first advertisement; they outlive the gateway's later starts.
    let process = run_sixway(&network, &ROUTER.replace("STEERING", "on"))?;
    peer.sh("echo 1 >/proc/sys/net/ipv6/conf/default/accept_ra
        isatapd --name is0 --link eth0 --daemon --pid /run/isatapd.pid --check-dns 0 192.0.2.1")?;
    interrupt::wait_until(Duration::from_secs(15), "an address from the router's advertisement", || {
        let said = peer.sh("ip -6 address show dev is0; ip -6 route show default")?;
        Ok(said.contains("2001:db8:5efe:1:") && said.contains("default via"))
    })?;
    network.with_process(process, |process| process.stop())?;
    let (near, address) = (Near::Guest(&peer), ADDRESS);
    Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "is0" }.everything(ROUTER)
}

const HOST: &str = r#"[tun]
name = "sixway0"

[isatap]
role = "host"
address = "192.0.2.1"
potential_routers = ["192.0.2.8"]
mtu = 1480

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// The u bit is clear: a documentation address is not known to be globally unique (RFC 5214 §6.1).
const OUR_ADDRESS: &str = "2001:db8:5efe:1:0:5efe:c000:201";

fn host() -> Result<()> {
    let network = network(&["native"])?;
    network.link(("peer", "in0"), ("native", "up0"))?;
    network.address("native", "up0", "2001:db8:9::2/64")?;
    network.route("native", "default via 2001:db8:9::1")?;
    let peer = KernelPeer::start(&network, "peer", &["up0", "in0"])?;
    let advertised =
        "interface is0 { AdvSendAdvert on; UnicastOnly on; prefix 2001:db8:5efe:1::/64 { }; };\n";
    let file = network.file("radvd.conf", advertised)?;
    peer.sh(&format!(
        "set -e
        ip address add 192.0.2.8/24 dev eth0
        ip tunnel add is0 mode isatap local 192.0.2.8 ttl 64
        ip address add 2001:db8:5efe:1:0:5efe:192.0.2.8/64 dev is0
        ip link set is0 up
        ip address add 2001:db8:9::1/64 dev eth1
        echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
        radvd -C {} -p /run/radvd.pid -m none -u root",
        file.display()
    ))?;
    let gateway = network.host("gateway")?;
    for steering in ["on", "off"] {
        let process = run_sixway(&network, &HOST.replace("STEERING", steering))?;
        interrupt::wait_until(Duration::from_secs(15), "an address from the router's advertisement", || {
            Ok(gateway.ip("-6 address show dev sixway0")?.contains(OUR_ADDRESS))
        })?;
        for octets in [56, 1_400, 4_000] {
            pings_come_back(gateway, "2001:db8:9::2", octets)?;
            pings_come_back(network.host("native")?, OUR_ADDRESS, octets)?;
        }
        network.with_process(process, |process| process.stop())?;
    }
    Ok(())
}
