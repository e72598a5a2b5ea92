//! What clients with EDNS learn beyond the RCODE (RFC 8914).

use super::world::{CD, CD_DO, DO, Got, Manner, PLAIN, World, query, settings, wire};
use sixway_control::dns64::{CheckingDisabled, Dnssec, DnssecOk, Rule, Settings, Synthesis, Transport};
use sixway_dataplane::translate::address::Rfc6052;
use std::time::Duration;

fn code(got: &Got) -> Option<u16> {
    got.extended_error.as_ref().map(|error| error.0)
}

#[test]
fn no_answer_and_no_way_are_distinguished() {
    for (manner, expected) in [(Manner::Silent, 22), (Manner::Unreachable, 23)] {
        let mut world = World::new(settings());
        world.manners = vec![manner];
        let got = world.ask("x.test", "TXT", PLAIN);
        assert_eq!((&*got.rcode, code(&got)), ("SERVFAIL", Some(expected)), "{manner:?}");
    }
}

#[test]
fn what_is_stale_is_told_and_so_is_a_stale_no() {
    let mut world = World::new(settings()).with(&[("text.test", "TXT", 60, "hello")]);
    world.ask("text.test", "TXT", PLAIN);
    world.ask("nothing.test", "TXT", PLAIN);
    world.pass(Duration::from_secs(1_000));
    world.manners = vec![Manner::Unreachable];
    assert_eq!(code(&world.ask("text.test", "TXT", PLAIN)), Some(3));
    let nothing = world.ask("nothing.test", "TXT", PLAIN);
    assert_eq!((&*nothing.rcode, code(&nothing)), ("NXDOMAIN", Some(19)));
}

#[test]
fn who_asks_what_is_not_answered_is_told_why() {
    let mut world = World::new(settings());
    let mut ask = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = query("x.test", "TXT", PLAIN);
        change(&mut message);
        let ticket = world.send_from(World::client(), Transport::Udp, &message);
        let got = world.answer(ticket).expect("an answer at once");
        (got.rcode.clone(), code(&got))
    };
    let type_at = 12 + wire("x.test").0.len();
    assert_eq!(ask(&|message| message[2] = 0), ("REFUSED".into(), Some(20)), "RD=0 and nothing in the cache");
    assert_eq!(ask(&|message| message[type_at + 3] = 3), ("REFUSED".into(), Some(21)), "class CH");
    assert_eq!(ask(&|message| message[type_at + 1] = 252), ("REFUSED".into(), Some(21)), "AXFR");
}

#[test]
fn class_any_is_refused_and_not_answered_with_nothing() {
    let mut world = World::new(settings()).with(&[("x.test", "TXT", 60, "hello")]);
    for class in [0_u16, 254, 255] {
        let mut message = query("x.test", "TXT", PLAIN);
        let class_at = 12 + wire("x.test").0.len() + 2;
        message[class_at..class_at + 2].copy_from_slice(&class.to_be_bytes());
        let ticket = world.send_from(World::client(), Transport::Udp, &message);
        let got = world.answer(ticket).expect("an answer at once");
        assert_eq!((&*got.rcode, code(&got)), ("REFUSED", Some(21)), "class {class}");
    }
    assert!(world.seen.is_empty());
}

#[test]
fn who_asks_too_often_is_refused_with_a_reason() {
    let mut settings: Settings = settings();
    settings.limits.per_client = Some((1, 2));
    let mut world = World::new(settings).with(&[("text.test", "TXT", 60, "hello")]);
    let asked = query("text.test", "TXT", PLAIN);
    let mut codes = Vec::new();
    for _ in 0..3 {
        let ticket = world.send_from(World::client(), Transport::Tcp, &asked);
        world.pass(Duration::from_millis(20));
        codes.push(code(&world.answer(ticket).expect("an answer")));
    }
    assert_eq!(codes, [None, None, Some(18)]);
}

#[test]
fn a_client_without_edns_is_told_nothing_that_it_does_not_know() {
    let mut world = World::new(settings());
    world.manners = vec![Manner::Unreachable];
    let mut message = query("x.test", "TXT", PLAIN);
    message.truncate(message.len() - 11);
    message[11] = 0;
    let ticket = world.send_from(World::client(), Transport::Udp, &message);
    world.pass(Duration::from_secs(5));
    let got = world.answer(ticket).expect("an answer");
    assert_eq!((&*got.rcode, got.extended_error, got.additional.len()), ("SERVFAIL", None, 0));
}

fn text(got: &Got) -> (Option<u16>, &str) {
    (code(got), got.extended_error.as_ref().map_or("", |error| &error.1))
}

#[test]
fn who_validates_is_told_of_synthesis_only_where_there_is_an_a_record() {
    let mut world = World::new(settings()).with(&[
        ("v4.test", "A", 60, "192.0.2.1"),
        ("v6.test", "AAAA", 60, "2001:db8::1"),
        ("mapped.test", "AAAA", 60, "::ffff:192.0.2.1"),
    ]);
    let made = "no synthesis with CD=1 and DO=1 (RFC 6147 5.5)";
    assert_eq!(text(&world.ask("v4.test", "AAAA", CD_DO)), (None, ""), "nobody knows of an A record");
    world.ask("v4.test", "A", CD_DO);
    assert_eq!(text(&world.ask("v4.test", "AAAA", CD_DO)), (Some(0), made));
    world.ask("nothing.test", "A", CD_DO);
    for (name, rtype, bits) in [
        ("v6.test", "AAAA", CD_DO),
        ("mapped.test", "AAAA", CD_DO),
        ("nothing.test", "AAAA", CD_DO),
        ("v4.test", "TXT", CD_DO),
        ("v4.test", "AAAA", DO),
        ("v4.test", "AAAA", CD),
    ] {
        assert_eq!(world.ask(name, rtype, bits).extended_error, None, "{name} {rtype} {bits:?}");
    }
    let dnssec = Dnssec { checking_disabled: CheckingDisabled::PassOn, ..Dnssec::default() };
    let mut world = World::new(Settings { dnssec, ..settings() }).with(&[
        ("v4.test", "A", 60, "192.0.2.1"),
        ("mapped.test", "A", 60, "192.0.2.1"),
        ("mapped.test", "AAAA", 60, "::ffff:192.0.2.1"),
    ]);
    for name in ["v4.test", "mapped.test"] {
        world.ask(name, "A", CD);
        let got = world.ask(name, "AAAA", CD);
        assert_eq!((text(&got).0, got.answer.len()), (Some(0), 0), "{name}");
        assert_eq!(text(&got).1, "no synthesis with CD=1, as configured", "{name}");
    }
    let dnssec = Dnssec { dnssec_ok: DnssecOk::PassOn, ..super::dnssec::dnssec() };
    let mut world = super::dnssec::world(dnssec);
    let got = world.ask("www.test", "AAAA", DO);
    let said = "signed data is not synthesised from with DO=1, as configured";
    assert_eq!((text(&got), got.authentic), ((Some(0), said), true));
}

#[test]
fn a_failure_of_an_upstream_says_whose_it_is() {
    for (rcode, name) in [(2, "SERVFAIL"), (5, "REFUSED"), (1, "FORMERR"), (4, "NOTIMP")] {
        let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
        world.manners = vec![Manner::Rcode(rcode)];
        for rtype in ["A", "AAAA", "TXT"] {
            let got = world.ask("v4.test", rtype, PLAIN);
            let said = format!("upstream 192.0.2.53 said {name}");
            assert_eq!(text(&got), (Some(0), &*said), "{name} {rtype}: {got:?}");
        }
    }
}

/// NXDOMAIN with an OPT record that has an extended error.
fn refused_with(code: u16, words: &str) -> String {
    let name = wire("bad.test").0;
    let mut reply = vec![0, 0, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 1];
    reply.extend(&name[..]);
    reply.extend([0, 1, 0, 1, 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, words.len() as u8 + 6]);
    reply.extend([0, 15, 0, words.len() as u8 + 2, (code >> 8) as u8, code as u8]);
    reply.extend(words.as_bytes());
    let digits: String = reply.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("bad.test 1 - {digits}")
}

#[test]
fn blocked_is_passed_on_with_no_such_name() {
    for code in [3, 4, 15, 16, 17, 19, 29] {
        let mut world = World::new(settings()).with_recorded(&refused_with(code, "ma\x1blware"));
        for _ in 0..2 {
            let got = world.ask("bad.test", "A", PLAIN);
            assert_eq!((&*got.rcode, text(&got)), ("NXDOMAIN", (Some(code), "malware")));
        }
    }
    for code in [0, 6, 18, 20, 21, 22] {
        let mut world = World::new(settings()).with_recorded(&refused_with(code, "about us"));
        assert_eq!(world.ask("bad.test", "A", PLAIN).extended_error, None, "{code}");
    }
}

#[test]
fn what_is_stale_is_told_before_why_nothing_is_made() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", CD_DO);
    world.pass(Duration::from_secs(1_000));
    world.manners = vec![Manner::Unreachable];
    assert_eq!(code(&world.ask("v4.test", "AAAA", CD_DO)), Some(3));
}

#[test]
fn why_nothing_is_made_of_an_address_is_reported() {
    let never = Rule {
        addresses: vec!["10.0.0.0/8".parse().expect("it is well-formed")],
        synthesis: Synthesis::Never,
        ..Rule::default()
    };
    let well_known = Rfc6052::new("64:ff9b::/96".parse().expect("it is well-formed"), false);
    let prefixes = vec![well_known.expect("it is well-formed")];
    let mut world = World::new(Settings { prefixes, rules: vec![never], ..settings() }).with(&[
        ("site.test", "A", 60, "10.0.0.1"),
        ("private.test", "A", 60, "192.168.0.1"),
        ("loopback.test", "A", 60, "127.0.0.1"),
        ("global.test", "A", 60, "8.8.8.8"),
    ]);
    for (name, said) in [
        ("site.test", "not synthesised by local rule"),
        ("private.test", "not a global IPv4 address (RFC 6052 3.1)"),
        ("loopback.test", "not the IPv4 address of a host"),
    ] {
        let got = world.ask(name, "AAAA", PLAIN);
        assert_eq!((&*got.rcode, got.answer.len(), text(&got)), ("NOERROR", 0, (Some(0), said)), "{name}");
    }
    assert_eq!(world.ask("global.test", "AAAA", PLAIN).extended_error, None);
}

#[test]
fn a_rule_that_makes_or_hides_nothing_is_reported() {
    let rules = vec![
        Rule { names: vec![wire("never.test")], synthesis: Synthesis::Never, ..Rule::default() },
        Rule { names: vec![wire("hidden.test")], hide_a: true, ..Rule::default() },
    ];
    let mut world = World::new(Settings { rules, ..settings() })
        .with(&[("never.test", "A", 60, "192.0.2.1"), ("hidden.test", "A", 60, "192.0.2.1")]);
    let never = world.ask("never.test", "AAAA", PLAIN);
    assert_eq!(text(&never), (Some(0), "not synthesised by local rule"));
    let hidden = world.ask("hidden.test", "A", PLAIN);
    assert_eq!(text(&hidden), (Some(0), "A records withheld by local rule"));
}
