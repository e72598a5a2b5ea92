use super::settings::{TCP_IDLE, UDP_IDLE};
use super::*;
use crate::instant::Instant;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::AtomicU32;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const TTL: u32 = 60;

fn settings(pool: &str, sharing: Sharing) -> MappingSettings {
    MappingSettings {
        pool: pool.parse().unwrap(),
        excluded: Vec::new(),
        statics: Vec::new(),
        clients: vec!["10.0.0.0/8".parse().unwrap()],
        servers: vec!["2000::/3".parse().unwrap()],
        not_servers: vec!["2001:db8:46::/96".parse().unwrap()],
        sharing,
        max_mappings: 4_096,
        max_per_client: 1_024,
        by_name: true,
    }
}

fn table(settings: MappingSettings) -> Mappings {
    Mappings::in_memory(settings, [3, 5]).unwrap()
}

fn client(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + number)
}

fn server(number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x80, 0, 0, 0, (number >> 16) as u16, number as u16)
}

fn at(seconds: u32) -> Instant {
    Instant::from_secs(u64::from(seconds) + 1_000)
}

/// A client sends a UDP packet.
fn send(table: &Mappings, client: Ipv4Addr, address: Ipv4Addr, now: Instant) -> Option<Ipv6Addr> {
    let (server, used) = table.server_from(table.first_out(client, address), (client, address), now)?;
    used.is_none_or(|used| table.used(used, client, now, UDP_IDLE)).then_some(server)
}

#[test]
fn each_client_has_its_own_use_of_an_address() {
    let table = table(settings("192.0.2.0/30", Sharing::Client));
    let given: Vec<_> = (0..2).map(|n| table.map(client(1), server(n), TTL, at(0)).unwrap()).collect();
    let others: Vec<_> = (2..4).map(|n| table.map(client(2), server(n), TTL, at(0)).unwrap()).collect();
    let sorted = |addresses: &[Ipv4Addr]| {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses
    };
    assert_eq!(sorted(&given), ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<Ipv4Addr>().unwrap()));
    assert_eq!(sorted(&given), sorted(&others));
    for (number, address) in (0..).zip(&given) {
        assert_eq!(table.server_of(client(1), *address, at(0)), Some(server(number)));
        assert_eq!(table.address_of(client(1), server(number), at(0)), Some(*address));
        assert_eq!(table.address_of(client(2), server(number), at(0)), None);
    }
    assert_eq!(table.map(client(1), server(9), TTL, at(0)), Err(MappingRefused::ClientLimit));
    assert_eq!(table.server_of(client(3), given[0], at(0)), None, "it was told of nothing");
}

#[test]
fn a_shared_mapping_serves_all_clients_and_counts_for_the_first() {
    let mut settings = settings("192.0.2.0/28", Sharing::All);
    settings.max_per_client = 2;
    let table = table(settings);
    let address = table.map(client(1), server(1), TTL, at(0)).unwrap();
    for _ in 0..5 {
        assert_eq!(table.map(client(2), server(1), TTL, at(10)), Ok(address));
    }
    assert_eq!(table.server_of(client(3), address, at(0)), Some(server(1)));
    assert_eq!(table.counts().mappings, 1);
    table.map(client(1), server(2), TTL, at(0)).unwrap();
    assert_eq!(table.map(client(1), server(3), TTL, at(0)), Err(MappingRefused::ClientLimit));
    assert!(table.map(client(2), server(3), TTL, at(0)).is_ok());
}

#[test]
fn a_mapping_lives_for_its_ttl_and_a_margin_and_its_address_rests_then() {
    let table = table(settings("192.0.2.1/32", Sharing::Client));
    let address = table.map(client(1), server(1), TTL, at(0)).unwrap();
    let end = TTL + MARGIN;
    assert_eq!(table.address_of(client(1), server(1), at(end - 1)), Some(address));
    assert_eq!(table.address_of(client(1), server(1), at(end)), None, "servers reach no one any more");
    let free = end + TTL + REST;
    assert_eq!(table.map(client(1), server(2), TTL, at(free - 1)), Err(MappingRefused::ClientLimit));
    assert_eq!(table.server_of(client(1), address, at(free - 1)), Some(server(1)));
    assert_eq!(table.server_of(client(1), address, at(free)), None);
    table.expire(at(free), 10);
    assert_eq!(table.counts().mappings, 0);
    assert_eq!(table.map(client(1), server(2), TTL, at(free + 2)), Ok(address));
}

#[test]
fn a_client_that_sends_keeps_its_mapping_and_one_that_is_silent_does_not() {
    let table = table(settings("192.0.2.0/28", Sharing::Client));
    let address = table.map(client(1), server(1), TTL, at(0)).unwrap();
    for seconds in (0..20_000).step_by(250) {
        assert_eq!(send(&table, client(1), address, at(seconds)), Some(server(1)));
        table.expire(at(seconds), 10);
    }
    assert_eq!(table.address_of(client(1), server(1), at(19_750 + UDP_IDLE)), Some(address));
    let resting = 19_750 + UDP_IDLE + 100;
    assert_eq!(table.address_of(client(1), server(1), at(resting)), None);
    // It resumes while its address rests: nobody else can have it.
    assert_eq!(send(&table, client(1), address, at(resting)), Some(server(1)));
    assert_eq!(table.address_of(client(1), server(1), at(resting)), Some(address));
}

#[test]
fn a_tcp_connection_may_be_silent_for_two_hours_and_four_minutes() {
    let table = table(settings("192.0.2.0/28", Sharing::Client));
    let address = table.map(client(1), server(1), TTL, at(0)).unwrap();
    let (_, used) = table.server_from(u32::MAX, (client(1), address), at(0)).unwrap();
    assert!(table.used(used.unwrap(), client(1), at(0), TCP_IDLE));
    assert_eq!(table.address_of(client(1), server(1), at(TCP_IDLE)), Some(address));
    assert_eq!(table.address_of(client(1), server(1), at(TCP_IDLE + 60)), None);
}

#[test]
fn static_mappings_never_end_and_their_addresses_are_not_given() {
    let mut settings = settings("192.0.2.0/29", Sharing::Client);
    settings.statics = vec![("192.0.2.3".parse().unwrap(), server(80))];
    settings.excluded = vec!["192.0.2.6/32".parse().unwrap()];
    let table = table(settings);
    assert_eq!(table.map(client(1), server(80), TTL, at(0)), Ok("192.0.2.3".parse().unwrap()));
    assert_eq!(table.server_of(client(7), "192.0.2.3".parse().unwrap(), at(1_000_000)), Some(server(80)));
    assert_eq!(table.address_of(client(7), server(80), at(1_000_000)), Some("192.0.2.3".parse().unwrap()));
    let mut given: Vec<_> =
        (0..4).map(|n| table.map(client(1), server(n), TTL, at(0)).unwrap().octets()[3]).collect();
    given.sort_unstable();
    assert_eq!(given, [1, 2, 4, 5]);
    assert_eq!(table.map(client(1), server(4), TTL, at(0)), Err(MappingRefused::ClientLimit));
}

#[test]
fn names_lead_only_clients_and_only_to_servers() {
    let table = table(settings("192.0.2.0/24", Sharing::Client));
    let outsider = "192.168.1.1".parse().unwrap();
    assert_eq!(table.map(outsider, server(1), TTL, at(0)), Err(MappingRefused::NotClient));
    for text in ["fe80::1", "::1", "fd00::1", "2001:db8:46::a00:1", "::ffff:192.0.2.1", "ff02::1"] {
        let server = text.parse().unwrap();
        assert_eq!(table.map(client(1), server, TTL, at(0)), Err(MappingRefused::NotServer), "{text}");
    }
    assert_eq!(table.counts().refused, [1, 6, 0, 0, 0, 0, 0]);
}

#[test]
fn queries_in_a_clients_name_take_no_more_than_half_of_what_it_may_have() {
    let mut settings = settings("192.0.2.0/24", Sharing::Client);
    settings.max_per_client = 20;
    settings.servers = vec!["::/0".parse().unwrap()];
    let table = table(settings);
    let forged = |number| table.map_for(client(1), server(number), (TTL, false), at(0));
    assert_eq!((0..100).filter(|number| forged(*number).is_ok()).count(), 10);
    assert_eq!(forged(99), Err(MappingRefused::Unproven));
    assert!(forged(3).is_ok(), "whoever asks in its name gets what it has");
    assert_eq!(
        (100..200).filter(|number| table.map(client(1), server(*number), TTL, at(0)).is_ok()).count(),
        10
    );
    for text in ["fe80::1", "::ffff:192.0.2.1", "::192.0.2.1", "ff02::1", "::1"] {
        assert!(!table.settings().is_server(text.parse().unwrap()), "{text}, whatever is written");
    }
}

#[test]
fn a_full_table_refuses_and_evicts_nobody() {
    let mut settings = settings("192.0.2.0/24", Sharing::Client);
    settings.max_mappings = 8;
    let table = table(settings);
    for number in 0..8 {
        table.map(client(number), server(number), TTL, at(0)).unwrap();
    }
    assert_eq!(table.map(client(9), server(9), TTL, at(100)), Err(MappingRefused::TableFull));
    assert_eq!(table.counts().mappings, 8);
    // All of them have rested.
    let free = 2 * TTL + MARGIN + REST;
    assert_eq!(
        table.map(client(9), server(9), TTL, at(free)),
        Err(MappingRefused::TableFull),
        "a worker may still look at one"
    );
    assert!(table.map(client(9), server(9), TTL, at(free + 2)).is_ok());
}

/// Clients that want as many servers as there are, and one that wants a few: what the latter is refused, of a thousand.
fn losses_among_greedy(sharing: Sharing, pool: &str, greedy: u32) -> u32 {
    let table = table(MappingSettings { max_mappings: 65_536, ..settings(pool, sharing) });
    let (mut lost, mut next) = (0, 0);
    for turn in 0..1_000 {
        for attacker in 0..greedy {
            for _ in 0..8 {
                next += 1;
                let _ = table.map(client(100 + attacker), server(1_000_000 + next), TTL, at(turn));
            }
        }
        // Twenty servers, again and again.
        lost += u32::from(table.map(client(1), server(turn % 20), TTL, at(turn)).is_err());
    }
    lost
}

#[test]
fn clients_that_take_all_they_can_do_not_cost_another_one_in_a_hundred() {
    for greedy in [1, 10, 100] {
        assert!(losses_among_greedy(Sharing::Client, "192.0.2.0/24", greedy) <= 10, "{greedy}, of their own");
        assert!(losses_among_greedy(Sharing::All, "10.64.0.0/16", greedy) <= 10, "{greedy}, shared");
    }
    assert!(losses_among_greedy(Sharing::Client, "172.16.0.0/12", 100) <= 10);
}

/// Others want as many servers as there are, from the beginning, and one client a server that it did not have before, each 20 s: how many of
/// 150 it is refused, when all have what they can get.
fn new_servers_lost(sharing: Sharing, greedy: u32, is_proven: bool) -> u32 {
    // Of a /24 that all share, ten proven clients leave 253 / (4 * 10 + 1): fewer than the 14 that another one has at a time.
    let is_too_small = sharing == Sharing::All && is_proven && greedy > 1;
    let pool = if is_too_small { "10.64.0.0/20" } else { "192.0.2.0/24" };
    let table = table(MappingSettings { max_mappings: 8_192, ..settings(pool, sharing) });
    let (mut lost, mut next) = (0, 0);
    for turn in 0..200 {
        for attacker in 0..greedy {
            for _ in 0..8 {
                next += 1;
                let wanted = (client(100 + attacker), server(1_000_000 + next));
                if let Ok(address) = table.map_for(wanted.0, wanted.1, (TTL, is_proven), at(20 * turn)) {
                    send(&table, wanted.0, address, at(20 * turn));
                }
            }
        }
        let is_lost = table.map(client(1), server(turn), TTL, at(20 * turn)).is_err();
        lost += u32::from(is_lost && turn >= 50);
    }
    lost
}

#[test]
fn a_client_gets_new_servers_while_others_take_all_they_can() {
    for greedy in [1, 10] {
        assert!(new_servers_lost(Sharing::Client, greedy, true) <= 1, "{greedy}, of their own");
        assert!(new_servers_lost(Sharing::All, greedy, true) <= 1, "{greedy}, shared");
    }
    // In forged names: of one client, and of a thousand.
    for greedy in [1, 1_000] {
        assert!(new_servers_lost(Sharing::Client, greedy, false) <= 1, "{greedy}, forged");
        assert!(new_servers_lost(Sharing::All, greedy, false) <= 1, "{greedy}, forged and shared");
    }
}

#[test]
fn what_is_used_of_a_shared_pool_is_counted_with_what_rests() {
    let table = table(settings("192.0.2.0/24", Sharing::All));
    let counts = |table: &Mappings| (table.counts().addresses, table.counts().addresses_used);
    assert_eq!(counts(&table), (254, 0));
    for number in 0..10 {
        table.map(client(number), server(number), TTL, at(0)).unwrap();
    }
    assert_eq!(counts(&table), (254, 10));
    table.expire(at(2 * TTL + MARGIN + REST - 1), 100);
    assert_eq!(counts(&table), (254, 10), "they rest");
    table.expire(at(2 * TTL + MARGIN + REST), 100);
    assert_eq!(counts(&table), (254, 0));
    assert_eq!(counts(&self::table(settings("192.0.2.0/24", Sharing::Client))), (0, 0));
}

#[test]
fn mappings_and_what_rests_survive_the_process() {
    struct Kept(Arc<[AtomicU32]>);
    impl Words for Kept {
        fn words(&self) -> &[AtomicU32] {
            &self.0
        }
    }
    for sharing in [Sharing::Client, Sharing::All] {
        let settings = settings("192.0.2.0/28", sharing);
        let words: Arc<[AtomicU32]> = (0..Mappings::words(&settings)).map(|_| AtomicU32::new(0)).collect();
        let before = Mappings::new(settings.clone(), Box::new(Kept(Arc::clone(&words))), [1, 2]).unwrap();
        let addresses: Vec<_> =
            (0..5).map(|n| before.map(client(1), server(n), TTL, at(0)).unwrap()).collect();
        send(&before, client(1), addresses[0], at(0));
        // Killed: nothing is said to it.
        let after = table(settings.clone());
        let kept = after.restore(&Kept(Arc::clone(&words)), at(TTL + MARGIN + 5));
        assert_eq!(kept, MappingsKept { kept: 5, ended: 0 });
        for (number, address) in (0..).zip(&addresses) {
            assert_eq!(after.server_of(client(1), *address, at(200)), Some(server(number)));
            let live = after.address_of(client(1), server(number), at(200)).is_some();
            assert_eq!(live, number == 0, "only one is in use");
        }
        // With the other kind of mappings the addresses rest.
        let other = match sharing {
            Sharing::Client => Sharing::All,
            Sharing::All => Sharing::Client,
        };
        let changed = table(MappingSettings { sharing: other, ..settings.clone() });
        assert_eq!(changed.restore(&Kept(Arc::clone(&words)), at(0)), MappingsKept { kept: 0, ended: 5 });
        // A client of its own would get no more than its share of what all share.
        let whose = |number: u32| client(if other == Sharing::All { number } else { 2 });
        for number in 10..19 {
            let given = changed.map(whose(number), server(number), TTL, at(0)).unwrap();
            assert!(!addresses.contains(&given), "{given} rests");
        }
        assert!(changed.map(whose(30), server(30), TTL, at(0)).is_err());
        assert!(changed.map(whose(30), server(30), TTL, at(TTL + MARGIN + UDP_IDLE + TTL + REST)).is_ok());
        let gone = table(settings);
        assert_eq!(gone.restore(&Kept(words), at(10_000)), MappingsKept::default());
    }
}

#[test]
fn rows_are_read_some_at_a_time() {
    let mut settings = settings("192.0.2.0/24", Sharing::Client);
    settings.statics = vec![("192.0.2.200".parse().unwrap(), server(80))];
    let table = table(settings);
    for number in 0..50 {
        table.map(client(number % 3), server(number), TTL, at(0)).unwrap();
    }
    let (mut rows, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        from = table.rows(place, 7, at(100), &mut rows);
    }
    assert_eq!(rows.len(), 51);
    assert_eq!((rows[0].client, rows[0].state), (None, MappingState::Static));
    assert!(rows[1..].iter().all(|row| row.state == MappingState::Resting(2 * TTL + MARGIN + REST - 100)));
}

#[test]
fn workers_find_mappings_while_others_are_added_and_removed() {
    let mut settings = settings("192.0.2.0/24", Sharing::Client);
    settings.max_mappings = 512;
    let table = Arc::new(table(settings));
    let kept: Vec<_> =
        (0..50).map(|n| (n, table.map(client(1), server(n), 1_000_000, at(0)).unwrap())).collect();
    let reader = Arc::clone(&table);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for turn in 0..2_000 {
                // Each turn, what earlier ones made has rested.
                let now = at(turn * 400);
                for number in 0..100 {
                    let _ = table.map(client(2 + number % 5), server(1_000 + turn * 7 + number), 1, now);
                }
                table.expire(now, 1_000);
            }
        });
        while !writer.is_finished() {
            for (number, address) in &kept {
                assert_eq!(reader.server_of(client(1), *address, at(0)), Some(server(*number)));
                assert_eq!(reader.address_of(client(1), server(*number), at(0)), Some(*address));
            }
        }
        writer.join().unwrap();
    });
}

/// A store that outlives its table.
struct Store(Arc<[AtomicU32]>);

impl Words for Store {
    fn words(&self) -> &[AtomicU32] {
        &self.0
    }
}

fn memory(words: usize) -> Arc<[AtomicU32]> {
    (0..words).map(|_| AtomicU32::new(0)).collect()
}

/// The next process, with these settings.
fn succeed(
    settings: &MappingSettings,
    words: &Arc<[AtomicU32]>,
    now: Instant,
) -> (Mappings, Arc<[AtomicU32]>, MappingsKept) {
    let former = Store(Arc::clone(words));
    let next = memory(Mappings::words_after(settings, &former, now));
    let table = Mappings::new(settings.clone(), Box::new(Store(Arc::clone(&next))), [9, 10]).unwrap();
    let kept = table.restore(&former, now);
    (table, next, kept)
}

/// Settings with which some of the mappings, or all, cannot go on.
fn changed(settings: &MappingSettings, which: u8) -> MappingSettings {
    let mut changed = settings.clone();
    match which {
        0 => changed.pool = "198.51.100.0/28".parse().unwrap(),
        1 => changed.max_mappings = 1,
        2 => changed.servers = Vec::new(),
        _ if changed.sharing == Sharing::All => changed.sharing = Sharing::Client,
        _ => changed.sharing = Sharing::All,
    }
    changed
}

#[test]
fn what_was_told_rests_through_several_restarts_and_comes_back_with_the_former_settings() {
    for (sharing, which) in [(Sharing::Client, 0), (Sharing::All, 1), (Sharing::Client, 2), (Sharing::All, 3)]
    {
        let mut settings = settings("192.0.2.0/29", sharing);
        let words = memory(Mappings::words(&settings));
        let first = Mappings::new(settings.clone(), Box::new(Store(Arc::clone(&words))), [1, 2]).unwrap();
        let told: Vec<_> = (0..4).map(|n| first.map(client(1), server(n), TTL, at(0)).unwrap()).collect();
        let others = changed(&settings, which);
        let (_, words, _) = succeed(&others, &words, at(10));
        let (_, words, kept) = succeed(&others, &words, at(20));
        assert_eq!(kept.kept + kept.ended, 4, "{sharing:?} {which}");
        // With settings that forbid those servers, their addresses are given to nobody.
        let forbidden = settings.servers.clone();
        settings.servers = vec!["2001:db8:99::/48".parse().unwrap()];
        let (resting, words, kept) = succeed(&settings, &words, at(30));
        assert_eq!((kept.kept, kept.ended), (0, 4));
        for number in 0..2 {
            let server = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, number);
            let given = resting.map(client(2), server, TTL, at(30)).unwrap();
            assert!(!told.contains(&given), "{given} rests");
        }
        settings.servers = forbidden;
        let (last, ..) = succeed(&settings, &words, at(40));
        for (number, address) in (0..).zip(&told) {
            assert_eq!(
                last.server_of(client(1), *address, at(40)),
                Some(server(number)),
                "{sharing:?} {which}"
            );
        }
    }
}

#[test]
fn a_name_alone_admits_no_server_to_a_client() {
    for sharing in [Sharing::Client, Sharing::All] {
        let table = table(settings("192.0.2.0/28", sharing));
        let address = table.map(client(1), server(1), TTL, at(0)).unwrap();
        let admitted = |now| table.address_from(u32::MAX, (client(1), server(1)), now);
        assert_eq!(admitted(at(1)), None, "it was only told of");
        send(&table, client(1), address, at(2));
        assert_eq!(admitted(at(3)), Some(address));
    }
}

#[test]
fn a_client_that_lengthens_what_others_made_is_charged_for_it() {
    let mut settings = settings("192.0.2.0/24", Sharing::All);
    settings.max_per_client = 20;
    let table = table(settings);
    let made: Vec<_> = (0..100).map(|n| table.map(client(n), server(n), TTL, at(0)).unwrap()).collect();
    for address in &made {
        assert!(send(&table, client(200), *address, at(10)).is_some(), "its packets pass all the same");
    }
    let end = TTL + MARGIN;
    let live = (0..100).filter(|n| table.address_of(client(1), server(*n), at(end + 1)).is_some()).count();
    assert_eq!(live, 20, "what it may have");
    // It has reached its limit, and those who made them are no longer charged.
    assert_eq!(table.map(client(200), server(500), TTL, at(10)), Err(MappingRefused::ClientLimit));
    // A client at its limit does not resume what rests.
    let rests = |n: &usize| table.address_of(client(1), server(*n as u32), at(end + 1)).is_none();
    let resting = (0..100).find(rests).unwrap();
    assert_eq!(send(&table, client(200), made[resting], at(end + 1)), None);
    assert!(send(&table, client(50), made[resting], at(end + 1)).is_some(), "who has room resumes it");
    // A client that uses its own mappings is not concerned.
    send(&table, client(50), made[50], at(20));
    assert!(table.address_of(client(50), server(50), at(20 + UDP_IDLE)).is_some());
}

#[test]
fn unproven_queries_leave_half_of_the_table_and_of_a_shared_pool() {
    let mut small = settings("192.0.2.0/24", Sharing::Client);
    small.max_mappings = 100;
    for (settings, most) in [(small, 50), (settings("192.0.2.0/24", Sharing::All), 127)] {
        let table = table(settings);
        let forged = |n| table.map_for(client(n), server(n), (TTL, false), at(0));
        assert_eq!((0..1_000).filter(|n| forged(*n).is_ok()).count(), most);
        assert_eq!(forged(2_000), Err(MappingRefused::Unproven));
        assert!(table.map(client(3_000), server(3_000), TTL, at(0)).is_ok(), "who is proven gets one");
    }
}

/// What a client was told: a slow, obvious account of promises.
#[derive(Default)]
struct Promises {
    /// By client (or all) and address: the server, and until when no other one may have the address.
    told: BTreeMap<(Ipv4Addr, Ipv4Addr), (Ipv6Addr, u32)>,
    /// Until when packets must be forwarded.
    valid: BTreeMap<(Ipv4Addr, Ipv4Addr), u32>,
    /// The longest TTL that was announced for a server at an address.
    longest: BTreeMap<(Ipv4Addr, Ipv4Addr), u32>,
}

#[derive(Clone, Debug)]
enum Step {
    Query {
        client: u32,
        server: u32,
        ttl: u32,
    },
    Send {
        client: u32,
        address: u8,
    },
    Pass(u32),
    Tick,
    Restart,
    /// Another configuration, and the former again.
    RollBack(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let query = (0u32..4, 0u32..40, 0u32..400);
    prop_oneof![
        6 => query.prop_map(|(client, server, ttl)| Step::Query { client, server, ttl }),
        4 => (0u32..4, any::<u8>()).prop_map(|(client, address)| Step::Send { client, address }),
        4 => prop_oneof![0u32..20, 0u32..500, 0u32..3_000].prop_map(Step::Pass),
        2 => Just(Step::Tick),
        1 => Just(Step::Restart),
        1 => (0u8..4).prop_map(Step::RollBack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(400)))]
    #[test]
    fn no_packet_goes_to_another_server_than_its_client_was_told_of(
        steps in prop::collection::vec(step(), 1..200), shared: bool, length in 28u8..=31, max_mappings in 3u32..60,
    ) {
        let sharing = if shared { Sharing::All } else { Sharing::Client };
        let mut settings = settings(&format!("192.0.2.0/{length}"), sharing);
        settings.max_mappings = max_mappings;
        let mut words = memory(Mappings::words(&settings));
        let mut table = Mappings::new(settings.clone(), Box::new(Store(Arc::clone(&words))), [7, 8]).unwrap();
        let (mut promises, mut now) = (Promises::default(), 0u32);
        let whose = |number: u32| if shared { Ipv4Addr::UNSPECIFIED } else { client(number) };
        for step in steps {
            match step {
                Step::Query { client: number, server: to, ttl } => {
                    let Ok(address) = table.map(client(number), server(to), ttl, at(now)) else { continue };
                    let place = (whose(number), address);
                    let other = promises.told.get(&place).filter(|(known, _)| *known != server(to));
                    if let Some((known, until)) = other {
                        prop_assert!(now >= *until, "{address} was {known}'s until {until}, and it is {now}");
                    }
                    // What has rested begins again.
                    if promises.told.get(&place).is_some_and(|(_, until)| now >= *until) {
                        promises.longest.remove(&place);
                        promises.valid.remove(&place);
                    }
                    let longest = promises.longest.entry(place).or_default();
                    *longest = ttl.max(*longest);
                    let valid = promises.valid.entry(place).or_default();
                    *valid = (now + ttl).max(*valid);
                    let rest = *valid + *longest + REST;
                    promises.told.insert(place, (server(to), rest));
                }
                Step::Send { client: number, address } => {
                    let address = Ipv4Addr::new(192, 0, 2, address & 15);
                    let place = (whose(number), address);
                    let sent = send(&table, client(number), address, at(now));
                    let told = promises.told.get(&place).copied();
                    if let Some(sent) = sent {
                        prop_assert_eq!(Some(sent), told.map(|(server, _)| server));
                        // In shared use, a client with too many mappings extends none.
                        if shared && table.address_of(client(number), sent, at(now + UDP_IDLE - 1)).is_none() {
                            continue;
                        }
                        let valid = promises.valid.entry(place).or_default();
                        *valid = (now + UDP_IDLE).max(*valid);
                        let rest = *valid + promises.longest[&place] + REST;
                        promises.told.insert(place, (sent, rest));
                    } else {
                        prop_assert!(promises.valid.get(&place).is_none_or(|until| now > *until));
                    }
                }
                Step::Pass(seconds) => now += seconds,
                Step::Tick => table.expire(at(now), 4),
                Step::Restart => {
                    let (after, next, kept) = succeed(&settings, &words, at(now));
                    prop_assert_eq!(kept.ended, 0);
                    (table, words) = (after, next);
                }
                Step::RollBack(which) => {
                    let (_, between, _) = succeed(&changed(&settings, which), &words, at(now));
                    let (after, next, kept) = succeed(&settings, &between, at(now));
                    prop_assert_eq!(kept.ended, 0);
                    (table, words) = (after, next);
                }
            }
            let counts = table.counts();
            prop_assert!(counts.mappings <= max_mappings);
            let mut rows = Vec::new();
            table.rows(0, 1_000, at(now), &mut rows);
            prop_assert_eq!(rows.len() as u32, counts.mappings);
            for row in rows {
                let client = row.client.unwrap_or(client(0));
                prop_assert_eq!(table.server_of(client, row.address, at(now)).is_some_and(|server| server != row.server), false);
            }
        }
    }
}

#[test]
fn one_client_leaves_a_fifth_of_the_table_to_others() {
    let mut settings = settings("192.0.2.0/24", Sharing::Client);
    settings.max_mappings = 100;
    let table = table(settings);
    let made = (0..100).filter(|n| table.map(client(1), server(*n), TTL, at(0)).is_ok()).count();
    assert_eq!(made, 81);
    assert_eq!(table.map(client(1), server(200), TTL, at(0)), Err(MappingRefused::ClientShare));
    assert!(table.map(client(2), server(200), TTL, at(0)).is_ok());
}

#[test]
fn of_a_full_table_a_client_prolongs_what_counts_for_one_that_has_more_and_nothing_else() {
    let mut settings = settings("192.0.2.0/24", Sharing::All);
    settings.max_mappings = 100;
    let table = table(settings);
    let map = |who: u32, number: u32| table.map(client(who), server(number), TTL, at(0));
    let [first, second] = [map(1, 0), map(2, 100)].map(Result::unwrap);
    for who in 1..4 {
        (0..100).for_each(|number| {
            let _refused = map(who, who * 1_000 + number);
        });
    }
    assert_eq!(map(4, 5_000), Err(MappingRefused::TableFull));
    assert!(send(&table, client(2), first, at(10)).is_some());
    assert!(send(&table, client(1), second, at(10)).is_some());
    let is_live = |number| table.address_of(client(9), server(number), at(TTL + MARGIN + 1)).is_some();
    assert_eq!((is_live(0), is_live(100)), (true, false));
}
