//! RFC 4380 §5.2.1 and §5.2.2, without the first phase (RFC 5991 §3.2).

use super::*;
use ring::hmac;
use sixway_control::teredo_client::{NatKind, Phase, PortChoice, Secret};
use sixway_control::teredo_server::ClientKey;
use sixway_dataplane::mechanism::teredo::PortRule;
use sixway_wire::teredo::TeredoAddress;

#[test]
fn the_first_message_is_a_solicitation_from_the_service_port_to_the_servers_teredo_port_without_the_cone_bit()
{
    let host = Host::new(settings());
    assert_eq!(host.sent.len(), 1);
    let Out { at: when, from, to, .. } = host.sent[0];
    assert_eq!((when, from, to), (Instant::from_secs(1_000), Port::Service, at(PRIMARY)));
    let asked = host.sent[0].asked();
    let interface = TeredoInterface::of_link_local(asked.link_local).unwrap();
    assert_eq!(interface.flags & !TeredoInterface::RANDOM, 0, "neither C nor z, U, G");
    assert_eq!((asked.client.len(), asked.value.len()), (0, 0), "the nonce alone");
}

#[test]
fn an_unanswered_solicitation_is_repeated_each_four_seconds_and_given_up_after_the_third() {
    let mut host = Host::new(settings());
    host.wait(Duration::from_millis(11_999));
    let seconds: Vec<_> = host.sent.iter().map(|out| out.at.as_secs() - 1_000).collect();
    assert_eq!((seconds, host.stopped.len()), (vec![0, 4, 8], 0));
    host.wait(Duration::from_millis(1));
    assert_eq!(host.stopped, [Why::NoAnswer(PRIMARY)]);
    assert_eq!(host.client.status(host.now).phase, Phase::Waiting);
    assert!(host.words().contains("no answer from server 198.51.100.1"), "{}", host.words());
}

#[test]
fn a_late_answer_to_an_earlier_repetition_counts() {
    let mut host = Host::new(settings());
    let first = host.last().asked();
    host.wait_secs(5);
    let octets = Answer::to(&first, PRIMARY, MAPPED).octets();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &octets), Ok(()));
    assert_eq!(host.last().to, at(SECONDARY));
}

#[test]
fn after_the_first_answer_the_second_address_is_asked_and_the_same_mapping_qualifies() {
    let mut host = Host::new(settings());
    host.answer(MAPPED).unwrap();
    assert_eq!(host.last().to, at(SECONDARY));
    assert_eq!(host.client.status(host.now).phase, Phase::ComparingMappings);
    assert!(host.used.is_empty());
    host.answer(MAPPED).unwrap();
    let [state] = host.used[..] else { panic!("{:?}", host.used) };
    assert_eq!((state.address.server, state.address.mapped(), state.symmetric), (PRIMARY, MAPPED, false));
    let status = host.client.status(host.now);
    assert_eq!((status.phase, status.nat, status.why), (Phase::Qualified, NatKind::Restricted, None));
    assert_eq!(status.mapped(), Some(MAPPED));
}

#[test]
fn the_address_has_twelve_random_bits_and_never_the_cone_bit() {
    let mut differ = 0;
    let mut first = None;
    for seed in 0..64 {
        let mut host = Host::seeded(settings(), seed);
        host.answer(MAPPED).unwrap();
        host.answer(MAPPED).unwrap();
        let address: TeredoAddress = host.used[0].address;
        assert_eq!(address.interface.flags & !TeredoInterface::RANDOM, 0);
        differ |= address.interface.flags ^ *first.get_or_insert(address.interface.flags);
    }
    assert_eq!(differ, TeredoInterface::RANDOM, "each of the twelve bits differs among 64 clients");
}

#[test]
fn a_silent_second_address_fails_the_qualification_and_is_named() {
    let mut host = Host::new(settings());
    host.answer(MAPPED).unwrap();
    host.wait_secs(12);
    assert_eq!(host.stopped, [Why::NoSecondAnswer(SECONDARY)]);
    assert!(host.used.is_empty());
}

#[test]
fn a_server_with_one_address_qualifies_without_a_comparison_and_the_nat_is_unknown() {
    let server = ServerAddresses { primary: PRIMARY, secondary: None };
    for secondary in [None, Some(PRIMARY)] {
        let servers = vec![ServerAddresses { secondary, ..server }];
        let mut host = Host::new(Settings { servers, ..settings() });
        host.answer(MAPPED).unwrap();
        assert_eq!(host.used.len(), 1);
        assert_eq!(host.client.status(host.now).nat, NatKind::Unknown);
    }
}

#[test]
fn another_mapping_in_the_second_answer_is_a_symmetric_nat_which_ends_it_if_support_is_off() {
    for mapped in
        [Endpoint4 { port: MAPPED.port + 9, ..MAPPED }, Endpoint4 { address: ELSEWHERE.address, ..MAPPED }]
    {
        let mut host = Host::new(Settings { symmetric: false, ..settings() });
        host.answer(MAPPED).unwrap();
        host.answer(mapped).unwrap();
        assert_eq!((host.stopped.clone(), host.used.len()), (vec![Why::Symmetric], 0));
        assert_eq!(host.client.status(host.now).nat, NatKind::Symmetric);
        assert!(host.words().contains("symmetric"), "{}", host.words());
    }
}

#[test]
fn behind_a_symmetric_nat_the_mapping_of_the_first_address_is_used_if_support_is_on() {
    let mut host = Host::new(settings());
    host.answer(MAPPED).unwrap();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!((host.used[0].address.mapped(), host.used[0].symmetric), (MAPPED, true));
    assert_eq!(host.client.status(host.now).nat, NatKind::Symmetric);
}

#[test]
fn the_choice_of_ports_is_told() {
    let port = |port| Endpoint4 { port, ..MAPPED };
    for (first, second, ports) in [
        (port(LOCAL.port), port(LOCAL.port), PortChoice::Preserved),
        (port(LOCAL.port), port(9_000), PortChoice::Preserved),
        (port(5_000), port(5_001), PortChoice::Sequential),
        (port(65_535), port(1), PortChoice::Sequential),
        (port(5_000), port(5_003), PortChoice::Other),
        (port(5_000), port(4_999), PortChoice::Other),
        (port(5_000), port(5_000), PortChoice::Other),
    ] {
        let mut host = Host::new(settings());
        host.answer(first).unwrap();
        host.answer(second).unwrap();
        assert_eq!(host.client.status(host.now).ports, ports, "{first} {second}");
    }
}

#[test]
fn a_mapped_endpoint_that_is_the_local_one_is_no_nat() {
    let here = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 33), 40_001);
    let mut client = Client::new(settings(), Some(Local { endpoint: here, subnets: Vec::new() }), [1; 32]);
    client.start(Instant::from_secs(1));
    let mut host = Host::new(settings());
    host.client = client;
    host.settle();
    host.answer(here).unwrap();
    host.answer(here).unwrap();
    assert_eq!(host.client.status(host.now).nat, NatKind::Absent);
}

#[test]
fn a_cone_nat_is_found_by_a_port_of_its_own_which_is_closed_after_and_never_changes_the_address() {
    for is_cone in [true, false] {
        let mut host = Host::qualified(Settings::new(vec![SERVER]));
        let probe = host.last().clone();
        assert_eq!((probe.from, probe.to), (Port::Probe, at(PRIMARY)));
        assert!(TeredoInterface::of_link_local(probe.asked().link_local).unwrap().is_cone());
        let answer = Answer::to(&probe.asked(), PRIMARY, ELSEWHERE).octets();
        // From the address that was asked it proves nothing.
        assert_eq!(host.receive(Port::Probe, at(PRIMARY), &answer), Err(Refused::WrongSource));
        let kind = if is_cone {
            assert_eq!(host.receive(Port::Probe, at(SECONDARY), &answer), Ok(()));
            NatKind::Cone
        } else {
            host.wait_secs(4);
            NatKind::Restricted
        };
        assert_eq!(host.client.status(host.now).nat, kind);
        assert_eq!(host.closed, [Port::Probe]);
        assert_eq!(host.used.len(), 1);
        assert!(!host.used[0].address.interface.is_cone());
        let probes = host.sent.iter().filter(|out| out.from == Port::Probe).count();
        assert_eq!(probes, 1);
    }
}

fn hmac_sha1(secret: &[u8], octets: &[u8]) -> [u8; 20] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    hmac::sign(&key, octets).as_ref().try_into().unwrap()
}

fn secure() -> Settings {
    let key = ClientKey::new(|octets| hmac_sha1(b"secret", octets));
    Settings { secret: Some(Secret { client: b"alice".to_vec(), key }), ..settings() }
}

/// Signs an answer, as RFC 4380 §5.2.2 says.
fn sign(answer: &mut Answer, secret: &[u8], nonce: [u8; 8], confirmation: u8) {
    let origin = answer.origin.map(|origin| Origin(origin).octets());
    let origin = origin.as_ref().map_or(&[][..], |origin| origin);
    let value = hmac_sha1(secret, &[&nonce[..], &[confirmation], origin, &answer.packet()].concat());
    answer.authentication = Some((b"alice".to_vec(), value.to_vec(), nonce, confirmation));
}

#[test]
fn secure_qualification_sends_the_identifier_and_the_value_and_accepts_only_a_right_value() {
    let mut host = Host::new(secure());
    let asked = host.last().asked();
    assert_eq!(asked.client, b"alice");
    let value = hmac_sha1(b"secret", &[&asked.nonce[..], &[0], &asked.packet].concat());
    assert_eq!(asked.value, value);
    let nonce = asked.nonce;
    assert_eq!(host.forge(|_| {}), Err(Refused::NotAuthentic), "without a value");
    assert_eq!(host.forge(|answer| sign(answer, b"other", nonce, 0)), Err(Refused::NotAuthentic));
    assert_eq!(
        host.forge(|answer| {
            sign(answer, b"secret", nonce, 0);
            answer.origin = Some(ELSEWHERE);
        }),
        Err(Refused::NotAuthentic),
        "the mapped address is protected"
    );
    assert_eq!(host.forge(|answer| sign(answer, b"secret", nonce, 0)), Ok(()));
    assert_eq!(host.last().to, at(SECONDARY));
}

#[test]
fn a_confirmation_byte_tells_that_the_secret_must_be_replaced() {
    let mut host = Host::new(secure());
    for _ in 0..2 {
        let nonce = host.last().asked().nonce;
        host.forge(|answer| sign(answer, b"secret", nonce, 1)).unwrap();
    }
    assert_eq!(host.used.len(), 1);
    assert!(host.client.status(host.now).key_expires);
}

#[test]
fn a_server_of_this_project_qualifies_a_client_with_and_without_a_secret() {
    use sixway_control::teredo_server::{self, Clients, Datagram, Sent};
    for secure_one in [false, true] {
        let clients = if secure_one {
            let alice = (b"alice".to_vec(), ClientKey::new(|octets| hmac_sha1(b"secret", octets)));
            Clients::new([alice], true)
        } else {
            Clients::everybody()
        };
        let configured = teredo_server::Settings::new(PRIMARY, Some(SECONDARY));
        let mut server = teredo_server::Server::new(teredo_server::Settings { clients, ..configured }, 3);
        let mut host = Host::new(if secure_one { secure() } else { settings() });
        for _ in 0..2 {
            let Out { to, octets, .. } = host.last().clone();
            let mut out = Vec::new();
            let datagram = Datagram { from: MAPPED, to: to.address, payload: &octets };
            let sent = server.handle(datagram, &mut out, host.now).unwrap();
            assert_eq!(sent, Sent::Udp { from: to.address, to: MAPPED });
            host.receive(Port::Service, to, &out).unwrap();
        }
        assert_eq!(host.used[0].address.mapped(), MAPPED);
    }
}

/// RFC 6081 §3.3 and §3.4.
#[test]
fn a_symmetric_nat_is_told_by_how_its_ports_follow() {
    let port = |port| Endpoint4 { port, ..MAPPED };
    let sequential = Some(PortRule::Sequential { secondary: SECONDARY });
    for (first, second, rule) in [
        (port(LOCAL.port), port(LOCAL.port), None),
        (port(5_000), port(5_000), None),
        (port(LOCAL.port), port(9_000), Some(PortRule::Preserved)),
        (port(5_000), port(5_001), sequential),
        (port(5_000), port(61_000), sequential),
    ] {
        let mut host = Host::new(settings());
        assert_eq!(host.client.port_rule(), None);
        host.answer(first).unwrap();
        host.answer(second).unwrap();
        assert_eq!(host.client.port_rule(), rule, "{first} {second}");
    }
}
