//! Our Teredo server with peers that are not ours: miredo is the client and the relay.
//!
//! ```text
//! host ─── nat ─── middle ─── gateway (Sixway)  198.51.100.1 and .2
//! 192.168.1.2       │
//!          203.0.113.10
//!                   └─── relay (miredo)  192.0.2.20 ─── server 2001:db8:5::80
//! ```

use crate::Interop;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{run_sixway, show, take_over};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("miredo_behind_masquerade_qualifies_and_reaches_a_native_host", NAT, behind_masquerade),
    Interop::new("miredo_without_a_nat_qualifies_and_reaches_a_native_host", MIREDO, without_a_nat),
    Interop::new(
        "the_two_addresses_of_a_teredo_server_tell_a_symmetric_nat_from_others",
        PROBES,
        kinds_of_nat,
    ),
    Interop::new("a_teredo_server_is_back_after_a_takeover_and_after_a_kill", PROBES, life),
];

const MIREDO: &[&str] = &["sixway", "miredo", "ping"];
const NAT: &[&str] = &["sixway", "miredo", "nft", "ping"];
const PROBES: &[&str] = &["sixway", "nft"];

const NATIVE: &str = "2001:db8:5::80";
const PRIMARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const CONFIGURATION: &str =
    "[gateway]\nworkers = 1\n\n[teredo_server]\naddress = \"198.51.100.1\"\nsecondary = \"198.51.100.2\"\n";

/// The network above, with all addresses and routes; the nat only forwards.
fn network() -> Result<Network> {
    let network = Network::new(&["host", "nat", "middle", "gateway", "relay", "server"])?;
    network.link(("host", "up0"), ("nat", "down0"))?;
    network.link(("nat", "up0"), ("middle", "nat0"))?;
    network.link(("middle", "gw0"), ("gateway", "out0"))?;
    network.link(("middle", "relay0"), ("relay", "out0"))?;
    network.link(("relay", "in0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("host", "up0", "192.168.1.2/24"),
        ("nat", "down0", "192.168.1.1/24"),
        ("nat", "up0", "203.0.113.10/24"),
        ("middle", "nat0", "203.0.113.1/24"),
        ("middle", "gw0", "198.51.100.254/24"),
        ("middle", "gw0", "2001:db8:8::fe/64"),
        ("middle", "relay0", "192.0.2.254/24"),
        ("middle", "relay0", "2001:db8:9::fe/64"),
        ("gateway", "out0", "198.51.100.1/24"),
        ("gateway", "out0", "198.51.100.2/24"),
        ("gateway", "out0", "2001:db8:8::1/64"),
        ("relay", "out0", "192.0.2.20/24"),
        ("relay", "out0", "2001:db8:9::20/64"),
        ("relay", "in0", "2001:db8:5::1/64"),
        ("server", "up0", "2001:db8:5::80/64"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("host", "default via 192.168.1.1"),
        ("nat", "default via 203.0.113.1"),
        ("gateway", "default via 198.51.100.254"),
        ("gateway", "default via 2001:db8:8::fe"),
        ("relay", "default via 192.0.2.254"),
        ("middle", "2001:db8:5::/64 via 2001:db8:9::20"),
        ("server", "default via 2001:db8:5::1"),
    ] {
        network.route(host, route)?;
    }
    for router in ["nat", "middle", "relay"] {
        network.forwards(router)?;
    }
    Ok(network)
}

/// Masquerades what the host sends; `more` are further words of the statement.
fn masquerade(network: &Network, more: &str) -> Result<()> {
    let rules = format!(
        "table ip nat {{\n chain post {{\n  type nat hook postrouting priority srcnat\n  oifname \"up0\" masquerade {more}\n }}\n}}\n"
    );
    let file = network.file("nat.nft", &rules)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(file);
    network.host("nat")?.run(nft, Duration::from_secs(10))?.succeeded().map(drop)
}

fn start_miredo(network: &Network, host: &str, configuration: &str) -> Result<()> {
    let file = network.file(&format!("miredo-{host}.conf"), configuration)?;
    let mut miredo = command("miredo")?;
    miredo.arg("-f").arg("-c").arg(file).arg("-p").arg(network.folder().join(format!("miredo-{host}.pid")));
    network.start(host, miredo).map(drop)
}

/// The client has an address of our server, and a native host answers it.
fn qualifies(network: &Network, on: &str) -> Result<()> {
    run_sixway(network, CONFIGURATION)?;
    let relay = "RelayType relay\nInterfaceName teredo\nBindAddress 192.0.2.20\nBindPort 3545\n";
    start_miredo(network, "relay", relay)?;
    start_miredo(network, on, "InterfaceName teredo\nServerAddress 198.51.100.1\n")?;
    interrupt::wait_until(Duration::from_secs(40), "an address of the Teredo server", || {
        let host = network.host(on)?;
        let has_address = host.ip("-6 address")?.contains("2001:0:c633:6401");
        Ok(has_address && host.ip("-6 route")?.contains("default dev teredo"))
    })?;
    pings_come_back(network.host(on)?, NATIVE, 56)?;
    // What is shown is a second old at most.
    interrupt::wait_until(Duration::from_secs(5), "counters of the Teredo server", || {
        let said =
            network.host("gateway")?.run(show(network, &["teredo-server"])?, Duration::from_secs(5))?;
        let said = said.succeeded()?.stdout;
        Ok(["advertised", "forwarded", "native"].iter().all(|counted| said.contains(counted)))
    })
}

fn behind_masquerade() -> Result<()> {
    let network = network()?;
    masquerade(&network, "")?;
    qualifies(&network, "host")
}

/// The client is the host with the public address.
fn without_a_nat() -> Result<()> {
    let network = network()?;
    network.host("nat")?.sysctl("ipv6/conf/all/forwarding", "0")?;
    qualifies(&network, "nat")
}

/// A router solicitation without the cone bit, or with it.
fn solicitation(is_cone: bool) -> Vec<u8> {
    let flags = if is_cone { "80" } else { "00" };
    // fe80::flags00:63bf:3f57:fefd to ff02::2, with the checksum of each.
    let checksum = if is_cone { "5b22" } else { "db22" };
    let octets = format!(
        "6000000000083afffe80000000000000{flags}0063bf3f57fefdff020000000000000000000000000002\
         8500{checksum}00000000"
    );
    let digits = octets.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default()).collect()
}

/// From which address the answer to a solicitation came, and the endpoint in it; `None`: nothing came.
fn asked(socket: &UdpSocket, at: Ipv4Addr, is_cone: bool) -> Result<Option<(Ipv4Addr, SocketAddrV4)>> {
    let sent = socket.send_to(&solicitation(is_cone), (at, 3_544));
    sent.asking(|| format!("sending a solicitation to {at}"))?;
    let mut octets = [0; 200];
    let Ok((length, from)) = socket.recv_from(&mut octets) else { return Ok(None) };
    let [0, 0, high, low, a, b, c, d, 0x60, ..] = octets[..length] else {
        return Err(Failure::Unexpected(format!(
            "not an advertisement with an origin: {:?}",
            &octets[..length]
        )));
    };
    let endpoint = SocketAddrV4::new(Ipv4Addr::new(!a, !b, !c, !d), u16::from_be_bytes([!high, !low]));
    match from.ip() {
        std::net::IpAddr::V4(from) => Ok(Some((from, endpoint))),
        std::net::IpAddr::V6(from) => Err(Failure::Unexpected(format!("an answer from {from}"))),
    }
}

fn open(network: &Network) -> Result<UdpSocket> {
    let socket = network.host("host")?.enter(|| UdpSocket::bind("0.0.0.0:0"))?;
    let socket = socket.asking(|| "opening a socket".to_owned())?;
    let patience = socket.set_read_timeout(Some(Duration::from_secs(1)));
    patience.asking(|| "setting a timeout".to_owned())?;
    Ok(socket)
}

/// Masquerade keeps the port for all destinations; a fully random one has another port for each.
fn kinds_of_nat() -> Result<()> {
    for (more, is_symmetric) in [("", false), ("fully-random", true)] {
        let network = network()?;
        masquerade(&network, more)?;
        run_sixway(&network, CONFIGURATION)?;
        let socket = open(&network)?;
        let first = asked(&socket, PRIMARY, false)?;
        let second = asked(&socket, SECONDARY, false)?;
        let (Some((from_first, one)), Some((from_second, other))) = (first, second) else {
            return Err(Failure::Unexpected(format!("{more}: no answer: {first:?}, {second:?}")));
        };
        assert_eq!((from_first, from_second), (PRIMARY, SECONDARY), "{more}");
        assert_eq!(
            (*one.ip(), *other.ip()),
            (Ipv4Addr::new(203, 0, 113, 10), Ipv4Addr::new(203, 0, 113, 10))
        );
        assert_eq!(one != other, is_symmetric, "{more}: {one} and {other}");
        // A restricted NAT lets no answer through from the address that was not asked.
        assert_eq!(asked(&open(&network)?, PRIMARY, true)?, None, "{more}");
    }
    Ok(())
}

/// What a client that retries sees of a takeover and of a `kill -9`.
fn life() -> Result<()> {
    let network = network()?;
    masquerade(&network, "")?;
    // A gateway without a device cannot be taken over.
    let own = "[gateway]\nipv6_address = \"2001:db8::fe\"\n";
    let npt66 = "[npt66]\ninside = \"fd01:203:405::/48\"\noutside = \"2001:db8:1::/48\"\n";
    let configuration = format!("{}{npt66}", CONFIGURATION.replace("[gateway]\n", own));
    run_sixway(&network, &configuration)?;
    let socket = open(&network)?;
    assert!(asked(&socket, PRIMARY, false)?.is_some());
    let id = take_over(&network, &configuration)?;
    assert!(asked(&socket, PRIMARY, false)?.is_some(), "after the takeover");
    assert!(asked(&socket, SECONDARY, false)?.is_some(), "after the takeover");
    network.with_process(id, |process| process.kill())?;
    run_sixway(&network, &configuration)?;
    assert!(asked(&socket, PRIMARY, false)?.is_some(), "after the kill");
    Ok(())
}
