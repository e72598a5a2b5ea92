//! Any octets are a Teredo datagram or none: what is read is written again as the same, and a server sends little, and to nobody that it must not
//! send to.
//!
//! The input is a row of datagrams: whose it is and how much time passed (an octet), and its length (two octets), and the payload.

use sixway_control::Instant;
use sixway_control::teredo_server::{
    ClientKey, Clients, Datagram, OwnAddresses, Rate, Sent, Server, Settings,
};
use sixway_wire::teredo::{
    Authentication, Origin, Prologue, TeredoAddress, TeredoInterface, Trailer, Trailers, is_global_unicast,
};
use sixway_wire::{Endpoint4, Ipv6Header};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const PRIMARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// Another address of the server's host.
const OWN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 200);
/// The broadcast address of its network.
const BROADCAST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 255);
/// Octets by which an advertisement with its origin indication is longer than the shortest solicitation.
const LONGER: usize = 56;
const BURST: u64 = 300;
const RATE: u64 = 100;

pub fn run(octets: &[u8]) {
    read_again(octets);
    let mut server = server();
    let begun = Instant::from_secs(1_000);
    let (mut now, mut rest, mut sent) = (begun, octets, 0);
    while let Some(([whose, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        now = now + Duration::from_millis(u64::from(whose >> 4) * 10);
        read_again(payload);
        sent += u64::from(hear(&mut server, *whose, payload, now));
        rest = behind;
    }
    let seconds = now.since(begun).as_secs() + 1;
    assert!(sent <= BURST + RATE * seconds, "more than the total rate: {sent} in {seconds} s");
}

fn server() -> Server {
    let key = ClientKey::new(|octets: &[u8]| [octets.len() as u8; 20]);
    let mut settings = Settings::new(PRIMARY, Some(SECONDARY));
    settings.clients = Clients::new([(b"alice".to_vec(), key)], false);
    settings.host = OwnAddresses {
        addresses: vec![PRIMARY, SECONDARY, OWN],
        subnets: vec!["198.51.100.0/24".parse().unwrap()],
        subnets6: vec!["2001:db8:5::/64".parse().unwrap()],
    };
    settings.total_rate = Rate { rate: RATE as u32, burst: BURST as u32 };
    Server::new(settings, 7)
}

/// Whether something is sent.
fn hear(server: &mut Server, whose: u8, payload: &[u8], now: Instant) -> bool {
    let client = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 7), 40_001);
    let from = match whose & 7 {
        0..=3 => client,
        4 => Endpoint4::new(OWN, 3_545),
        5 => Endpoint4::new(BROADCAST, 9),
        6 => Endpoint4::new(Ipv4Addr::new(10, 0, 0, 1), 40_001),
        _ => Endpoint4::new(SECONDARY, 3_544),
    };
    let to = if whose & 8 == 0 { PRIMARY } else { SECONDARY };
    let before = server.counts().received();
    let mut out = Vec::new();
    let outcome = server.handle(Datagram { from, to, payload }, &mut out, now);
    assert_eq!(server.counts().received(), before + 1, "each datagram is counted once");
    match outcome {
        Err(_) => false,
        Ok(Sent::Udp { from: source, to }) => {
            assert!(source == PRIMARY || source == SECONDARY);
            assert!(is_global_unicast(to.address) && to.address != BROADCAST && to.port != 0);
            assert!(![PRIMARY, SECONDARY, OWN].contains(&to.address), "to this host itself");
            assert!(out.len() <= payload.len() + LONGER, "{} for {}", out.len(), payload.len());
            true
        }
        Ok(Sent::Native(destination)) => {
            assert!(TeredoAddress::of(destination).is_none() && destination.segments()[0] >> 13 == 1);
            let header = Ipv6Header::read(&out).unwrap();
            let sender = TeredoAddress::of(header.source).unwrap();
            assert_eq!((sender.mapped(), sender.server), (from, PRIMARY), "the sender's own address");
            assert!(out.len() <= payload.len());
            true
        }
    }
}

/// What is read is written, and read again as the same.
fn read_again(octets: &[u8]) {
    if let Some(address) = octets.first_chunk::<16>() {
        let address = Ipv6Addr::from(*address);
        if let Some(read) = TeredoAddress::of(address) {
            assert_eq!(read.address(), address);
        }
        if let Some(read) = TeredoInterface::of_link_local(address) {
            assert_eq!(read.link_local(), address);
        }
    }
    if let Ok((prologue, rest)) = Prologue::split(octets) {
        let written = written(&prologue);
        assert_eq!(written.len() + rest.len(), octets.len());
        let again = [&written[..], rest].concat();
        assert_eq!(Prologue::split(&again), Ok((prologue, rest)));
    }
    for trailer in Trailers::new(octets).map_while(Result::ok) {
        let mut room = [0; 40];
        let length = Trailer::write(&trailer, &mut room).unwrap();
        let again: Vec<_> = Trailers::new(&room[..length]).collect();
        assert_eq!(again, [Ok(trailer)]);
    }
}

fn written(prologue: &Prologue<'_>) -> Vec<u8> {
    let mut octets = vec![0; prologue.authentication.as_ref().map_or(0, Authentication::len)];
    if let Some(authentication) = &prologue.authentication {
        assert_eq!(authentication.write(&mut octets), Some(octets.len()));
    }
    octets.extend(prologue.origin.iter().flat_map(|origin: &Origin| origin.octets()));
    octets
}
