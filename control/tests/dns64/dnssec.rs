//! RFC 6147 §5.5: what is synthesised of signed answers, and what is not. Upstreams say what real servers said.

use super::world::{CD, CD_DO, DO, PLAIN, World, settings};
use sixway_control::dns64::{
    Anchor, AnchorKey, Dnssec, DnssecOk, Outcome, SpecialNames, Upstream, ValidatingClients,
};

pub const RECORDED: &str = include_str!("../../../dnssec/src/validator/tests/answers.txt");

fn anchor() -> Anchor {
    let line = RECORDED.lines().find(|line| line.starts_with("anchor")).expect("an anchor");
    let words: Vec<&str> = line.split(' ').collect();
    let [tag, algorithm, digest] = [5, 6, 7].map(|at| words[at].parse::<u16>().expect("a number"));
    let mut data = tag.to_be_bytes().to_vec();
    data.extend([algorithm as u8, digest as u8]);
    data.extend(words[8].as_bytes().chunks(2).map(|pair| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("hexadecimal digits")
    }));
    Anchor { zone: super::world::wire("test"), key: AnchorKey::Ds(data.into()) }
}

pub fn dnssec() -> Dnssec {
    Dnssec { validate: true, anchors: vec![anchor()], ..Dnssec::default() }
}

pub fn world(dnssec: Dnssec) -> World {
    World::new(sixway_control::dns64::Settings { dnssec, ..settings() }).with_recorded(RECORDED)
}

#[test]
fn without_do_there_is_synthesis_and_never_ad() {
    let mut world = world(dnssec());
    let got = world.ask("www.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authentic), ("NOERROR", 2, false));
    assert!(got.answer[0].contains("AAAA 64:ff9b::"), "{got:?}");
    assert!(!world.ask("www.test", "A", PLAIN).authentic);
    assert!(world.counters().validations >= 2);
}

#[test]
fn with_do_there_is_synthesis_with_ad_and_without_the_signature_of_a() {
    let mut world = world(dnssec());
    let got = world.ask("www.test", "AAAA", DO);
    assert_eq!((&*got.rcode, got.answer.len(), got.authentic), ("NOERROR", 2, true), "{got:?}");
    let a = world.ask("www.test", "A", DO);
    assert_eq!((a.answer.len(), a.authentic), (3, true), "A records and their signature: {a:?}");
}

#[test]
fn the_negative_answer_is_validated_before_the_a_record_is_queried() {
    let mut world = world(dnssec());
    world.send("www.test", "AAAA", DO);
    while world.seen.iter().all(|(_, _, rtype)| rtype.to_int() != 48) {
        world.step();
    }
    assert!(world.seen.iter().all(|(_, _, rtype)| rtype.to_int() != 1), "{:?}", world.seen);
}

#[test]
fn who_validates_gets_the_proof_and_nothing_made() {
    let mut world = world(dnssec());
    let got = world.ask("www.test", "AAAA", CD_DO);
    assert_eq!((got.answer.len(), got.authentic), (0, false));
    assert!(got.authority.iter().any(|record| record.contains("NSEC")), "{got:?}");
}

#[test]
fn with_validation_a_private_reverse_name_does_not_exist() {
    let special_names = SpecialNames::Local;
    let settings = sixway_control::dns64::Settings { dnssec: dnssec(), special_names, ..settings() };
    let mut world = World::new(settings).with_recorded(RECORDED);
    for name in ["1.0.0.10.in-addr.arpa", "printer.local", "www.test"] {
        for bits in [PLAIN, DO, CD_DO] {
            let got = world.ask(name, "PTR", bits);
            assert_eq!((&*got.rcode, got.authority.len()), ("NXDOMAIN", 1), "{name} {bits:?}");
        }
    }
    assert_eq!(world.seen, []);
}

#[test]
fn who_validates_can_get_what_is_made_of_unsigned_names() {
    let validating_clients = ValidatingClients::Unsigned;
    let mut world = world(Dnssec { validating_clients, ..dnssec() })
        .with_recorded(&unsigned("www.insecure.test", 28, false))
        .with_recorded(&unsigned("www.insecure.test", 1, true));
    let got = world.ask("www.insecure.test", "AAAA", CD_DO);
    assert_eq!((got.answer.len(), got.authentic), (1, false), "{got:?}");
    assert!(got.answer[0].contains("AAAA 64:ff9b::c000:201"), "{got:?}");
    for name in ["www.test", "www.noproof.test", "www.tampered.test"] {
        let got = world.ask(name, "AAAA", CD_DO);
        assert!(!got.answer.iter().any(|record| record.contains("64:ff9b::")), "{name}: {got:?}");
    }
    let mut world = super::dnssec::world(dnssec());
    assert_eq!(world.ask("www.insecure.test", "AAAA", CD_DO).answer.len(), 0, "MUST NOT, by default");
}

/// What a server without DNSSEC says: an A record, or nothing with a SOA record.
fn unsigned(name: &str, rtype: u16, has: bool) -> String {
    let mut reply = vec![0, 0, 0x81, 0x80, 0, 1, 0, u8::from(has), 0, u8::from(!has), 0, 0];
    reply.extend(&super::world::wire(name).0[..]);
    reply.extend([0, rtype as u8, 0, 1]);
    match has {
        true => super::world::append(&mut reply, name, domain::base::Rtype::A, 60, "192.0.2.1"),
        false => super::world::append(&mut reply, "insecure.test", domain::base::Rtype::SOA, 60, "60"),
    }
    let digits: String = reply.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{name} {rtype} - {digits}")
}

#[test]
fn a_negative_answer_that_does_not_validate_is_a_failure() {
    let mut world = world(dnssec());
    for bits in [PLAIN, DO] {
        let got = world.ask("www.noproof.test", "AAAA", bits);
        assert_eq!((&*got.rcode, got.answer.len(), got.authentic), ("SERVFAIL", 0, false), "{got:?}");
        assert!(got.extended_error.is_some());
    }
    assert_eq!(world.counters().of(Outcome::Bogus), 2);
    assert_eq!(
        world.ask("www.noproof.test", "AAAA", CD).answer.len(),
        2,
        "with CD=1 it is the client's risk"
    );
}

#[test]
fn an_a_record_that_does_not_validate_is_a_failure() {
    for name in ["www.tampered.test", "www.stripped.test"] {
        let mut world = world(dnssec());
        assert_eq!(world.ask(name, "AAAA", PLAIN).rcode, "SERVFAIL", "{name}");
        assert_eq!(world.ask(name, "A", DO).rcode, "SERVFAIL", "{name}");
        assert_ne!(world.ask(name, "AAAA", CD).answer.len(), 0, "{name}");
    }
}

#[test]
fn where_aaaa_has_no_answer_only_what_is_not_signed_is_made() {
    let mut world = world(dnssec());
    let insecure = world.ask("www.insecure.test", "AAAA", DO);
    assert_eq!((insecure.answer.len(), insecure.authentic), (2, false), "{insecure:?}");
    let secure = world.ask("www.p384.test", "AAAA", DO);
    assert_eq!((&*secure.rcode, secure.answer.len()), ("SERVFAIL", 0), "{secure:?}");
}

#[test]
fn what_is_below_a_negative_trust_anchor_is_not_validated() {
    let insecure = vec![super::world::wire("tampered.test")];
    let mut world = world(Dnssec { insecure, ..dnssec() });
    let got = world.ask("www.tampered.test", "AAAA", DO);
    assert_eq!((got.answer.len(), got.authentic), (2, false), "{got:?}");
}

#[test]
fn proofs_instead_of_what_is_made_can_be_chosen() {
    let mut world = world(Dnssec { dnssec_ok: DnssecOk::PassOn, ..dnssec() });
    let got = world.ask("www.test", "AAAA", DO);
    assert_eq!((got.answer.len(), got.authentic), (0, true), "{got:?}");
    assert_eq!(world.ask("www.test", "AAAA", PLAIN).answer.len(), 2);
    assert_eq!(world.ask("www.insecure.test", "AAAA", DO).answer.len(), 2, "what is not signed has no proof");
}

#[test]
fn an_alias_across_zones_is_made_with_ad() {
    let mut world = world(dnssec());
    let got = world.ask("across.test", "AAAA", DO);
    assert!(got.authentic && got.answer[1].contains("AAAA 64:ff9b::"), "{got:?}");
}

#[test]
fn what_does_not_validate_is_queried_once_more_elsewhere() {
    let mut settings = settings();
    settings.dnssec = dnssec();
    settings.upstreams.push(Upstream { names: vec![], datagrams: true });
    let mut world = World::new(settings).with_recorded(RECORDED);
    assert_eq!(world.ask("www.tampered.test", "A", PLAIN).rcode, "SERVFAIL");
    let asked: Vec<usize> = world
        .seen
        .iter()
        .filter(|(_, name, rtype)| name == "www.tampered.test." && rtype.to_int() == 1)
        .map(|seen| seen.0)
        .collect();
    assert_eq!(asked.last(), Some(&1), "{:?}", world.seen);
    assert!(world.counters().validations >= 2);
}

#[test]
fn upstreams_are_asked_with_do_and_cd() {
    let mut world = world(dnssec());
    for bits in [PLAIN, DO, CD, CD_DO] {
        world.ask("www.test", "AAAA", bits);
    }
    assert!(world.messages.len() >= 3, "AAAA, A and keys");
    for message in &world.messages {
        assert_eq!(message[3] & 0x30, 0x10, "CD, and not AD");
        assert_eq!(message[message.len() - 4] & 0x80, 0x80, "DO");
    }
}

#[test]
fn a_failure_to_validate_is_kept_for_seconds() {
    let mut world = world(dnssec());
    world.ask("www.tampered.test", "A", PLAIN);
    let (asked, validated) = (world.seen.len(), world.counters().validations);
    assert_eq!(world.ask("www.tampered.test", "A", PLAIN).rcode, "SERVFAIL");
    assert_eq!((world.seen.len(), world.counters().validations), (asked, validated));
    world.pass(std::time::Duration::from_secs(31));
    world.ask("www.tampered.test", "A", PLAIN);
    assert!(world.seen.len() > asked && world.counters().validations > validated);
}

#[test]
fn why_a_signed_zone_counts_as_unsigned_is_reported() {
    for (name, code) in [("www.algorithm.test", 1), ("www.digest.test", 2), ("nothing.many.test", 27)] {
        let mut world = world(dnssec());
        let got = world.ask(name, "A", DO);
        assert_eq!((got.extended_error.map(|error| error.0), got.authentic), (Some(code), false), "{name}");
        assert_eq!(world.ask(name, "A", CD_DO).extended_error, None, "{name}: who validates finds out");
    }
}
