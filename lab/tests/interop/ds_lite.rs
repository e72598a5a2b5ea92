//! DS-Lite with a Linux kernel at the other end of the softwire (RFC 6333).
//!
//! ```text
//! client ─── gateway (Sixway, B4) ─── middle ─── aftr (a Linux kernel: ip6tnl and nftables) ─── server
//! 10.1.0.2   2001:db8:99::b4          IPv6 only  2001:db8:a::1 · 203.0.113.1                    203.0.113.2
//! ```

use crate::Interop;
use crate::counters::{counter, no_checksum_is_wrong, wrong_checksums};
use crate::datagrams::pattern;
use crate::tunnels::capture::{Capture, checksums_are_right};
use crate::tunnels::carriage::{ethtool, pings_come_back};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::probe::fetch;
use sixway_lab::topology::Network;

pub const TESTS: &[Interop] = &[
    Interop::new("a_linux_kernel_with_nftables_is_the_aftr_of_a_b4", NEEDS, everything_passes),
    Interop::new("tcp_through_a_softwire_passes_a_narrow_network", NEEDS, narrow_network),
];

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "nft", "ping", "curl", "tcpdump", "ethtool"];

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
    let features = Features {
        modules: vec!["ip6_tunnel", "nf_tables", "nft_chain_nat", "nft_masq"],
        ..Features::default()
    };
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
        nft add table ip nat
        nft 'add chain ip nat out { type nat hook postrouting priority 100; }'
        nft add rule ip nat out oifname eth1 masquerade")?;
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
    // Forty octets more, and no more: there is no option.
    assert!(!said.contains("DSTOPT"), "{said:.3000}");
    let said = outside.end()?;
    assert!(
        said.contains("203.0.113.1") && !said.contains("10.1.0.2") && !said.contains("192.0.0.2"),
        "{said:.3000}"
    );
    assert!(counter(&network, "b4.encap")? > 1_000 && counter(&network, "b4.decap")? > 1_000);
    no_checksum_is_wrong(&network)?;
    assert_eq!(wrong_checksums(&aftr)?, 0);
    Ok(())
}

/// A link in the middle carries 1,400 octets. The hosts learn of it by ICMP alone: Sixway leaves the MSS as it is.
fn narrow_network() -> Result<()> {
    let network = network()?;
    let _aftr = start_aftr(&network)?;
    for (host, device) in [("middle", "up0"), ("aftr", "down0")] {
        network.host(host)?.ip(&format!("link set {device} mtu 1400"))?;
    }
    run_sixway(&network, &format!("{B4}clamp_mss = false\n"))?;
    serve(&network)?;
    let capture = Capture::start(&network, "client", "up0", "icmp")?;
    let mut ping = command("ping")?;
    ping.args(["-n", "-M", "do", "-c", "3", "-W", "1", "-s", "1400", SERVER]);
    network.host("client")?.run(ping, std::time::Duration::from_secs(10))?;
    let said = capture.end()?;
    assert!(
        said.contains("192.0.0.2 > 10.1.0.2") && said.contains("need to frag (mtu 1360)"),
        "{said:.3000}"
    );
    try_all(&network)
}
