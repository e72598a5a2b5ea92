//! Protocols without ports through a NAT44: tunnels and ESP of real Linux kernels, one behind the NAT and one beyond.
//!
//! ```text
//! client (a Linux kernel) ─── 192.168.1.0/24 ─── gateway (Sixway) ─── 203.0.113.0/24 ─── far (a Linux kernel)
//! 192.168.1.2                                    192.0.2.1                               203.0.113.2
//! ```

use crate::Interop;
use crate::tunnels::capture::Capture;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{ask, run_sixway, run_sixway_on};
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "ping", "tcpdump"];

pub const TESTS: &[Interop] = &[
    Interop::new("nat44_passes_tunnels_of_linux_that_have_no_ports", NEEDS, tunnels),
    Interop::new("a_linux_6to4_host_behind_nat44_speaks_with_another", NEEDS, six_to_four_of_linux),
    Interop::new("our_6to4_host_behind_nat44_speaks_with_a_linux_one", NEEDS, six_to_four_of_ours),
    Interop::new("nat44_passes_esp_of_linux_with_and_without_a_static_binding", NEEDS, esp),
    Interop::new("a_session_without_ports_goes_on_when_the_gateway_is_replaced", NEEDS, take_over),
];

const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.0.2.14"
workers = 2

[[pool]]
name = "public"
addresses = ["192.0.2.1"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
"#;

/// With a static binding of the client for this protocol.
fn with_static(protocol: &str) -> String {
    let row = format!("{{ protocol = \"{protocol}\", inside = \"192.168.1.2\", outside = \"192.0.2.1\" }}");
    format!("{SIXWAY}static = [{row}]\n")
}

/// The gateway, and what the two kernels are linked by.
fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "far"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("far", "up0"))?;
    network.address("gateway", "in0", "192.168.1.1/24")?;
    network.address("gateway", "out0", "203.0.113.1/24")?;
    network.forwards("gateway")?;
    Ok(network)
}

fn kernel<'n>(network: &'n Network, host: &str, modules: &[&'static str]) -> Result<KernelPeer<'n>> {
    let features = Features { modules: modules.to_vec(), ..Features::default() };
    let peer = KernelPeer::start_with(network, host, &["up0"], &features)?;
    peer.sh(match host {
        "client" => "ip address add 192.168.1.2/24 dev eth0; ip route add default via 192.168.1.1",
        _ => "ip address add 203.0.113.2/24 dev eth0; ip route add 192.0.2.0/28 via 203.0.113.1",
    })?;
    Ok(peer)
}

/// Nothing comes back from there.
fn is_silent(from: &KernelPeer<'_>, to: &str) -> Result<()> {
    let trips = ping(from, to, 3, 56, Duration::from_millis(10))?;
    assert_eq!(trips.answered, 0, "pings to {to}");
    Ok(())
}

/// Both ends of each tunnel: its words, and an address for the client (1) and the far end (2).
const TUNNELS: [(&str, &str); 4] = [
    ("mode sit ttl 64", "2001:db8:6::X/64"),
    ("mode gre ttl 64", "10.99.1.X/24"),
    ("mode gre key 7 csum ttl 64", "10.99.2.X/24"),
    ("mode ipip ttl 64", "10.99.3.X/24"),
];

fn tunnels() -> Result<()> {
    let network = network()?;
    let modules = ["sit", "ip_gre", "ipip"];
    let (client, far) = (kernel(&network, "client", &modules)?, kernel(&network, "far", &modules)?);
    run_sixway(&network, SIXWAY)?;
    for (number, (words, address)) in TUNNELS.iter().enumerate() {
        for (peer, own, other, last) in
            [(&client, "192.168.1.2", "203.0.113.2", "1"), (&far, "203.0.113.2", "192.0.2.1", "2")]
        {
            peer.sh(&format!(
                "set -e
                 ip tunnel add six{number} {words} remote {other} local {own}
                 ip address add {} dev six{number}
                 ip link set six{number} up",
                address.replace('X', last)
            ))?;
        }
        let end = |last: &str| address.replace('X', last).split('/').next().unwrap_or_default().to_owned();
        // Nobody inside has sent there with this protocol: what comes is not let in.
        if !words.contains("key") {
            is_silent(&far, &end("1"))?;
        }
        let seen = Capture::start(&network, "far", "tap-up0", "ip and not icmp")?;
        for octets in [56, 1_300, 4_000] {
            pings_come_back(&client, &end("2"), octets)?;
            pings_come_back(&far, &end("1"), octets)?;
        }
        let seen = seen.end()?;
        if !seen.contains("192.0.2.1 > 203.0.113.2")
            || seen.contains("192.168.")
            || seen.contains("bad cksum")
        {
            return Err(Failure::Unexpected(format!("{words}: the far end saw\n{seen}")));
        }
    }
    for protocol in ["ipv6", "gre", "ipip"] {
        let rows = asked(&network, &["show", "sessions", "--protocol", protocol])?;
        let row = rows.lines().nth(1).unwrap_or_default();
        let ends = ["192.168.1.2 ", "192.0.2.1 ", "203.0.113.2 "];
        assert!(row.starts_with(protocol) && ends.iter().all(|end| row.contains(end)), "{rows}");
    }
    let ended = asked(&network, &["session", "end", "gre", "192.168.1.2", "203.0.113.2"])?;
    assert!(ended.contains("ended"), "{ended}");
    let left = asked(&network, &["show", "sessions"])?;
    assert!(!left.contains("gre ") && left.contains("ipip ") && left.contains("2 of 2"), "{left}");
    Ok(())
}

/// What `sixway` says.
fn asked(network: &Network, words: &[&str]) -> Result<String> {
    Ok(network.host("gateway")?.run(ask(network, words)?, Duration::from_secs(5))?.succeeded()?.stdout)
}

/// RFC 3056 §5.8: a 6to4 host behind a NAT has the prefix of the NAT's outside address. Linux does not ask whether its own outer address is
/// the one in its prefix.
fn six_to_four_of_linux() -> Result<()> {
    let network = network()?;
    let (client, far) = (kernel(&network, "client", &["sit"])?, kernel(&network, "far", &["sit"])?);
    run_sixway(&network, SIXWAY)?;
    for (peer, local, address) in
        [(&client, "192.168.1.2", "2002:c000:201::1"), (&far, "203.0.113.2", "2002:cb00:7102::1")]
    {
        peer.sh(&format!(
            "set -e
             ip tunnel add six mode sit remote any local {local} ttl 64
             ip address add {address}/16 dev six
             ip link set six up"
        ))?;
    }
    is_silent(&far, "2002:c000:201::1")?;
    for octets in [56, 1_400, 4_000] {
        pings_come_back(&client, "2002:cb00:7102::1", octets)?;
        pings_come_back(&far, "2002:c000:201::1", octets)?;
    }
    Ok(())
}

/// A Sixway that knows its outer address; with a static binding any 6to4 host may begin.
const INSIDE: &str = r#"[gateway]
ipv4_address = "192.168.1.254"

[six_to_four]
role = "host"
address = "192.168.1.2"
nat_address = "192.0.2.1"
mtu = 1480
"#;

fn six_to_four_of_ours() -> Result<()> {
    let network = network()?;
    network.address("client", "up0", "192.168.1.2/24")?;
    network.route("client", "default via 192.168.1.1")?;
    let far = kernel(&network, "far", &["sit"])?;
    far.sh("set -e
        ip tunnel add six mode sit remote any local 203.0.113.2 ttl 64
        ip address add 2002:cb00:7102::1/16 dev six
        ip link set six up")?;
    run_sixway(&network, &with_static("ipv6"))?;
    run_sixway_on(&network, "client", INSIDE)?;
    for octets in [56, 1_400, 4_000] {
        pings_come_back(&far, "2002:c000:201::1", octets)?;
        pings_come_back(network.host("client")?, "2002:cb00:7102::1", octets)?;
    }
    Ok(())
}

/// One end of a pair of security associations: `own` and `other` are the outer addresses as this end sees them.
fn associations(own: &str, other: &str, (out, back): (u32, u32), (from, to): (&str, &str)) -> String {
    let keys = "enc 'cbc(aes)' 0x000102030405060708090a0b0c0d0e0f auth 'hmac(sha256)' \
                0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    format!(
        "set -e
         ip xfrm state add src {own} dst {other} proto esp spi {out} mode tunnel {keys}
         ip xfrm state add src {other} dst {own} proto esp spi {back} mode tunnel {keys}
         ip xfrm policy add dir out src {from} dst {to} tmpl src {own} dst {other} proto esp mode tunnel
         ip xfrm policy add dir in src {to} dst {from} tmpl src {other} dst {own} proto esp mode tunnel
         ip address add {from}/32 dev lo
         ip route add {to}/32 dev eth0 via $VIA src {from}"
    )
}

fn esp() -> Result<()> {
    let network = network()?;
    let modules = ["xfrm_user", "esp4", "authenc", "echainiv", "cbc", "hmac", "ansi_cprng"];
    let (client, far) = (kernel(&network, "client", &modules)?, kernel(&network, "far", &modules)?);
    let near = associations("192.168.1.2", "203.0.113.2", (0x101, 0x202), ("10.1.0.1", "10.2.0.1"));
    client.sh(&format!("VIA=192.168.1.1\n{near}"))?;
    let beyond = associations("203.0.113.2", "192.0.2.1", (0x202, 0x101), ("10.2.0.1", "10.1.0.1"));
    far.sh(&format!("VIA=203.0.113.1\n{beyond}"))?;
    let process = run_sixway(&network, SIXWAY)?;
    is_silent(&far, "10.1.0.1")?;
    for octets in [56, 1_300, 4_000] {
        pings_come_back(&client, "10.2.0.1", octets)?;
        pings_come_back(&far, "10.1.0.1", octets)?;
    }
    network.with_process(process, |process| process.stop())?;
    run_sixway(&network, &with_static("esp"))?;
    let bindings = asked(&network, &["show", "bindings"])?;
    let rows: Vec<_> = bindings.lines().filter(|row| row.starts_with("esp ")).collect();
    assert!(rows.len() == 1 && rows[0].contains("192.0.2.1 ") && rows[0].contains("static"), "{bindings}");
    for octets in [56, 1_300, 4_000] {
        pings_come_back(&far, "10.1.0.1", octets)?;
        pings_come_back(&client, "10.2.0.1", octets)?;
    }
    Ok(())
}

/// Sessions without ports are not handed over. The next packet from inside makes them again, with the same outside address.
fn take_over() -> Result<()> {
    let network = network()?;
    let (client, far) = (kernel(&network, "client", &["ip_gre"])?, kernel(&network, "far", &["ip_gre"])?);
    let several = SIXWAY.replace("192.0.2.1\"", "192.0.2.0/29\"");
    run_sixway(&network, &several)?;
    client.sh("set -e
        ip tunnel add six mode gre ttl 64 remote 203.0.113.2 local 192.168.1.2
        ip address add 10.99.1.1/24 dev six
        ip link set six up")?;
    let seen = Capture::start(&network, "far", "tap-up0", "ip proto 47")?;
    ping(&client, "10.99.1.2", 1, 56, Duration::from_millis(10))?;
    let said = seen.end()?;
    let outside =
        said.split_whitespace().find(|word| word.starts_with("192.0.2.")).unwrap_or_default().to_owned();
    far.sh(&format!(
        "set -e
         ip tunnel add six mode gre ttl 64 remote {outside} local 203.0.113.2
         ip address add 10.99.1.2/24 dev six
         ip link set six up"
    ))?;
    pings_come_back(&client, "10.99.1.2", 56)?;
    sixway_lab::gateway::take_over(&network, &several)?;
    pings_come_back(&client, "10.99.1.2", 56)?;
    pings_come_back(&far, "10.99.1.1", 56)
}
