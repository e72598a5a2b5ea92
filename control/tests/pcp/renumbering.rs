//! RFC 6887 §8.5, §14.2: the NAT has other external addresses, or the server has forgotten something, and the clients learn of it.

use super::*;
use sixway_control::pcp::{Announced, ExistingKind, Kept, Restored, Transport};
use std::net::IpAddr;

const REMOTE: (&str, u16) = ("198.51.100.9", 443);

fn prefix(text: &str) -> sixway_wire::Prefix4 {
    text.parse().unwrap()
}

fn at(interface: &str, address: &str) -> AskedAt {
    AskedAt { interface: interface.into(), address: Some(address.parse().unwrap()) }
}

/// The next server, at a NAT with this external address.
fn renumbered(bench: &mut Bench, address: [u8; 4]) -> (Bench, Restored) {
    bench.pass(100);
    let kept = bench.server.kept(bench.now);
    renumbered_with(kept, address)
}

fn renumbered_with(kept: Kept, address: [u8; 4]) -> (Bench, Restored) {
    let external = vec![sixway_wire::Prefix4::holding(address.into(), 32)];
    let settings =
        Settings { external, third_party: vec![(BOB.parse().unwrap(), 32)], ..Settings::default() };
    let mut next =
        Bench { server: Server::new(settings, kept.epoch, 8, NOW), nat: SimpleNat::new(), now: NOW };
    next.nat.address = address.into();
    let restored = next.server.restore(kept, &mut next.nat, NOW);
    (next, restored)
}

fn bench() -> Bench {
    Bench::with(|settings| {
        settings.external = vec![prefix("192.0.2.1/32")];
        settings.third_party = vec![(BOB.parse().unwrap(), 32)];
    })
}

/// The updates among the messages: to whom, from where, and what.
fn updates(bench: &mut Bench) -> Vec<(IpAddr, Option<AskedAt>, Reply)> {
    let all = bench.messages(2_000).into_iter();
    let updates = all.filter_map(|sent| match sent.to {
        Announced::Client(client, at) => Some((client.ip(), at, Reply(sent.octets))),
        Announced::Everyone4 | Announced::Everyone6 => None,
    });
    updates.collect()
}

/// §8.5: the Epoch Time MUST be reset, also for clients without a mapping.
#[test]
fn other_external_addresses_begin_the_epoch_again_with_and_without_mappings() {
    let (mut same, restored) = renumbered(&mut bench(), [192, 0, 2, 1]);
    assert_eq!(restored, Restored::default());
    assert_eq!(same.ask(&Ask::announce(ALICE)).epoch(), 100);
    let (mut other, restored) = renumbered(&mut bench(), [203, 0, 113, 5]);
    assert_eq!(restored, Restored::default());
    assert_eq!(other.ask(&Ask::announce(ALICE)).epoch(), 0);
    // A file of the first version does not tell them.
    let kept = Kept { epoch: 100, ..Kept::default() };
    let (mut unknown, _) = renumbered_with(kept, [203, 0, 113, 5]);
    assert_eq!(unknown.ask(&Ask::announce(ALICE)).epoch(), 100);
}

/// §14.2, §8.3: an update leaves from where the client asked, or the client drops it.
#[test]
fn a_mapping_update_leaves_from_where_the_client_asked() {
    let mut bench = bench();
    let (first, second) = (at("eth1", "192.168.1.1"), at("eth2", "192.168.2.1"));
    bench.ask_at(&Ask::map(ALICE, TCP, 80), &first);
    bench.ask_at(&Ask::map(BOB, TCP, 80), &first);
    // The last request counts.
    bench.ask_at(&Ask::map(BOB, TCP, 80), &second);
    let (mut next, restored) = renumbered(&mut bench, [203, 0, 113, 5]);
    assert_eq!(restored, Restored { same: 0, moved: 2, lost: 0 });
    let sent = updates(&mut next);
    assert_eq!(sent.len(), 6, "three for each");
    for (client, from, update) in sent {
        let expected = if client.to_string() == ALICE { &first } else { &second };
        assert_eq!(from.as_ref(), Some(expected), "{client}");
        assert_eq!(update.external().0.to_string(), "203.0.113.5");
        assert_eq!(update.epoch(), 0);
    }
}

/// §14.2: the client that asked for another host gets the update, with the option.
#[test]
fn an_update_of_a_mapping_for_another_host_has_third_party_and_goes_to_the_client() {
    let mut bench = bench();
    bench.ask(&Ask::map(BOB, TCP, 80).third_party(ALICE));
    let (mut next, _) = renumbered(&mut bench, [203, 0, 113, 5]);
    let sent = updates(&mut next);
    assert_eq!(sent.len(), 3);
    for (client, _, update) in sent {
        assert_eq!(client.to_string(), BOB);
        assert_eq!(update.map_options(), [(1, mapped(ALICE).to_vec())]);
    }
}

/// §14.2: CANNOT_PROVIDE_EXTERNAL for who wants no other external endpoint.
#[test]
fn a_client_that_prefers_failure_is_told_that_its_external_endpoint_has_gone() {
    let mut bench = bench();
    let ask = Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080).prefer_failure();
    bench.ask(&ask);
    let (mut next, restored) = renumbered(&mut bench, [203, 0, 113, 5]);
    assert_eq!(restored, Restored { same: 0, moved: 0, lost: 1 });
    assert!(next.nat.bindings.is_empty());
    let sent = updates(&mut next);
    assert_eq!(sent.len(), 3);
    for (client, _, update) in &sent {
        assert_eq!(client.to_string(), ALICE);
        assert_eq!((update.result(), update.lifetime()), (ResultCode::CannotProvideExternal, 30));
        assert_eq!(update.0[24..42], ask.octets[24..42], "nonce, protocol and inside port");
        assert_eq!(update.map_options(), [(2, vec![])]);
    }
    // Later requests get no further answer about it.
    let (mut next, _) = renumbered(&mut bench, [203, 0, 113, 5]);
    next.ask(&Ask::map(ALICE, TCP, 80));
    assert!(updates(&mut next).is_empty());
}

/// §8.5: outbound mappings by PEER are explicit, too.
#[test]
fn outbound_mappings_survive_a_restart_with_their_nonces_or_begin_the_epoch_again() {
    let mut bench = bench();
    let ask = Ask::peer(ALICE, TCP, 4_000, REMOTE);
    let port = bench.ask(&ask).port();
    let (mut next, restored) = renumbered(&mut bench, [192, 0, 2, 1]);
    assert_eq!(restored, Restored { same: 1, moved: 0, lost: 0 });
    assert_eq!(next.ask(&Ask::announce(ALICE)).epoch(), 100);
    assert_eq!(next.nat.of(Transport::Tcp, ALICE, 4_000).unwrap().external, port);
    assert_eq!(next.server.sizes(), (0, 1, 1));
    assert_eq!(next.result(&ask.clone().nonce(99)), ResultCode::NotAuthorized);
    // Another host has the port meanwhile.
    let kept = bench.server.kept(bench.now);
    let external = vec![prefix("192.0.2.1/32")];
    let settings = Settings { external, ..Settings::default() };
    let mut taken = Bench { server: Server::new(settings, 100, 8, NOW), nat: SimpleNat::new(), now: NOW };
    taken.nat.add(Transport::Tcp, BOB, 4_000, port, ExistingKind::Dynamic);
    let restored = taken.server.restore(kept, &mut taken.nat, NOW);
    assert_eq!(restored, Restored { same: 0, moved: 0, lost: 1 });
    assert_eq!(taken.ask(&Ask::announce(ALICE)).epoch(), 0);
    // Nor is what may no longer be requested, or is too much.
    let second = Ask::peer(ALICE, TCP, 4_001, REMOTE);
    bench.ask(&second);
    type Change = fn(&mut Settings);
    let changes: [(Change, usize); 3] = [
        (|_| {}, 2),
        (|settings| settings.peer = false, 0),
        (|settings| settings.mappings_per_subscriber = 1, 1),
    ];
    for (change, expected) in changes {
        let mut next = Bench::with(|settings| {
            settings.external = vec![prefix("192.0.2.1/32")];
            change(settings);
        });
        let restored = next.server.restore(bench.server.kept(bench.now), &mut next.nat, NOW);
        assert_eq!((restored.same, restored.lost), (expected, 2 - expected));
        assert_eq!(next.nat.bindings.len(), expected);
    }
    // What has ended is not a loss.
    bench.pass(250);
    let kept = bench.server.kept(bench.now);
    assert!(kept.peers.is_empty());
}

/// §8.5: after a fault of the server, something may be missing.
#[test]
fn a_server_that_begins_again_keeps_its_mappings_and_begins_the_epoch_again() {
    let mut bench = bench();
    bench.ask(&Ask::map(ALICE, TCP, 80));
    bench.ask(&Ask::map(BOB, UDP, 5_000).port_set(3));
    bench.ask(&Ask::peer(ALICE, TCP, 4_000, REMOTE));
    bench.pass(100);
    let ports = |bench: &Bench| -> Vec<_> {
        bench.server.mappings().map(|it| (it.internal, it.external, it.size, it.nonce, it.expires)).collect()
    };
    let (before, answered) = (ports(&bench), bench.server.counts().of(ResultCode::Success));
    let restored = bench.server.begin_again(9, &mut bench.nat, bench.now);
    assert_eq!(restored, Restored { same: 3, moved: 0, lost: 0 });
    assert_eq!(ports(&bench), before);
    assert_eq!(bench.server.sizes(), (2, 5, 1));
    assert_eq!(bench.server.counts().of(ResultCode::Success), answered);
    assert_eq!(bench.ask(&Ask::announce(ALICE)).epoch(), 0);
    let to_all = bench.messages(0).into_iter().filter(|sent| sent.to == Announced::Everyone4).count();
    assert_eq!(to_all, 1, "it announces itself");
}
