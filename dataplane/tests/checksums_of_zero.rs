//! A computed checksum of zero is sent as all ones where zero says that there is none (RFC 768, RFC 3828 §3.1), and as zero elsewhere: in
//! packets, in those whose checksum a network card would have finished, and in those that ICMP errors quote.

use crate::support;
use crate::support::super_frame::unfinished;
use crate::support::{Build, Gateway, eam, icmp4, icmp6, v4, v6};
use sixway_dataplane::{Checksum, Offload};

const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::203.0.113.2";

const UDP: u8 = 17;
const UDP_LITE: u8 = 136;
const TCP: u8 = 6;

fn gateway() -> Gateway {
    support::siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]))
}

/// Where the checksum of a protocol is.
fn field(protocol: u8) -> usize {
    if protocol == TCP { 16 } else { 6 }
}

/// A datagram or segment with such data.
fn build(envelope: Build, protocol: u8, data: &[u8]) -> Build {
    let length = ((8 + data.len()) as u16).to_be_bytes();
    let ports = [0, 53, 0, 80];
    let body = match protocol {
        TCP => [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 16, 0x20, 0, 0, 0, 0, 0], data].concat(),
        _ => [&ports[..], &length, &[0, 0], data].concat(),
    };
    envelope.protocol(protocol, &body, Some(field(protocol)))
}

/// Data over which the checksum between these ends is zero: its first word is what would have been the checksum without it.
fn data(envelope: &Build, protocol: u8, length: usize) -> Vec<u8> {
    let mut data = vec![7; length];
    data[..2].fill(0);
    let packet = build(envelope.clone(), protocol, &data).octets();
    let at = if packet[0] >> 4 == 4 { 20 } else { 40 } + field(protocol);
    data[..2].copy_from_slice(&packet[at..at + 2]);
    data
}

/// What a checksum of zero is written as.
fn written(protocol: u8) -> [u8; 2] {
    if protocol == TCP { [0, 0] } else { [0xff, 0xff] }
}

#[test]
fn a_checksum_that_follows_the_addresses_to_zero() {
    for protocol in [UDP, UDP_LITE, TCP] {
        let into6 = data(&v6(PEER6, HOST6), protocol, 40);
        let mut gateway = gateway();
        gateway.receives(build(v4(PEER4, HOST4), protocol, &into6));
        let sent = gateway.sent();
        let at = 40 + field(protocol);
        assert_eq!(sent[at..at + 2], written(protocol), "{protocol} into IPv6");

        let into4 = data(&v4(HOST4, PEER4), protocol, 40);
        gateway.receives(build(v6(HOST6, PEER6), protocol, &into4));
        let sent = gateway.sent();
        let at = 20 + field(protocol);
        assert_eq!(sent[at..at + 2], written(protocol), "{protocol} into IPv4");
    }
}

#[test]
fn a_checksum_that_is_finished_before_the_packet_is_cut() {
    for protocol in [UDP, TCP] {
        let data = data(&v6(PEER6, HOST6), protocol, 1_400);
        let mut gateway = gateway();
        let offload = Offload { checksum: Checksum::Partial, segments: None, transport: 20 };
        gateway.receives_with(unfinished(build(v4(PEER4, HOST4).may_fragment(), protocol, &data)), offload);
        let first = gateway.sent();
        let at = 48 + field(protocol);
        assert_eq!((first[6], &first[at..at + 2]), (44, &written(protocol)[..]), "{protocol}");
    }
}

#[test]
fn a_checksum_of_a_quoted_packet() {
    for protocol in [UDP, UDP_LITE, TCP] {
        let quoted = data(&v6(HOST6, PEER6), protocol, 40);
        let mut gateway = gateway();
        let quote = build(v4(HOST4, PEER4), protocol, &quoted).octets();
        gateway.receives(v4(PEER4, HOST4).icmp(icmp4(3, 3, [0; 4], &quote)));
        let sent = gateway.sent();
        let at = 48 + 40 + field(protocol);
        assert_eq!(sent[at..at + 2], written(protocol), "{protocol} into IPv6");

        let quoted = data(&v4(PEER4, HOST4), protocol, 40);
        let quote = build(v6(PEER6, HOST6), protocol, &quoted).octets();
        gateway.receives(v6(HOST6, PEER6).icmp(icmp6(1, 4, [0; 4], &quote)));
        let sent = gateway.sent();
        let at = 28 + 20 + field(protocol);
        assert_eq!(sent[at..at + 2], written(protocol), "{protocol} into IPv4");
    }
}
