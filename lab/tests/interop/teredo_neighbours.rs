//! Clients on one link, behind one NAT that sends nothing back to the side it came from: their packets stay on the link.

use crate::Interop;
use crate::teredo_client::{answers, client_says, has_address, two_qualified};
use crate::teredo_peer::{Peer, bubble, echo, is_reply, packet};
use crate::tunnels::capture::Capture;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway_on, show_on};
use sixway_lab::interrupt;
use sixway_lab::teredo::{CLIENT, SERVER, network_of_a_link};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "two_of_our_teredo_clients_behind_one_nat_reach_each_other_on_their_link",
        PROGRAMS,
        two_of_ours,
    ),
    Interop::new(
        "our_teredo_client_answers_a_discovery_bubble_and_meets_its_sender_on_the_link",
        OF_ONE,
        discovered,
    ),
];

const PROGRAMS: &[&str] = &["sixway", "nft", "ping", "tcpdump"];
const OF_ONE: &[&str] = &["sixway", "nft"];

/// What tcpdump says of UDP packets longer than this; bubbles and advertisements are shorter.
const DATA: usize = 200;

fn lengths(said: &str) -> Vec<usize> {
    let lengths = said.split("UDP, length ").skip(1);
    lengths.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

/// Alternate addresses in their bubbles tell them where they are (RFC 6081 §5.6).
fn two_of_ours() -> Result<()> {
    let network = network_of_a_link()?;
    run_sixway_on(&network, "server", SERVER)?;
    let [address, neighbour] = two_qualified(&network)?;
    assert_ne!(address, neighbour);
    let at_server = Capture::start(&network, "server", "up0", "udp port 3544")?;
    let on_link = Capture::start(&network, "client", "up0", "udp and host 192.168.1.2 and host 192.168.1.3")?;
    interrupt::wait_until(Duration::from_secs(20), "an answer of the other client", || {
        answers(&network, "client", &neighbour)
    })?;
    pings_come_back(network.host("client")?, &neighbour, 1_000)?;
    pings_come_back(network.host("neighbour")?, &address, 1_000)?;
    let (at_server, on_link) = (at_server.end()?, on_link.end()?);
    let of_data = lengths(&on_link).iter().filter(|length| **length > 1_000).count();
    assert!(of_data >= 4, "{of_data} packets on the link:\n{on_link}");
    let at_server = lengths(&at_server);
    assert!(!at_server.is_empty(), "bubbles pass the server");
    assert!(at_server.iter().all(|length| *length < DATA), "packets at the server: {at_server:?}");
    let said = client_says(&network)?;
    assert!(said.contains("192.168.1.3:") && said.contains("established"), "{said}");
    Ok(())
}

/// RFC 4380 §5.2.8. Ours sends such bubbles itself each 200 to 300 s, for which this test does not wait.
fn discovered() -> Result<()> {
    let network = network_of_a_link()?;
    run_sixway_on(&network, "server", SERVER)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\nlocal_discovery = true\n"))?;
    let ours = has_address(&network, "client", |_| true)?;
    let ours: Ipv6Addr = ours.parse().map_err(|_| Failure::Unexpected(ours.clone()))?;
    let peer = Peer::on(&network, "neighbour", "192.168.1.3:3074")?;
    let own = peer.qualifies(0x2caf)?;
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let discovery = SocketAddrV4::new(Ipv4Addr::new(224, 0, 0, 253), 3_544);
    peer.send(discovery, &[&packet(59, 1, (own, all_nodes), &[])])?;
    let answer =
        peer.must_hear("a bubble of our client", |heard| heard.is_bubble() && heard.destination() == own)?;
    assert_eq!((answer.source(), answer.from.ip()), (ours, &Ipv4Addr::new(192, 168, 1, 2)));
    peer.send(answer.from, &[&bubble(own, ours)])?;
    // The client answers before its engine knows of the neighbour: a first packet may be lost.
    let mut reply = None;
    for _ in 0..10 {
        peer.send(answer.from, &[&echo(own, ours, 1)])?;
        reply = peer.hears(Duration::from_secs(1), |heard| is_reply(heard, 1))?;
        if reply.is_some() {
            break;
        }
    }
    let reply = reply.ok_or_else(|| Failure::Unexpected("did not hear a reply".into()))?;
    assert_eq!(reply.from, answer.from, "on the link");
    let said = client_says(&network)?;
    assert!(said.contains("192.168.1.3:3074") && said.contains("on the same link"), "{said}");
    // The server has forwarded nothing between the two.
    let words = show_on(&network, "server", &["teredo-server"])?;
    let said = network.host("server")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout;
    assert!(!said.lines().any(|line| line.starts_with("forwarded")), "{said}");
    Ok(())
}
