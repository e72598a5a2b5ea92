//! RFC 6887 §17 and §18: who is affected by an attack.

use super::*;
use sixway_control::pcp::{ExistingKind, Transport};

/// §18.3.3, §11.3: a mapping is not stolen, renewed, shortened or deleted without its nonce.
#[test]
fn a_mapping_is_not_changed_without_its_nonce() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, TCP, 80);
    let port = bench.ask(&ask).port();
    bench.pass(600);
    for forged in [
        ask.clone().nonce(99),
        ask.clone().nonce(99).lifetime(0),
        ask.clone().nonce(99).lifetime(120),
        ask.clone().nonce(99).filter("203.0.113.66", 128, 0),
        ask.clone().nonce(99).port_set(5),
    ] {
        let reply = bench.ask(&forged);
        assert_eq!((reply.result(), reply.lifetime()), (ResultCode::NotAuthorized, 3_000));
    }
    let binding = bench.nat.of(Transport::Tcp, ALICE, 80).unwrap();
    assert!(binding.filters.is_empty() && binding.external == port);
    assert_eq!(bench.nat.bindings.len(), 1);
}

/// §18.1.1: another host does not get what is in use, by whatever it suggests.
#[test]
fn a_mapping_in_use_is_not_given_to_another_host() {
    let mut bench = Bench::new();
    let port = bench.ask(&Ask::map(ALICE, TCP, 80)).port();
    bench.nat.add(Transport::Tcp, ALICE, 90, 31_000, ExistingKind::Dynamic);
    for wanted in [port, 31_000] {
        let taken = bench.ask(&Ask::map(BOB, TCP, wanted).suggest("192.0.2.1", wanted));
        assert_ne!(taken.port(), wanted);
        let exactly = Ask::map(BOB, TCP, wanted + 1).suggest("192.0.2.1", wanted).prefer_failure();
        assert_eq!(bench.result(&exactly), ResultCode::CannotProvideExternal);
    }
}

/// §15: deleting does not end sooner what outbound traffic keeps, so that nobody else can have it.
#[test]
fn a_deletion_does_not_free_what_is_in_use() {
    let mut bench = Bench::new();
    bench.nat.add(Transport::Udp, ALICE, 5_000, 31_000, ExistingKind::Dynamic);
    bench.ask(&Ask::map(ALICE, UDP, 5_000));
    bench.ask(&Ask::map(ALICE, UDP, 5_000).lifetime(0));
    assert_ne!(bench.ask(&Ask::map(BOB, UDP, 1).suggest("192.0.2.1", 31_000)).port(), 31_000);
}

/// §18.3.1, §17.2: a host that asks for all it can get leaves the others theirs.
#[test]
fn a_host_that_asks_for_everything_takes_only_its_share() {
    let mut bench = Bench::with(|settings| {
        (settings.mappings_per_subscriber, settings.max_mappings) = (10, 25);
        settings.rate.burst = 1_000;
    });
    let results: Vec<_> = (1..100).map(|port| bench.result(&Ask::map(ALICE, TCP, port))).collect();
    assert_eq!(results.iter().filter(|it| **it == ResultCode::Success).count(), 10);
    assert!(results[10..].iter().all(|it| *it == ResultCode::UserExQuota));
    // Outbound mappings by PEER count with the others.
    let peer = Ask::peer(ALICE, TCP, 500, ("198.51.100.1", 80));
    assert_eq!(bench.result(&peer), ResultCode::UserExQuota);
    for port in 1..=10 {
        assert_eq!(bench.result(&Ask::map(BOB, TCP, port)), ResultCode::Success);
    }
    assert_eq!(bench.server.sizes(), (20, 20, 0));
    // The table is bounded for all together: a short error, since others' mappings end.
    let last: Vec<_> = (1..=6).map(|port| bench.ask(&Ask::map("192.168.1.4", TCP, port))).collect();
    assert_eq!((last[5].result(), last[5].lifetime()), (ResultCode::NoResources, 30));
    // What was renewed takes nothing more.
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 1)), ResultCode::Success);
}

/// An IPv6 host has as many addresses as it likes: its prefix is the subscriber.
#[test]
fn all_addresses_of_an_ipv6_prefix_have_one_share() {
    let mut bench = Bench::with(|settings| settings.mappings_per_subscriber = 2);
    assert_eq!(bench.result(&Ask::map("2001:db8::1", TCP, 80)), ResultCode::Success);
    assert_eq!(bench.result(&Ask::map("2001:db8::2", TCP, 80)), ResultCode::Success);
    assert_eq!(bench.result(&Ask::map("2001:db8::3", TCP, 80)), ResultCode::UserExQuota);
    assert_eq!(bench.result(&Ask::map("2001:db8:0:1::3", TCP, 80)), ResultCode::Success);
}

/// §8.2: a flood of requests is discarded, and others are answered.
#[test]
fn a_flood_of_one_host_does_not_silence_the_others() {
    let mut bench = Bench::new();
    let ask = Ask::announce(ALICE);
    let answered = (0..1_000).filter(|_| bench.send(ALICE, &ask.octets).is_ok()).count();
    assert!(answered <= 61, "{answered}");
    assert_eq!(bench.ask(&Ask::announce(BOB)).result(), ResultCode::Success);
    assert!(bench.server.counts().ignored(Ignored::Rate) >= 900);
}

/// An IPv6 host sends from as many addresses of its prefix as it likes.
#[test]
fn all_addresses_of_an_ipv6_prefix_have_one_rate() {
    let mut bench = Bench::new();
    let mut answered = 0;
    for client in ["2001:db8::1", "2001:db8::2", "2001:db8::3"] {
        answered += (0..100).filter(|_| bench.send(client, &Ask::announce(client).octets).is_ok()).count();
    }
    assert_eq!(answered, 60);
    assert_eq!(bench.ask(&Ask::announce("2001:db8:0:1::1")).result(), ResultCode::Success);
}

/// §8.2: nor do all hosts together keep the server busier than that.
#[test]
fn all_hosts_together_have_a_rate() {
    let mut bench = Bench::with(|settings| (settings.total_rate.rate, settings.total_rate.burst) = (50, 50));
    for client in [ALICE, BOB] {
        let ask = Ask::announce(client);
        let answered = (0..40).filter(|_| bench.send(client, &ask.octets).is_ok()).count();
        assert_eq!(answered, if client == ALICE { 40 } else { 10 });
    }
    assert_eq!(bench.server.counts().ignored(Ignored::TotalRate), 30);
    bench.pass(1);
    assert_eq!(bench.ask(&Ask::announce(BOB)).result(), ResultCode::Success);
}

/// A mapping that has ended is not its former owner's, although nobody has looked at the time since.
#[test]
fn a_mapping_that_has_just_ended_is_not_protected_by_its_nonce() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, TCP, 80);
    bench.ask(&ask);
    bench.now = Instant(bench.now.0 + 3_600_000_000_000);
    assert_eq!(bench.result(&ask.nonce(99)), ResultCode::Success);
}

/// §13.2: ports that others have are not found out by trying them all.
#[test]
fn probes_for_free_ports_are_limited_like_all_requests() {
    let mut bench = Bench::new();
    let probe = |port| Ask::map(BOB, TCP, 7).suggest("192.0.2.1", port).prefer_failure().lifetime(120);
    let answered = (1..=5_000u16).filter(|port| bench.send(BOB, &probe(*port).octets).is_ok()).count();
    assert!(answered <= 61, "{answered}");
}

/// §8.2: what does not come from an inside host is ignored, so that the server reflects nothing to a victim.
#[test]
fn requests_from_addresses_that_are_not_inside_are_ignored() {
    let mut bench = Bench::new();
    for source in ["203.0.113.5", "192.0.2.1", "224.0.0.1", "0.0.0.0", "127.0.0.1", "2001:db9::1", "ff02::1"]
    {
        for octets in [Ask::announce("192.168.1.2").octets, Ask::map(ALICE, TCP, 80).octets, vec![0, 0]] {
            assert_eq!(bench.send(source, &octets).unwrap_err(), Ignored::NotInside, "{source}");
        }
    }
    assert!(bench.nat.bindings.is_empty());
    let from = SocketAddr::new(ALICE.parse().unwrap(), 0);
    let payload = &Ask::announce(ALICE).octets[..];
    assert!(bench.server.handle(&Arrival { from, at: None, payload }, &mut bench.nat, NOW).is_err());
}

/// An answer is hardly longer than its question: the header at most.
#[test]
fn no_answer_amplifies() {
    let mut bench = Bench::with(|settings| settings.rate.burst = 10_000);
    for length in 2..200 {
        for version in [0, 1, 2, 3] {
            let mut octets = Ask::map(ALICE, TCP, 80).octets;
            octets.resize(length, 0);
            octets[0] = version;
            for reply in bench.send(ALICE, &octets).unwrap_or_default() {
                assert!(reply.0.len() <= length.next_multiple_of(4).max(24), "{version} {length}");
            }
        }
    }
}

/// §18.1.1, §13.1: nobody speaks for others without permission.
#[test]
fn a_client_without_permission_makes_no_mapping_for_another_host() {
    let mut bench = Bench::new();
    let ask = Ask::map(BOB, TCP, 80).third_party(ALICE);
    assert_eq!(bench.result(&ask), ResultCode::UnsuppOption);
    assert_eq!(bench.result(&ask.lifetime(0)), ResultCode::UnsuppOption);
    let peer = Ask::peer(BOB, TCP, 80, ("198.51.100.1", 80)).third_party(ALICE);
    assert_eq!(bench.result(&peer), ResultCode::UnsuppOption);
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn a_client_with_permission_makes_mappings_for_inside_hosts_alone() {
    let mut bench = Bench::with(|settings| settings.third_party = vec![(BOB.parse().unwrap(), 32)]);
    let reply = bench.ask(&Ask::map(BOB, TCP, 80).third_party(ALICE));
    assert_eq!(reply.port(), 20_000);
    assert_eq!(reply.map_options(), [(1, mapped(ALICE).to_vec())]);
    assert!(bench.nat.of(Transport::Tcp, ALICE, 80).is_some());
    assert_eq!(bench.result(&Ask::map(BOB, TCP, 81).third_party("203.0.113.5")), ResultCode::NotAuthorized);
    // The nonce protects it from the host itself, too; the manager may delete it.
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 80).nonce(1)), ResultCode::NotAuthorized);
    assert_eq!(bench.result(&Ask::map(BOB, TCP, 80).third_party(ALICE).lifetime(0)), ResultCode::Success);
    assert!(bench.nat.bindings.is_empty());
}

/// §15: the next host that has an address does not inherit what the last one asked for.
#[test]
fn the_mappings_of_an_address_that_is_given_back_end() {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(ALICE, TCP, 80));
    bench.ask(&Ask::map(ALICE, UDP, 80));
    bench.ask(&Ask::map(BOB, UDP, 80));
    bench.server.forget_host(ALICE.parse().unwrap(), &mut bench.nat);
    assert_eq!(bench.nat.bindings.len(), 1);
    assert_eq!(bench.server.sizes(), (1, 1, 0));
}

/// The same of what PEER made, with its nonces: the next host that has the address can ask for its own.
#[test]
fn the_outbound_mappings_and_sessions_of_an_address_that_is_given_back_end() {
    let mut bench = Bench::new();
    let ask = Ask::peer(ALICE, UDP, 4_000, ("198.51.100.1", 53));
    let other = Ask::peer(BOB, UDP, 4_000, ("198.51.100.1", 53));
    bench.nat.add(Transport::Tcp, ALICE, 22, 22_000, ExistingKind::Static);
    bench.nat.add(Transport::Tcp, ALICE, 5_000, 31_000, ExistingKind::Dynamic);
    for ask in [&ask, &Ask::peer(ALICE, TCP, 1, ("203.0.113.9", 443)), &other] {
        assert_eq!(bench.result(ask), ResultCode::Success);
    }
    assert_eq!(bench.result(&ask.clone().nonce(99)), ResultCode::NotAuthorized);
    let changes = bench.server.changes();
    bench.server.forget_host(ALICE.parse().unwrap(), &mut bench.nat);
    assert_eq!(bench.server.sizes(), (0, 1, 1));
    assert!(bench.server.changes() > changes, "the next server does not know of them");
    let left: Vec<_> =
        bench.nat.bindings.iter().map(|it| (it.internal.address.to_string(), it.kind)).collect();
    let expected = [(ALICE.to_owned(), ExistingKind::Static), (BOB.to_owned(), ExistingKind::Dynamic)];
    assert_eq!(left, expected);
    assert_eq!(bench.result(&ask.nonce(99)), ResultCode::Success, "it is the next host's");
    assert_eq!(bench.result(&other.nonce(99)), ResultCode::NotAuthorized);
}

/// §17.2: the NAT's workers, which forward packets, are asked for each port of a set. Sets are no way around the rate.
#[test]
fn a_set_takes_as_much_of_the_rate_as_so_many_requests() {
    let mut bench = Bench::with(|settings| settings.rate.burst = 40);
    bench.ask(&Ask::map(ALICE, UDP, 1_000).port_set(32));
    bench.ask(&Ask::map(ALICE, UDP, 2_000).port_set(8));
    assert_eq!(bench.send(ALICE, &Ask::announce(ALICE).octets).unwrap_err(), Ignored::Rate);
    bench.ask(&Ask::announce(BOB));
    bench.pass(1);
    // Its renewal as well.
    bench.ask(&Ask::map(ALICE, UDP, 1_000).port_set(32));
    assert_eq!(bench.send(ALICE, &Ask::announce(ALICE).octets).unwrap_err(), Ignored::Rate);
}

/// §18.1.1, §15: a shorter lifetime, too, does not end sooner what outbound traffic keeps.
#[test]
fn a_short_lifetime_does_not_free_what_is_in_use() {
    let mut bench = Bench::with(|settings| settings.lifetimes.least = core::time::Duration::from_secs(1));
    bench.nat.add(Transport::Udp, ALICE, 5_000, 31_000, ExistingKind::Dynamic);
    let ask = Ask::map(ALICE, UDP, 5_000);
    assert_eq!(bench.ask(&ask).lifetime(), 3_600);
    assert_eq!(bench.ask(&ask.clone().lifetime(1)).lifetime(), 200);
    bench.pass(199);
    assert_ne!(bench.ask(&Ask::map(BOB, UDP, 1).suggest("192.0.2.1", 31_000)).port(), 31_000);
    // By NAT-PMP, which needs no nonce, neither.
    bench.nat.add(Transport::Udp, ALICE, 6_000, 32_000, ExistingKind::Dynamic);
    for lifetime in [90, 1, 0] {
        bench.send(ALICE, &[0, 1, 0, 0, 0x17, 0x70, 0, 0, 0, 0, 0, lifetime]).unwrap();
    }
    assert_ne!(bench.ask(&Ask::map(BOB, UDP, 2).suggest("192.0.2.1", 32_000)).port(), 32_000);
}

/// §18.3.3: while a server that was restarted has not heard of its clients yet, nobody else gets their ports.
#[test]
fn a_mapping_is_not_taken_by_another_host_across_a_restart() {
    let mut bench = Bench::new();
    let port = bench.ask(&Ask::map(ALICE, TCP, 80)).port();
    let kept = bench.server.kept(bench.now);
    let mut next = Bench::new();
    next.server.restore(kept, &mut next.nat, NOW);
    let taken = next.ask(&Ask::map(BOB, TCP, 80).suggest("192.0.2.1", port));
    assert_ne!(taken.port(), port);
    assert_eq!(next.result(&Ask::map(ALICE, TCP, 80).nonce(99)), ResultCode::NotAuthorized);
    assert_eq!(next.ask(&Ask::map(ALICE, TCP, 80)).port(), port);
}

/// §18.3.2: what an attacker who forges a host's address can take of it is bounded by the host's share, and its mappings stay its own.
#[test]
fn who_forges_an_address_does_not_change_the_mappings_of_its_owner() {
    let mut bench = Bench::with(|settings| {
        settings.mappings_per_subscriber = 5;
        settings.rate.burst = 1_000;
    });
    let own = Ask::map(ALICE, TCP, 80);
    let port = bench.ask(&own).port();
    for forged in 1..=20 {
        let _ = bench.send(ALICE, &Ask::map(ALICE, TCP, 1_000 + forged).nonce(99).octets);
        let _ = bench.send(ALICE, &own.clone().nonce(99).lifetime(0).octets);
        // By NAT-PMP: all mappings of the protocol are to be deleted.
        let _ = bench.send(ALICE, &[0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    assert!(bench.server.sizes().1 <= 5);
    assert_eq!(bench.ask(&own).port(), port);
    assert_eq!(bench.result(&Ask::map(BOB, TCP, 80)), ResultCode::Success);
}

/// §18.2: without a security mechanism, the constraints of the simple model are in force from the start.
#[test]
fn by_default_nobody_speaks_for_others_and_lifetimes_are_bounded() {
    let settings = Settings::default();
    assert!(settings.third_party.is_empty());
    assert_eq!(settings.lifetimes.least.as_secs(), 120);
    assert_eq!(settings.lifetimes.most.as_secs(), 86_400);
    assert!(
        settings.mappings_per_subscriber > 0 && settings.max_mappings >= settings.mappings_per_subscriber
    );
}
