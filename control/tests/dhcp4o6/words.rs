//! Octets in both directions.

use core::net::Ipv4Addr;
use sixway_control::dhcp4o6::{Dhcpv4, Envelope, Malformed, MessageKind, RelayHop};

fn message() -> Dhcpv4 {
    Dhcpv4 {
        hardware: (36, vec![0x20; 16]),
        secs: 3,
        ciaddr: Ipv4Addr::new(192, 0, 2, 17),
        requested: Some(Ipv4Addr::new(192, 0, 2, 18)),
        lease_time: Some(3_600),
        server: Some(Ipv4Addr::new(192, 0, 2, 1)),
        renewal: Some(1_800),
        rebinding: Some(3_150),
        mask: Some(Ipv4Addr::BROADCAST),
        client_id: vec![255, 0, 0, 0, 1, 0, 4, 1],
        softwire_source: Some("2001:db8:a::1".parse().unwrap()),
        ..Dhcpv4::new(MessageKind::Request, 0x1234_5678)
    }
}

#[test]
fn a_message_is_written_and_read_as_the_rfcs_draw_it() {
    let octets = message().to_octets();
    assert_eq!(
        (octets[..4].to_vec(), octets[4..8].to_vec()),
        (vec![1, 36, 16, 0], vec![0x12, 0x34, 0x56, 0x78])
    );
    assert_eq!(octets[236..243], [99, 130, 83, 99, 53, 1, 3]);
    assert_eq!(Dhcpv4::parse(&octets), Ok(message()));
    let query = Envelope::query(octets.clone(), true).to_octets();
    // RFC 7341 §6.2, §7.1: type 20, the Unicast flag, option 87 and its length.
    assert_eq!(query[..6], [20, 0x80, 0, 0, 0, 87]);
    assert_eq!(usize::from(u16::from_be_bytes([query[6], query[7]])), octets.len());
    let read = Envelope::parse(&query).unwrap();
    assert!(!read.is_response && read.is_unicast && read.dhcpv4 == octets);
    let response = Envelope { is_response: true, ..read }.to_octets();
    assert_eq!(response[..4], [21, 0, 0, 0], "no flags in a response (RFC 7341 §6.4)");
}

#[test]
fn a_message_cut_at_every_length_is_refused_or_still_a_message() {
    let whole = message().to_octets();
    let end = whole.iter().rposition(|octet| *octet == 255).unwrap();
    for length in 0..end {
        let read = Dhcpv4::parse(&whole[..length]);
        assert!(read.is_err() || length >= 243, "{length}");
    }
    let query = Envelope::query(whole, false).to_octets();
    for length in 0..query.len() {
        assert!(Envelope::parse(&query[..length]).is_err(), "{length}");
    }
}

#[test]
fn exactly_one_dhcpv4_message_is_in_a_query() {
    let query = Envelope::query(message().to_octets(), false).to_octets();
    let twice = [&query[..], &query[4..]].concat();
    assert_eq!(Envelope::parse(&twice), Err(Malformed::NoMessage));
    assert_eq!(Envelope::parse(&query[..4]), Err(Malformed::NoMessage));
    assert_eq!(Envelope::parse(&[1, 2, 3, 4]), Err(Malformed::OtherType(1)));
}

#[test]
fn relay_agents_are_read_and_written_back_and_there_are_eight_at_most() {
    let hop = |hops| RelayHop {
        hops,
        link: "2001:db8:1::1".parse().unwrap(),
        peer: "fe80::1".parse().unwrap(),
        interface: (hops == 0).then(|| b"eth0".to_vec()),
    };
    let with = |count: u8| Envelope {
        relays: (0..count).rev().map(hop).collect(),
        ..Envelope::query(message().to_octets(), true)
    };
    for count in 0..=8 {
        assert_eq!(Envelope::parse(&with(count).to_octets()), Ok(with(count)));
        let response = Envelope { is_response: true, is_unicast: false, ..with(count) };
        assert_eq!(Envelope::parse(&response.to_octets()), Ok(response));
    }
    assert_eq!(Envelope::parse(&with(9).to_octets()), Err(Malformed::TooManyRelays));
}

#[test]
fn what_is_wrong_with_a_message_is_said() {
    let octets = message().to_octets();
    let with = |at: usize, octet: u8| {
        let mut octets = octets.clone();
        octets[at] = octet;
        Dhcpv4::parse(&octets)
    };
    assert_eq!(with(0, 3), Err(Malformed::BadHeader));
    assert_eq!(with(2, 17), Err(Malformed::BadHeader));
    assert_eq!(with(236, 0), Err(Malformed::NoCookie));
    assert_eq!(with(242, 99), Err(Malformed::NoType));
    assert_eq!(with(241, 2), Err(Malformed::BadOption(53)));
}
