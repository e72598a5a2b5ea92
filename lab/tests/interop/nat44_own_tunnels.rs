//! Tunnels of Sixway behind its own NAT44: the remote end, a Linux kernel, sees the outside address alone.
//!
//! ```text
//! client ─── in0 gateway (Sixway) out0 ─── middle ─── far (a Linux kernel)
//! 192.168.1.2                                        198.51.100.8
//! 2001:db8:1::2     192.168.1.1 ⇄ 192.0.2.1          2001:db8:7::2
//! ```
//!
//! The link between middle and far is narrow.

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong};
use crate::datagrams::pattern;
use crate::tunnels::capture::{Capture, checksums_are_right};
use crate::tunnels::carriage::{ethtool, pings_come_back};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{ask, run_sixway};
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from};
use sixway_lab::topology::Network;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "curl", "tcpdump", "ethtool"];

pub const TESTS: &[Interop] = &[
    Interop::new("a_configured_tunnel_passes_our_own_nat44_to_linux", NEEDS, configured),
    Interop::new("a_6to4_site_of_ours_passes_our_own_nat44_to_linux", NEEDS, six_to_four),
    Interop::new("ipv4_in_ipv4_passes_our_own_nat44_to_linux", NEEDS, ipip),
];

const NAT44: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
ipv6_address = "2001:db8:1::fe"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.1"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
translate_own_tunnels = true
"#;

/// Everything but the tunnel.
fn network(site: &str) -> Result<Network> {
    let network = Network::new(&["client", "gateway", "middle", "far"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("middle", "in0"))?;
    network.link(("middle", "out0"), ("far", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "192.168.1.2/24".to_owned()),
        ("client", "up0", format!("{site}::2/64")),
        ("gateway", "in0", "192.168.1.1/24".to_owned()),
        ("gateway", "in0", format!("{site}::1/64")),
        ("gateway", "out0", "203.0.113.1/24".to_owned()),
        ("middle", "in0", "203.0.113.2/24".to_owned()),
        ("middle", "out0", "198.51.100.1/24".to_owned()),
    ] {
        network.address(host, device, &address)?;
    }
    network.route("client", "default via 192.168.1.1")?;
    network.route("client", &format!("default via {site}::1"))?;
    network.route("gateway", "default via 203.0.113.2")?;
    network.route("middle", "192.0.2.0/28 via 203.0.113.1")?;
    network.forwards("gateway")?;
    network.forwards("middle")?;
    network.host("middle")?.ip("link set out0 mtu 1400")?;
    Ok(network)
}

fn far<'n>(network: &'n Network, module: &'static str, tunnel: &str) -> Result<KernelPeer<'n>> {
    let features = Features { modules: vec![module], ..Features::default() };
    let far = KernelPeer::start_with(network, "far", &["up0"], &features)?;
    far.sh(&format!(
        "set -e
         ip link set eth0 mtu 1400
         ip address add 198.51.100.8/24 dev eth0
         ip route add default via 198.51.100.1
         {tunnel}"
    ))?;
    Ok(far)
}

fn page() -> String {
    pattern(400_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

/// Each end fetches the page from the other; `addresses` of client and far.
fn pages(network: &Network, far: &KernelPeer<'_>, addresses: (&str, &str)) -> Result<()> {
    let folder = network.folder().join("www");
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    std::fs::write(folder.join("index.html"), page()).asking(|| "writing the page".to_owned())?;
    let mut httpd = command("busybox")?;
    httpd.args(["httpd", "-f", "-p", "8080", "-h"]).arg(&folder);
    network.start("client", httpd)?;
    far.sh(&format!("busybox httpd -p 8080 -h {}", folder.display()))?;
    let down = fetch_from(far, network, &format!("http://{}:8080/", addresses.0))?;
    let up = fetch(network, "client", &format!("http://{}:8080/", addresses.1))?;
    match down.body == page() && up.body == page() {
        true => Ok(()),
        false => Err(Failure::Unexpected("another page arrived".to_owned())),
    }
}

/// tcpdump on the way: the outer header has the outside address, a lifetime of 64 less two hops, and the traffic class of the inner packet.
fn outer_headers(said: &str, protocol: &str) -> Result<()> {
    let headers: Vec<&str> =
        said.lines().filter(|line| line.contains(&format!("proto {protocol}"))).collect();
    let is_ours = |line: &&&str| line.contains("ttl 63,");
    let ours = headers.iter().filter(is_ours).count();
    let marked = headers.iter().filter(|line| line.contains("tos 0x48,") && is_ours(line)).count();
    if ours < 3 || marked < 3 || said.contains("192.168.") || !said.contains("192.0.2.1 > 198.51.100.8") {
        let what = format!("{ours} outer headers of ours, {marked} of class 0x48");
        return Err(Failure::Unexpected(format!("{what}:\n{said:.3000}")));
    }
    // Those of pings in IPv4 are shown only if they are wrong.
    checksums_are_right(said, if protocol.starts_with("IPv6") { 3 } else { 0 })
}

/// Pings and pages both ways, and what tcpdump sees of them between gateway and far.
fn everything(
    network: &Network,
    far: &KernelPeer<'_>,
    (client, server): (&str, &str),
    protocol: &str,
) -> Result<()> {
    let capture = Capture::start(network, "middle", "in0", "ip")?;
    // From inside first: that makes the session.
    let mut marked = command("ping")?;
    marked.args(["-c", "5", "-i", "0.2", "-Q", "0x48", server.trim_matches(['[', ']'])]);
    network.host("client")?.run(marked, Duration::from_secs(10))?;
    let said = capture.end()?;
    outer_headers(&said, protocol)?;
    for octets in [56, 1_300, 1_420, 4_000] {
        pings_come_back(network.host("client")?, server.trim_matches(['[', ']']), octets)?;
        pings_come_back(far, client.trim_matches(['[', ']']), octets)?;
    }
    pages(network, far, (client, server))?;
    let capture = Capture::start(network, "middle", "in0", "ip")?;
    pings_come_back(far, client.trim_matches(['[', ']']), 56)?;
    let said = capture.end()?;
    if said.contains("192.168.") || !said.contains("192.0.2.1 > 198.51.100.8") {
        return Err(Failure::Unexpected(format!("on the way:\n{said:.3000}")));
    }
    no_checksum_is_wrong(network)
}

fn sessions(network: &Network) -> Result<String> {
    let run = network.host("gateway")?.run(ask(network, &["show", "sessions"])?, Duration::from_secs(5))?;
    Ok(run.succeeded()?.stdout)
}

/// Without GSO packets and unfinished checksums.
fn as_on_a_wire(network: &Network) -> Result<()> {
    for (host, device) in [("gateway", "in0"), ("gateway", "out0"), ("client", "up0"), ("middle", "in0")] {
        ethtool(network, host, device, &["tx", "off"])?;
    }
    Ok(())
}

const TUNNEL: &str = r#"
[[tunnel]]
local = "192.168.1.1"
remote = "198.51.100.8"
prefixes = ["2001:db8:7::/48"]
mtu = "dynamic"
clamp_mss = false
"#;

/// Without a static binding: packets from inside make the session. The path is narrower than the first link, which the tunnel learns by ICMP
/// errors that its own NAT translates.
fn configured() -> Result<()> {
    let network = network("2001:db8:1")?;
    as_on_a_wire(&network)?;
    let far = far(
        &network,
        "sit",
        "ip tunnel add six mode sit remote 192.0.2.1 local 198.51.100.8 ttl 64
         ip address add 2001:db8:7::2/64 dev six
         ip link set six up
         ip -6 route add default dev six",
    )?;
    run_sixway(&network, &format!("{NAT44}{TUNNEL}"))?;
    everything(&network, &far, ("[2001:db8:1::2]", "[2001:db8:7::2]"), "IPv6 (41)")?;
    let rows = sessions(&network)?;
    let is_ours = |row: &str| {
        ["ipv6 ", "192.168.1.1 ", "192.0.2.1 ", "198.51.100.8 "].iter().all(|it| row.contains(it))
    };
    assert!(rows.lines().any(is_ours), "{rows}");
    assert!(counter(&network, "tunnels.path_mtus.learned")? > 0, "the path is narrow");
    Ok(())
}

const SITE: &str = r#"static = [{ protocol = "ipv6", inside = "192.168.1.1", outside = "192.0.2.1" }]

[six_to_four]
role = "router"
address = "192.168.1.1"
nat_address = "192.0.2.1"
mtu = 1380
"#;

/// The site has the prefix of its outside address. Any other site may begin.
fn six_to_four() -> Result<()> {
    let network = network("2002:c000:201")?;
    as_on_a_wire(&network)?;
    let far = far(
        &network,
        "sit",
        "ip tunnel add six mode sit remote any local 198.51.100.8 ttl 64
         ip address add 2002:c633:6408::2/16 dev six
         ip link set six up",
    )?;
    run_sixway(&network, &format!("{NAT44}{SITE}"))?;
    pings_come_back(&far, "2002:c000:201::2", 56)?;
    everything(&network, &far, ("[2002:c000:201::2]", "[2002:c633:6408::2]"), "IPv6 (41)")
}

const IPIP: &str = r#"
[[ip_in_ip]]
local = "192.168.200.1"
remote = "198.51.100.8"
prefixes = "10.7.0.0/16"
"#;

/// The local end is an address that only Sixway has.
fn ipip() -> Result<()> {
    let network = network("2001:db8:1")?;
    as_on_a_wire(&network)?;
    let far = far(
        &network,
        "ipip",
        "ip tunnel add four mode ipip remote 192.0.2.1 local 198.51.100.8 ttl 64
         ip address add 10.7.0.2/16 dev four
         ip link set four up
         ip route add 10.1.0.0/16 dev four",
    )?;
    network.address("gateway", "in0", "10.1.0.1/16")?;
    network.address("client", "up0", "10.1.0.2/16")?;
    network.route("client", "10.7.0.0/16 via 10.1.0.1 src 10.1.0.2")?;
    run_sixway(&network, &format!("{NAT44}{IPIP}"))?;
    everything(&network, &far, ("10.1.0.2", "10.7.0.2"), "IPIP (4)")
}
