//! NAT46: packets of IPv4 clients to IPv6 servers that addresses of a pool represent, and back.

use crate::support::{self, Build, Gateway, checksum_is_right, gateway, icmp4, icmp6, v4, v6};
use proptest::prelude::*;
use sixway_dataplane::mechanism::nat46::{MappingSettings, Mappings, Nat46Config, Sharing};
use sixway_dataplane::translate::{Policy, UdpZeroChecksum};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

const CLIENT: &str = "10.0.0.5";
/// How servers see it.
const IMAGE: &str = "2001:db8:46::10.0.0.5";
const SERVER: &str = "2001:db8:80::1";
const OTHER_CLIENT: &str = "10.0.0.6";
const OTHER_SERVER: &str = "2001:db8:80::2";

fn settings(sharing: Sharing) -> MappingSettings {
    MappingSettings {
        pool: "192.168.46.0/24".parse().unwrap(),
        excluded: Vec::new(),
        statics: vec![("192.168.46.80".parse().unwrap(), "2001:db8:80::80".parse().unwrap())],
        clients: vec!["10.0.0.0/8".parse().unwrap()],
        servers: vec!["2000::/3".parse().unwrap()],
        not_servers: Vec::new(),
        sharing,
        max_mappings: 1_000,
        max_per_client: 100,
        by_name: true,
    }
}

fn config(sharing: Sharing) -> Nat46Config {
    let settings = settings(sharing);
    Nat46Config {
        prefix: support::prefix("2001:db8:46::/96"),
        table: Some(Arc::new(Mappings::in_memory(settings.clone(), [1, 2]).unwrap())),
        mappings: settings,
        policy: Policy { clamp_mss: false, ..Policy::default() },
    }
}

struct Nat46 {
    gateway: Gateway,
    mappings: Arc<Mappings>,
    /// The address of the server for the client.
    address: String,
}

fn nat46_with(edit: impl FnOnce(&mut Nat46Config)) -> Nat46 {
    let mut config = config(Sharing::Client);
    edit(&mut config);
    let mappings = config.table.clone().unwrap();
    let gateway = gateway(|engine| engine.others.push(config.into()));
    let address =
        mappings.map(CLIENT.parse().unwrap(), SERVER.parse().unwrap(), 60, gateway.now).unwrap().to_string();
    Nat46 { gateway, mappings, address }
}

fn nat46() -> Nat46 {
    nat46_with(|_| {})
}

/// A packet is dropped for this reason; who is notified of it does not matter.
#[track_caller]
fn drops(gateway: &mut Gateway, packet: Build, reason: DropReason) {
    gateway.receives(packet);
    assert_eq!(gateway.last, Verdict::Dropped(reason));
    while gateway.waiting() > 0 {
        let _ = gateway.sent();
    }
}

#[test]
fn a_client_reaches_the_server_that_its_address_represents_and_is_answered() {
    let Nat46 { mut gateway, address, .. } = nat46();
    gateway.receives(v4(CLIENT, &address).tos(0x2e).udp(4_000, 53, b"question"));
    gateway.sends(v6(IMAGE, SERVER).hops(63).tos(0x2e).udp(4_000, 53, b"question"));
    gateway.counted([("nat46.v4_to_v6", 1)]);
    gateway.receives(v6(SERVER, IMAGE).udp(53, 4_000, &[7; 1_300]));
    gateway.sends(v4(&address, CLIENT).hops(63).udp(53, 4_000, &[7; 1_300]));
    gateway.counted([("nat46.v6_to_v4", 1)]);
    for packet in
        [v4(CLIENT, &address).tcp(4_000, 443, 2, b""), v4(CLIENT, &address).tcp(4_000, 443, 0x10, b"data")]
    {
        gateway.receives(packet);
        assert!(checksum_is_right(&gateway.sent()));
    }
    gateway.receives(v4(CLIENT, &address).echo(7, 1, b"ping"));
    gateway.sends(v6(IMAGE, SERVER).hops(63).echo(7, 1, b"ping"));
    gateway.receives(v6(SERVER, IMAGE).echo_reply(7, 1, &[0; 1_400]));
    gateway.sends(v4(&address, CLIENT).hops(63).echo_reply(7, 1, &[0; 1_400]));
}

#[test]
fn another_clients_address_leads_elsewhere_or_nowhere() {
    let Nat46 { mut gateway, mappings, address } = nat46();
    drops(&mut gateway, v4(OTHER_CLIENT, &address).udp(1, 2, b"data"), DropReason::NoBinding);
    drops(&mut gateway, v6(SERVER, "2001:db8:46::10.0.0.6").udp(1, 2, b"data"), DropReason::NoBinding);
    drops(&mut gateway, v6(OTHER_SERVER, IMAGE).udp(1, 2, b"data"), DropReason::NoBinding);
    let now = gateway.now;
    let theirs = mappings.map(OTHER_CLIENT.parse().unwrap(), SERVER.parse().unwrap(), 60, now).unwrap();
    assert_eq!(theirs.to_string(), address, "the same server has the same address where that is free");
    gateway.receives(v4(OTHER_CLIENT, &address).udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:46::10.0.0.6", SERVER).hops(63).udp(1, 2, b"data"));
}

#[test]
fn who_is_no_client_gets_nowhere_and_is_told() {
    let Nat46 { mut gateway, address, .. } = nat46();
    let packet = v4("172.16.0.1", &address).udp(1, 2, b"data").octets();
    gateway.receives(packet.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceUnmapped));
    let error = gateway.sent();
    assert_eq!(
        (&error[12..20], &error[20..22], &error[28..]),
        (&[192, 0, 2, 254, 172, 16, 0, 1][..], &[3, 13][..], &packet[..])
    );
    let image = "2001:db8:46::172.16.0.1";
    let packet = v6(SERVER, image).udp(1, 2, b"data").octets();
    gateway.receives(packet.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationUnmapped));
    gateway.sends(v6("2001:db8::fe", SERVER).icmp(icmp6(1, 3, [0; 4], &packet)));
    let unknown = v4(CLIENT, "192.168.46.254").udp(1, 2, b"data").octets();
    gateway.receives(unknown.clone());
    let error = gateway.sent();
    assert_eq!(
        (&error[12..20], &error[20..22], &error[28..]),
        (&[192, 0, 2, 254, 10, 0, 0, 5][..], &[3, 1][..], &unknown[..])
    );
}

#[test]
fn a_static_mapping_serves_every_client_without_a_name() {
    let mut gateway = nat46().gateway;
    for (client, image) in [(CLIENT, IMAGE), (OTHER_CLIENT, "2001:db8:46::10.0.0.6")] {
        gateway.receives(v4(client, "192.168.46.80").tcp(4_000, 80, 2, b""));
        gateway.sends(v6(image, "2001:db8:80::80").hops(63).tcp(4_000, 80, 2, b""));
        gateway.receives(v6("2001:db8:80::80", image).tcp(80, 4_000, 0x12, b""));
        assert_eq!(gateway.sent()[12..20], [192, 168, 46, 80, 10, 0, 0, client.as_bytes()[7] - b'0']);
    }
}

#[test]
fn packets_keep_a_mapping_and_without_them_it_ends_on_both_sides() {
    let Nat46 { mut gateway, address, .. } = nat46();
    gateway.receives(v4(CLIENT, &address).udp(1, 2, b"data"));
    let _ = gateway.sent();
    for _ in 0..10 {
        gateway.waits(Duration::from_secs(280));
        gateway.receives(v4(CLIENT, &address).udp(1, 2, b"data"));
        gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, b"data"));
    }
    // What the server sends does not keep it.
    gateway.waits(Duration::from_secs(290));
    gateway.receives(v6(SERVER, IMAGE).udp(2, 1, b"data"));
    let _ = gateway.sent();
    gateway.waits(Duration::from_secs(60));
    drops(&mut gateway, v6(SERVER, IMAGE).udp(2, 1, b"data"), DropReason::NoBinding);
    // The client may resume while the address rests, for 60 s and 120 s.
    gateway.waits(Duration::from_secs(100));
    gateway.receives(v4(CLIENT, &address).udp(1, 2, b"data"));
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, b"data"));
    gateway.waits(Duration::from_secs(520));
    drops(&mut gateway, v4(CLIENT, &address).udp(1, 2, b"data"), DropReason::NoBinding);
}

/// After each packet of the client the server reaches it for so long, and not much longer.
#[test]
fn each_kind_of_packet_keeps_a_mapping_for_its_own_time() {
    type Make = fn(Build) -> Build;
    let kinds: [(Make, u64); 5] = [
        (|packet| packet.tcp(1, 2, 0x02, b""), 240),
        (|packet| packet.tcp(1, 2, 0x10, b""), 7_440),
        (|packet| packet.tcp(1, 2, 0x11, b""), 240),
        (|packet| packet.udp(1, 2, b""), 300),
        (|packet| packet.echo(1, 2, b""), 60),
    ];
    for (make, seconds) in kinds {
        let Nat46 { mut gateway, address, .. } = nat46();
        drops(&mut gateway, v6(SERVER, IMAGE).udp(2, 1, b"early"), DropReason::NoBinding);
        gateway.receives(make(v4(CLIENT, &address)));
        let _ = gateway.sent();
        gateway.waits(Duration::from_secs(seconds - 2));
        gateway.receives(v6(SERVER, IMAGE).udp(2, 1, &[7; 1_300]));
        gateway.sends(v4(&address, CLIENT).hops(63).udp(2, 1, &[7; 1_300]));
        gateway.waits(Duration::from_secs(30));
        drops(&mut gateway, v6(SERVER, IMAGE).udp(2, 1, b"late"), DropReason::NoBinding);
    }
}

#[test]
fn a_server_of_a_shared_mapping_opens_no_tcp_connection() {
    let Nat46 { mut gateway, mappings, address } = nat46_with(|config| {
        let settings = settings(Sharing::All);
        config.table = Some(Arc::new(Mappings::in_memory(settings.clone(), [1, 2]).unwrap()));
        config.mappings = settings;
    });
    assert_eq!(mappings.settings().sharing, Sharing::All);
    gateway.receives(v4(CLIENT, &address).tcp(1, 2, 0x02, b""));
    let _ = gateway.sent();
    drops(&mut gateway, v6(SERVER, IMAGE).tcp(2, 9, 0x02, b""), DropReason::NoBinding);
    gateway.receives(v6(SERVER, IMAGE).tcp(2, 1, 0x12, b""));
    assert_eq!(gateway.sent()[12..16], address.parse::<Ipv4Addr>().unwrap().octets());
}

#[test]
fn errors_about_a_clients_packets_reach_it_with_what_it_sent() {
    let Nat46 { mut gateway, address, .. } = nat46();
    let sent = v6(IMAGE, SERVER).hops(1).udp(4_000, 33_434, b"probe").octets();
    let quoted = v4(CLIENT, &address).hops(1).udp(4_000, 33_434, b"probe");
    gateway.receives(v4(CLIENT, &address).hops(2).udp(4_000, 33_434, b"probe"));
    let _ = gateway.sent();
    // A router on the path has no IPv4 address: the gateway's represents it.
    gateway.receives(v6("2001:db8:ffff::1", IMAGE).icmp(icmp6(3, 0, [0; 4], &sent)));
    let error = gateway.sent();
    assert_eq!((&error[12..16], error[20], &error[16..20]), (&[192, 0, 2, 254][..], 11, &[10, 0, 0, 5][..]));
    assert_eq!(error[28 + 12..28 + 20], quoted.octets()[12..20]);
    assert!(checksum_is_right(&error));
    // The server itself is seen at its address.
    gateway.receives(v6(SERVER, IMAGE).icmp(icmp6(1, 4, [0; 4], &sent)));
    let error = gateway.sent();
    let server: Ipv4Addr = address.parse().unwrap();
    assert_eq!((error[12..16].to_vec(), error[20], error[21]), (server.octets().to_vec(), 3, 3));
    // Errors about what the client did not send, or sent to nobody it knows.
    let foreign = v6(IMAGE, OTHER_SERVER).udp(1, 2, b"probe").octets();
    drops(&mut gateway, v6(SERVER, IMAGE).icmp(icmp6(3, 0, [0; 4], &foreign)), DropReason::NoSessionForError);
    let other = v6("2001:db8:46::10.0.0.6", SERVER).udp(1, 2, b"probe").octets();
    drops(&mut gateway, v6(SERVER, IMAGE).icmp(icmp6(3, 0, [0; 4], &other)), DropReason::QuoteUnusable);
}

#[test]
fn errors_about_a_servers_packets_reach_it_from_whoever_sends_them() {
    let Nat46 { mut gateway, address, .. } = nat46();
    let arrived = v4(&address, CLIENT).hops(9).udp(53, 4_000, b"answer").octets();
    // From a router between, which is not a client.
    gateway.receives(v4("172.16.0.1", &address).icmp(icmp4(11, 0, [0; 4], &arrived)));
    let error = gateway.sent();
    let router: Ipv6Addr = "2001:db8:46::172.16.0.1".parse().unwrap();
    assert_eq!((&error[8..24], error[40]), (&router.octets()[..], 3));
    let (source, destination): (Ipv6Addr, Ipv6Addr) = (SERVER.parse().unwrap(), IMAGE.parse().unwrap());
    assert_eq!(
        (&error[48 + 8..48 + 24], &error[48 + 24..48 + 40]),
        (&source.octets()[..], &destination.octets()[..])
    );
    assert!(checksum_is_right(&error));
    let foreign = v4(&address, OTHER_CLIENT).udp(1, 2, b"data").octets();
    drops(
        &mut gateway,
        v4(CLIENT, &address).icmp(icmp4(3, 3, [0; 4], &foreign)),
        DropReason::NoSessionForError,
    );
    let other = v4("192.168.46.80", CLIENT).udp(1, 2, b"data").octets();
    drops(&mut gateway, v4(CLIENT, &address).icmp(icmp4(3, 3, [0; 4], &other)), DropReason::QuoteUnusable);
}

#[test]
fn both_sides_learn_the_path_mtu() {
    let Nat46 { mut gateway, address, .. } = nat46();
    // The device's own: 1,500 octets of IPv4 would be 1,520 of IPv6.
    let large = v4(CLIENT, &address).udp(1, 2, &[0; 1_472]).octets();
    gateway.receives(large.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::PacketTooBig));
    let error = gateway.sent();
    assert_eq!((error[20], error[21], &error[24..28]), (3, 4, &[0, 0, 0x05, 0xc8][..]), "1,480");
    // A narrow link further on, in IPv6: 20 octets less in IPv4.
    let sent = v6(IMAGE, SERVER).udp(1, 2, &[0; 1_400]).octets();
    gateway.receives(v6("2001:db8:ffff::1", IMAGE).icmp(icmp6(2, 0, [0, 0, 0x05, 0x50], &sent[..1_000])));
    let error = gateway.sent();
    assert_eq!((error[20], error[21], &error[26..28]), (3, 4, &[0x05, 0x3c][..]), "1,340");
    // And one in IPv4, for the server.
    let arrived = v4(&address, CLIENT).udp(2, 1, &[0; 1_400]).octets();
    gateway.receives(v4("10.0.0.1", &address).icmp(icmp4(3, 4, [0, 0, 0x05, 0x50], &arrived[..500])));
    let error = gateway.sent();
    assert_eq!((error[40], error[41], &error[44..48]), (2, 0, &[0, 0, 0x05, 0x64][..]), "1,380");
}

#[test]
fn fragments_pass_each_for_itself() {
    let Nat46 { mut gateway, address, .. } = nat46();
    let whole = v4(CLIENT, &address).udp(1, 2, &[7; 200]);
    gateway.receives(whole.clone().fragment(99, 0, true).part(0, 64));
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, &[7; 200]).fragment(99, 0, true).part(0, 64));
    gateway.receives(whole.fragment(99, 64, false).part(64, 208));
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, &[7; 200]).fragment(99, 64, false).part(64, 208));
    let whole = v6(SERVER, IMAGE).udp(2, 1, &[7; 200]);
    gateway.receives(whole.clone().fragment(99, 64, false).part(64, 208));
    gateway.sends(v4(&address, CLIENT).hops(63).udp(2, 1, &[7; 200]).fragment(99, 64, false).part(64, 208));
    gateway.receives(v4(CLIENT, &address).echo(7, 1, &[0; 200]).fragment(98, 0, true).part(0, 64));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::IcmpFragment));
}

#[test]
fn udp_without_checksum_gets_one_or_is_refused() {
    let Nat46 { mut gateway, address, .. } = nat46();
    gateway.receives(v4(CLIENT, &address).udp(1, 2, b"data").without_checksum());
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, b"data"));
    let whole = v4(CLIENT, &address).udp(1, 2, &[0; 40]).without_checksum();
    drops(&mut gateway, whole.fragment(5, 0, true).part(0, 24), DropReason::UdpChecksumZeroFragment);
    let strict = |config: &mut Nat46Config| config.policy.udp_zero_checksum = UdpZeroChecksum::Drop;
    let Nat46 { mut gateway, address, .. } = nat46_with(strict);
    let packet = v4(CLIENT, &address).udp(1, 2, b"data").without_checksum();
    drops(&mut gateway, packet, DropReason::UdpChecksumZero);
}

#[test]
fn what_the_other_family_has_no_counterpart_for_is_refused() {
    let Nat46 { mut gateway, address, .. } = nat46();
    drops(&mut gateway, v4(CLIENT, &address).protocol(2, &[0; 8], None), DropReason::Igmp);
    for number in [0, 43, 44, 58, 60] {
        let packet = v4(CLIENT, &address).protocol(number, &[0; 40], None);
        drops(&mut gateway, packet, DropReason::ProtocolUntranslatable);
    }
    drops(&mut gateway, v6(SERVER, IMAGE).protocol(1, &[0; 8], None), DropReason::ProtocolUntranslatable);
    // Protocols that have it pass unchanged.
    gateway.receives(v4(CLIENT, &address).protocol(50, &[9; 40], None));
    gateway.sends(v6(IMAGE, SERVER).hops(63).protocol(50, &[9; 40], None));
    drops(&mut gateway, v4(CLIENT, &address).hops(1).udp(1, 2, b"data"), DropReason::HopLimitExceeded);
}

#[test]
fn a_nat44_for_the_same_clients_leaves_the_pool_alone() {
    let config = config(Sharing::Client);
    let mappings = config.table.clone().unwrap();
    let mut gateway = gateway(|engine| {
        let mut nat44 = support::nat44();
        nat44.except = vec![config.mappings.pool];
        engine.nat44.push(nat44);
        engine.others.push(config.into());
    });
    let address = mappings.map(CLIENT.parse().unwrap(), SERVER.parse().unwrap(), 60, gateway.now).unwrap();
    gateway.receives(v4(CLIENT, &address.to_string()).udp(1, 2, b"data"));
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, b"data"));
    gateway.receives(v4(CLIENT, "203.0.113.9").udp(1_024, 2, b"data"));
    assert_eq!(gateway.sent()[12..15], [192, 0, 2], "translated by the NAT44");
}

/// Four engines share one table: whichever of them a packet comes to translates it.
#[test]
fn every_worker_knows_a_mapping_as_soon_as_it_is_made() {
    let config = config(Sharing::Client);
    let mappings = config.table.clone().unwrap();
    let mut engines: Vec<_> = (0..4)
        .map(|worker| {
            let engine = |engine: &mut sixway_dataplane::engine::EngineConfig| {
                (engine.worker, engine.workers) = (WorkerId(worker), 4);
                engine.others.push(config.clone().into());
            };
            gateway(engine)
        })
        .collect();
    for number in 0..50_u16 {
        let server = Ipv6Addr::new(0x2001, 0xdb8, 0x81, 0, 0, 0, 0, number);
        let now = engines[0].now;
        let address = mappings.map(CLIENT.parse().unwrap(), server, 60, now).unwrap().to_string();
        for gateway in &mut engines {
            gateway.receives(v4(CLIENT, &address).udp(number, 2, b"data"));
            gateway.sends(v6(IMAGE, &server.to_string()).hops(63).udp(number, 2, b"data"));
            gateway.receives(v6(&server.to_string(), IMAGE).udp(2, number, &[1; 1_300]));
            gateway.sends(v4(&address, CLIENT).hops(63).udp(2, number, &[1; 1_300]));
        }
    }
}

#[test]
fn a_batch_of_many_clients_gives_what_single_packets_give() {
    let config = config(Sharing::Client);
    let mappings = config.table.clone().unwrap();
    let mut gateway = gateway(|engine| engine.others.push(config.into()));
    let now = gateway.now;
    let mut frames = Vec::new();
    let mut expected = Vec::new();
    for number in 0..200_u8 {
        let (client, server) =
            (Ipv4Addr::new(10, 0, 0, number), Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)));
        if number % 5 == 0 {
            frames.push(Frame::holding(&v4(&client.to_string(), "192.168.46.7").udp(1, 2, b"data").octets()));
            expected.push(None);
            continue;
        }
        let address = mappings.map(client, server, 60, now).unwrap();
        frames
            .push(Frame::holding(&v4(&client.to_string(), &address.to_string()).udp(1, 2, b"data").octets()));
        expected.push(Some(server));
    }
    let mut out = Outbox::new(1_024);
    gateway.engine.process(&mut frames, now, &mut out);
    for (frame, expected) in frames.iter().zip(&expected) {
        match expected {
            Some(server) => assert_eq!(frame.bytes()[24..40], server.octets()),
            None => assert_eq!(frame.verdict, Verdict::Dropped(DropReason::NoBinding)),
        }
    }
}

/// A flood of packets to addresses without mappings makes none, and costs a client with one nothing.
#[test]
fn packets_make_no_mappings_whoever_sends_them() {
    let Nat46 { mut gateway, mappings, address } = nat46();
    for number in 0..5_000_u32 {
        let (host, place) =
            (Ipv4Addr::from_bits(0x0a00_0100 + number), Ipv4Addr::new(192, 168, 46, number as u8));
        gateway.receives(v4(&host.to_string(), &place.to_string()).udp(1, 2, b"data"));
        gateway.receives(v6(&format!("2001:db8:99::{number:x}"), IMAGE).udp(1, 2, b"data"));
    }
    while gateway.waiting() > 0 {
        let _ = gateway.sent();
    }
    assert_eq!(mappings.counts().mappings, 1);
    gateway.receives(v4(CLIENT, &address).udp(1, 2, b"data"));
    gateway.sends(v6(IMAGE, SERVER).hops(63).udp(1, 2, b"data"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(200)))]
    /// There and back again: what a client's packet becomes, turned around by the server, comes back as the client's, turned around.
    #[test]
    fn a_packet_there_and_its_echo_back_have_the_clients_addresses(
        client: [u8; 3], server: [u8; 8], ports: (u16, u16), data in prop::collection::vec(any::<u8>(), 0..1_300), shared: bool,
    ) {
        let sharing = if shared { Sharing::All } else { Sharing::Client };
        let config = config(sharing);
        let mappings = config.table.clone().unwrap();
        let mut gateway = gateway(|engine| engine.others.push(config.into()));
        let client = Ipv4Addr::new(10, client[0], client[1], client[2]);
        let server = Ipv6Addr::from_bits(0x2001_0db8_0080_0000 << 64 | u128::from(u64::from_be_bytes(server)));
        let address = mappings.map(client, server, 60, Instant::from_secs(1_000)).unwrap().to_string();
        let (client, image) = (client.to_string(), support::prefix("2001:db8:46::/96").embed_any(client).to_string());
        gateway.receives(v4(&client, &address).udp(ports.0, ports.1, &data));
        gateway.sends(v6(&image, &server.to_string()).hops(63).udp(ports.0, ports.1, &data));
        gateway.receives(v6(&server.to_string(), &image).udp(ports.1, ports.0, &data));
        let back = gateway.sent();
        prop_assert!(checksum_is_right(&back));
        let (from, to): (Ipv4Addr, Ipv4Addr) = (address.parse().unwrap(), client.parse().unwrap());
        prop_assert_eq!((&back[12..16], &back[16..20]), (&from.octets()[..], &to.octets()[..]));
        prop_assert_eq!(&back[28..], &data[..]);
    }
}

#[test]
fn under_the_well_known_prefix_no_private_address_is_shown_to_servers() {
    // RFC 6052 §3.1.
    let Nat46 { mut gateway, mappings, address } = nat46_with(|config| {
        config.prefix = support::prefix("64:ff9b::/96");
        config.mappings.clients.push("9.9.9.0/24".parse().unwrap());
        config.table = Some(Arc::new(Mappings::in_memory(config.mappings.clone(), [1, 2]).unwrap()));
    });
    let packet = v4(CLIENT, &address).udp(4_000, 53, b"question");
    drops(&mut gateway, packet, DropReason::NonGlobalWithWellKnownPrefix);
    let global = "9.9.9.9";
    let server = SERVER.parse().unwrap();
    let address = mappings.map(global.parse().unwrap(), server, 60, gateway.now).unwrap().to_string();
    assert!(gateway.passes(v4(global, &address).udp(4_000, 53, b"question")));
    let arrived = v4(&address, global).hops(9).udp(53, 4_000, b"answer").octets();
    let error = |router: &str| v4(router, &address).icmp(icmp4(11, 0, [0; 4], &arrived));
    drops(&mut gateway, error("172.16.0.1"), DropReason::NonGlobalWithWellKnownPrefix);
    assert!(gateway.passes(error("8.8.8.8")));
}

#[test]
fn errors_from_no_host_and_about_packets_to_no_client_go_nowhere() {
    let Nat46 { mut gateway, .. } = nat46();
    let sent = v6(IMAGE, SERVER).hops(1).udp(4_000, 33_434, b"probe").octets();
    let error = |router: &str| v6(router, IMAGE).icmp(icmp6(3, 0, [0; 4], &sent));
    drops(&mut gateway, error("::1"), DropReason::MartianSource);
    drops(&mut gateway, error("ff02::1"), DropReason::MartianSource);
    // The static mapping is of all clients, and of nobody else.
    let quoted = v4("192.168.46.80", "172.16.0.9").udp(53, 4_000, b"answer").octets();
    let about = v4("172.16.0.9", "192.168.46.80").icmp(icmp4(3, 3, [0; 4], &quoted));
    drops(&mut gateway, about, DropReason::QuoteUnusable);
}
