//! RFC 6147, clause by clause, where the other scenarios leave something to be proved.

use super::world::{CD_DO, Got, Manner, PLAIN, World, append, query, settings, wire};
use domain::base::Rtype;
use sixway_control::dns64::{
    Dnssec, Hosts, Outcome, Reverse, Rule, Settings, SpecialNames, Synthesis, SynthesisedTtl, Transport,
};
use sixway_dataplane::translate::address::Rfc6052;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;

/// Owner, type, TTL and data of a record.
type Record<'r> = (&'r str, &'r str, u32, &'r str);

const SOA: Record<'_> = ("test", "SOA", 900, "300");
const NAME: &str = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";

/// What an upstream says to a question, as a line for [`World::with_recorded`].
fn says(name: &str, rtype: &str, rcode: u8, sections: [&[Record<'_>]; 3]) -> String {
    let rtype = Rtype::from_str(rtype).expect("it is well-formed").to_int();
    let [answers, authority, additional] = sections.map(|records| records.len() as u8);
    let mut message = vec![0, 0, 0x81, 0x80 | rcode, 0, 1, 0, answers, 0, authority, 0, additional];
    message.extend_from_slice(&wire(name).0);
    message.extend(rtype.to_be_bytes());
    message.extend([0, 1]);
    for (owner, rtype, ttl, data) in sections.into_iter().flatten() {
        append(&mut message, owner, Rtype::from_str(rtype).expect("it is well-formed"), *ttl, data);
    }
    let mut line = format!("{name} {rtype} - ");
    message.iter().for_each(|octet| write!(line, "{octet:02x}").expect("text grows"));
    line + "\n"
}

fn with_prefix(prefix: &str) -> Settings {
    Settings { prefixes: vec![translation(prefix)], ..settings() }
}

fn translation(prefix: &str) -> Rfc6052 {
    Rfc6052::new(prefix.parse().expect("it is well-formed"), true).expect("it is well-formed")
}

fn address(got: &Got) -> Ipv6Addr {
    got.answer[0].rsplit(' ').next().expect("data").parse().expect("an address")
}

#[test]
fn classes_other_than_in_know_nothing_of_dns64() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    let mut message = query("v4.test", "AAAA", PLAIN);
    let class = 12 + wire("v4.test").0.len() + 3;
    message[class] = 4;
    let hesiod = world.send_from(World::client(), Transport::Udp, &message);
    world.pass(Duration::from_secs(1));
    let got = world.answer(hesiod).expect("an answer");
    assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 0));
    assert_eq!(world.seen, [(0, "v4.test.".to_owned(), Rtype::AAAA)], "nobody asks for A");
    message[class] = 3;
    let chaos = world.send_from(World::client(), Transport::Udp, &message);
    assert_eq!(world.answer(chaos).expect("an answer").rcode, "REFUSED");
}

#[test]
fn any_rcode_but_no_such_name_counts_as_an_empty_answer() {
    for rcode in [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 15] {
        let a = says("v4.test", "A", 0, [&[("v4.test", "A", 3_600, "192.0.2.1")], &[], &[]]);
        let aaaa = says("v4.test", "AAAA", rcode, [&[], &[], &[]]);
        let mut world = World::new(settings()).with_recorded(&(a + &aaaa));
        let got = world.ask("v4.test", "AAAA", PLAIN);
        assert_eq!(got.answer, ["v4.test. 600 IN AAAA 64:ff9b::c000:201"], "RCODE {rcode}");
        assert!(got.after < Duration::from_secs(2), "RCODE {rcode}: {:?}", got.after);
    }
}

#[test]
fn what_comes_of_the_question_for_a_is_the_answer() {
    let none = says("x.test", "AAAA", 0, [&[], &[SOA], &[]]);
    let mut world =
        World::new(settings()).with_recorded(&(none.clone() + &says("x.test", "A", 3, [&[], &[SOA], &[]])));
    let got = world.ask("x.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NXDOMAIN", 0, 1));

    let mut world = World::new(settings()).with_recorded(&(none + &says("x.test", "A", 5, [&[], &[], &[]])));
    assert_eq!(world.ask("x.test", "AAAA", PLAIN).answer.len(), 0);
    assert_eq!(world.counters().of(Outcome::UpstreamFailure), 1);

    let failed = says("x.test", "AAAA", 2, [&[], &[], &[]]);
    let mut world =
        World::new(settings()).with_recorded(&(failed + &says("x.test", "A", 0, [&[], &[SOA], &[]])));
    let got = world.ask("x.test", "AAAA", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 0, 1));
}

#[test]
fn what_is_made_lives_no_longer_than_a_and_the_soa_record_with_its_minimum() {
    for (soa, a, expected) in [((900, 300), 600, 300), ((60, 300), 600, 60), ((900, 300), 20, 20)] {
        let mut world = World::new(settings()).with(&[("v4.test", "A", a, "192.0.2.1")]);
        world.soa = Some(soa);
        let made = format!("v4.test. {expected} IN AAAA 64:ff9b::c000:201");
        assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, [made], "{soa:?} {a}");
    }
}

#[test]
fn what_is_made_lives_as_long_as_a_if_so_configured() {
    let settings = || Settings { synthesised_ttl: SynthesisedTtl::A, ..settings() };
    let zone = [
        ("v4.test", "A", 3_600, "192.0.2.1"),
        ("mapped.test", "A", 3_600, "192.0.2.1"),
        ("mapped.test", "AAAA", 60, "::ffff:192.0.2.1"),
    ];
    for soa in [Some((900, 300)), None] {
        let mut world = World::new(settings()).with(&zone);
        world.soa = soa;
        for name in ["v4.test", "mapped.test"] {
            let made = format!("{name}. 3600 IN AAAA 64:ff9b::c000:201");
            assert_eq!(world.ask(name, "AAAA", PLAIN).answer, [made], "{soa:?}");
        }
        world.pass(Duration::from_secs(2_000));
        let aged = ["v4.test. 1600 IN AAAA 64:ff9b::c000:201"];
        assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, aged, "{soa:?}");
    }
    let mut world = World::new(settings()).with(&zone);
    world.manners = vec![Manner::ServfailTo(28)];
    let failed = ["v4.test. 600 IN AAAA 64:ff9b::c000:201"];
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, failed, "a failure is soon over");
}

#[test]
fn excluded_records_and_a_failure_bound_what_is_made_to_ten_minutes() {
    let zone = [("mapped.test", "AAAA", 3_600, "::ffff:192.0.2.1"), ("mapped.test", "A", 3_600, "192.0.2.1")];
    let mut world = World::new(settings()).with(&zone);
    let made = ["mapped.test. 600 IN AAAA 64:ff9b::c000:201"];
    assert_eq!(world.ask("mapped.test", "AAAA", PLAIN).answer, made, "there is no SOA record beside AAAA");
    let mut failing = World::new(settings()).with(&zone);
    failing.manners = vec![Manner::ServfailTo(28)];
    assert_eq!(failing.ask("mapped.test", "AAAA", PLAIN).answer, made);
}

#[test]
fn without_a_question_for_aaaa_what_is_made_lives_as_long_as_a() {
    let rule = Rule { synthesis: Synthesis::Always, ..Rule::default() };
    let zone = [("v4.test", "A", 3_600, "192.0.2.1")];
    let mut world = World::new(Settings { rules: vec![rule], ..settings() }).with(&zone);
    let made = ["v4.test. 3600 IN AAAA 64:ff9b::c000:201"];
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, made);
    assert!(world.seen.iter().all(|seen| seen.2 == Rtype::A), "{:?}", world.seen);
}

#[test]
fn what_is_made_ages_with_the_no_that_it_is_made_in_place_of() {
    let mut world = World::new(settings()).with(&[("v4.test", "A", 3_600, "192.0.2.1")]);
    world.ask("v4.test", "AAAA", PLAIN);
    world.pass(Duration::from_secs(100));
    let aged = ["v4.test. 200 IN AAAA 64:ff9b::c000:201"];
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer, aged, "300 s less 100");
}

/// The "no" is known for no longer than the alias that led to it.
#[test]
fn what_is_made_lives_no_longer_than_the_alias_on_the_way_to_the_no() {
    let zone = [("www.test", "CNAME", 60, "v4.test"), ("v4.test", "A", 3_600, "192.0.2.1")];
    let mut world = World::new(settings()).with(&zone);
    assert_eq!(
        world.ask("www.test", "AAAA", PLAIN).answer,
        ["www.test. 60 IN CNAME v4.test.", "v4.test. 60 IN AAAA 64:ff9b::c000:201"]
    );
}

#[test]
fn below_a_dname_record_the_chain_leads_to_what_is_made() {
    let chain = [("old.test", "DNAME", 300, "new.test"), ("www.old.test", "CNAME", 300, "www.new.test")];
    let with = [chain[0], chain[1], ("www.new.test", "A", 100, "192.0.2.1")];
    let aaaa = says("www.old.test", "AAAA", 0, [&chain, &[SOA], &[]]);
    let a = says("www.old.test", "A", 0, [&with, &[], &[]]);
    let mut world = World::new(settings()).with_recorded(&(aaaa + &a));
    assert_eq!(
        world.ask("www.old.test", "AAAA", PLAIN).answer,
        [
            "old.test. 300 IN DNAME new.test.",
            "www.old.test. 300 IN CNAME www.new.test.",
            "www.new.test. 100 IN AAAA 64:ff9b::c000:201",
        ]
    );
}

#[test]
fn a_chain_that_an_upstream_leaves_unfinished_is_followed() {
    let alias = ("www.test", "CNAME", 300, "v4.test");
    let said = [
        says("www.test", "AAAA", 0, [&[alias], &[], &[]]),
        says("www.test", "A", 0, [&[alias], &[], &[]]),
        says("v4.test", "AAAA", 0, [&[], &[SOA], &[]]),
        says("v4.test", "A", 0, [&[("v4.test", "A", 100, "192.0.2.1")], &[], &[]]),
    ];
    let mut world = World::new(settings()).with_recorded(&said.concat());
    assert_eq!(
        world.ask("www.test", "AAAA", PLAIN).answer,
        ["www.test. 300 IN CNAME v4.test.", "v4.test. 100 IN AAAA 64:ff9b::c000:201"]
    );
}

#[test]
fn each_a_record_gets_the_prefix_of_its_range() {
    let rule = Rule {
        addresses: vec!["10.0.0.0/8".parse().expect("it is well-formed")],
        prefixes: vec![translation("2001:db8:64::/96")],
        ..Rule::default()
    };
    let zone = [("two.test", "A", 60, "10.1.2.3"), ("two.test", "A", 60, "192.0.2.1")];
    let mut world = World::new(Settings { rules: vec![rule], ..settings() }).with(&zone);
    assert_eq!(
        world.ask("two.test", "AAAA", PLAIN).answer,
        ["two.test. 60 IN AAAA 2001:db8:64::a01:203", "two.test. 60 IN AAAA 64:ff9b::c000:201"]
    );
}

#[test]
fn both_types_may_be_queried_together_but_not_before_a_negative_answer_is_validated() {
    let parallel = Settings { parallel: true, ..settings() };
    let mut world = World::new(parallel.clone()).with(&[("v4.test", "A", 60, "192.0.2.1")]);
    world.send("v4.test", "AAAA", PLAIN);
    let types: Vec<Rtype> = world.seen.iter().map(|seen| seen.2).collect();
    assert_eq!(types, [Rtype::AAAA, Rtype::A]);
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!((got.answer.len(), got.after, world.seen.len()), (1, world.latency, 2));

    let dnssec = Dnssec { validate: true, ..Dnssec::default() };
    let mut validating = World::new(Settings { dnssec, ..parallel });
    validating.send("v4.test", "AAAA", PLAIN);
    assert!(validating.seen.iter().all(|seen| seen.2 != Rtype::A), "{:?}", validating.seen);
}

#[test]
fn what_is_made_is_what_the_translator_reads() {
    let prefixes = [
        "2001:db8::/32",
        "2001:db8:100::/40",
        "2001:db8:122::/48",
        "2001:db8:122:300::/56",
        "2001:db8:122:344::/64",
        "2001:db8:122:344::/96",
        "64:ff9b::/96",
    ];
    for prefix in prefixes {
        let mut world = World::new(with_prefix(prefix)).with(&[("v4.test", "A", 60, "192.0.2.33")]);
        let made = address(&world.ask("v4.test", "AAAA", PLAIN));
        assert_eq!(
            translation(prefix).extract(made),
            Ok("192.0.2.33".parse().expect("an address")),
            "{prefix}"
        );
    }
}

#[test]
fn a_reverse_query_under_the_well_known_prefix_is_ours_too() {
    let zone = [("254.79.64.80.in-addr.arpa", "PTR", 100, "v4.test")];
    let name = "e.f.f.4.0.4.0.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let mut world = World::new(with_prefix("2001:db8:64::/96")).with(&zone);
    assert_eq!(world.ask(name, "PTR", PLAIN).answer.len(), 2);
    assert!(world.seen.iter().all(|(_, name, _)| name == "254.79.64.80.in-addr.arpa."), "{:?}", world.seen);
}

#[test]
fn no_alias_leads_to_nothing_or_to_another_alias() {
    let mut nothing = World::new(settings());
    let got = nothing.ask(NAME, "PTR", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len()), ("NXDOMAIN", 0));

    let zone = [
        ("1.2.0.192.in-addr.arpa", "CNAME", 100, "1.0-25.2.0.192.in-addr.arpa"),
        ("1.0-25.2.0.192.in-addr.arpa", "PTR", 100, "v4.test"),
    ];
    let mut alias = World::new(settings()).with(&zone);
    assert_eq!(alias.ask(NAME, "PTR", PLAIN).answer, [format!("{NAME}. 100 IN PTR v4.test.")]);
}

#[test]
fn other_reverse_queries_are_as_any_other() {
    let other = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    let mut world = World::new(settings()).with(&[(other, "PTR", 100, "v6.test")]);
    assert_eq!(world.ask(other, "PTR", PLAIN).answer, [format!("{other}. 100 IN PTR v6.test.")]);
    world.ask(NAME, "PTR", CD_DO);
    let asked: Vec<&str> = world.seen.iter().map(|(_, name, _)| name.trim_end_matches('.')).collect();
    assert_eq!(asked, [other, NAME], "who validates gets nothing made");
}

#[test]
fn one_name_for_all_addresses_is_reported_with_authority() {
    let reverse = Reverse::Name { name: wire("nat64.test"), ttl: 60 };
    let mut world = World::new(Settings { reverse, ..settings() });
    let got = world.ask(NAME, "PTR", PLAIN);
    assert_eq!(got.answer, [format!("{NAME}. 60 IN PTR nat64.test.")]);
    assert!(got.authoritative && world.seen.is_empty());
}

#[test]
fn nothing_is_made_of_additional_records_nor_of_the_authority_section_of_yes() {
    let additional = [("ns.test", "A", 100, "192.0.2.53")];
    let authority = [("test", "NS", 100, "ns.test")];
    let aaaa = says("v4.test", "AAAA", 0, [&[], &[SOA], &additional]);
    let a = says("v4.test", "A", 0, [&[("v4.test", "A", 100, "192.0.2.1")], &authority, &additional]);
    let mut world = World::new(settings()).with_recorded(&(aaaa + &a));
    let got = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!(got.answer, ["v4.test. 100 IN AAAA 64:ff9b::c000:201"]);
    assert_eq!(got.authority, Vec::<String>::new());
    assert_eq!(got.additional, Vec::<String>::new());
}

#[test]
fn another_type_at_a_translated_address_agrees_with_its_ptr_record() {
    let zone = [
        ("1.2.0.192.in-addr.arpa", "PTR", 100, "v4.test"),
        ("1.2.0.192.in-addr.arpa", "TXT", 90, "hello"),
        ("9.2.0.192.in-addr.arpa", "TXT", 90, "no name"),
    ];
    let mut world = World::new(settings()).with(&zone);
    let alias = format!("{NAME}. 600 IN CNAME 1.2.0.192.in-addr.arpa.");
    let text = world.ask(NAME, "TXT", PLAIN);
    assert_eq!(text.answer, [&*alias, "1.2.0.192.in-addr.arpa. 90 IN TXT \"hello\""]);
    let mail = world.ask(NAME, "MX", PLAIN);
    assert_eq!((&*mail.rcode, &mail.answer), ("NOERROR", &vec![alias.clone()]));
    assert!(mail.authority[0].starts_with("arpa. "), "the SOA record is of the alias's target: {mail:?}");
    assert_eq!(world.ask(NAME, "CNAME", PLAIN).answer, [alias]);
    assert_eq!(
        (world.ask(NAME, "DS", PLAIN).answer.len(), &*world.ask(NAME, "DS", PLAIN).rcode),
        (0, "NOERROR")
    );
    let seen = world.seen.iter().filter(|(_, name, _)| name.ends_with("ip6.arpa.")).count();
    assert_eq!(seen, 0, "nobody is asked for a name within our prefixes");
    // There is no PTR record: no alias, whatever other records there are.
    let nine = NAME.replacen("1.0", "9.0", 1);
    for rtype in ["PTR", "TXT", "MX"] {
        let got = world.ask(&nine, rtype, PLAIN);
        assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 0, 1), "{rtype}");
    }
    let mut rewriting = World::new(Settings { reverse: Reverse::Rewrite, ..settings() }).with(&zone);
    let got = rewriting.ask(NAME, "TXT", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 0, 1));
    assert_eq!(rewriting.ask(NAME, "PTR", PLAIN).answer.len(), 1);
}

#[test]
fn a_negative_reverse_answer_has_a_soa_record_above_its_name() {
    let zone = NAME.split_at(16).1;
    let mut world = World::new(settings());
    for rtype in ["PTR", "TXT"] {
        let got = world.ask(NAME, rtype, PLAIN);
        assert_eq!((&*got.rcode, got.answer.len()), ("NXDOMAIN", 0));
        let soa = format!("{zone}. 300 IN SOA {zone}. nobody.invalid. 1 3600 1200 604800 300");
        assert_eq!(got.authority, [soa], "{rtype}");
    }
}

#[test]
fn an_address_that_represents_one_of_a_hosts_file_has_its_names() {
    let hosts = std::sync::Arc::new(Hosts::read("192.0.2.1 printer.lan").0);
    let mut world = World::new(settings());
    world.resolver.set_hosts(hosts);
    assert_eq!(world.ask(NAME, "PTR", PLAIN).answer, [format!("{NAME}. 60 IN PTR printer.lan.")]);
    assert_eq!(world.ask("printer.lan", "AAAA", PLAIN).answer, ["printer.lan. 60 IN AAAA 64:ff9b::c000:201"]);
    assert_eq!(world.seen, []);
}

#[test]
fn what_represents_a_private_address_is_not_asked_for_either() {
    let settings = Settings { special_names: SpecialNames::Local, ..settings() };
    let mut world = World::new(settings);
    let name = "1.0.0.0.0.0.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa";
    let got = world.ask(name, "PTR", PLAIN);
    assert_eq!((&*got.rcode, got.authority.len(), world.seen.len()), ("NXDOMAIN", 1, 0));
    for name in ["1.0.0.10.in-addr.arpa", "printer.local", "x.home.arpa"] {
        let got = world.ask(name, "PTR", PLAIN);
        assert_eq!((&*got.rcode, got.authority.len(), world.seen.len()), ("NXDOMAIN", 1, 0), "{name}");
    }
}

#[test]
fn records_of_other_types_are_returned_as_they_are() {
    let zone =
        [("x.test", "TXT", 70, "hello"), ("x.test", "NS", 80, "ns.test"), ("x.test", "A", 90, "10.0.0.1")];
    let mut world = World::new(settings()).with(&zone);
    assert_eq!(world.ask("x.test", "TXT", PLAIN).answer, ["x.test. 70 IN TXT \"hello\""]);
    assert_eq!(world.ask("x.test", "NS", PLAIN).answer, ["x.test. 80 IN NS ns.test."]);
    assert_eq!(world.ask("x.test", "A", PLAIN).answer, ["x.test. 90 IN A 10.0.0.1"]);
}

#[test]
fn what_has_grown_beyond_a_datagram_is_truncated_and_whole_by_stream() {
    let addresses: Vec<String> = (1..=60).map(|host| format!("192.0.2.{host}")).collect();
    let zone: Vec<Record<'_>> = addresses.iter().map(|address| ("v4.test", "A", 60, &**address)).collect();
    let mut world = World::new(settings()).with(&zone);
    assert_eq!(world.ask("v4.test", "A", PLAIN).answer.len(), 60);
    let cut = world.ask("v4.test", "AAAA", PLAIN);
    assert_eq!((cut.truncated, cut.answer.len()), (true, 0));
    let whole = world.send_from(World::client(), Transport::Tcp, &query("v4.test", "AAAA", PLAIN));
    assert_eq!(world.answer(whole).expect("an answer").answer.len(), 60);
}

#[test]
fn section_6_3_3_hosts_of_the_lan_keep_their_ipv4_addresses() {
    let rule = Rule {
        addresses: vec!["10.0.0.0/8".parse().expect("it is well-formed")],
        synthesis: Synthesis::Never,
        ..Rule::default()
    };
    let zone = [("printer.test", "A", 60, "10.1.2.3"), ("v4.test", "A", 60, "192.0.2.1")];
    let mut world = World::new(Settings { rules: vec![rule], ..settings() }).with(&zone);
    assert_eq!(world.ask("printer.test", "AAAA", PLAIN).answer.len(), 0);
    assert_eq!(world.ask("printer.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(world.ask("v4.test", "AAAA", PLAIN).answer.len(), 1);
}

#[test]
fn section_7_1_an_ipv6_network_reaches_the_ipv4_internet() {
    let mut world = World::new(settings()).with(&[("h2.example.com", "A", 60, "192.0.2.1")]);
    let got = world.ask("h2.example.com", "AAAA", PLAIN);
    assert_eq!(address(&got), "64:ff9b::192.0.2.1".parse::<Ipv6Addr>().expect("an address"));
}

#[test]
fn section_7_2_a_host_that_makes_addresses_by_itself_learns_the_prefix_and_gets_what_is_there() {
    let mut world = World::new(settings()).with(&[("h2.example.com", "A", 60, "192.0.2.1")]);
    let well_known = address(&world.ask("ipv4only.arpa", "AAAA", CD_DO));
    assert_eq!(well_known, "64:ff9b::192.0.0.170".parse::<Ipv6Addr>().expect("an address"));
    assert_eq!(world.ask("h2.example.com", "AAAA", CD_DO).answer.len(), 0);
    assert_eq!(world.ask("h2.example.com", "A", CD_DO).answer, ["h2.example.com. 60 IN A 192.0.2.1"]);
}

#[test]
fn section_7_3_the_ipv6_internet_reaches_those_names_that_it_may() {
    let rules = vec![
        Rule { names: vec![wire("example.com")], ..Rule::default() },
        Rule { synthesis: Synthesis::Never, ..Rule::default() },
    ];
    let zone = [("h2.example.com", "A", 60, "192.0.2.1"), ("other.test", "A", 60, "192.0.2.2")];
    let mut world = World::new(Settings { rules, ..with_prefix("2001:db8::/96") }).with(&zone);
    let got = world.ask("h2.example.com", "AAAA", PLAIN);
    assert_eq!(address(&got), "2001:db8::192.0.2.1".parse::<Ipv6Addr>().expect("an address"));
    assert_eq!(world.ask("other.test", "AAAA", PLAIN).answer.len(), 0);
}
