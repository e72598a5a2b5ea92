//! Any octets are a message of DHCPv4 over DHCPv6 or none; what was read is written, and read again as the same. Whatever arrives at a server and at a
//! client, in any order, no two hosts have one address, and a client prefix has at most its share.
//!
//! The input is a row of arrivals: whose it is (an octet), how many seconds passed before (an octet), its length (two octets), and the payload.

use sixway_control::Instant;
use sixway_control::dhcp4o6::{Client, ClientSettings, Dhcpv4, Envelope, LeaseState, Server, ServerSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

pub fn run(octets: &[u8]) {
    let mut now = Instant::from_secs(1_000);
    let settings = ServerSettings {
        id: Ipv4Addr::new(192, 0, 2, 1),
        pool: vec!["192.0.2.16/29".parse().unwrap()],
        fixed: Vec::new(),
        reserved: Vec::new(),
        clients: vec!["2001:db8::/32".parse().unwrap()],
        relays: vec!["2001:db8:a:80::/57".parse().unwrap()],
        client_bits: 56,
        leases_per_client: 2,
        max_leases: 100,
        lease_time: Duration::from_secs(60),
        queries_per_second: 0,
    };
    let mut server = Server::new(settings, 7);
    let tunnel: Ipv6Addr = "2001:db8:a::1".parse().unwrap();
    let mut client = Client::new(ClientSettings { tunnel, client_id: vec![255, 0, 0, 0, 1, 0, 4] }, None, 5);
    client.want(now);
    let mut rest = octets;
    while let Some(([whose, pause, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, behind) = behind.split_at(length);
        rest = behind;
        now = now + Duration::from_secs((*pause).into());
        read_again(message);
        let source = Ipv6Addr::from_bits(tunnel.to_bits() ^ u128::from(*whose) << 64);
        if let Ok(Some(reply)) = server.handle_query(now, source, message) {
            let envelope = Envelope::parse(&reply.octets).expect("we send what we would take");
            Dhcpv4::parse(&envelope.dhcpv4).expect("we send what we would take");
        }
        let _ignored = client.handle_response(now, message);
        if let Some(query) = client.poll_transmit(now) {
            read_again(&query);
            if let Ok(Some(reply)) = server.handle_query(now, tunnel, &query) {
                let _ignored = client.handle_response(now, &reply.octets);
            }
        }
        while client.poll_event().is_some() || server.poll_change().is_some() {}
        judge(&server);
    }
}

fn read_again(octets: &[u8]) {
    let Ok(envelope) = Envelope::parse(octets) else { return };
    assert_eq!(Envelope::parse(&envelope.to_octets()).as_ref(), Ok(&envelope));
    let Ok(message) = Dhcpv4::parse(&envelope.dhcpv4) else { return };
    assert_eq!(Dhcpv4::parse(&message.to_octets()).as_ref(), Ok(&message));
}

fn judge(server: &Server) {
    let (mut hosts, mut shares) = (BTreeSet::new(), BTreeMap::<u128, u32>::new());
    for lease in server.leases_from(Ipv4Addr::UNSPECIFIED) {
        let is_live = matches!(lease.state, LeaseState::Offered | LeaseState::Bound);
        assert!(!is_live || hosts.insert(lease.host), "two addresses of {}", lease.host);
        if lease.state != LeaseState::Ended {
            *shares.entry(lease.host.to_bits() >> 72).or_default() += 1;
        }
    }
    assert!(shares.values().all(|share| *share <= 2));
}
