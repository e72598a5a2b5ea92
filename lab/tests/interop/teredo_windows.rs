//! What Teredo clients of Windows and of the Xbox send, from public sources: our server, relay and client take it.
//!
//! The capture Teredo.pcap of Wireshark's wiki has a whole qualification, a test of a native host and a TCP connection of such a client, with miredo as
//! its relay. RFC 6081 and RFC 5991, whose authors made that client, say what later ones do.

use crate::Interop;
use crate::teredo_client::{client_says, has_address};
use crate::teredo_peer::{
    Heard, Peer, SECOND, SERVER, authentication, bubble, echo, is_reply, nonce_trailer, solicitation,
};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on};
use sixway_lab::teredo::{CLIENT, HOST, RELAY, SERVER as SERVER_SECTION, closes, network};
use sixway_lab::topology::Network;
use std::net::Ipv6Addr;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("our_teredo_server_answers_solicitations_of_windows", PROGRAMS, solicitations),
    Interop::new("a_client_of_windows_reaches_a_native_host_by_our_server_and_relay", PROGRAMS, native_host),
    Interop::new("a_client_of_windows_and_our_teredo_client_reach_each_other", PROGRAMS, our_client),
];

const PROGRAMS: &[&str] = &["sixway", "nft"];

/// Flags of addresses and of solicitations: of Windows XP and Vista behind a cone NAT and behind others, and since Windows 7 with random bits (RFC 5991).
const FLAGS: [u16; 4] = [0x8000, 0, 0x2caf, 0xbc5a];

/// The client's address without a NAT, and its port. That of the Xbox is 3074.
const PUBLIC: &str = "198.51.100.18:3074";

fn solicitations() -> Result<()> {
    let network = network()?;
    run_sixway_on(&network, "server", SERVER_SECTION)?;
    let peer = Peer::on(&network, "nat", PUBLIC)?;
    for (number, flags) in FLAGS.into_iter().enumerate() {
        let nonce = [number as u8 + 1; 8];
        for (asked, other) in [(SERVER, SECOND), (SECOND, SERVER)] {
            peer.send(asked, &[&authentication(nonce), &solicitation(flags)])?;
            let heard = peer.must_hear("an advertisement", |heard| heard.nonce == Some(nonce))?;
            let from = if flags & 0x8000 == 0 { asked } else { other };
            assert_eq!(heard.from, from, "{flags:x}");
            is_advertisement(&heard, flags);
        }
    }
    // Without authentication, as RFC 4380 §5.2.1 permits.
    peer.send(SERVER, &[&solicitation(0)])?;
    let heard = peer.must_hear("an advertisement", |heard| heard.nonce.is_none())?;
    is_advertisement(&heard, 0);
    Ok(())
}

/// As the server of Microsoft in the capture answers: one prefix, and nothing behind the packet.
fn is_advertisement(heard: &Heard, flags: u16) {
    assert_eq!(heard.origin.map(|origin| origin.to_string()).as_deref(), Some(PUBLIC));
    assert_eq!(heard.destination(), Ipv6Addr::new(0xfe80, 0, 0, 0, flags, 0xffff, 0xffff, 0xfffd));
    assert_eq!(heard.source().segments()[..4], [0xfe80, 0, 0, 0]);
    assert_eq!((heard.icmpv6(), heard.packet[7], heard.trailers.len()), (Some(134), 255, 0));
    let options = &heard.packet[40 + 16..];
    assert_eq!(options[..3], [3, 4, 64], "a prefix of 64 bits: {options:?}");
    assert_eq!(options[16..32], Ipv6Addr::new(0x2001, 0, 0xc633, 0x6401, 0, 0, 0, 0).octets());
    // And an MTU of 1,280, as miredo's server has it.
    assert_eq!(options[32..], [5, 1, 0, 0, 0, 0, 5, 0], "one prefix, and an MTU");
}

/// The test of a native host, the bubble of its relay, and the answer to that, as in the capture; older clients know no nonces.
fn native_host() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", SERVER_SECTION)?;
    let peer = Peer::on(&network, "nat", PUBLIC)?;
    let host = HOST.parse().map_err(|_| Failure::Unexpected(HOST.into()))?;
    for (number, flags) in (1..).zip(FLAGS) {
        let own = peer.qualifies(flags)?;
        peer.send(SERVER, &[&echo(own, host, number)])?;
        let asks =
            peer.must_hear("a bubble of the relay", |heard| heard.is_bubble() && heard.destination() == own)?;
        let relay = asks.origin.ok_or_else(|| Failure::Unexpected(format!("no origin in {asks:?}")))?;
        assert_eq!((asks.from, relay.ip().to_string().as_str()), (SERVER, "198.51.100.34"));
        let nonce = asks.trailer(1).map(<[u8]>::to_vec).unwrap_or_default();
        assert_eq!(nonce.len(), 4, "{asks:?}");
        let trailer = if flags & 0x3cff == 0 { Vec::new() } else { [&[1, 4][..], &nonce].concat() };
        peer.send(relay, &[&bubble(own, asks.source()), &trailer])?;
        let reply = peer.must_hear("the reply", |heard| is_reply(heard, number))?;
        assert_eq!((reply.from, reply.source(), reply.destination()), (relay, host, own));
        // The relay of the host is known: packets go there, and come from there.
        peer.send(relay, &[&echo(own, host, number + 100)])?;
        peer.must_hear("a second reply", |heard| heard.from == relay && is_reply(heard, number + 100))?;
    }
    Ok(())
}

/// Our client is behind a NAT that admits answers alone: who begins needs the server.
fn our_client() -> Result<()> {
    let network = network()?;
    closes(&network, "nat")?;
    run_sixway_on(&network, "server", SERVER_SECTION)?;
    run_sixway_on(&network, "client", &format!("{CLIENT}firewall = false\n"))?;
    let ours = has_address(&network, "client", |_| true)?;
    let ours: Ipv6Addr = ours.parse().map_err(|_| Failure::Unexpected(ours.clone()))?;
    for (number, flags) in (1..).zip(FLAGS) {
        // One socket each: a client has one address.
        let peer = Peer::on(&network, "gateway", &format!("198.51.100.34:{}", 3_073 + u16::from(number)))?;
        begins(&network, &peer, (flags, number), ours)?;
    }
    Ok(())
}

fn begins(network: &Network, peer: &Peer, (flags, number): (u16, u8), ours: Ipv6Addr) -> Result<()> {
    let own = peer.qualifies(flags)?;
    let is_new = flags & 0x3cff != 0;
    let nonce = [7, number, 7, 7];
    // RFC 6081 §4: a nonce, alternate addresses, and a trailer of the future, which is skipped.
    let trailers = [&nonce_trailer(nonce)[..], &[3, 8, 0, 0, 10, 0, 0, 1, 0x0c, 2], &[0x90, 1, 0]].concat();
    peer.send(SERVER, &[&bubble(own, ours), if is_new { &trailers } else { &[] }])?;
    let is_ours = |heard: &Heard| heard.is_bubble() && (heard.source(), heard.destination()) == (ours, own);
    let direct = peer.must_hear("a direct bubble", |heard| is_ours(heard) && heard.origin.is_none())?;
    assert_eq!(direct.from.ip().to_string(), "198.51.100.18");
    assert_eq!(direct.trailer(1), is_new.then_some(&nonce[..]), "{direct:?}");
    peer.send(direct.from, &[&bubble(own, ours)])?;
    peer.send(direct.from, &[&echo(own, ours, number)])?;
    let reply = peer.hears(Duration::from_secs(10), |heard| is_reply(heard, number))?;
    let Some(reply) = reply else {
        return Err(Failure::Unexpected(format!("{flags:x}: no reply: {}", client_says(network)?)));
    };
    assert_eq!((reply.from, reply.source()), (direct.from, ours));
    // RFC 6081 §5.7: a direct bubble that asks for one, in place of one through the server.
    if is_new {
        peer.send(direct.from, &[&bubble(own, ours), &[4, 4, 0, 0, 0, 0]])?;
        let told = peer.must_hear("the bubble that was asked for", |heard| heard.trailer(4).is_some())?;
        assert_eq!((told.from, told.trailer(4).map(|value| value[0])), (direct.from, Some(1)));
    }
    Ok(())
}
