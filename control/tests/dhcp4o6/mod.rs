//! DHCPv4 over DHCPv6 (RFC 7341): messages, the server, the client, and both together in fake time.

mod borders;
mod client;
mod model;
mod server;
mod words;

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_control::Instant;
use sixway_control::dhcp4o6::{Dhcpv4, Envelope, Lease, MessageKind, Refusal, Server, ServerSettings};

pub const SERVER_ID: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const HOUR: Duration = Duration::from_secs(3_600);

pub fn settings() -> ServerSettings {
    ServerSettings {
        id: SERVER_ID,
        pool: vec!["192.0.2.16/29".parse().unwrap()],
        fixed: Vec::new(),
        reserved: Vec::new(),
        clients: vec!["2001:db8::/32".parse().unwrap()],
        relays: vec!["2001:db8:77::/64".parse().unwrap()],
        client_bits: 56,
        leases_per_client: 2,
        max_leases: 1_000,
        lease_time: HOUR,
        queries_per_second: 0,
    }
}

pub fn at(seconds: u64) -> Instant {
    Instant::from_secs(1_000 + seconds)
}

/// The host of this number, each in a client prefix of its own.
pub fn host(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xa, number << 8, 0, 0, 0, 1)
}

/// What the server answers, read.
pub fn ask(
    server: &mut Server,
    now: Instant,
    source: Ipv6Addr,
    asked: &Dhcpv4,
    is_unicast: bool,
) -> Result<Option<Dhcpv4>, Refusal> {
    let query = Envelope::query(asked.to_octets(), is_unicast).to_octets();
    let reply = server.handle_query(now, source, &query)?;
    Ok(reply.map(|reply| {
        let envelope = Envelope::parse(&reply.octets).unwrap();
        assert!(envelope.is_response);
        let answer = Dhcpv4::parse(&envelope.dhcpv4).unwrap();
        assert_eq!((answer.xid, answer.is_reply, answer.server), (asked.xid, true, Some(SERVER_ID)));
        answer
    }))
}

pub fn discover(server: &mut Server, now: Instant, source: Ipv6Addr) -> Result<Ipv4Addr, Refusal> {
    let asked = Dhcpv4::new(MessageKind::Discover, 7);
    let offer = ask(server, now, source, &asked, false)?.unwrap();
    assert_eq!(offer.kind, MessageKind::Offer);
    Ok(offer.yiaddr)
}

pub fn request(server: &mut Server, now: Instant, source: Ipv6Addr, ipv4: Ipv4Addr) -> Option<MessageKind> {
    let asked =
        Dhcpv4 { requested: Some(ipv4), server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Request, 8) };
    ask(server, now, source, &asked, false).ok()?.map(|answer| answer.kind)
}

/// The lease of an address.
pub fn lease_of(server: &Server, address: Ipv4Addr) -> Option<&Lease> {
    server.leases_from(address).next().filter(|lease| lease.ipv4 == address)
}

/// A whole exchange.
pub fn lease(server: &mut Server, now: Instant, source: Ipv6Addr) -> Result<Ipv4Addr, Refusal> {
    let ipv4 = discover(server, now, source)?;
    assert_eq!(request(server, now, source, ipv4), Some(MessageKind::Ack));
    Ok(ipv4)
}
