//! RFC 6887 §8.5, §14.2: what survives a restart, and mapping updates.

use super::*;
use sixway_control::pcp::{Announced, ExistingKind, Kept, KeptMapping, Restored, Transport, kept};

/// The next server, with what the last one kept.
fn restart(bench: &Bench, kept: Kept, nat: SimpleNat) -> (Bench, Restored) {
    let epoch = bench.server.epoch(bench.now);
    let mut next = Bench { server: Server::new(Settings::default(), epoch, 8, NOW), nat, now: NOW };
    let restored = next.server.restore(kept, &mut next.nat, NOW);
    (next, restored)
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.ask(&Ask::map(ALICE, TCP, 80).filter("198.51.100.1", 128, 0));
    bench.ask(&Ask::map(BOB, UDP, 5_000).port_set(3));
    bench.pass(100);
    bench
}

/// The next server, at a NAT with another external address.
fn elsewhere() -> (Bench, Restored) {
    let bench = bench();
    let nat = SimpleNat { address: [203, 0, 113, 5].into(), ..SimpleNat::new() };
    restart(&bench, bench.server.kept(bench.now), nat)
}

#[test]
fn mappings_and_the_epoch_survive_a_restart() {
    let bench = bench();
    let (mut next, restored) = restart(&bench, bench.server.kept(bench.now), SimpleNat::new());
    assert_eq!(restored, Restored { same: 2, moved: 0, lost: 0 });
    assert_eq!(next.nat.bindings.len(), 4);
    assert_eq!(next.nat.of(Transport::Tcp, ALICE, 80).unwrap().filters.len(), 1);
    assert_eq!(next.ask(&Ask::announce(ALICE)).epoch(), 100, "clients see no loss");
    let before: Vec<_> = bench.server.mappings().map(|it| (it.internal, it.external, it.nonce)).collect();
    let after: Vec<_> = next.server.mappings().map(|it| (it.internal, it.external, it.nonce)).collect();
    assert_eq!(before, after);
    // What was left of the lifetime is left.
    next.pass(3_499);
    assert_eq!(next.nat.bindings.len(), 4);
    next.pass(2);
    assert!(next.nat.bindings.is_empty());
}

#[test]
fn what_is_written_to_a_file_is_read_again_and_ages_meanwhile() {
    let mut bench = bench();
    bench.send(ALICE, &[0, 1, 0, 0, 0, 90, 0, 0, 0, 0, 28, 32]).unwrap();
    bench.ask(&Ask::peer(ALICE, TCP, 4_000, ("198.51.100.9", 443)));
    let at = AskedAt { interface: "eth1".into(), address: Some([192, 168, 1, 1].into()) };
    bench.ask_at(&Ask::map(ALICE, TCP, 443), &at);
    let kept = bench.server.kept(bench.now);
    assert_eq!(kept.mappings.iter().filter(|it| it.mapping.asked_at.as_ref() == Some(&at)).count(), 1);
    let text = kept::write(5_000, &kept);
    let without_time = |kept: &KeptMapping| {
        let mut mapping = kept.mapping.clone();
        mapping.expires = Instant::default();
        (mapping, kept.remaining)
    };
    let read = kept::read(&text, 5_000).unwrap();
    assert_eq!((read.epoch, &read.external, &read.peers), (100, &kept.external, &kept.peers));
    assert_eq!(
        read.mappings.iter().map(without_time).collect::<Vec<_>>(),
        kept.mappings.iter().map(without_time).collect::<Vec<_>>()
    );
    let later = kept::read(&text, 5_030).unwrap();
    assert_eq!((later.epoch, later.mappings[0].remaining), (130, kept.mappings[0].remaining - 30));
    assert_eq!(later.peers[0].remaining, kept.peers[0].remaining - 30);
    let ended = kept::read(&text, 90_000).unwrap();
    assert!(ended.mappings.is_empty() && ended.peers.is_empty());
    assert!(kept::read("sixway-pcp 3 1 1 -\n", 1).is_none());
    // Whatever is cut or changed, the other lines are read.
    let broken = text.replacen("tcp", "sctp", 1);
    assert_eq!(kept::read(&broken, 5_000).unwrap().mappings.len(), kept.mappings.len() - 1);
}

#[test]
fn a_mapping_that_is_lost_begins_the_epoch_again() {
    let bench = bench();
    let mut nat = SimpleNat::new();
    nat.has_address = false;
    let (mut next, restored) = restart(&bench, bench.server.kept(bench.now), nat);
    assert_eq!(restored, Restored { same: 0, moved: 0, lost: 2 });
    assert_eq!(next.ask(&Ask::announce(ALICE)).epoch(), 0);
}

#[test]
fn clients_whose_external_address_has_changed_get_three_updates() {
    let (mut bench, restored) = elsewhere();
    let now = bench.now;
    assert_eq!(restored, Restored { same: 0, moved: 2, lost: 0 });
    let (mut updates, end) = (Vec::new(), Instant(now.0 + 2_000_000_000));
    while let Some(next) = bench.server.poll_timeout().filter(|next| *next <= end) {
        bench.now = bench.now.max(next);
        while let Some(sent) = bench.server.poll_transmit(bench.now) {
            if let Announced::Client(client, _) = sent.to {
                updates.push((
                    (bench.now.0 - now.0) / 1_000_000,
                    client.ip().to_string(),
                    Reply(sent.octets),
                ));
            }
        }
    }
    let of_alice: Vec<_> = updates.iter().filter(|it| it.1 == ALICE).collect();
    assert_eq!(of_alice.iter().map(|it| it.0).collect::<Vec<_>>(), [0, 250, 750]);
    let update = &of_alice[0].2;
    assert_eq!((update.result(), update.internal_port()), (ResultCode::Success, 80));
    assert_eq!(update.external().0.to_string(), "203.0.113.5");
    assert_eq!(update.map_options()[0].0, 3, "the filters move with the mapping");
    assert_eq!(update.0[24..36], [b'2'; 12], "the nonce");
    assert_eq!(updates.len(), 6);
}

#[test]
fn a_client_that_asks_meanwhile_gets_no_further_updates() {
    let (mut bench, _) = elsewhere();
    while bench.server.poll_transmit(bench.now).is_some() {}
    bench.ask(&Ask::map(ALICE, TCP, 80));
    bench.ask(&Ask::map(BOB, UDP, 5_000).port_set(3));
    bench.pass(1);
    while let Some(sent) = bench.server.poll_transmit(bench.now) {
        assert!(!matches!(sent.to, Announced::Client(_, _)));
    }
}

#[test]
fn what_was_kept_is_bounded_like_what_is_asked_for() {
    let bench = bench();
    let mut kept = bench.server.kept(bench.now);
    kept.mappings[0].remaining = u32::MAX;
    kept.mappings.extend(kept.mappings.clone());
    let mut ended = kept.mappings[0].clone();
    (ended.mapping.internal.port, ended.remaining) = (81, 0);
    kept.mappings.push(ended);
    let (mut next, restored) = restart(&bench, kept, SimpleNat::new());
    assert_eq!(restored, Restored { same: 2, moved: 0, lost: 3 });
    next.pass(86_401);
    assert!(next.nat.bindings.is_empty());
}

/// RFC 6887 §8.5: what the server does not know any more is a loss of state, also if it is the file that is damaged.
#[test]
fn a_damaged_file_begins_the_epoch_again() {
    let bench = bench();
    let text = kept::write(5_000, &bench.server.kept(bench.now));
    assert_eq!(kept::read(&text, 5_000).unwrap().epoch, 100);
    let read = kept::read(&text.replacen("tcp", "sctp", 1), 5_000).unwrap();
    assert_eq!((read.epoch, read.mappings.len()), (0, 1));
    // A line that was cut off is not read: of a filter's port 53 it might have kept the 5.
    for length in text.find('\n').unwrap() + 2..text.len() {
        let read = kept::read(&text[..length], 5_000).unwrap();
        let whole = text[..length].ends_with('\n');
        assert!(whole || read.epoch == 0, "{length}");
        assert_eq!(read.mappings.len(), text[..length].matches('\n').count() - 1, "{length}");
    }
}

#[test]
fn what_may_no_longer_be_asked_for_is_not_kept() {
    let allows = |settings: &mut Settings| settings.third_party = vec![(BOB.parse().unwrap(), 32)];
    let mut bench = Bench::with(allows);
    bench.ask(&Ask::map(BOB, TCP, 80).third_party(ALICE));
    bench.ask(&Ask::map(BOB, TCP, 81));
    bench.send(ALICE, &[0, 1, 0, 0, 0, 90, 0, 0, 0, 0, 28, 32]).unwrap();
    let kept = bench.server.kept(bench.now);
    type Change = fn(&mut Settings);
    let changes: [(Change, usize); 4] = [
        (|_| {}, 3),
        (|settings| settings.third_party.clear(), 2),
        (|settings| settings.nat_pmp = false, 2),
        (|settings| settings.map = false, 0),
    ];
    for (change, expected) in changes {
        let mut next = Bench::with(|settings| {
            allows(settings);
            change(settings);
        });
        let restored = next.server.restore(kept.clone(), &mut next.nat, NOW);
        assert_eq!((restored.same, restored.lost), (expected, 3 - expected));
        assert_eq!(next.nat.bindings.len(), expected);
    }
}

/// A request that changes nothing does not cause the file to be written.
#[test]
fn only_what_is_kept_counts_as_a_change() {
    let mut bench = Bench::new();
    let before = bench.server.changes();
    bench.ask(&Ask::announce(ALICE));
    bench.ask(&Ask::map(ALICE, TCP, 90).lifetime(0));
    bench.send(ALICE, &[0, 0]).unwrap();
    assert_eq!(bench.server.changes(), before);
    bench.ask(&Ask::map(ALICE, TCP, 80));
    let made = bench.server.changes();
    bench.pass(100);
    bench.ask(&Ask::map(ALICE, TCP, 80));
    let renewed = bench.server.changes();
    bench.pass(4_000);
    let ended = bench.server.changes();
    bench.server.reset_epoch(bench.now);
    assert!(before < made && made < renewed && renewed < ended && ended < bench.server.changes());
}

/// A binding that an operator has removed, or whose address has left the pool.
#[test]
fn a_mapping_whose_endpoint_is_anothers_now_is_made_again() {
    let mut bench = Bench::new();
    let ask = Ask::map(ALICE, TCP, 80);
    let port = bench.ask(&ask).port();
    bench.nat.bindings.clear();
    bench.nat.add(Transport::Tcp, BOB, 80, port, ExistingKind::Dynamic);
    let ask = ask.suggest("192.0.2.1", port);
    let reply = bench.ask(&ask);
    assert_eq!((reply.result(), reply.lifetime()), (ResultCode::NoResources, 30));
    assert_eq!(bench.server.sizes(), (0, 0, 0));
    let again = bench.ask(&ask);
    assert_eq!(again.result(), ResultCode::Success);
    assert_ne!(again.port(), port);
}
