//! A Teredo server, clause by clause of RFC 4380 §5.2.2 and §5.3, and what it refuses (RFC 6169).

use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use ring::hmac;
use sixway_control::Instant;
use sixway_control::neighbour_discovery::{
    ALL_ROUTERS, Message, NdOption, Received, RouterAdvertisement, RouterSolicitation,
};
use sixway_control::teredo_server::{ClientKey, Clients, Datagram, Rate, Refusal, Sent, Server, Settings};
use sixway_wire::protocol::{ICMPV6, UDP};
use sixway_wire::teredo::{
    Authentication, Origin, Prologue, TeredoAddress, TeredoInterface, Trailer, bubble,
};
use sixway_wire::{Endpoint4, Ipv6Header};

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const ALICE: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 7), 40_001);
const BOB: Endpoint4 = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 9), 40_002);
const NOW: Instant = Instant::from_secs(100);

fn server() -> Server {
    Server::new(Settings::new(SERVER, Some(SECONDARY)), 7)
}

fn native() -> Ipv6Addr {
    "2001:db8::5".parse().unwrap()
}

/// The address of a client of this server.
fn client(mapped: Endpoint4) -> Ipv6Addr {
    client_of(SERVER, mapped)
}

fn client_of(server: Ipv4Addr, mapped: Endpoint4) -> Ipv6Addr {
    TeredoAddress { server, interface: TeredoInterface { flags: 0, mapped } }.address()
}

/// A client's link-local address, which has any identifier.
fn link_local(is_cone: bool) -> Ipv6Addr {
    let mapped = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), 40_001);
    TeredoInterface { flags: 0, mapped }.with_cone(is_cone).link_local()
}

fn packet(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let header =
        Ipv6Header { hop_limit: 255, ..Ipv6Header::new(source, destination, next_header, payload.len()) };
    [&header.octets()[..], payload].concat()
}

fn solicitation(is_cone: bool) -> Vec<u8> {
    let source = link_local(is_cone);
    let message = Message::RouterSolicitation(RouterSolicitation::default());
    packet(source, ALL_ROUTERS, ICMPV6, &message.to_octets(source, ALL_ROUTERS))
}

fn echo(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    packet(source, destination, ICMPV6, &[128, 0, 0, 0, 0, 1, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9])
}

fn handle_at(
    server: &mut Server,
    from: Endpoint4,
    to: Ipv4Addr,
    payload: &[u8],
) -> Result<(Sent, Vec<u8>), Refusal> {
    let mut out = Vec::new();
    let sent = server.handle(Datagram { from, to, payload }, &mut out, NOW)?;
    Ok((sent, out))
}

fn handle(from: Endpoint4, payload: &[u8]) -> Result<(Sent, Vec<u8>), Refusal> {
    handle_at(&mut server(), from, SERVER, payload)
}

/// The advertisement in an answer, and the IPv6 addresses around it.
fn advertisement(octets: &[u8]) -> (RouterAdvertisement, Ipv6Header) {
    let header = Ipv6Header::read(octets).unwrap();
    let (source, destination) = (header.source, header.destination);
    let message = &octets[40..];
    let received = Received { source, destination, hop_limit: header.hop_limit, outer_source: None, message };
    let Message::RouterAdvertisement(advertisement) = Message::parse(&received).unwrap() else {
        panic!("not an advertisement")
    };
    (advertisement, header)
}

#[test]
fn a_solicitation_is_answered_with_the_prefix_and_the_senders_endpoint() {
    let (sent, octets) = handle(ALICE, &solicitation(false)).unwrap();
    assert_eq!(sent, Sent::Udp { from: SERVER, to: ALICE });
    let (prologue, packet) = Prologue::split(&octets).unwrap();
    assert_eq!((prologue.origin, prologue.authentication), (Some(Origin(ALICE)), None));
    let (advertisement, header) = advertisement(packet);
    assert_eq!(header.destination, link_local(false));
    assert_eq!(
        header.source,
        "fe80::8000:f227:39cc:9bfe".parse::<Ipv6Addr>().unwrap(),
        "from server and port"
    );
    let prefixes: Vec<_> = advertisement
        .options
        .iter()
        .filter_map(|option| match option {
            NdOption::Prefix(prefix) => Some(prefix.prefix.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(prefixes, ["2001:0:c633:6401::/64"], "exactly one (RFC 4380 §5.2.1)");
    assert!(advertisement.options.contains(&NdOption::Mtu(1_280)));
}

#[test]
fn to_a_cone_bit_the_answer_comes_from_the_other_address_and_else_from_the_same() {
    for (to, is_cone, from) in [
        (SERVER, true, SECONDARY),
        (SECONDARY, true, SERVER),
        (SERVER, false, SERVER),
        (SECONDARY, false, SECONDARY),
    ] {
        let (sent, octets) = handle_at(&mut server(), ALICE, to, &solicitation(is_cone)).unwrap();
        assert_eq!(sent, Sent::Udp { from, to: ALICE });
        let (_, packet) = Prologue::split(&octets).unwrap();
        assert!(advertisement(packet).0.options.iter().any(|option| matches!(option, NdOption::Prefix(_))));
    }
}

#[test]
fn without_a_second_address_a_cone_bit_gets_no_answer() {
    let mut alone = Server::new(Settings::new(SERVER, None), 7);
    assert_eq!(handle_at(&mut alone, ALICE, SERVER, &solicitation(true)), Err(Refusal::NoSecondary));
    assert!(handle_at(&mut alone, ALICE, SERVER, &solicitation(false)).is_ok());
}

#[test]
fn the_nonce_is_repeated_to_everybody() {
    let asked = Authentication { client: &[], value: &[], nonce: *b"12345678", confirmation: 0 };
    let mut payload = vec![0; asked.len()];
    asked.write(&mut payload).unwrap();
    payload.extend(solicitation(false));
    let (_, octets) = handle(ALICE, &payload).unwrap();
    let (prologue, _) = Prologue::split(&octets).unwrap();
    assert_eq!(prologue.authentication, Some(asked));
    assert_eq!(prologue.origin, Some(Origin(ALICE)));
}

fn hmac_sha1(secret: &[u8], octets: &[u8]) -> [u8; 20] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    hmac::sign(&key, octets).as_ref().try_into().unwrap()
}

/// RFC 4380 §5.2.2, computed here on its own.
fn value(secret: &[u8], nonce: &[u8], confirmation: u8, origin: &[u8], packet: &[u8]) -> Vec<u8> {
    hmac_sha1(secret, &[nonce, &[confirmation], origin, packet].concat()).to_vec()
}

#[test]
fn only_clients_with_a_key_qualify_where_it_is_required_and_the_answer_is_protected() {
    let clients =
        Clients::new([(b"alice".to_vec(), ClientKey::new(|octets| hmac_sha1(b"secret", octets)))], true);
    let settings = Settings { clients, ..Settings::new(SERVER, None) };
    let asked = |client: &'static [u8], secret: &[u8]| {
        let packet = solicitation(false);
        let value = value(secret, b"12345678", 0, &[], &packet);
        let authentication = Authentication { client, value: &value, nonce: *b"12345678", confirmation: 0 };
        let mut payload = vec![0; authentication.len()];
        authentication.write(&mut payload).unwrap();
        payload.extend(packet);
        handle_at(&mut Server::new(settings.clone(), 7), ALICE, SERVER, &payload)
    };
    let (_, octets) = asked(b"alice", b"secret").unwrap();
    let (prologue, packet) = Prologue::split(&octets).unwrap();
    let authentication = prologue.authentication.unwrap();
    assert_eq!((authentication.client, authentication.nonce), (&b"alice"[..], *b"12345678"));
    assert_eq!(authentication.value, value(b"secret", b"12345678", 0, &Origin(ALICE).octets(), packet));
    assert_eq!(asked(b"alice", b"other").err(), Some(Refusal::NotAuthentic));
    assert_eq!(asked(b"bob", b"secret").err(), Some(Refusal::NotAuthentic));
    let bare = handle_at(&mut Server::new(settings.clone(), 7), ALICE, SERVER, &solicitation(false));
    assert_eq!(bare.err(), Some(Refusal::NotAuthentic), "none at all");
}

/// A solicitation that is authenticated by the identifier and the secret.
fn authenticated(client: &[u8], secret: &[u8]) -> Vec<u8> {
    let packet = solicitation(false);
    let value = value(secret, b"12345678", 0, &[], &packet);
    let authentication = Authentication { client, value: &value, nonce: *b"12345678", confirmation: 0 };
    let mut payload = vec![0; authentication.len()];
    authentication.write(&mut payload).unwrap();
    [payload, packet].concat()
}

fn alice() -> (Vec<u8>, ClientKey) {
    (b"alice".to_vec(), ClientKey::new(|octets| hmac_sha1(b"secret", octets)))
}

#[test]
fn where_authentication_is_offered_everybody_qualifies_but_a_wrong_value_gets_no_answer() {
    let settings = Settings { clients: Clients::new([alice()], false), ..Settings::new(SERVER, None) };
    let mut server = Server::new(settings, 7);
    let mut said = |payload: &[u8]| handle_at(&mut server, BOB, SERVER, payload);
    assert!(said(&solicitation(false)).is_ok());
    assert!(said(&authenticated(b"alice", b"secret")).is_ok());
    assert_eq!(said(&authenticated(b"alice", b"other")).err(), Some(Refusal::NotAuthentic));
    assert_eq!(said(&authenticated(b"eve", b"secret")).err(), Some(Refusal::NotAuthentic));
}

#[test]
fn a_client_with_a_retired_identifier_is_told_by_the_confirmation_octet() {
    let (name, key) = alice();
    let clients = Clients::new([], true).with_retired(name, key);
    let settings = Settings { clients, ..Settings::new(SERVER, None) };
    let answer = handle_at(&mut Server::new(settings, 7), BOB, SERVER, &authenticated(b"alice", b"secret"));
    let (_, octets) = answer.unwrap();
    let (prologue, packet) = Prologue::split(&octets).unwrap();
    let authentication = prologue.authentication.unwrap();
    assert_eq!(authentication.confirmation, 1);
    assert_eq!(authentication.value, value(b"secret", b"12345678", 1, &Origin(BOB).octets(), packet));
}

#[test]
fn while_forged_sources_use_up_the_rate_of_unknown_clients_an_authentic_client_qualifies() {
    let mut settings = Settings { clients: Clients::new([alice()], false), ..Settings::new(SERVER, None) };
    settings.total_rate = Rate { rate: 300, burst: 300 };
    let mut server = Server::new(settings, 7);
    let flood = |server: &mut Server, payload: &[u8]| {
        let sources = (0..50_000_u32).map(|n| Endpoint4::new(Ipv4Addr::from_bits(0x0900_0000 + n), 4_000));
        sources.filter(|from| handle_at(server, *from, SERVER, payload).is_ok()).count()
    };
    assert_eq!(flood(&mut server, &solicitation(false)), 200, "two thirds");
    // Its own address among the forged ones.
    (0..1_000).for_each(|_| drop(handle_at(&mut server, ALICE, SERVER, &solicitation(false))));
    assert_eq!(flood(&mut server, &authenticated(b"alice", b"guessed")), 0);
    assert_eq!(handle_at(&mut server, ALICE, SERVER, &solicitation(false)).err(), Some(Refusal::SourceRate));
    assert!(handle_at(&mut server, ALICE, SERVER, &authenticated(b"alice", b"secret")).is_ok());
    assert_eq!(server.counts().authentic, 1);
}

#[test]
fn a_bubble_goes_to_a_client_of_this_server_with_the_senders_endpoint_and_its_trailers() {
    let mut payload = bubble(client(ALICE), client(BOB), 21).to_vec();
    let mut trailer = [0; 6];
    Trailer::Nonce([1, 2, 3, 4]).write(&mut trailer).unwrap();
    payload.extend(trailer);
    let (sent, octets) = handle(ALICE, &payload).unwrap();
    assert_eq!(sent, Sent::Udp { from: SERVER, to: BOB });
    assert_eq!(octets, [&Origin(ALICE).octets()[..], &payload[..]].concat());
}

#[test]
fn a_bubble_for_a_client_of_another_server_is_refused() {
    let payload = bubble(client(ALICE), client_of(Ipv4Addr::new(198, 51, 100, 200), BOB), 21);
    assert_eq!(handle(ALICE, &payload).err(), Some(Refusal::NotOurClient));
}

#[test]
fn a_client_of_another_server_reaches_clients_of_this_one() {
    let payload = bubble(client_of(Ipv4Addr::new(198, 51, 100, 200), ALICE), client(BOB), 21);
    assert_eq!(handle(ALICE, &payload).unwrap().0, Sent::Udp { from: SERVER, to: BOB });
}

#[test]
fn what_is_behind_an_echo_message_is_not_forwarded() {
    let payload = echo(client(ALICE), client(BOB));
    let (_, octets) = handle(ALICE, &[&payload[..], &[5, 2, 0, 1]].concat()).unwrap();
    assert_eq!(octets, [&Origin(ALICE).octets()[..], &payload[..]].concat());
    let to_native = [echo(client(ALICE), native()), vec![5, 2, 0, 1]].concat();
    assert_eq!(handle(ALICE, &to_native).unwrap().1.len(), to_native.len() - 4);
}

#[test]
fn nothing_goes_to_native_hosts_where_that_is_disabled() {
    let settings = Settings { native: false, ..Settings::new(SERVER, None) };
    let refused = handle_at(&mut Server::new(settings, 7), ALICE, SERVER, &echo(client(ALICE), native()));
    assert_eq!(refused.err(), Some(Refusal::NativeDisabled));
}

#[test]
fn nothing_is_forwarded_to_this_host_itself() {
    let own = Ipv4Addr::new(203, 0, 113, 200);
    let mut settings = Settings::new(SERVER, None);
    settings.host.addresses = vec![own];
    let mut server = Server::new(settings, 7);
    let target = Endpoint4::new(own, 53);
    let refused = handle_at(&mut server, ALICE, SERVER, &bubble(client(ALICE), client(target), 21));
    assert_eq!(refused.err(), Some(Refusal::Loop));
    assert_eq!(handle_at(&mut server, target, SERVER, &solicitation(false)).err(), Some(Refusal::Loop));
}

/// The server's packets to native hosts are its host's own output, and pass no rule for forwarded ones.
#[test]
fn hosts_of_its_own_networks_are_not_reached_through_the_server_unless_configured() {
    let ping = |to: &str| echo(client(ALICE), to.parse().unwrap());
    for own_networks in [false, true] {
        let mut settings = Settings { own_networks, ..Settings::new(SERVER, None) };
        settings.host.subnets6 =
            vec!["2001:db8:1::/64".parse().unwrap(), "2001:db8:2::1/128".parse().unwrap()];
        let mut server = Server::new(settings, 7);
        for inside in ["2001:db8:1::80", "2001:db8:2::1"] {
            let outcome = handle_at(&mut server, ALICE, SERVER, &ping(inside));
            assert_eq!(outcome.err(), (!own_networks).then_some(Refusal::OwnNetwork), "{inside}");
        }
        assert!(handle_at(&mut server, ALICE, SERVER, &ping("2001:db8:2::2")).is_ok());
    }
}

#[test]
fn a_native_host_gets_no_more_than_its_rate_from_any_number_of_clients() {
    let mut server = server();
    let mut passed = 0;
    for number in 0..1_000_u32 {
        let from = Endpoint4::new(Ipv4Addr::from_bits(0xc633_0000 + number), 40_000);
        let ping = echo(client(from), native());
        passed += u32::from(handle_at(&mut server, from, SERVER, &ping).is_ok());
    }
    assert_eq!(passed, 100, "a burst of two seconds");
}

#[test]
fn a_relay_of_this_host_reaches_clients_at_any_address_and_at_no_lower_rate() {
    let own = Ipv4Addr::new(203, 0, 113, 200);
    let mut settings = Settings::new(SERVER, None);
    settings.host.addresses = vec![own, SERVER];
    let mut server = Server::new(settings, 7);
    for address in [own, SERVER] {
        let relay = Endpoint4::new(address, 3_545);
        for _ in 0..40 {
            assert!(handle_at(&mut server, relay, SERVER, &bubble(native(), client(BOB), 21)).is_ok());
        }
        let ping = echo(native(), client(BOB));
        assert_eq!(handle_at(&mut server, relay, SERVER, &ping).err(), Some(Refusal::Loop));
    }
    let itself = Endpoint4::new(SERVER, 3_544);
    let refused = handle_at(&mut server, itself, SERVER, &bubble(native(), client(BOB), 21));
    assert_eq!(refused.err(), Some(Refusal::Loop));
}

#[test]
fn each_datagram_is_counted_once() {
    let mut server = server();
    let native_echo = echo(client(ALICE), native());
    let payloads: [&[u8]; 5] = [
        &solicitation(false),
        &bubble(client(ALICE), client(BOB), 21),
        &native_echo,
        &echo(client(BOB), native()),
        &[],
    ];
    for payload in payloads {
        let _ = handle_at(&mut server, ALICE, SERVER, payload);
    }
    let counts = server.counts();
    assert_eq!((counts.advertised, counts.authentic, counts.forwarded, counts.native), (1, 0, 1, 1));
    assert_eq!((counts.of(Refusal::SourceSpoofed), counts.of(Refusal::Malformed)), (1, 1));
    assert_eq!(counts.received(), 5);
}

#[test]
fn a_relay_reaches_clients_of_this_server_and_no_others() {
    let relay = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 77), 3_545);
    let (sent, octets) = handle(relay, &bubble(native(), client(BOB), 21)).unwrap();
    assert_eq!(sent, Sent::Udp { from: SERVER, to: BOB });
    assert_eq!(octets[..8], Origin(relay).octets());
    let others = client_of(Ipv4Addr::new(198, 51, 100, 200), BOB);
    assert_eq!(handle(relay, &bubble(native(), others, 21)).err(), Some(Refusal::NotOurClient));
    assert_eq!(
        handle(relay, &echo(native(), "2001:db8::6".parse().unwrap())).err(),
        Some(Refusal::NotOurClient)
    );
}

#[test]
fn a_relay_may_send_bubbles_from_its_link_local_address_and_from_no_group() {
    let relay = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 77), 3_545);
    let from =
        |text: &str| handle(relay, &bubble(text.parse().unwrap(), client(BOB), 21)).map(|(sent, _)| sent);
    assert_eq!(from("fe80::ffff:ffff:ffff"), Ok(Sent::Udp { from: SERVER, to: BOB }));
    for text in ["ff02::1", "::", "::1"] {
        assert_eq!(from(text), Err(Refusal::SourceSpoofed), "{text}");
    }
}

#[test]
fn an_echo_request_of_a_client_goes_to_a_native_host_with_one_hop_less() {
    let payload = echo(client(ALICE), native());
    let (sent, octets) = handle(ALICE, &payload).unwrap();
    assert_eq!(sent, Sent::Native(native()));
    let mut expected = payload;
    expected[7] = 254;
    assert_eq!(octets, expected);
}

#[test]
fn what_is_no_bubble_and_no_echo_is_not_forwarded() {
    let datagram = packet(client(ALICE), client(BOB), UDP, &[0, 1, 0, 2, 0, 8, 0, 0]);
    assert_eq!(handle(ALICE, &datagram).err(), Some(Refusal::NotForwarded));
    let advertisement = packet(client(ALICE), client(BOB), ICMPV6, &[134, 0, 0, 0]);
    assert_eq!(handle(ALICE, &advertisement).err(), Some(Refusal::NotForwarded));
    assert_eq!(handle(ALICE, &bubble(client(ALICE), native(), 21)).err(), Some(Refusal::NotForwarded));
}

#[test]
fn a_client_may_not_speak_for_another_one() {
    for payload in [echo(client(BOB), native()), bubble(client(BOB), client(ALICE), 21).to_vec()] {
        assert_eq!(handle(ALICE, &payload).err(), Some(Refusal::SourceSpoofed));
    }
    let other_port = Endpoint4 { port: ALICE.port + 1, ..ALICE };
    assert_eq!(handle(other_port, &echo(client(ALICE), native())).err(), Some(Refusal::SourceSpoofed));
    let elsewhere = client_of(Ipv4Addr::new(198, 51, 100, 200), ALICE);
    assert_eq!(
        handle(ALICE, &echo(elsewhere, native())).err(),
        Some(Refusal::NotOurClient),
        "a client of another server"
    );
}

#[test]
fn nothing_goes_to_private_broadcast_or_own_addresses() {
    let mut settings = Settings::new(SERVER, Some(SECONDARY));
    settings.host.subnets = vec!["198.51.100.0/24".parse().unwrap()];
    for text in ["10.0.0.1", "127.0.0.1", "192.168.1.1", "224.0.0.1", "255.255.255.255", "192.88.99.1"] {
        let target = Endpoint4::new(text.parse().unwrap(), 53);
        let refused = handle(ALICE, &bubble(client(ALICE), client(target), 21));
        assert_eq!(refused.err(), Some(Refusal::MappedNotGlobal), "{text}");
        assert_eq!(handle(target, &solicitation(false)).err(), Some(Refusal::SourceNotGlobal), "{text}");
    }
    let broadcast = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 255), 53);
    let refused = handle_at(
        &mut Server::new(settings, 7),
        ALICE,
        SERVER,
        &bubble(client(ALICE), client(broadcast), 21),
    );
    assert_eq!(refused.err(), Some(Refusal::MappedNotGlobal));
    for own in [SERVER, SECONDARY] {
        let target = Endpoint4::new(own, 3_544);
        assert_eq!(handle(ALICE, &bubble(client(ALICE), client(target), 21)).err(), Some(Refusal::Loop));
        assert_eq!(handle(target, &solicitation(false)).err(), Some(Refusal::Loop), "from itself");
    }
    for text in [
        "ff02::1",
        "fe80::1",
        "::1",
        "::",
        "::ffff:192.0.2.1",
        "fd00::1",
        "64:ff9b::10.0.0.1",
        "2002:a00:1::1",
    ] {
        let refused = handle(ALICE, &echo(client(ALICE), text.parse().unwrap()));
        assert_eq!(refused.err(), Some(Refusal::DestinationNotGlobal), "{text}");
    }
}

#[test]
fn while_one_source_floods_another_client_is_served_and_no_target_gets_more_than_its_rate() {
    let mut settings = Settings::new(SERVER, None);
    settings.total_rate = Rate { rate: 1_000, burst: 1_000 };
    let mut server = Server::new(settings, 7);
    let flood =
        (0..100_000).filter(|_| handle_at(&mut server, BOB, SERVER, &solicitation(false)).is_ok()).count();
    assert_eq!(flood, 60, "the burst of one source");
    assert!(handle_at(&mut server, ALICE, SERVER, &solicitation(false)).is_ok());
    // Many sources, one target.
    let mut reached = 0;
    for n in 0..5_000_u32 {
        let from = Endpoint4::new(Ipv4Addr::from_bits(0x0900_0000 + n), 4_000);
        reached +=
            usize::from(handle_at(&mut server, from, SERVER, &bubble(client(from), client(BOB), 21)).is_ok());
    }
    assert_eq!(reached, 100, "the burst of one target");
}

#[test]
fn an_answer_is_hardly_longer_than_its_question() {
    let with_headers = |octets: usize| octets + 28;
    let payload = solicitation(false);
    let (_, octets) = handle(ALICE, &payload).unwrap();
    assert!(
        with_headers(octets.len()) * 10 <= with_headers(payload.len()) * 18,
        "{} of {}",
        octets.len(),
        payload.len()
    );
}

proptest! {
    #[test]
    fn any_payload_is_answered_to_its_sender_forwarded_or_refused(
        payload in prop_oneof![
            any::<Vec<u8>>(),
            (any::<[u8; 32]>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|(addresses, next, rest)| {
                let [source, destination] = [0, 16].map(|at| {
                    let octets: [u8; 16] = addresses[at..at + 16].try_into().unwrap();
                    Ipv6Addr::from(octets)
                });
                packet(source, destination, if next < 128 { ICMPV6 } else { 59 }, &rest)
            }),
        ],
        from in (any::<u32>(), any::<u16>()),
    ) {
        let from = Endpoint4::new(Ipv4Addr::from_bits(from.0), from.1);
        if let Ok((sent, octets)) = handle(from, &payload) {
            prop_assert!(octets.len() <= payload.len() + 80);
            if let Sent::Udp { from: source, to } = sent {
                prop_assert!(source == SERVER || source == SECONDARY);
                prop_assert!(sixway_wire::teredo::is_global_unicast(to.address));
            }
        }
    }
}

#[test]
fn a_datagram_without_a_port_is_neither_answered_nor_sent() {
    let nobody = Endpoint4 { port: 0, ..ALICE };
    assert_eq!(handle(nobody, &solicitation(false)).err(), Some(Refusal::SourceNotGlobal));
    let refused = handle(ALICE, &bubble(client(ALICE), client(Endpoint4 { port: 0, ..BOB }), 21));
    assert_eq!(refused.err(), Some(Refusal::MappedNotGlobal));
}

#[test]
fn the_ends_of_an_attached_network_are_no_hosts_unless_it_has_two_addresses() {
    let at = |subnet: &str, host: [u8; 4]| {
        let mut settings = Settings::new(SERVER, None);
        settings.host.subnets = vec![subnet.parse().unwrap()];
        let target = Endpoint4::new(host.into(), 40_000);
        let payload = bubble(client(ALICE), client(target), 21);
        handle_at(&mut Server::new(settings, 7), ALICE, SERVER, &payload).err()
    };
    assert_eq!(at("203.0.113.0/24", [203, 0, 113, 0]), Some(Refusal::MappedNotGlobal));
    assert_eq!(at("203.0.113.0/24", [203, 0, 113, 255]), Some(Refusal::MappedNotGlobal));
    assert_eq!(at("203.0.113.0/24", [203, 0, 113, 1]), None);
    // RFC 3021.
    assert_eq!(at("203.0.113.0/31", [203, 0, 113, 0]), None);
    assert_eq!(at("203.0.113.0/31", [203, 0, 113, 1]), None);
}

#[test]
fn a_solicitation_to_another_link_local_address_gets_no_answer() {
    let source = link_local(false);
    let to = |destination: Ipv6Addr| {
        let message = Message::RouterSolicitation(RouterSolicitation::default());
        handle(ALICE, &packet(source, destination, ICMPV6, &message.to_octets(source, destination))).err()
    };
    assert_eq!(to("fe80::8000:f227:39cc:9bfe".parse().unwrap()), None);
    assert_eq!(to("fe80::8000:f227:39cc:9bfd".parse().unwrap()), Some(Refusal::Malformed));
}

#[test]
fn an_echo_message_whose_hop_limit_is_used_up_goes_nowhere() {
    let mut payload = echo(client(ALICE), native());
    for (hop_limit, refusal) in
        [(0, Some(Refusal::NotForwarded)), (1, Some(Refusal::NotForwarded)), (2, None)]
    {
        payload[7] = hop_limit;
        assert_eq!(handle(ALICE, &payload).err(), refusal, "{hop_limit}");
    }
}

#[test]
fn a_value_that_is_cut_proves_nothing() {
    let settings = Settings { clients: Clients::new([alice()], true), ..Settings::new(SERVER, None) };
    let packet = solicitation(false);
    let whole = value(b"secret", b"12345678", 0, &[], &packet);
    for length in 0..=whole.len() {
        let authentication = Authentication {
            client: b"alice",
            value: &whole[..length],
            nonce: *b"12345678",
            confirmation: 0,
        };
        let mut payload = vec![0; authentication.len()];
        authentication.write(&mut payload).unwrap();
        payload.extend(&packet);
        let mut server = Server::new(settings.clone(), 7);
        let is_answered = handle_at(&mut server, ALICE, SERVER, &payload).is_ok();
        assert_eq!(is_answered, length == whole.len(), "{length}");
        assert_eq!(server.counts().authentic, u64::from(is_answered));
    }
}

#[test]
fn a_packet_with_data_behind_its_header_is_no_bubble() {
    let datagram = packet(client(ALICE), client(BOB), 59, &[0; 8]);
    assert_eq!(handle(ALICE, &datagram).err(), Some(Refusal::NotForwarded));
}

#[test]
fn who_sends_bubbles_or_proves_itself_too_often_has_the_rate_of_one_source_and_others_keep_theirs() {
    let mut settings = Settings::new(SERVER, None);
    settings.destination_rate = Rate { rate: 10_000, burst: 10_000 };
    settings.clients = Clients::new([alice()], false);
    let mut server = Server::new(settings, 7);
    let sent = |server: &mut Server, from: Endpoint4| {
        let payload = bubble(client(from), client(BOB), 21);
        (0..200).filter(|_| handle_at(server, from, SERVER, &payload).is_ok()).count()
    };
    let another = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 8), 40_001);
    assert_eq!((sent(&mut server, ALICE), sent(&mut server, another)), (60, 60));
    assert_eq!(server.counts().of(Refusal::SourceRate), 280);
    let payload = authenticated(b"alice", b"secret");
    let proven = (0..200).filter(|_| handle_at(&mut server, BOB, SERVER, &payload).is_ok()).count();
    assert_eq!(proven, 60, "wherever it is");
}

#[test]
fn relays_of_this_host_and_strangers_have_two_thirds_of_the_total_and_authentic_clients_all_of_it() {
    let mut settings = Settings::new(SERVER, None);
    settings.total_rate = Rate { rate: 30, burst: 30 };
    settings.host.addresses = vec![SERVER];
    settings.clients = Clients::new([alice()], false);
    let relay = Endpoint4::new(SERVER, 3_545);
    let mut server = Server::new(settings.clone(), 7);
    let payload = bubble(native(), client(BOB), 21);
    assert_eq!((0..200).filter(|_| handle_at(&mut server, relay, SERVER, &payload).is_ok()).count(), 20);
    assert_eq!(server.counts().of(Refusal::TotalRate), 180);
    let mut server = Server::new(settings.clone(), 7);
    let strangers = (0..200_u32).filter(|number| {
        let from = Endpoint4::new(Ipv4Addr::from_bits(0x0900_0000 + number), 4_000);
        handle_at(&mut server, from, SERVER, &bubble(client(from), client(BOB), 21)).is_ok()
    });
    assert_eq!(strangers.count(), 20);
    let mut server = Server::new(settings, 7);
    let payload = authenticated(b"alice", b"secret");
    assert_eq!((0..200).filter(|_| handle_at(&mut server, ALICE, SERVER, &payload).is_ok()).count(), 30);
}
