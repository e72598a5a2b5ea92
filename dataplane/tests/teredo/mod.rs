//! Teredo's relay and client (RFC 4380) in the engine.

mod attacks;
mod borders;
mod client;
mod prediction;
mod relay;
mod strangers;

use crate::support::{Build, Gateway, gateway, icmp6, v4, v6};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::mechanism::teredo::{RelayConfig, TeredoChange, TeredoConfig, TeredoRole};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{TeredoAddress, TeredoInterface};

/// The local end of the relay or the client.
pub(crate) const LOCAL: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 9), 3_544);
/// The client's server.
const SERVER: Endpoint4 = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 1), 3_544);
/// The source of the relay's bubbles.
const RELAY6: &str = "2001:db8::9";
/// A native host.
const NATIVE: &str = "2001:db8:1::1";

/// The endpoint of the numbered client, at its NAT.
pub(crate) fn mapped(number: u32) -> Endpoint4 {
    Endpoint4::new(
        Ipv4Addr::from_bits(0xcb00_7100 + number / 16 * 2 + number % 2),
        40_000 + (number % 16) as u16,
    )
}

/// The address of the numbered client.
fn client(number: u32) -> TeredoAddress {
    let interface = TeredoInterface { flags: 0, mapped: mapped(number) };
    TeredoAddress { server: SERVER.address, interface }
}

pub(crate) fn client6(number: u32) -> String {
    client(number).address().to_string()
}

/// A datagram: an IPv6 packet with what is in front of it and behind it.
pub(crate) fn datagram(from: Endpoint4, to: Endpoint4, payload: impl Into<Vec<u8>>) -> Build {
    v4(&from.address.to_string(), &to.address.to_string()).may_fragment().udp(
        from.port,
        to.port,
        &payload.into(),
    )
}

/// A bubble.
fn bubble(source: &str, destination: &str) -> Vec<u8> {
    let [source, destination]: [Ipv6Addr; 2] = [source, destination].map(|text| text.parse().unwrap());
    sixway_wire::teredo::bubble(source, destination, 64).to_vec()
}

fn packet(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(4_000, 53, b"data")
}

fn relay_with(edit: impl FnOnce(&mut TeredoConfig)) -> Gateway {
    let role = TeredoRole::Relay(RelayConfig { address: RELAY6.parse().unwrap(), serves: Vec::new() });
    with_teredo(TeredoConfig::new(role), edit)
}

fn with_teredo(mut config: TeredoConfig, edit: impl FnOnce(&mut TeredoConfig)) -> Gateway {
    config.max_peers = 1_000;
    config.servers = vec![SERVER.address];
    edit(&mut config);
    let mut gateway = gateway(|engine| engine.others.push(config.into()));
    gateway.engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), Vec::new()), gateway.now);
    gateway
}

pub(crate) fn relay() -> Gateway {
    relay_with(|_| {})
}

/// What was sent as a datagram: to where, and its payload.
#[track_caller]
fn sent_datagram(gateway: &mut Gateway) -> (Endpoint4, Vec<u8>) {
    let sent = gateway.sent();
    assert_eq!((sent[0], sent[9]), (0x45, 17), "a datagram");
    let word = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
    assert_eq!(sent[12..16], LOCAL.address.octets());
    assert_eq!(word(20), LOCAL.port);
    assert_eq!(usize::from(word(24)), sent.len() - 20);
    let address = Ipv4Addr::new(sent[16], sent[17], sent[18], sent[19]);
    (Endpoint4::new(address, word(22)), sent[28..].to_vec())
}

/// A datagram with this payload was sent there.
#[track_caller]
fn sends_to(gateway: &mut Gateway, to: Endpoint4, payload: impl Into<Vec<u8>>) {
    assert_eq!(sent_datagram(gateway), (to, payload.into()));
}

/// A bubble with a nonce was sent to the server (RFC 6081 §5.2.4.1); its trailers.
#[track_caller]
fn asks(gateway: &mut Gateway, source: &str, destination: &str) -> Vec<u8> {
    let (to, payload) = sent_datagram(gateway);
    let (sent, trailers) = payload.split_at(40);
    assert_eq!((to, sent), (SERVER, &bubble(source, destination)[..]));
    assert_eq!((trailers.len(), &trailers[..2]), (6, &[1, 4][..]), "a nonce");
    trailers.to_vec()
}

/// The numbered client is a peer that packets pass to and from.
#[track_caller]
fn establish(gateway: &mut Gateway, number: u32) {
    let address = client6(number);
    gateway.receives(packet(NATIVE, &address));
    asks(gateway, RELAY6, &address);
    gateway.receives(datagram(mapped(number), LOCAL, bubble(&address, RELAY6)));
    sends_to(gateway, mapped(number), packet(NATIVE, &address));
    gateway.receives(datagram(mapped(number), LOCAL, packet(&address, NATIVE)));
    gateway.sends(packet(&address, NATIVE));
}

/// A router advertisement behind an authentication, with a nonce.
fn advertisement() -> Vec<u8> {
    let packet = v6("fe80::8000:f227:bec8:6189", "fe80::ffff:ffff:fffd").icmp(icmp6(134, 0, [0; 4], &[0; 8]));
    [&[0, 1, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0][..], &packet.octets()].concat()
}
