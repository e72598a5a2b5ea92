//! Tunnels of IP in IP with a Linux kernel at the other end: `ip6tnl` for either family over IPv6 (RFC 2473), `ipip` for IPv4 over IPv4 (RFC 2003).
//!
//! ```text
//! peer (a Linux kernel) ─── left ═══ right ─── gateway (Sixway) ─── server
//! 2001:db8:8::8 …                              2001:db8:a::1        10.1.8.2, 2001:db8:1:a::2, …
//! 198.51.100.8                                 203.0.113.77
//! ```
//!
//! The link between left and right may be narrow. Each kind of tunnel has a number of its own, and with it networks at both ends.

use crate::Interop;
use crate::counters::{counter, dropped, no_checksum_is_wrong, wrong_checksums};
use crate::datagrams::pattern;
use crate::tunnels::capture::{Capture, checksums_are_right};
use crate::tunnels::carriage::{ethtool, pings_come_back};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, fetch_from};
use sixway_lab::topology::Network;
use std::fmt::Write as _;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_linux_kernel_is_the_other_end_of_tunnels_of_ip_in_ip", NEEDS, everything_passes),
    Interop::new("tcp_through_tunnels_of_ip_in_ip_passes_a_narrow_link", NEEDS, narrow_link),
    Interop::new("every_worker_learns_of_a_narrow_path_of_ip_in_ip", NEEDS, every_worker_learns),
    Interop::new("a_tunnel_of_linux_goes_through_ip_in_ip_as_far_as_its_limit_says", NEEDS, nested),
];

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "curl", "tcpdump", "ethtool"];

const GATEWAY: &str = r#"[tun]
name = "sixway0"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8:1::fe"
workers = 2
"#;

/// A kind of tunnel. Over IPv6 it ends at 2001:db8:8::NUMBER, for Linux can have one device for each pair of ends.
struct Mode {
    number: u8,
    /// As `ip tunnel add` calls it.
    kind: &'static str,
    /// The encapsulation limit of both ends.
    limit: &'static str,
}

const MODES: [Mode; 5] = [
    Mode { number: 8, kind: "ip4ip6", limit: "4" },
    Mode { number: 9, kind: "ip4ip6", limit: "none" },
    Mode { number: 10, kind: "ip6ip6", limit: "4" },
    Mode { number: 11, kind: "ip6ip6", limit: "none" },
    Mode { number: 12, kind: "ipip", limit: "none" },
];

impl Mode {
    fn is_over_4(&self) -> bool {
        self.kind == "ipip"
    }

    fn carries_4(&self) -> bool {
        self.kind != "ip6ip6"
    }

    /// The other end, and this one.
    fn ends(&self) -> (String, &'static str) {
        match self.is_over_4() {
            true => ("198.51.100.8".to_owned(), "203.0.113.77"),
            false => (format!("2001:db8:8::{:x}", self.number), "2001:db8:a::1"),
        }
    }

    /// The network behind an end, the peer's or this one.
    fn network(&self, is_peers: bool) -> String {
        let number = self.number;
        match (self.carries_4(), is_peers) {
            (true, true) => format!("10.7.{number}.0/24"),
            (true, false) => format!("10.1.{number}.0/24"),
            (false, true) => format!("2001:db8:7:{number:x}::/64"),
            (false, false) => format!("2001:db8:1:{number:x}::/64"),
        }
    }

    /// The address of the one host there.
    fn host(&self, is_peers: bool) -> String {
        let network = self.network(is_peers);
        let (first, _) = network.split_once('/').unwrap_or_default();
        match first.strip_suffix(".0") {
            Some(first) => format!("{first}.2"),
            None => format!("{first}2"),
        }
    }

    /// What an outer header adds.
    fn header(&self) -> u32 {
        match (self.is_over_4(), self.limit) {
            (true, _) => 20,
            (false, "none") => 40,
            (false, _) => 48,
        }
    }

    fn section(&self, more: &str) -> String {
        let (remote, local) = self.ends();
        let limit = match (self.is_over_4(), self.limit) {
            (true, _) => String::new(),
            (false, "none") => "encapsulation_limit = \"none\"\n".to_owned(),
            (false, limit) => format!("encapsulation_limit = {limit}\n"),
        };
        let prefix = self.network(true);
        let ends = format!("local = \"{local}\"\nremote = \"{remote}\"\nprefixes = \"{prefix}\"\n");
        format!("\n[[ip_in_ip]]\nname = \"t{}\"\n{ends}{limit}{more}", self.number)
    }

    /// Makes the tunnel on Linux.
    fn commands(&self) -> String {
        let (local, remote) = self.ends();
        let (number, kind, limit) = (self.number, self.kind, self.limit);
        let add = match self.is_over_4() {
            true => format!("ip tunnel add t{number} mode ipip local {local} remote {remote} ttl 64"),
            false => format!(
                "ip -6 address add {local}/64 dev eth0 nodad
                 ip -6 tunnel add t{number} mode {kind} local {local} remote {remote} encaplimit {limit} hoplimit 64"
            ),
        };
        let length = if self.carries_4() { 32 } else { 128 };
        let (host, there) = (self.host(true), self.network(false));
        format!(
            "{add}
             ip address add {host}/{length} dev t{number}
             ip link set t{number} up
             ip route add {there} dev t{number} src {host}\n"
        )
    }
}

/// The network above, with all addresses and routes.
fn network() -> Result<Network> {
    let network = Network::new(&["peer", "left", "right", "gateway", "server", "inner"])?;
    network.link(("peer", "up0"), ("left", "down0"))?;
    network.link(("left", "mid0"), ("right", "mid0"))?;
    network.link(("right", "down0"), ("gateway", "out0"))?;
    network.link(("gateway", "in0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("left", "down0", "2001:db8:8::1/64"),
        ("left", "down0", "198.51.100.1/24"),
        ("left", "mid0", "2001:db8:5::1/64"),
        ("left", "mid0", "192.0.2.129/30"),
        ("right", "mid0", "2001:db8:5::2/64"),
        ("right", "mid0", "192.0.2.130/30"),
        ("right", "down0", "2001:db8:9::2/64"),
        ("right", "down0", "192.0.2.2/25"),
        ("gateway", "out0", "2001:db8:9::1/64"),
        ("gateway", "out0", "192.0.2.1/25"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, gateway4, gateway6) in
        [("left", "192.0.2.130", "2001:db8:5::2"), ("gateway", "192.0.2.2", "2001:db8:9::2")]
    {
        network.route(host, &format!("default via {gateway4}"))?;
        network.route(host, &format!("default via {gateway6}"))?;
    }
    for route in [
        "198.51.100.0/24 via 192.0.2.129",
        "2001:db8:8::/64 via 2001:db8:5::1",
        "203.0.113.77 via 192.0.2.1",
        "2001:db8:a::1 via 2001:db8:9::1",
    ] {
        network.route("right", route)?;
    }
    for mode in &MODES {
        let there = mode.network(false);
        let (first, length) = there.split_once('/').unwrap_or_default();
        let router =
            first.strip_suffix(".0").map_or_else(|| format!("{first}1"), |first| format!("{first}.1"));
        network.address("gateway", "in0", &format!("{router}/{length}"))?;
        network.address("server", "up0", &format!("{}/{length}", mode.host(false)))?;
        network.route("server", &format!("{} via {router} src {}", mode.network(true), mode.host(false)))?;
    }
    for router in ["left", "right", "gateway"] {
        network.forwards(router)?;
    }
    Ok(network)
}

fn start_peer(network: &Network) -> Result<KernelPeer<'_>> {
    let features = Features { modules: vec!["ip6_tunnel", "ipip"], ..Features::default() };
    let peer = KernelPeer::start_with(network, "peer", &["up0"], &features)?;
    let mut script = "set -e
        ip address add 198.51.100.8/24 dev eth0
        ip route add default via 198.51.100.1\n"
        .to_owned();
    MODES.iter().for_each(|mode| script.push_str(&mode.commands()));
    script.push_str("ip -6 route add default via 2001:db8:8::1\n");
    peer.sh(&script)?;
    Ok(peer)
}

/// Starts Sixway with all tunnels; its process.
fn start_sixway(network: &Network, more: &str) -> Result<u32> {
    let mut configuration = GATEWAY.to_owned();
    for mode in &MODES {
        write!(configuration, "{}", mode.section(more)).ok();
    }
    run_sixway(network, &configuration)
}

fn page() -> String {
    pattern(1_000_000).iter().map(|octet| char::from(b'a' + octet % 26)).collect()
}

/// Both ends serve the page at port 8080 of all their addresses.
fn serve(network: &Network, peer: &KernelPeer<'_>) -> Result<()> {
    let folder = network.folder().join("www");
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    std::fs::write(folder.join("index.html"), page()).asking(|| "writing the page".to_owned())?;
    let mut httpd = command("busybox")?;
    httpd.args(["httpd", "-f", "-p", "8080", "-h"]).arg(&folder);
    network.start("server", httpd)?;
    peer.sh(&format!("busybox httpd -p 8080 -h {}", folder.display())).map(drop)
}

/// The page is fetched by each end from the other.
fn pages(network: &Network, peer: &KernelPeer<'_>, mode: &Mode) -> Result<()> {
    let at = |host: String| match mode.carries_4() {
        true => format!("http://{host}:8080/"),
        false => format!("http://[{host}]:8080/"),
    };
    let down = fetch_from(peer, network, &at(mode.host(false)))?;
    let up = fetch(network, "server", &at(mode.host(true)))?;
    match down.body == page() && up.body == page() {
        true => Ok(()),
        false => Err(Failure::Unexpected("another page arrived".to_owned())),
    }
}

/// Pings of these sizes, from each end. Those above 1,400 octets may first get an error with the path MTU.
fn pings(network: &Network, peer: &KernelPeer<'_>, mode: &Mode) -> Result<()> {
    for octets in [56, 1_401, 4_000] {
        pings_come_back(peer, &mode.host(false), octets)?;
        pings_come_back(network.host("server")?, &mode.host(true), octets)?;
    }
    Ok(())
}

/// What was tried of a tunnel failed.
fn of(mode: &Mode) -> impl Fn(Failure) -> Failure {
    let what = format!("{}, limit {}", mode.kind, mode.limit);
    move |failure| Failure::Unexpected(format!("{what}: {failure}"))
}

/// With GSO packets, and then without, so that tcpdump sees every packet as it is.
fn everything_passes() -> Result<()> {
    let network = network()?;
    let peer = start_peer(&network)?;
    start_sixway(&network, "")?;
    serve(&network, &peer)?;
    for mode in &MODES {
        pings(&network, &peer, mode).and_then(|()| pages(&network, &peer, mode)).map_err(of(mode))?;
    }
    for (host, device) in [("gateway", "in0"), ("gateway", "out0"), ("server", "up0"), ("right", "down0")] {
        ethtool(&network, host, device, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
    }
    for mode in &MODES {
        let capture = Capture::start(&network, "right", "down0", "ip or ip6")?;
        pings(&network, &peer, mode).and_then(|()| pages(&network, &peer, mode)).map_err(of(mode))?;
        let said = capture.end()?;
        checksums_are_right(&said, 100).and_then(|()| outer_headers(mode, &said)).map_err(of(mode))?;
    }
    assert!(counter(&network, "ip_in_ip.encap")? > 1_000 && counter(&network, "ip_in_ip.decap")? > 1_000);
    no_checksum_is_wrong(&network)?;
    assert_eq!(wrong_checksums(&peer)?, 0);
    Ok(())
}

/// tcpdump reads in the outer headers what both ends are to write.
fn outer_headers(mode: &Mode, said: &str) -> Result<()> {
    let (remote, local) = mode.ends();
    for pair in [format!("{local} > {remote}"), format!("{remote} > {local}")] {
        let inner = if mode.carries_4() { "IP " } else { "IP6 " };
        let with_limit = mode.limit != "none";
        let lines = said.lines().filter(|line| line.contains(&pair) && line.contains(inner));
        let (mut seen, mut with) = (0, 0);
        for line in lines {
            seen += 1;
            with += usize::from(line.contains("DSTOPT"));
        }
        if seen < 10 || (with > 0) != with_limit {
            let what = format!("{seen} packets {pair}, {with} with a limit");
            return Err(Failure::Unexpected(format!("{what}:\n{said:.3000}")));
        }
    }
    Ok(())
}

/// The link carries 1,400 octets. The hosts learn of it by ICMP alone: Sixway leaves the MSS as it is.
fn narrow_link() -> Result<()> {
    let network = network()?;
    for host in ["left", "right"] {
        network.host(host)?.ip("link set mid0 mtu 1400")?;
    }
    let peer = start_peer(&network)?;
    start_sixway(&network, "clamp_mss = false\n")?;
    serve(&network, &peer)?;
    for mode in &MODES {
        let capture = Capture::start(&network, "server", "up0", "icmp or icmp6")?;
        pages(&network, &peer, mode).map_err(of(mode))?;
        let said = capture.end()?;
        let mtu = 1_400 - mode.header();
        let told = match mode.carries_4() {
            true => format!("unreachable - need to frag (mtu {mtu})"),
            false => format!("packet too big, mtu {mtu}"),
        };
        if !said.contains(&told) {
            return Err(of(mode)(Failure::Unexpected(format!("the server was not told {told}:\n{said}"))));
        }
        pings(&network, &peer, mode).map_err(of(mode))?;
    }
    Ok(())
}

/// Packets without DF: their senders get no error, so every worker has to know the path. Many senders reach all workers.
fn every_worker_learns() -> Result<()> {
    const SENDERS: std::ops::Range<u8> = 20..44;
    let network = network()?;
    for host in ["left", "right"] {
        network.host(host)?.ip("link set mid0 mtu 1400")?;
    }
    let peer = start_peer(&network)?;
    peer.sh("ip route change 10.1.8.0/24 dev t8 src 10.7.8.2 mtu 1300")?;
    start_sixway(&network, "")?;
    let mut lost = Vec::new();
    for sender in SENDERS {
        let source = format!("10.1.8.{sender}");
        network.address("server", "up0", &format!("{source}/24"))?;
        let mut ping = command("ping")?;
        ping.args(["-n", "-M", "dont", "-c", "1", "-W", "1", "-s", "1400", "-I", &source, "10.7.8.2"]);
        let said = network.host("server")?.run(ping, Duration::from_secs(5))?.stdout;
        if !said.contains(" 0% packet loss") {
            lost.push(source);
        }
    }
    // By the first one that is lost the path is found to be narrow.
    assert!(lost.len() <= 1, "pings were lost from {lost:?}");
    Ok(())
}

/// A third kernel has a tunnel of its own to the peer, through Sixway's.
fn nested() -> Result<()> {
    let network = network()?;
    network.link(("gateway", "in1"), ("inner", "up0"))?;
    network.address("gateway", "in1", "2001:db8:3::1/64")?;
    let peer = start_peer(&network)?;
    let features = Features { modules: vec!["ip6_tunnel"], ..Features::default() };
    let inner = KernelPeer::start_with(&network, "inner", &["up0"], &features)?;
    start_sixway(&network, "")?;
    let far = MODES[2].host(true);
    peer.sh(&format!(
        "set -e
        ip -6 route add 2001:db8:3::/64 dev t10
        ip -6 tunnel add deep mode ip4ip6 local {far} remote 2001:db8:3::2 encaplimit none
        ip address add 10.9.0.1/24 dev deep
        ip link set deep up"
    ))?;
    inner.sh(&format!(
        "set -e
        ip -6 address add 2001:db8:3::2/64 dev eth0 nodad
        ip -6 route add default via 2001:db8:3::1
        ip -6 tunnel add deep mode ip4ip6 local 2001:db8:3::2 remote {far} encaplimit 1
        ip address add 10.9.0.2/24 dev deep
        ip link set deep up"
    ))?;
    let capture = Capture::start(&network, "right", "down0", "ip6")?;
    for octets in [56, 1_200, 3_000] {
        pings_come_back(&inner, "10.9.0.1", octets)?;
    }
    let said = capture.end()?;
    assert!(said.contains("DSTOPT"), "{said}");
    inner.sh("ip -6 tunnel change deep encaplimit 0")?;
    let capture = Capture::start(&network, "gateway", "in1", "icmp6")?;
    inner.run_script("ping -c 2 -W 1 10.9.0.1", Duration::from_secs(10))?;
    interrupt::pause(Duration::from_millis(100))?;
    let said = capture.end()?;
    assert!(
        said.contains("2001:db8:1::fe > 2001:db8:3::2: [icmp6 sum ok] ICMP6, parameter problem"),
        "{said}"
    );
    assert!(dropped(&network, "EncapsulationLimit")? >= 1);
    Ok(())
}
