//! DS-Lite with a Linux kernel at the other end of the softwire (RFC 6333).
//!
//! ```text
//! client ─── gateway (Sixway, B4) ─── middle ─── aftr (a Linux kernel: ip6tnl and its NAT)  ─── server
//! 10.1.0.2   2001:db8:99::b4          IPv6 only  2001:db8:a::1 · 203.0.113.1                    203.0.113.2
//! ```

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong, wrong_checksums};
use crate::datagrams::pattern;
use crate::tunnels::capture::{Capture, checksums_are_right};
use crate::tunnels::carriage::{ethtool, pings_come_back};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, show};
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from, ping};
use sixway_lab::topology::Network;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_linux_kernel_with_its_nat_is_the_aftr_of_a_b4", NEEDS, everything_passes),
    Interop::new("tcp_through_a_softwire_passes_a_narrow_network", NEEDS, narrow_network),
    Interop::new("a_linux_kernel_is_a_b4_of_our_aftr", NEEDS, kernel_as_b4),
    Interop::new("two_b4s_with_the_same_lan_share_our_aftr_and_reach_each_other", OURS, ours_with_ours),
    Interop::new(
        "hosts_and_the_b4_learn_what_a_softwire_carries_and_no_ipv4_packet_is_fragmented",
        OURS,
        mtu_learnt,
    ),
    Interop::new("openvpn_passes_a_softwire_and_our_aftr", &["sixway", "openvpn", "ping"], openvpn),
];

const NEEDS: &[&str] =
    &["sixway", "linux.uml", "busybox", "iptables-legacy", "ping", "curl", "tcpdump", "ethtool"];

const OURS: &[&str] = &["sixway", "busybox", "ping", "curl"];

const SERVER: &str = "203.0.113.2";

/// All that an operator writes.
const B4: &str =
    "[gateway]\nworkers = 2\n\n[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";

/// The network above, with all addresses and routes. Only IPv6 is routed between the gateway and the AFTR.
fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "middle", "aftr", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("middle", "down0"))?;
    network.link(("middle", "up0"), ("aftr", "down0"))?;
    network.link(("aftr", "up0"), ("server", "down0"))?;
    for (host, device, address) in [
        ("client", "up0", "10.1.0.2/24"),
        ("gateway", "in0", "10.1.0.1/24"),
        ("gateway", "out0", "2001:db8:99::1/64"),
        ("middle", "down0", "2001:db8:99::2/64"),
        ("middle", "up0", "2001:db8:8::1/64"),
        ("server", "down0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 10.1.0.1")?;
    network.route("gateway", "default via 2001:db8:99::2")?;
    network.route("middle", "2001:db8:a::1 via 2001:db8:8::8")?;
    network.forwards("middle")?;
    Ok(network)
}

/// The AFTR, for one B4.
fn start_aftr(network: &Network) -> Result<KernelPeer<'_>> {
    let features =
        Features { modules: vec!["ip6_tunnel", "iptable_nat", "xt_MASQUERADE"], ..Features::default() };
    let aftr = KernelPeer::start_with(network, "aftr", &["down0", "up0"], &features)?;
    aftr.sh("set -e
        ip -6 address add 2001:db8:8::8/64 dev eth0 nodad
        ip -6 address add 2001:db8:a::1/128 dev lo nodad
        ip -6 route add default via 2001:db8:8::1
        ip address add 203.0.113.1/24 dev eth1
        ip -6 tunnel add b4 mode ip4ip6 local 2001:db8:a::1 remote 2001:db8:99::b4 encaplimit none hoplimit 64
        ip address add 192.0.0.1/32 dev b4
        ip link set b4 up
        ip route add 192.0.0.2/32 dev b4
        ip route add 10.1.0.0/24 dev b4
        echo 1 >/proc/sys/net/ipv4/ip_forward
        iptables-legacy -t nat -A POSTROUTING -o eth1 -j MASQUERADE")?;
    Ok(aftr)
}

fn page() -> String {
    pattern(1_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

fn serve(network: &Network) -> Result<()> {
    let folder = network.folder().join("www");
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    std::fs::write(folder.join("index.html"), page()).asking(|| "writing the page".to_owned())?;
    let mut httpd = command("busybox")?;
    httpd.args(["httpd", "-f", "-p", "8080", "-h"]).arg(&folder);
    network.start("server", httpd).map(drop)
}

/// A host of the LAN and the B4 itself fetch the page, and ping the server and the AFTR.
fn try_all(network: &Network) -> Result<()> {
    for host in ["client", "gateway"] {
        for octets in [56, 1_401, 4_000] {
            pings_come_back(network.host(host)?, SERVER, octets)?;
        }
        pings_come_back(network.host(host)?, "192.0.0.1", 56)?;
        let fetched = fetch(network, host, &format!("http://{SERVER}:8080/"))?;
        if fetched.body != page() {
            return Err(Failure::Unexpected(format!("another page arrived at {host}")));
        }
    }
    Ok(())
}

/// With GSO packets, and then without, so that tcpdump sees every packet as it is.
fn everything_passes() -> Result<()> {
    let network = network()?;
    let aftr = start_aftr(&network)?;
    run_sixway(&network, B4)?;
    serve(&network)?;
    try_all(&network)?;
    for (host, device) in [("client", "up0"), ("gateway", "in0"), ("gateway", "out0"), ("middle", "down0")] {
        ethtool(&network, host, device, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
    }
    let softwire = Capture::start(&network, "middle", "down0", "ip or ip6")?;
    let outside = Capture::start(&network, "server", "down0", "ip")?;
    try_all(&network)?;
    let said = softwire.end()?;
    checksums_are_right(&said, 100)?;
    for pair in ["2001:db8:99::b4 > 2001:db8:a::1: IP ", "2001:db8:a::1 > 2001:db8:99::b4: IP "] {
        assert!(said.contains(pair), "no {pair}:\n{said:.3000}");
    }
    // Exactly forty octets more: there is no option.
    assert!(!said.contains("DSTOPT"), "{said:.3000}");
    let said = outside.end()?;
    assert!(
        said.contains("203.0.113.1") && !said.contains("10.1.0.2") && !said.contains("192.0.0.2"),
        "{said:.3000}"
    );
    assert!(counter(&network, "b4.encap")? > 200 && counter(&network, "b4.decap")? > 500);
    no_checksum_is_wrong(&network)?;
    assert_eq!(wrong_checksums(&aftr)?, 0);
    Ok(())
}

/// The link between the B4 and the next router carries 1,400 octets. The hosts learn of it by ICMP alone: Sixway leaves the MSS as it is.
fn narrow_network() -> Result<()> {
    let network = network()?;
    let _aftr = start_aftr(&network)?;
    for (host, device) in [("middle", "down0"), ("gateway", "out0")] {
        network.host(host)?.ip(&format!("link set {device} mtu 1400"))?;
    }
    run_sixway(&network, &format!("{B4}clamp_mss = false\n"))?;
    serve(&network)?;
    let capture = Capture::start(&network, "client", "up0", "icmp")?;
    let mut ping = command("ping")?;
    ping.args(["-n", "-M", "do", "-c", "3", "-W", "1", "-s", "1400", SERVER]);
    network.host("client")?.run(ping, Duration::from_secs(10))?;
    let said = capture.end()?;
    assert!(
        said.contains("192.0.0.2 > 10.1.0.2") && said.contains("need to frag (mtu 1360)"),
        "{said:.3000}"
    );
    try_all(&network)
}

/// Our AFTR: two B4s may use it. A host behind the second one has a port of the pool.
const AFTR: &str = r#"[gateway]
workers = 2
ipv4_address = "192.0.2.254"

[[pool]]
name = "main"
addresses = ["198.51.100.0/28"]

[ds_lite]
role = "aftr"
addresses = ["2001:db8:a::1"]
clients = ["2001:db8:98::/48", "2001:db8:99::/48"]
pool = "main"

[[ds_lite.static]]
protocol = "tcp"
softwire = "2001:db8:98::b4"
inside = "10.1.0.2:8080"
outside = "198.51.100.1:8080"
"#;

/// Two customers, each with the same LAN, and our AFTR.
///
/// ```text
/// one, two ─── b4-one, b4-two (Sixway or a guest) ─── middle ─── gateway (Sixway, AFTR) ─── server
/// 10.1.0.2     2001:db8:99::b4, 2001:db8:98::b4       IPv6 only  198.51.100.0/28            203.0.113.2
/// ```
fn network_of_our_aftr() -> Result<Network> {
    let network = Network::new(&["one", "b4-one", "two", "b4-two", "middle", "gateway", "server"])?;
    for (lan, b4, down, number) in [("one", "b4-one", "down1", 99), ("two", "b4-two", "down2", 98)] {
        network.link((lan, "up0"), (b4, "in0"))?;
        network.link((b4, "out0"), ("middle", down))?;
        network.address(lan, "up0", "10.1.0.2/24")?;
        network.route(lan, "default via 10.1.0.1")?;
        network.address(b4, "in0", "10.1.0.1/24")?;
        network.address(b4, "out0", &format!("2001:db8:{number}::1/64"))?;
        network.address("middle", down, &format!("2001:db8:{number}::2/64"))?;
        network.route(b4, &format!("default via 2001:db8:{number}::2"))?;
    }
    network.link(("middle", "up0"), ("gateway", "out0"))?;
    network.link(("gateway", "in0"), ("server", "down0"))?;
    for (host, device, address) in [
        ("middle", "up0", "2001:db8:8::1/64"),
        ("gateway", "out0", "2001:db8:8::8/64"),
        ("gateway", "in0", "203.0.113.1/24"),
        ("server", "down0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("gateway", "default via 2001:db8:8::1")?;
    network.route("middle", "2001:db8:a::1 via 2001:db8:8::8")?;
    network.route("server", "198.51.100.0/28 via 203.0.113.1")?;
    network.forwards("middle")?;
    Ok(network)
}

/// What the AFTR shows of this.
fn shown(network: &Network, what: &str) -> Result<String> {
    let host = network.host("gateway")?;
    Ok(host.run(show(network, &[what])?, Duration::from_secs(5))?.succeeded()?.stdout)
}

/// A guest is the B4 of a host of its own: IPv4 for itself.
fn kernel_as_b4() -> Result<()> {
    let network = network_of_our_aftr()?;
    let features = Features { modules: vec!["ip6_tunnel"], ..Features::default() };
    let b4 = KernelPeer::start_with(&network, "b4-one", &["out0"], &features)?;
    b4.sh("set -e
        ip -6 address add 2001:db8:99::b4/64 dev eth0 nodad
        ip -6 route add default via 2001:db8:99::2
        ip -6 tunnel add aftr mode ip4ip6 local 2001:db8:99::b4 remote 2001:db8:a::1 encaplimit none hoplimit 64
        ip address add 192.0.0.2/32 dev aftr
        ip link set aftr up
        ip route add default dev aftr src 192.0.0.2")?;
    run_sixway(&network, AFTR)?;
    serve(&network)?;
    for octets in [56, 1_401, 4_000] {
        pings_come_back(&b4, SERVER, octets)?;
    }
    pings_come_back(&b4, "192.0.0.1", 56)?;
    let fetched = fetch_from(&b4, &network, &format!("http://{SERVER}:8080/"))?;
    if fetched.body != page() {
        return Err(Failure::Unexpected("another page arrived".to_owned()));
    }
    let said = shown(&network, "sessions")?;
    assert!(said.contains("2001:db8:99::b4") && said.contains("192.0.0.2:"), "{said}");
    no_checksum_is_wrong(&network)?;
    assert_eq!(wrong_checksums(&b4)?, 0);
    Ok(())
}

fn start_b4s(network: &Network) -> Result<()> {
    for b4 in ["b4-one", "b4-two"] {
        run_sixway_on(network, b4, B4)?;
    }
    run_sixway(network, AFTR).map(drop)
}

/// Both hosts have 10.1.0.2. Each is the other's server, too.
fn ours_with_ours() -> Result<()> {
    let network = network_of_our_aftr()?;
    start_b4s(&network)?;
    serve(&network)?;
    let mut httpd = command("busybox")?;
    httpd.args(["httpd", "-f", "-p", "8080", "-h"]).arg(network.folder().join("www"));
    network.start("two", httpd)?;
    for host in ["one", "two", "b4-one", "b4-two"] {
        for octets in [56, 1_401, 4_000] {
            pings_come_back(network.host(host)?, SERVER, octets)?;
        }
        let fetched = fetch(&network, host, &format!("http://{SERVER}:8080/"))?;
        if fetched.body != page() {
            return Err(Failure::Unexpected(format!("another page arrived at {host}")));
        }
    }
    // A hairpin: from the first customer to the second one.
    let fetched = fetch(&network, "one", "http://198.51.100.1:8080/")?;
    assert!(fetched.body == page(), "another page arrived by the hairpin");
    let said = shown(&network, "sessions")?;
    for b4 in ["2001:db8:99::b4", "2001:db8:98::b4"] {
        assert!(said.contains(b4), "no session of {b4}:\n{said}");
    }
    let said = shown(&network, "subscribers")?;
    assert!(said.contains("2001:db8:99::/56") && said.contains("2001:db8:98::/56"), "{said}");
    Ok(())
}

/// Values of the kernel's counter of IPv4 fragments that a host has made.
fn fragments_made(network: &Network, host: &str) -> Result<String> {
    let mut cat = command("busybox")?;
    cat.args(["cat", "/proc/net/snmp"]);
    let said = network.host(host)?.run(cat, Duration::from_secs(5))?.succeeded()?.stdout;
    let rows: Vec<Vec<&str>> = said
        .lines()
        .filter(|line| line.starts_with("Ip:"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let place = rows.first().and_then(|names| names.iter().position(|name| *name == "FragCreates"));
    let value = place.and_then(|place| rows.get(1)?.get(place).map(|value| (*value).to_owned()));
    value.ok_or_else(|| Failure::Unexpected(format!("no FragCreates:\n{said}")))
}

/// The route has no MTU of its own: with one, the kernel would fragment IPv4 packets without DF before they enter the tunnel (RFC 6333 §5.3).
fn mtu_learnt() -> Result<()> {
    let network = network_of_our_aftr()?;
    start_b4s(&network)?;
    pings_come_back(network.host("one")?, SERVER, 56)?;
    let ping = |host: &str, df: &str| -> Result<bool> {
        let mut ping = command("ping")?;
        ping.args(["-n", "-M", df, "-c", "2", "-W", "1", "-s", "1472", SERVER]);
        Ok(network.host(host)?.run(ping, Duration::from_secs(10))?.status.success())
    };
    // 1,500 octets without DF: in fragments of IPv6.
    assert!(ping("one", "dont")?, "a packet of 1,500 octets was lost");
    assert_eq!(fragments_made(&network, "b4-one")?, "0");
    for host in ["one", "b4-one"] {
        ping(host, "do")?;
        let route = network.host(host)?.ip(&format!("route get {SERVER}"))?;
        assert!(route.contains("mtu 1460"), "{host}: {route}");
    }
    Ok(())
}

/// A VPN from a host of the first customer to the server.
fn openvpn() -> Result<()> {
    let network = network_of_our_aftr()?;
    start_b4s(&network)?;
    let key = network.folder().join("vpn.key");
    let mut make = command("openvpn")?;
    make.args(["--genkey", "secret"]).arg(&key);
    network.host("server")?.run(make, Duration::from_secs(10))?.succeeded()?;
    let start = |host: &str, words: &[&str]| {
        let mut openvpn: Command = command("openvpn")?;
        openvpn.args(["--dev", "vpn0", "--dev-type", "tun", "--proto", "udp4", "--cipher", "AES-256-CBC"]);
        openvpn.args(["--port", "1194", "--keepalive", "1", "60", "--secret"]).arg(&key).args(words);
        network.start(host, openvpn)
    };
    start("server", &["--ifconfig", "10.9.0.1", "10.9.0.2"])?;
    start("one", &["--ifconfig", "10.9.0.2", "10.9.0.1", "--remote", SERVER, "--nobind"])?;
    interrupt::wait_until(Duration::from_secs(20), "a ping through OpenVPN", || {
        let answers = ping(network.host("one")?, "10.9.0.1", 1, 56, Duration::from_millis(100));
        Ok(answers.is_ok_and(|answers| answers.answered == 1))
    })?;
    for octets in [56, 1_400, 3_000] {
        pings_come_back(network.host("one")?, "10.9.0.1", octets)?;
    }
    Ok(())
}
