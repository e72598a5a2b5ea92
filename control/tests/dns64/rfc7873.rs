//! DNS cookies of clients (RFC 7873, RFC 9018), and how long their streams may be idle (RFC 7828).

use super::world::{Manner, PLAIN, World, query, settings};
use sixway_control::dns64::{Outcome, Resolver, Settings, Transport};
use std::net::Ipv6Addr;
use std::time::Duration;

const COOKIE: u16 = 10;
const KEEPALIVE: u16 = 11;

/// A query with these EDNS options.
fn with(name: &str, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = query(name, "A", PLAIN);
    for (code, value) in options {
        message.extend(code.to_be_bytes());
        message.extend((value.len() as u16).to_be_bytes());
        message.extend(*value);
    }
    let length: usize = options.iter().map(|(_, value)| 4 + value.len()).sum();
    let at = message.len() - length - 2;
    message[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    message
}

/// The value of an option in an answer whose last record is an OPT record.
fn option(answer: &[u8], wanted: u16) -> Option<Vec<u8>> {
    let opt = answer.windows(5).rposition(|octets| octets == [0, 0, 41, 4, 0xd0])?;
    let mut options = &answer[opt + 11..];
    while let [c0, c1, l0, l1, rest @ ..] = options {
        let (value, behind) = rest.split_at(u16::from_be_bytes([*l0, *l1]).into());
        if u16::from_be_bytes([*c0, *c1]) == wanted {
            return Some(value.to_vec());
        }
        options = behind;
    }
    None
}

fn asked(world: &mut World, from: Ipv6Addr, transport: Transport, message: &[u8]) -> (Vec<u8>, Outcome) {
    let ticket = world.send_from(from, transport, message);
    world.pass(Duration::from_millis(50));
    let answers = world.take_answers();
    let (_, message, outcome) = answers.into_iter().find(|answer| answer.0 == ticket).expect("an answer");
    (message, outcome)
}

fn world() -> World {
    World::new(Settings { cookie_secrets: vec![[7; 16]], ..settings() }).with(&[(
        "v4.test",
        "A",
        600,
        "192.0.2.1",
    )])
}

#[test]
fn who_has_no_cookie_gets_none() {
    let mut world = world();
    let (answer, _) = asked(&mut world, World::client(), Transport::Udp, &with("v4.test", &[]));
    assert_eq!(option(&answer, COOKIE), None);
}

#[test]
fn a_cookie_that_was_given_is_accepted_and_renewed() {
    let mut world = world();
    let (answer, _) =
        asked(&mut world, World::client(), Transport::Udp, &with("v4.test", &[(COOKIE, &[1; 8])]));
    let given = option(&answer, COOKIE).expect("a cookie");
    assert_eq!((given.len(), &given[..9]), (24, &[1, 1, 1, 1, 1, 1, 1, 1, 1][..]), "version 1");
    world.jump(Duration::from_secs(10));
    let (answer, outcome) =
        asked(&mut world, World::client(), Transport::Udp, &with("v4.test", &[(COOKIE, &given)]));
    let renewed = option(&answer, COOKIE).expect("a cookie");
    assert!(outcome == Outcome::Forwarded && renewed != given && renewed[..12] == given[..12]);
    // Another server with the same secret gives the same.
    let mut other = self::world();
    let (answer, _) =
        asked(&mut other, World::client(), Transport::Udp, &with("v4.test", &[(COOKIE, &[1; 8])]));
    assert_eq!(option(&answer, COOKIE), Some(given));
}

#[test]
fn with_little_room_left_a_bad_cookie_is_answered_with_a_good_one_and_nothing_else() {
    let mut world = world();
    world.resolver = sixway_control::dns64::Resolver::new(
        Settings {
            cookie_secrets: vec![[7; 16]],
            limits: sixway_control::dns64::Limits { waiting: 16, ..settings().limits },
            ..settings()
        },
        [7; 32],
        world.now,
    );
    let client = World::client();
    let (answer, _) = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &[1; 8])]));
    let good = option(&answer, COOKIE).expect("a cookie");
    world.manners = vec![Manner::Silent];
    for n in 0..16_u16 {
        let from = Ipv6Addr::new(0x2001, 0xdb8, 100 + n, 0, 0, 0, 0, 1);
        world.send_from(from, Transport::Tcp, &query(&format!("n{n}.test"), "A", PLAIN));
    }
    assert!(world.resolver.waiting() > 12, "{}", world.resolver.waiting());
    let bad = [&good[..23], &[good[23] ^ 1]].concat();
    let ticket = world.send_from(client, Transport::Udp, &with("new.test", &[(COOKIE, &bad)]));
    let answers = world.take_answers();
    let (_, answer, outcome) =
        answers.into_iter().find(|answer| answer.0 == ticket).expect("an answer at once");
    // BADCOOKIE is 23.
    assert_eq!((answer[3] & 15, outcome), (7, Outcome::Overload));
    assert_eq!(option(&answer, COOKIE).map(|cookie| cookie[..8].to_vec()), Some(vec![1; 8]));
    // What is known is answered whatever the cookie.
    let (answer, _) = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &bad)]));
    assert_eq!(answer[3] & 15, 0);
}

/// A server with no secret of the operator's, and two queries a second for each client.
fn limited(seed: [u8; 16], thread: u8) -> World {
    let mut limits = settings().limits;
    limits.per_client = Some((2, 2));
    let mut world = World::new(Settings { limits, ..settings() }).with(&[("v4.test", "A", 600, "192.0.2.1")]);
    let settings = Settings { limits, ..settings() };
    world.resolver = Resolver::new(settings, [thread; 32], world.now).with_cookie_seed(seed);
    world.resolver.set_wall_clock(world.now, 1_800_000_000);
    world
}

/// RCODE, TC, and the cookie that was given.
fn seen((answer, _): &(Vec<u8>, Outcome)) -> (u8, bool, Option<Vec<u8>>) {
    (answer[3] & 15, answer[2] & 2 != 0, option(answer, COOKIE))
}

#[test]
fn forged_sources_do_not_use_up_the_rate_of_who_shows_a_cookie_or_comes_by_a_stream() {
    let mut world = limited([9; 16], 1);
    let (client, plain) = (World::client(), with("v4.test", &[]));
    let first = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &[1; 8])]));
    let given = seen(&first).2.expect("a cookie");
    let flood = |world: &mut World| {
        for host in 1..100 {
            let forged = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, host);
            asked(world, forged, Transport::Udp, &plain);
        }
    };
    flood(&mut world);
    for _ in 0..2 {
        let answer = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &given)]));
        assert_eq!((seen(&answer).0, seen(&answer).1, answer.1), (0, false, Outcome::Forwarded));
        flood(&mut world);
        world.jump(Duration::from_secs(1));
    }
    flood(&mut world);
    for transport in [Transport::Tcp, Transport::Tls] {
        let answer = asked(&mut world, client, transport, &plain);
        assert_eq!((seen(&answer).0, answer.1), (0, Outcome::Forwarded), "{transport:?}");
    }
    // A client that proves its address has a rate, too.
    let answer = asked(&mut world, client, Transport::Tcp, &plain);
    assert_eq!((seen(&answer).0, answer.1), (5, Outcome::RateLimited));
}

#[test]
fn who_may_be_forged_and_is_over_its_rate_is_sent_to_tcp_or_gets_a_cookie() {
    let mut world = limited([9; 16], 1);
    let (client, plain) = (World::client(), with("v4.test", &[]));
    for _ in 0..2 {
        asked(&mut world, client, Transport::Udp, &plain);
    }
    let answer = asked(&mut world, client, Transport::Udp, &plain);
    assert_eq!((seen(&answer), answer.1), ((0, true, None), Outcome::RateLimited));
    assert!(answer.0.len() <= plain.len(), "{} octets for {}", answer.0.len(), plain.len());
    let bad = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &[1; 8])]));
    let (rcode, _, given) = seen(&bad);
    assert_eq!((rcode, bad.1), (7, Outcome::RateLimited), "BADCOOKIE is 23");
    let good = given.expect("a cookie");
    let answer = asked(&mut world, client, Transport::Udp, &with("v4.test", &[(COOKIE, &good)]));
    assert_eq!((seen(&answer).0, answer.1), (0, Outcome::Forwarded));
}

#[test]
fn a_cookie_of_one_thread_is_good_for_the_others_and_for_the_next_process() {
    let client = World::client();
    let given = seen(&asked(
        &mut limited([9; 16], 1),
        client,
        Transport::Udp,
        &with("v4.test", &[(COOKIE, &[1; 8])]),
    ));
    let given = with("v4.test", &[(COOKIE, &given.2.expect("a cookie"))]);
    for (seed, expected) in [([9; 16], 0), ([8; 16], 7)] {
        let mut other = limited(seed, 2);
        for _ in 0..3 {
            asked(&mut other, client, Transport::Udp, &with("v4.test", &[]));
        }
        assert_eq!(seen(&asked(&mut other, client, Transport::Udp, &given)).0, expected, "{seed:?}");
    }
    // The same after a reload.
    let mut world = limited([9; 16], 1);
    world.reconfigure(settings(), &[(super::world::Manner::Honest, Some(0))]);
    let mut limits = settings().limits;
    limits.per_client = Some((2, 2));
    world.reconfigure(Settings { limits, ..settings() }, &[(super::world::Manner::Honest, Some(0))]);
    for _ in 0..3 {
        asked(&mut world, client, Transport::Udp, &with("v4.test", &[]));
    }
    assert_eq!(seen(&asked(&mut world, client, Transport::Udp, &given)).0, 0);
}

#[test]
fn who_asks_by_a_stream_is_told_how_long_it_may_be_idle() {
    let stream_idle = Some(Duration::from_secs(30));
    let mut world =
        World::new(Settings { stream_idle, ..settings() }).with(&[("v4.test", "A", 600, "192.0.2.1")]);
    for (transport, options, expected) in [
        (Transport::Tcp, &[(KEEPALIVE, &[][..])][..], Some(vec![1, 44])),
        (Transport::Tls, &[(KEEPALIVE, &[])], Some(vec![1, 44])),
        (Transport::Tcp, &[], None),
        (Transport::Udp, &[(KEEPALIVE, &[])], None),
        (Transport::Https, &[(KEEPALIVE, &[])], None),
    ] {
        let (answer, _) = asked(&mut world, World::client(), transport, &with("v4.test", options));
        assert_eq!(option(&answer, KEEPALIVE), expected, "{transport:?}");
    }
}
