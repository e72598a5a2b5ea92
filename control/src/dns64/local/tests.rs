//! Questions that no upstream sees: whole messages, read by another implementation of the wire format.

use super::*;
use crate::dns64::compose::ResponseOptions;
use crate::dns64::hosts::Hosts;
use crate::dns64::policy::{Policy, settings, wire};
use crate::dns64::query::Query;
use crate::dns64::settings::{Designated, DesignatedTransport, Reverse, Rule, Settings, Synthesis, Wire};
use domain::base::Message;
use domain::base::iana::Rtype;
use domain::rdata::AllRecordData;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// What is answered, in text: RCODE, flags, then the records of both sections.
struct Told {
    rcode: u8,
    authoritative: bool,
    answer: Vec<String>,
    authority: Vec<String>,
}

fn query(name: &str, rtype: Rtype) -> Vec<u8> {
    let header = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let spelt = name.split('.').filter(|label| !label.is_empty());
    let spelt = spelt.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    header.into_iter().chain(spelt).chain([0]).chain(rtype.to_int().to_be_bytes()).chain([0, 1]).collect()
}

fn ask_as(settings: &Settings, client: &str, untouched: bool, name: &str, rtype: Rtype) -> Option<Told> {
    let (policy, local) = (Policy::new(settings), Local::new(settings));
    let message = query(name, rtype);
    let asked = LocalQuestion {
        client: client.parse().unwrap(),
        name: &wire(&name.to_ascii_lowercase()),
        qtype: rtype.to_int(),
        untouched,
    };
    let answer = local.answer(&policy, asked).or_else(|| local.unasked(asked))?;
    let mut out = Vec::new();
    answer.write(&mut out, &Query::read(&message).unwrap(), &ResponseOptions::default());
    Some(told(&out))
}

fn told(message: &[u8]) -> Told {
    let message = Message::from_octets(message).unwrap();
    let text = |section: domain::base::message::RecordSection<'_, &[u8]>| {
        let records = section.limit_to::<AllRecordData<_, _>>().map(Result::unwrap);
        records
            .map(|record| {
                format!("{} {} {} {}", record.owner(), record.ttl().as_secs(), record.rtype(), record.data())
            })
            .collect()
    };
    Told {
        rcode: message.header().rcode().to_int(),
        authoritative: message.header().aa(),
        answer: text(message.answer().unwrap()),
        authority: text(message.authority().unwrap()),
    }
}

fn ask(settings: &Settings, name: &str, rtype: Rtype) -> Option<Told> {
    ask_as(settings, "2001:db8:1::1", false, name, rtype)
}

fn answered(settings: &Settings, name: &str, rtype: Rtype) -> Vec<String> {
    let told = ask(settings, name, rtype).unwrap();
    assert_eq!((told.rcode, told.authoritative, told.authority.len()), (0, true, 0), "{name} {rtype}");
    told.answer
}

fn denied(settings: &Settings, name: &str, rtype: Rtype, rcode: u8, zone: &str) {
    let told = ask(settings, name, rtype).unwrap();
    assert_eq!((told.rcode, told.authoritative, told.answer.len()), (rcode, true, 0), "{name} {rtype}");
    let soa = format!("{zone} 10800 SOA {zone}. nobody.invalid. 1 3600 1200 604800 10800");
    assert_eq!(told.authority, [soa], "{name} {rtype}");
}

fn reversed(address: &str) -> String {
    let nibbles = format!("{:032x}", address.parse::<Ipv6Addr>().unwrap().to_bits());
    let labels: Vec<_> = nibbles.chars().rev().map(String::from).collect();
    format!("{}.ip6.arpa", labels.join("."))
}

#[test]
fn ipv4only_arpa_has_its_two_addresses_and_their_counterparts_under_each_prefix() {
    let second = "2001:db8:32::/48".parse().unwrap();
    let prefixes = [settings().prefixes, vec![Rfc6052::new(second, false).unwrap()]].concat();
    let settings = Settings { prefixes, ..settings() };
    let a = ["ipv4only.arpa 86400 A 192.0.0.170", "ipv4only.arpa 86400 A 192.0.0.171"];
    assert_eq!(answered(&settings, "ipv4only.arpa", Rtype::A), a);
    let aaaa = [
        "ipv4only.arpa 3600 AAAA 2001:db8:64::c000:aa",
        "ipv4only.arpa 3600 AAAA 2001:db8:64::c000:ab",
        "ipv4only.arpa 3600 AAAA 2001:db8:32:c000:0:aa00::",
        "ipv4only.arpa 3600 AAAA 2001:db8:32:c000:0:ab00::",
    ];
    assert_eq!(answered(&settings, "ipv4only.arpa", Rtype::AAAA), aaaa);
}

#[test]
fn ipv4only_arpa_keeps_the_case_that_was_asked_for() {
    let answer = answered(&settings(), "IPv4Only.ARPA", Rtype::A);
    assert_eq!(answer[0], "IPv4Only.ARPA 86400 A 192.0.0.170");
}

#[test]
fn ipv4only_arpa_under_the_well_known_prefix_is_answered_though_the_addresses_are_not_global() {
    let prefixes = vec![Rfc6052::new("64:ff9b::/96".parse().unwrap(), false).unwrap()];
    let answer = answered(&Settings { prefixes, ..settings() }, "ipv4only.arpa", Rtype::AAAA);
    assert_eq!(
        answer,
        ["ipv4only.arpa 3600 AAAA 64:ff9b::c000:aa", "ipv4only.arpa 3600 AAAA 64:ff9b::c000:ab"]
    );
}

#[test]
fn ipv4only_arpa_tells_each_client_its_own_prefix_and_other_rules_do_not_touch_it() {
    let own = Rfc6052::new("2001:db8:99::/96".parse().unwrap(), false).unwrap();
    let clients =
        Rule { clients6: vec!["2001:db8:1::/48".parse().unwrap()], prefixes: vec![own], ..Rule::default() };
    let arpa = Rule {
        names: vec![Wire(wire("arpa").into())],
        synthesis: Synthesis::Never,
        hide_a: true,
        ..Rule::default()
    };
    let exclude = vec!["2001:db8::/32".parse().unwrap()];
    let settings = Settings { rules: vec![arpa, clients], exclude, ..settings() };
    let first =
        |client| ask_as(&settings, client, false, "ipv4only.arpa", Rtype::AAAA).unwrap().answer.remove(0);
    assert_eq!(first("2001:db8:1::1"), "ipv4only.arpa 3600 AAAA 2001:db8:99::c000:aa");
    assert_eq!(first("2001:db8:2::1"), "ipv4only.arpa 3600 AAAA 2001:db8:64::c000:aa");
    assert_eq!(answered(&settings, "ipv4only.arpa", Rtype::A).len(), 2);
}

#[test]
fn ipv4only_arpa_has_nothing_else_and_nothing_below() {
    for rtype in [Rtype::SOA, Rtype::NS, Rtype::TXT, Rtype::MX, Rtype::DNSKEY, Rtype::PTR, Rtype::ANY] {
        denied(&settings(), "ipv4only.arpa", rtype, 0, "ipv4only.arpa");
    }
    for rtype in [Rtype::A, Rtype::AAAA, Rtype::DS, Rtype::NS] {
        denied(&settings(), "a.b.ipv4only.arpa", rtype, 3, "ipv4only.arpa");
    }
}

#[test]
fn ds_of_ipv4only_arpa_is_for_an_upstream_and_so_is_all_of_it_if_so_configured() {
    assert!(ask(&settings(), "ipv4only.arpa", Rtype::DS).is_none());
    let upstream = Settings { local_ipv4only: false, ..settings() };
    assert!(ask(&upstream, "ipv4only.arpa", Rtype::AAAA).is_none());
    for name in ["arpa", "xipv4only.arpa", "example", ""] {
        assert!(ask(&settings(), name, Rtype::A).is_none(), "{name}");
    }
}

#[test]
fn ipv4only_arpa_is_answered_to_who_validates_by_itself_too() {
    let told = ask_as(&settings(), "2001:db8:1::1", true, "ipv4only.arpa", Rtype::AAAA).unwrap();
    assert_eq!(told.answer.len(), 2);
}

#[test]
fn the_well_known_addresses_under_our_prefixes_are_called_ipv4only_arpa_at_once() {
    let prefixes = vec![Rfc6052::new("2001:db8:64::/64".parse().unwrap(), false).unwrap()];
    for reverse in [Reverse::Cname { ttl: 600 }, Reverse::Rewrite] {
        let settings = Settings { prefixes: prefixes.clone(), reverse, ..settings() };
        for address in ["2001:db8:64:0:c0:0:aa00:0", "2001:db8:64:0:c0:0:ab00:0", "64:ff9b::c000:aa"] {
            let name = reversed(address);
            assert_eq!(answered(&settings, &name, Rtype::PTR), [format!("{name} 86400 PTR ipv4only.arpa.")]);
        }
        assert!(ask(&settings, &reversed("2001:db8:64:0:c0:0:ac00:0"), Rtype::PTR).is_none());
        assert!(ask(&settings, &reversed("2001:db8:65:0:c0:0:aa00:0"), Rtype::PTR).is_none());
        assert!(ask(&settings, &reversed("64:ff9b::c000:aa"), Rtype::TXT).is_none());
        let name = reversed("64:ff9b::c000:aa");
        assert!(ask_as(&settings, "::1", true, &name, Rtype::PTR).is_none(), "CD and DO");
    }
}

#[test]
fn the_well_known_addresses_under_in_addr_arpa_are_not_special_to_a_resolver() {
    for name in ["170.0.0.192.in-addr.arpa", "171.0.0.192.in-addr.arpa"] {
        assert!(ask(&settings(), name, Rtype::PTR).is_none());
    }
}

#[test]
fn with_a_name_for_our_prefixes_their_zones_are_answered_here() {
    let reverse = Reverse::Name { name: Wire(wire("nat64.example").into()), ttl: 600 };
    let settings = Settings { reverse, ..settings() };
    for address in ["2001:db8:64::c000:201", "2001:db8:64::c000:aa", "64:ff9b::1"] {
        let name = reversed(address);
        assert_eq!(answered(&settings, &name, Rtype::PTR), [format!("{name} 600 PTR nat64.example.")]);
    }
    let zone = reversed("2001:db8:64::").split_off(16);
    let name = reversed("2001:db8:64::c000:201");
    denied(&settings, &name, Rtype::AAAA, 0, &zone);
    denied(&settings, &name[4..], Rtype::PTR, 0, &zone);
    denied(&settings, &zone, Rtype::NS, 0, &zone);
    denied(&settings, &format!("x.{name}"), Rtype::PTR, 3, &zone);
    denied(&settings, &format!("x.{zone}"), Rtype::PTR, 3, &zone);
    denied(&settings, &format!("1.{name}"), Rtype::PTR, 3, &zone);
    let soa = format!("{zone} 10800 SOA {zone}. nobody.invalid. 1 3600 1200 604800 10800");
    assert_eq!(answered(&settings, &zone, Rtype::SOA), [soa]);
    assert!(ask(&settings, &zone[2..], Rtype::SOA).is_none());
    assert!(ask(&settings, &reversed("2001:db8:65::1"), Rtype::PTR).is_none());
}

#[test]
fn localhost_is_this_host_whatever_stands_before_it() {
    for name in ["localhost", "a.b.localhost"] {
        assert_eq!(answered(&settings(), name, Rtype::A), [format!("{name} 10800 A 127.0.0.1")]);
        assert_eq!(answered(&settings(), name, Rtype::AAAA), [format!("{name} 10800 AAAA ::1")]);
        denied(&settings(), name, Rtype::MX, 0, "localhost");
    }
    assert!(ask(&settings(), "localhost.example", Rtype::A).is_none());
}

#[test]
fn invalid_and_onion_do_not_exist() {
    for (name, zone) in
        [("invalid", "invalid"), ("a.invalid", "invalid"), ("a.onion", "onion"), ("onion", "onion")]
    {
        for rtype in [Rtype::A, Rtype::AAAA, Rtype::DS, Rtype::ANY] {
            denied(&settings(), name, rtype, 3, zone);
        }
    }
}

#[test]
fn loopback_addresses_are_called_localhost_and_never_asked_for() {
    let settings = settings();
    let six = reversed("::1");
    assert_eq!(
        answered(&settings, "1.0.0.127.in-addr.arpa", Rtype::PTR),
        ["1.0.0.127.in-addr.arpa 10800 PTR localhost."]
    );
    assert_eq!(answered(&settings, &six, Rtype::PTR), [format!("{six} 10800 PTR localhost.")]);
    denied(&settings, "2.0.0.127.in-addr.arpa", Rtype::PTR, 3, "127.in-addr.arpa");
    denied(&settings, "1.1.0.0.127.in-addr.arpa", Rtype::PTR, 3, "127.in-addr.arpa");
    denied(&settings, "0.0.127.in-addr.arpa", Rtype::PTR, 0, "127.in-addr.arpa");
    denied(&settings, "127.in-addr.arpa", Rtype::NS, 0, "127.in-addr.arpa");
    denied(&settings, &six, Rtype::A, 0, &six);
    assert_eq!(answered(&settings, "127.in-addr.arpa", Rtype::SOA).len(), 1);
    assert!(ask(&settings, "1.0.0.10.in-addr.arpa", Rtype::PTR).is_none());
    assert!(ask(&settings, &reversed("::2"), Rtype::PTR).is_none());
}

#[test]
fn a_query_for_any_gets_one_record_if_so_configured() {
    let minimal = Settings { minimal_any: true, ..settings() };
    let told = ask(&minimal, "a.example", Rtype::ANY).unwrap();
    assert_eq!((told.rcode, told.authoritative), (0, false));
    assert_eq!(told.answer, ["a.example 3600 HINFO \"RFC8482\" \"\""]);
    assert!(ask(&settings(), "a.example", Rtype::ANY).is_none());
    assert!(ask(&minimal, "a.example", Rtype::A).is_none());
}

#[test]
fn designated_resolvers_are_those_of_rfc_9462() {
    let name = Wire(wire("dns.example").into());
    let tls = Designated {
        name: name.clone(),
        transport: DesignatedTransport::Tls,
        port: 853,
        v4: vec![],
        v6: vec!["2001:db8::53".parse().unwrap()],
    };
    let https = Designated {
        name,
        transport: DesignatedTransport::Https("/dns-query{?dns}".into()),
        port: 8443,
        v4: vec!["192.0.2.53".parse().unwrap()],
        v6: vec![],
    };
    let settings = Settings { designated: vec![tls, https], ..settings() };
    let answer = answered(&settings, "_dns.resolver.arpa", Rtype::SVCB);
    assert_eq!(
        answer,
        [
            "_dns.resolver.arpa 3600 SVCB 1 dns.example. alpn=dot ipv6hint=2001:db8::53",
            "_dns.resolver.arpa 3600 SVCB 2 dns.example. alpn=h2 port=8443 ipv4hint=192.0.2.53 dohpath=/dns-query{?dns}",
        ]
    );
    assert!(ask(&settings, "_dns.resolver.arpa", Rtype::A).is_none(), "that is for the zone");
}

fn with_hosts(text: &str) -> Settings {
    Settings { hosts: Arc::new(Hosts::read(text).0), ..settings() }
}

#[test]
fn names_of_a_hosts_file_are_answered_here() {
    let both = with_hosts("192.0.2.7 printer.home.example printer\n2001:db8::7 printer.home.example\n");
    let printer = "printer.home.example";
    assert_eq!(answered(&both, printer, Rtype::A), [format!("{printer} 60 A 192.0.2.7")]);
    assert_eq!(answered(&both, printer, Rtype::AAAA), [format!("{printer} 60 AAAA 2001:db8::7")]);
    assert_eq!(answered(&both, "Printer", Rtype::AAAA), ["Printer 60 AAAA 2001:db8:64::c000:207"]);
    let told = ask(&both, printer, Rtype::MX).unwrap();
    assert_eq!((told.rcode, told.answer.len(), told.authority.len()), (0, 0, 1));
    let name = "7.2.0.192.in-addr.arpa";
    assert_eq!(
        answered(&both, name, Rtype::PTR),
        [format!("{name} 60 PTR {printer}."), format!("{name} 60 PTR printer.")]
    );
    let six = reversed("2001:db8::7");
    assert_eq!(answered(&both, &six, Rtype::PTR), [format!("{six} 60 PTR {printer}.")]);
    for other in ["x.printer.home.example", "home.example"] {
        assert!(ask(&both, other, Rtype::A).is_none(), "{other}");
    }
}

#[test]
fn rules_hold_for_names_of_a_hosts_file() {
    let never = Rule { names: vec![Wire(wire("a").into())], synthesis: Synthesis::Never, ..Rule::default() };
    let hidden = Rule { names: vec![Wire(wire("b").into())], hide_a: true, ..Rule::default() };
    let settings = Settings { rules: vec![never, hidden], ..with_hosts("192.0.2.7 a b c\n") };
    for (name, rtype, expected) in [
        ("a", Rtype::AAAA, 0),
        ("a", Rtype::A, 1),
        ("b", Rtype::AAAA, 1),
        ("b", Rtype::A, 0),
        ("c", Rtype::AAAA, 1),
    ] {
        let told = ask(&settings, name, rtype).unwrap();
        assert_eq!((told.answer.len(), told.authority.len()), (expected, 1 - expected), "{name} {rtype}");
    }
    let told = ask_as(&settings, "2001:db8:1::1", true, "c", Rtype::AAAA).unwrap();
    assert_eq!(told.answer.len(), 0, "CD and DO");
}
