//! TCP connections through a 6to4 relay: with `forward_syn` they open, run and close in the fast path, and their MSS fits the tunnel;
//! without it, the relay's packet filter sees each SYN.

use super::conversation::{Conversation, End};
use super::load::endpoint;
use super::next_to_nat44::carried;
use super::super_frames::{SERVER, six_to_four_of, two_gateways};
use crate::Interop;
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::fast_path::{Hook, shown};
use sixway_lab::gateway::{run_ready_for, run_sixway_on};
use sixway_lab::interrupt;
use sixway_lab::measure::{Capture, Captured};
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::net::TcpStream;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "ping", "tcpdump", "nft"];

pub const TESTS: &[Interop] = &[
    Interop::new("connections_through_a_tunnel_open_and_close_in_the_fast_path_tc", NEEDS, || {
        are_carried(Hook::Tc)
    }),
    Interop::new("connections_through_a_tunnel_open_and_close_in_the_fast_path_xdp", NEEDS, || {
        are_carried(Hook::Xdp)
    }),
    Interop::new("the_packet_filter_sees_who_opens_connections_through_a_tunnel_tc", NEEDS, || {
        are_filtered(Hook::Tc)
    }),
    Interop::new("the_packet_filter_sees_who_opens_connections_through_a_tunnel_xdp", NEEDS, || {
        are_filtered(Hook::Xdp)
    }),
];

const CONNECTIONS: u16 = 10;
const CLIENT: &str = "2002:c000:208:1::2";

/// The client's gateway leaves the MSS as it is; the relay's tunnel carries 1,480 octets.
fn network(hook: Hook, setting: &str) -> Result<Network> {
    let network = two_gateways("2002:c000:208:1")?;
    let near = six_to_four_of("router", "192.0.2.8")
        .replace("mtu =", "relay = \"192.0.2.1\"\nclamp_mss = false\nmtu =");
    run_sixway_on(&network, "near", &near)?;
    let relay = six_to_four_of("relay", "192.0.2.1");
    run_ready_for(&network, hook, &format!("{relay}{}{setting}", hook.section()))?;
    let client = network.host("client")?;
    interrupt::wait_until(Duration::from_secs(5), "pings in the fast path", || {
        let before = carried(&network, "6to4")?;
        Ok(ping(client, SERVER, 2, 56, Duration::from_millis(2))?.answered == 2
            && carried(&network, "6to4")? >= before + 4)
    })?;
    Ok(network)
}

fn are_carried(hook: Hook) -> Result<()> {
    let network = network(hook, "forward_syn = true\n")?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let (before, left) = (carried(&network, "6to4")?, flags(&network)?);
    let seen = |host| Capture::start(&network, host, "up0", "ip6 and tcp and ip6[53] & 2 != 0");
    let (at_server, at_client) = (seen("server")?, seen("client")?);
    for number in 0..CONNECTIONS {
        let first = if number % 2 == 0 { End::Client } else { End::Server };
        let conversation = Conversation::open(client, SERVER, server, SERVER, 9_000 + number)?;
        conversation.exchange(20_000)?;
        conversation.end(first)?;
    }
    // Another host's connection to the client.
    let conversation = Conversation::open(server, CLIENT, client, CLIENT, 9_100)?;
    conversation.exchange(20_000)?;
    conversation.end(End::Client)?;
    assert_eq!(flags(&network)?, left, "SYN, FIN or RST were left to the engine: {}", shown(&network)?);
    assert!(carried(&network, "6to4")? > before + u64::from(CONNECTIONS) * 10, "{}", shown(&network)?);
    // What comes from the tunnel and goes into it has the MSS of 1,480 octets; what leaves the hosts has that of their links.
    for packets in [at_server.end()?, at_client.end()?] {
        let with = |mss| packets.iter().filter(|packet| mss_of(packet) == Some(mss)).count();
        assert_eq!([with(1_420), with(1_440)], [usize::from(CONNECTIONS) + 1; 2], "{packets:?}");
    }
    Ok(())
}

/// The MSS option of a SYN, which is the first one.
fn mss_of(captured: &Captured) -> Option<u16> {
    match captured.packet.get(60..64)? {
        [2, 4, high, low] => Some(u16::from_be_bytes([*high, *low])),
        [..] => None,
    }
}

/// A rule for SYNs alone, as a packet filter without connection tracking has it.
fn are_filtered(hook: Hook) -> Result<()> {
    let network = network(hook, "")?;
    let (client, server, gateway) =
        (network.host("client")?, network.host("server")?, network.host("gateway")?);
    let before = flags(&network)?;
    let conversation = Conversation::open(client, SERVER, server, SERVER, 9_000)?;
    conversation.exchange(20_000)?;
    conversation.end(End::Client)?;
    // The client's and the server's.
    assert_eq!(flags(&network)?, before + 2, "{}", shown(&network)?);
    let rules = "table inet filter { chain forward { type filter hook forward priority 0; \
                 ip6 daddr 2002::/16 tcp flags & (syn | ack) == syn drop; }; }";
    let mut nft = command("nft")?;
    nft.arg("-f").arg(network.file("filter.nft", rules)?);
    gateway.run(nft, Duration::from_secs(5))?.succeeded()?;
    let conversation = Conversation::open(client, SERVER, server, SERVER, 9_001)?;
    conversation.end(End::Client)?;
    let target = endpoint(CLIENT, 9_002)?;
    let _listener =
        client.enter(|| std::net::TcpListener::bind(target))?.asking(|| format!("listening at {target}"))?;
    let refused = server.enter(|| TcpStream::connect_timeout(&target, Duration::from_millis(1_500)))?;
    assert!(refused.is_err(), "a connection from outside was opened: {}", shown(&network)?);
    Ok(())
}

/// TCP packets that the fast path has left to the engine because of their flags.
fn flags(network: &Network) -> Result<u64> {
    let shown = shown(network)?;
    let rows = shown["passed"].as_array().into_iter().flatten();
    Ok(rows.filter(|row| row["cause"] == "flags").map(|row| row["packets"].as_u64().unwrap_or(0)).sum())
}
