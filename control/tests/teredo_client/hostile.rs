//! What a client does not believe.

use super::*;
use proptest::prelude::*;
use sixway_wire::IPV6_HEADER;

#[test]
fn an_answer_without_the_nonce_or_with_another_one_is_refused() {
    let mut host = Host::new(settings());
    assert_eq!(host.forge(|answer| answer.authentication = None), Err(Refused::WrongNonce));
    let wrong = Some((Vec::new(), Vec::new(), [0; 8], 0));
    assert_eq!(host.forge(|answer| answer.authentication = wrong), Err(Refused::WrongNonce));
    host.wait_secs(12);
    assert_eq!(host.stopped, [Why::BadAnswer(Refused::WrongNonce)]);
    assert!(host.words().contains("its nonce is not the one that was sent"), "{}", host.words());
}

#[test]
fn an_answer_that_is_repeated_by_an_attacker_counts_once() {
    let mut host = Host::new(settings());
    let replayed = Answer::to(&host.last().asked(), PRIMARY, ELSEWHERE).octets();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &replayed), Err(Refused::WrongSource));
    assert_eq!(host.receive(Port::Service, at(SECONDARY), &replayed), Err(Refused::WrongNonce));
    host.answer(MAPPED).unwrap();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &replayed), Err(Refused::NotAsked));
    host.until_sent();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &replayed), Err(Refused::WrongNonce));
    assert_eq!(host.used.len(), 1);
}

#[test]
fn an_answer_that_nobody_asked_for_is_refused_in_every_phase() {
    let mut host = Host::qualified(settings());
    let octets = Answer::to(&host.last().asked(), PRIMARY, ELSEWHERE).octets();
    for port in [Port::Service, Port::Probe, Port::Secondary] {
        assert_eq!(host.receive(port, at(PRIMARY), &octets), Err(Refused::NotAsked), "{port:?}");
    }
    host.client.native_ipv6(true, host.now);
    host.settle();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &octets), Err(Refused::NotAsked));
    assert_eq!((host.used.len(), host.client.status(host.now).refused), (1, 4));
}

#[test]
fn an_answer_from_elsewhere_than_the_address_and_port_that_were_asked_is_refused() {
    let mut host = Host::new(settings());
    let octets = Answer::to(&host.last().asked(), PRIMARY, MAPPED).octets();
    for from in [at(SECONDARY), Endpoint4::new(PRIMARY, 3_545), ELSEWHERE] {
        assert_eq!(host.receive(Port::Service, from, &octets), Err(Refused::WrongSource), "{from}");
    }
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &octets), Ok(()));
}

#[test]
fn a_mapped_address_that_cannot_be_ours_is_refused() {
    let refused = [
        "10.0.0.7",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.253",
        "239.1.1.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.88.99.1",
        "198.51.100.1",
        "198.51.100.2",
        "10.0.0.255",
    ];
    let mut host = Host::new(settings());
    for text in refused {
        let mapped = Some(Endpoint4::new(text.parse().unwrap(), 5_000));
        if text == "198.51.100.2" {
            host.answer(MAPPED).unwrap();
        }
        assert_eq!(host.forge(|answer| answer.origin = mapped), Err(Refused::MappedNotGlobal), "{text}");
    }
    let no_port = Some(Endpoint4 { port: 0, ..MAPPED });
    assert_eq!(host.forge(|answer| answer.origin = no_port), Err(Refused::MappedNotGlobal));
    assert!(host.used.is_empty());
}

#[test]
fn a_broadcast_address_of_an_attached_network_is_refused() {
    let endpoint = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 33), 40_001);
    let mut host = Host::new(settings());
    let subnets = vec!["192.0.2.0/24".parse().unwrap()];
    host.client.moved(Some(Local { endpoint, subnets }), host.now);
    host.settle();
    for text in ["192.0.2.255", "192.0.2.0"] {
        let mapped = Some(Endpoint4::new(text.parse().unwrap(), 5_000));
        assert_eq!(host.forge(|answer| answer.origin = mapped), Err(Refused::MappedNotGlobal), "{text}");
    }
    assert_eq!(host.forge(|answer| answer.origin = Some(MAPPED)), Ok(()));
}

#[test]
fn an_advertisement_that_is_not_valid_for_this_client_and_this_server_is_refused() {
    let mut host = Host::new(settings());
    let other: Ipv6Addr = "fe80::1".parse().unwrap();
    assert_eq!(host.forge(|answer| answer.origin = None), Err(Refused::NoOrigin));
    assert_eq!(host.forge(|answer| answer.destination = other), Err(Refused::WrongDestination));
    assert_eq!(host.forge(|answer| answer.prefixes.clear()), Err(Refused::WrongPrefix));
    let foreign = prefix(OTHER.primary);
    assert_eq!(host.forge(|answer| answer.prefixes = vec![foreign]), Err(Refused::WrongPrefix));
    assert_eq!(host.forge(|answer| answer.prefixes.push(foreign)), Err(Refused::WrongPrefix), "exactly one");
    let twice = vec![prefix(PRIMARY); 2];
    assert_eq!(host.forge(|answer| answer.prefixes = twice), Err(Refused::WrongPrefix));
    let of_another_service = vec!["2001:db8:c633:6401::/64".parse().unwrap()];
    assert_eq!(host.forge(|answer| answer.prefixes = of_another_service), Err(Refused::WrongPrefix));
    assert_eq!(host.forge(|answer| answer.hop_limit = 254), Err(Refused::NotAdvertisement));
    let global: Ipv6Addr = "2001:db8::1".parse().unwrap();
    assert_eq!(host.forge(|answer| answer.source = global), Err(Refused::NotAdvertisement));
    assert_eq!(host.answer(MAPPED), Ok(()), "a right one still counts");
}

#[test]
fn an_answer_cut_at_any_length_is_refused_and_octets_behind_it_are_not_looked_at() {
    let mut host = Host::new(settings());
    let octets = Answer::to(&host.last().asked(), PRIMARY, MAPPED).octets();
    for length in 0..octets.len() {
        let refused = host.receive(Port::Service, at(PRIMARY), &octets[..length]);
        assert!(
            matches!(refused, Err(Refused::Malformed | Refused::NotAdvertisement)),
            "{length}: {refused:?}"
        );
    }
    let mut wrong = octets.clone();
    wrong[13 + 8 + IPV6_HEADER + 2] ^= 1;
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &wrong), Err(Refused::NotAdvertisement), "checksum");
    let longer = [&octets[..], &[1, 2, 3]].concat();
    assert_eq!(host.receive(Port::Service, at(PRIMARY), &longer), Ok(()));
}

#[test]
fn a_changed_mapping_that_is_told_once_changes_nothing() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    host.answer(ELSEWHERE).unwrap();
    assert_eq!(host.last().at, host.now, "a second question follows immediately");
    host.answer(MAPPED).unwrap();
    let status = host.client.status(host.now);
    assert_eq!((host.used.len(), host.stopped.len()), (1, 0));
    assert_eq!((status.mapping_changes, status.changes_unconfirmed), (0, 1));
}

#[test]
fn answers_that_tell_another_mapping_each_time_change_nothing_and_are_not_asked_for_without_end() {
    let mut host = Host::qualified(settings());
    host.until_sent();
    let begin = host.sent.len();
    for port in 1..=4 {
        host.answer(Endpoint4 { port, ..ELSEWHERE }).unwrap();
    }
    assert_eq!(host.sent.len() - begin, 3);
    assert_eq!(host.used.len(), 1);
    assert_eq!(host.answer(ELSEWHERE), Err(Refused::NotAsked));
    host.until_sent();
    assert!(host.now.since(host.sent[begin + 2].at) > Duration::from_secs(20), "only at the usual time");
}

#[test]
fn while_an_attacker_floods_forged_answers_the_right_one_still_counts_and_nothing_is_sent_for_them() {
    let mut host = Host::new(settings());
    for n in 0..10_000_u32 {
        let nonce = u64::from(n).to_be_bytes();
        let forged = host.forge(|answer| {
            answer.authentication = Some((Vec::new(), Vec::new(), nonce, 0));
            answer.origin = Some(ELSEWHERE);
        });
        assert_eq!(forged, Err(Refused::WrongNonce));
    }
    assert_eq!(host.sent.len(), 1);
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.used[0].address.mapped(), MAPPED);
}

#[test]
fn nonces_link_local_addresses_and_random_bits_do_not_repeat() {
    let mut host = Host::qualified(settings());
    for _ in 0..50 {
        host.until_sent();
        host.answer(MAPPED).unwrap();
    }
    let asked: Vec<_> = host.sent.iter().map(Out::asked).collect();
    let nonces: std::collections::BTreeSet<_> = asked.iter().map(|asked| asked.nonce).collect();
    let addresses: std::collections::BTreeSet<_> = asked.iter().map(|asked| asked.link_local).collect();
    assert_eq!((nonces.len(), addresses.len()), (asked.len(), asked.len()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(256)))]
    #[test]
    fn no_octets_but_those_with_the_nonce_make_an_address(
        datagrams in proptest::collection::vec(
            (any::<Vec<u8>>(), any::<bool>(), 0..4_u8, proptest::option::of((any::<prop::sample::Index>(), any::<u8>())), 0..20_u64),
            0..30,
        ),
    ) {
        let mut host = Host::new(Settings { learn_interval: true, local_discovery: true, ..Settings::new(vec![SERVER, OTHER]) });
        for (octets, of_answer, port, flip, seconds) in datagrams {
            let to = host.last().to;
            let mut octets = octets;
            if of_answer && let Ok((prologue, _)) = Prologue::split(&host.last().octets) && prologue.authentication.is_some() {
                let mut answer = Answer::to(&host.last().asked(), PRIMARY, MAPPED);
                let (_, _, nonce, _) = answer.authentication.as_mut().unwrap();
                nonce[0] ^= 0x80;
                octets = answer.octets();
                if let Some((at, with)) = flip {
                    let at = 13 + at.index(octets.len() - 13);
                    octets[at] ^= with;
                }
            }
            let port = [Port::Service, Port::Probe, Port::Secondary, Port::Discovery][usize::from(port)];
            let _ = host.receive(port, to, &octets);
            host.wait_secs(seconds);
        }
        prop_assert!(host.used.is_empty() && host.local_peers.is_empty());
    }
}
