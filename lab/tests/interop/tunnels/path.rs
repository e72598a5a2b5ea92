//! What goes wrong between the tunnel's ends: a narrow link, a destination that is not there, strangers who pretend, and a gateway that comes
//! and goes. There is a router in the IPv4 path.
//!
//! ```text
//! peer 198.51.100.8 ─── 198.51.100.1 router 192.0.2.2 ─── 192.0.2.1 gateway 2001:db8:2::1 ─── 2001:db8:2::2 server
//! ```

use super::capture::Capture;
use super::carriage::{Ends, NEEDS, Near, SERVER};
use crate::Interop;
use crate::counters::dropped;
use nix::sys::signal::Signal;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::KernelPeer;
use sixway_lab::load::{discard_all, flood, tunnel_socket};
use sixway_lab::namespace::command;
use sixway_lab::packet::{echo_request, six_to_four, tunnelled_echo_reply};
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("tcp_through_a_tunnel_goes_on_after_fragmentation_needed", NEEDS, narrow_path),
    Interop::new("an_unreachable_tunnel_end_is_told_to_the_inner_host", &["sixway", "ping"], unreachable_end),
    Interop::new("a_spoofed_embedded_address_is_dropped_and_counted", &["sixway"], spoofed_source),
    Interop::new(
        "nobody_is_told_that_protocol_41_is_unknown_while_sixway_starts_and_stops",
        &["sixway", "tcpdump"],
        never_protocol_unreachable,
    ),
    Interop::new(
        "nobody_is_told_that_protocol_41_is_unknown_when_more_comes_than_sixway_takes",
        &["sixway", "tcpdump"],
        never_under_a_flood,
    ),
];

const RELAY: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "relay"
address = "192.0.2.1"
mtu = "dynamic"

[tunnels]
steering = "STEERING"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);

fn network() -> Result<Network> {
    let network = Network::new(&["peer", "router", "gateway", "server"])?;
    network.link(("peer", "up0"), ("router", "in0"))?;
    network.link(("router", "out0"), ("gateway", "out0"))?;
    network.link(("gateway", "in0"), ("server", "up0"))?;
    network.address("router", "in0", "198.51.100.1/24")?;
    network.address("router", "out0", "192.0.2.2/24")?;
    network.address("gateway", "out0", "192.0.2.1/24")?;
    network.address("gateway", "in0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("gateway", "default via 192.0.2.2")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("router")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// The same, the peer being an ordinary namespace whose tunnel packets the test makes itself.
fn network_with_plain_peer() -> Result<Network> {
    let network = network()?;
    network.address("peer", "up0", "198.51.100.8/24")?;
    network.route("peer", "default via 198.51.100.1")?;
    Ok(network)
}

fn narrow_path() -> Result<()> {
    let network = network()?;
    let peer = KernelPeer::start(&network, "peer", &["up0"])?;
    peer.sh("set -e
        ip address add 198.51.100.8/24 dev eth0
        ip route add default via 198.51.100.1
        ip tunnel add six mode sit remote any local 198.51.100.8 ttl 64
        ip address add 2002:c633:6408::1/16 dev six
        ip link set six up
        ip -6 route add default via ::192.0.2.1 dev six")?;
    network.host("router")?.ip("link set in0 mtu 1380")?;
    for steering in ["on", "off"] {
        let process = run_sixway(&network, &RELAY.replace("STEERING", steering))?;
        let (near, address) = (Near::Guest(&peer), "2002:c633:6408::1");
        let capture = Capture::start(&network, "gateway", "out0", "icmp")?;
        Ends { network: &network, peer: &peer, near, address, server: SERVER, device: "six" }.pages()?;
        let said = capture.end()?;
        assert!(
            said.contains("need to frag (mtu 1380)"),
            "steering {steering}: the path was not narrow: {said}"
        );
        network.with_process(process, |process| process.stop())?;
        network.host("server")?.ip("-6 route flush cache")?;
    }
    Ok(())
}

fn unreachable_end() -> Result<()> {
    let network = network_with_plain_peer()?;
    network.route("router", "unreachable 198.51.100.9/32")?;
    network.host("router")?.sysctl("ipv4/icmp_ratelimit", "0")?;
    for steering in ["on", "off"] {
        let process = run_sixway(&network, &RELAY.replace("STEERING", steering))?;
        let mut ping = command("ping")?;
        ping.args(["-n", "-c", "3", "-i", "0.2", "-W", "3", "2002:c633:6409::1"]);
        let said = network.host("server")?.run(ping, Duration::from_secs(15))?.stdout;
        assert!(said.contains("Destination unreachable: Address unreachable"), "steering {steering}: {said}");
        network.with_process(process, |process| process.stop())?;
    }
    Ok(())
}

fn spoofed_source() -> Result<()> {
    let network = network_with_plain_peer()?;
    let server: Ipv6Addr = SERVER.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
    for steering in ["on", "off"] {
        let process = run_sixway(&network, &RELAY.replace("STEERING", steering))?;
        let socket = network.host("peer")?.enter(|| tunnel_socket(GATEWAY))??;
        let answered = |source| answered(&socket, source, server, 1);
        assert!(answered(six_to_four(PEER, 1))?, "the peer's own address, steering {steering}");
        let before = dropped(&network, "SpoofedEmbeddedSource")?;
        assert!(!answered(six_to_four(Ipv4Addr::new(198, 51, 100, 9), 1))?, "another site's address");
        assert_eq!(dropped(&network, "SpoofedEmbeddedSource")?, before + 1);
        network.with_process(process, |process| process.stop())?;
    }
    Ok(())
}

/// Whether an echo request of this inner source is answered through the tunnel.
fn answered(socket: &UdpSocket, source: Ipv6Addr, to: Ipv6Addr, number: u16) -> Result<bool> {
    socket
        .send(&echo_request(source, to, [41, number], 64))
        .asking(|| "sending through a tunnel".to_owned())?;
    receives(socket, number, Duration::from_millis(500))
}

/// Whether the answer with this number comes within a time.
fn receives(socket: &UdpSocket, number: u16, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    let mut octets = [0; 2_048];
    while start.elapsed() < limit {
        interrupt::check()?;
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .asking(|| "setting a time limit".to_owned())?;
        if let Ok(length) = socket.recv(&mut octets)
            && tunnelled_echo_reply(&octets[..length]) == Some([41, number])
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Someone sends through the tunnel all the time. Before Sixway is there, and after it has gone, the kernel may send "protocol unreachable"
/// errors; from the first answer to the last one it may not.
fn never_protocol_unreachable() -> Result<()> {
    for steering in ["on", "off"] {
        let network = network_with_plain_peer()?;
        network.host("gateway")?.sysctl("ipv4/icmp_ratelimit", "0")?;
        let capture = Capture::start(&network, "peer", "up0", "icmp or proto 41")?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| send_until(&network, &stop));
            let done = (0..2).try_for_each(|_| {
                let process = run_sixway(&network, &RELAY.replace("STEERING", steering))?;
                interrupt::pause(Duration::from_millis(300))?;
                network.with_process(process, |process| process.stop()).map(drop)
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            sender.join().unwrap_or_else(|_| Err(Failure::Unexpected("the sender panicked".to_owned())))?;
            done
        })?;
        judge(&capture.end()?).map_err(|what| Failure::Unexpected(format!("steering {steering}: {what}")))?;
    }
    Ok(())
}

/// Sixway is stopped while a flood fills its sockets: what finds no room is silently lost.
fn never_under_a_flood() -> Result<()> {
    let server: Ipv6Addr = SERVER.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
    for steering in ["on", "off"] {
        let network = network_with_plain_peer()?;
        network.host("gateway")?.sysctl("ipv4/icmp_ratelimit", "0")?;
        let process = run_sixway(&network, &RELAY.replace("STEERING", steering))?;
        let capture = Capture::start(&network, "peer", "up0", "icmp")?;
        let socket = network.host("peer")?.enter(|| tunnel_socket(GATEWAY))??;
        discard_all(&socket)?;
        let packet = echo_request(six_to_four(PEER, 1), server, [41, 1], 64);
        network.with_process(process, |process| process.signal(Signal::SIGSTOP))?;
        let sent = flood(&[(&socket, vec![&packet])], Duration::from_millis(500))?;
        network.with_process(process, |process| process.signal(Signal::SIGCONT))?;
        let said = capture.end()?;
        assert!(sent.sent > 20_000, "{} packets are no flood", sent.sent);
        assert!(!said.contains("protocol 41 unreachable"), "steering {steering}");
    }
    Ok(())
}

fn send_until(network: &Network, stop: &std::sync::atomic::AtomicBool) -> Result<()> {
    let server: Ipv6Addr = SERVER.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
    let socket = network.host("peer")?.enter(|| tunnel_socket(GATEWAY))??;
    discard_all(&socket)?;
    let mut number = 0;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        number += 1;
        // The ICMP error of a refusal is returned by the next call, and is not a failure.
        socket.send(&echo_request(six_to_four(PEER, 1), server, [41, number], 64)).ok();
        interrupt::pause(Duration::from_millis(2))?;
    }
    Ok(())
}

/// Of what tcpdump saw: answers and refusals in their order. In each of the two lives there is no refusal between answers.
fn judge(said: &str) -> std::result::Result<(), String> {
    let events = said.lines().filter_map(|line| match line {
        line if line.contains("192.0.2.1 protocol 41 unreachable") => Some('U'),
        line if line.contains("echo reply") => Some('R'),
        _ => None,
    });
    let events: String = events.collect();
    let mut lives = events.split('U').filter(|life| !life.is_empty());
    let lengths: Vec<_> = lives.by_ref().map(str::len).collect();
    match lengths.as_slice() {
        [first, second] if *first > 50 && *second > 50 => Ok(()),
        other => Err(format!("answers between refusals: {other:?}")),
    }
}
