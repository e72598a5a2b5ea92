//! Names of IPv6-only servers for the IPv4 clients of a NAT46.

use super::dnssec::{RECORDED, dnssec as validating};
use super::world::{AD, Bits, CD, CD_DO, DO, Got, Manner, PLAIN, World, query, settings, wire};
use sixway_control::dns64::{
    CheckingDisabled, DnssecOk, NameMappings, Outcome, Reverse, Rule, Settings, Synthesis, Transport,
};
use sixway_dataplane::mechanism::nat46::{MappingSettings, Mappings, Sharing};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);

const ZONE: [(&str, &str, u32, &str); 10] = [
    ("v6.test", "AAAA", 200, "2001:db8:80::1"),
    ("both.test", "AAAA", 60, "2001:db8:80::2"),
    ("both.test", "A", 60, "192.0.2.2"),
    ("text.test", "TXT", 60, "hello"),
    ("www.test", "CNAME", 100, "v6.test"),
    ("ftp.v6.test", "AAAA", 60, "2001:db8:80::3"),
    ("private.test", "AAAA", 60, "fd00::1"),
    ("mapped.test", "AAAA", 60, "::ffff:192.0.2.1"),
    ("static.test", "AAAA", 60, "fd00::80"),
    ("short.test", "AAAA", 7, "2001:db8:80::7"),
];

fn mapping_settings() -> MappingSettings {
    MappingSettings {
        pool: "192.168.46.0/24".parse().expect("it is well-formed"),
        excluded: Vec::new(),
        statics: vec![("192.168.46.80".parse().expect("it is"), "fd00::80".parse().expect("it is"))],
        clients: vec!["10.0.0.0/8".parse().expect("it is well-formed")],
        servers: vec!["2000::/3".parse().expect("it is well-formed")],
        not_servers: Vec::new(),
        sharing: Sharing::Client,
        max_mappings: 10_000,
        max_per_client: 100,
        by_name: true,
    }
}

struct Nat46 {
    world: World,
    transport: Transport,
    table: Arc<Mappings>,
}

fn nat46_with(mut settings: Settings, mappings: MappingSettings) -> Nat46 {
    settings.access.v4 = vec!["10.0.0.0/8".parse().expect("it is"), "172.16.0.0/12".parse().expect("it is")];
    let table = Arc::new(Mappings::in_memory(mappings, [1, 2]).expect("it can be"));
    let names =
        NameMappings { table: Arc::clone(&table), excluded: vec![wire("ftp.v6.test")], longest_ttl: 120 };
    let world = World::new(settings).with_mappings(names);
    Nat46 { world, transport: Transport::Udp, table }
}

fn nat46() -> Nat46 {
    let mut nat46 = nat46_with(settings(), mapping_settings());
    nat46.world.add(&ZONE);
    nat46
}

impl Nat46 {
    fn ask(&mut self, client: Ipv4Addr, name: &str, rtype: &str, bits: Bits) -> Got {
        let message = query(name, rtype, bits);
        let ticket = self.world.send_from(client.to_ipv6_mapped(), self.transport, &message);
        for _ in 0..10_000 {
            if let Some(got) = self.world.answer(ticket) {
                return got;
            }
            self.world.step();
        }
        panic!("{name} {rtype} was never answered");
    }

    fn server(&self, client: Ipv4Addr, got: &Got) -> Option<Ipv6Addr> {
        let address = got.answer.last()?.rsplit(' ').next()?.parse().ok()?;
        self.table.server_of(client, address, self.world.now)
    }
}

fn six(text: &str) -> Ipv6Addr {
    text.parse().expect("it is well-formed")
}

#[test]
fn a_name_with_aaaa_records_alone_leads_a_client_to_an_address_of_the_pool() {
    let mut nat46 = nat46();
    let got = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 1, 0), "{got:?}");
    assert!(got.answer[0].starts_with("v6.test. 120 IN A 192.168.46."), "the longest TTL: {got:?}");
    assert_eq!(
        nat46.server(CLIENT, &got),
        Some(six("2001:db8:80::1")),
        "when the answer is there, so is the mapping"
    );
    assert_eq!(nat46.world.counters().of(Outcome::Mapped), 1);
    // Again: the same address, from the cache.
    let asked = nat46.world.seen.len();
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer, got.answer);
    assert_eq!(nat46.world.seen.len(), asked);
    assert_eq!(nat46.table.counts().made, 1);
}

#[test]
fn a_chain_leads_there_with_its_own_ttl() {
    let mut nat46 = nat46();
    let got = nat46.ask(CLIENT, "www.test", "A", PLAIN);
    assert_eq!(got.answer.len(), 2, "{got:?}");
    assert!(got.answer[0].starts_with("www.test. 100 IN CNAME v6.test"), "{got:?}");
    assert!(got.answer[1].starts_with("v6.test. 100 IN A 192.168.46."), "{got:?}");
}

#[test]
fn no_answer_outlives_what_it_is_made_of() {
    let mut nat46 = nat46();
    assert!(nat46.ask(CLIENT, "short.test", "A", PLAIN).answer[0].starts_with("short.test. 7 IN A "));
    nat46.world.soa = Some((50, 40));
    let got = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    assert!(got.answer[0].starts_with("v6.test. 40 IN A "), "there may be A records then: {got:?}");
    nat46.world.jump(Duration::from_secs(15));
    let got = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    assert!(got.answer[0].starts_with("v6.test. 25 IN A "), "{got:?}");
}

#[test]
fn a_records_that_are_there_and_negative_answers_are_left_as_they_are() {
    let mut nat46 = nat46();
    let both = nat46.ask(CLIENT, "both.test", "A", PLAIN);
    assert_eq!(both.answer, ["both.test. 60 IN A 192.0.2.2"]);
    let text = nat46.ask(CLIENT, "text.test", "A", PLAIN);
    assert_eq!((&*text.rcode, text.answer.len(), text.authority.len()), ("NOERROR", 0, 1), "{text:?}");
    let none = nat46.ask(CLIENT, "nothing.example", "A", PLAIN);
    assert_eq!((&*none.rcode, none.answer.len(), none.authority.len()), ("NXDOMAIN", 0, 1), "{none:?}");
    let aaaa = nat46.ask(CLIENT, "v6.test", "AAAA", PLAIN);
    assert_eq!(aaaa.answer, ["v6.test. 200 IN AAAA 2001:db8:80::1"]);
    assert_eq!(nat46.table.counts().made, 0);
}

#[test]
fn who_is_no_client_gets_what_the_upstream_said() {
    let mut nat46 = nat46();
    for client in [Ipv4Addr::new(172, 16, 0, 1), Ipv4Addr::new(172, 31, 255, 255)] {
        let got = nat46.ask(client, "v6.test", "A", PLAIN);
        assert_eq!((&*got.rcode, got.answer.len(), got.authority.len()), ("NOERROR", 0, 1), "{got:?}");
    }
    let got = nat46.world.ask("v6.test", "A", PLAIN);
    assert_eq!(got.answer.len(), 0, "a client with IPv6");
    assert_eq!(nat46.table.counts().made, 0);
}

#[test]
fn excluded_names_and_servers_lead_nowhere() {
    let mut nat46 = nat46();
    for name in ["ftp.v6.test", "FTP.v6.TEST", "mapped.test"] {
        let got = nat46.ask(CLIENT, name, "A", PLAIN);
        assert_eq!(
            (&*got.rcode, got.answer.len(), got.authority.len()),
            ("NOERROR", 0, 1),
            "{name}: {got:?}"
        );
    }
    let got = nat46.ask(CLIENT, "private.test", "A", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 0), "{got:?}");
    assert_eq!(
        got.extended_error.map(|(_, text)| text).as_deref(),
        Some("no server that NAT46 translates to")
    );
    // One with a static mapping may have any address.
    let got = nat46.ask(CLIENT, "static.test", "A", PLAIN);
    assert_eq!(got.answer, ["static.test. 60 IN A 192.168.46.80"]);
    let rules = vec![Rule { names: vec![wire("v6.test")], synthesis: Synthesis::Never, ..Rule::default() }];
    let mut ruled = nat46_with(Settings { rules, ..settings() }, mapping_settings());
    ruled.world.add(&ZONE);
    assert_eq!(ruled.ask(CLIENT, "v6.test", "A", PLAIN).answer.len(), 0);
}

#[test]
fn a_name_with_many_servers_leads_to_two_and_to_those_that_are_known() {
    let mut nat46 = nat46();
    let servers: Vec<String> = (1..=8).map(|last| format!("2001:db8:81::{last}")).collect();
    let zone: Vec<_> = servers.iter().map(|server| ("many.test", "AAAA", 60, server.as_str())).collect();
    nat46.world.add(&zone);
    let now = nat46.world.now;
    nat46.table.map(CLIENT, six("2001:db8:81::7"), 60, now).expect("there is room");
    let got = nat46.ask(CLIENT, "many.test", "A", PLAIN);
    assert_eq!(got.answer.len(), 2, "{got:?}");
    let address = nat46.table.address_of(CLIENT, six("2001:db8:81::7"), nat46.world.now).expect("it lives");
    assert!(got.answer[0].ends_with(&address.to_string()), "{got:?}");
    assert_eq!(nat46.table.counts().made, 2);
}

#[test]
fn a_client_without_a_mapping_left_is_told_to_ask_again() {
    let mut nat46 = nat46_with(settings(), MappingSettings { max_per_client: 1, ..mapping_settings() });
    nat46.world.add(&ZONE);
    nat46.transport = Transport::Tcp;
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer.len(), 1);
    let got = nat46.ask(CLIENT, "short.test", "A", PLAIN);
    assert_eq!((&*got.rcode, got.answer.len()), ("SERVFAIL", 0));
    let why = got.extended_error.map(|(_, text)| text);
    assert_eq!(why.as_deref(), Some("this client has its maximum of NAT46 mappings"));
    assert_eq!(nat46.world.counters().of(Outcome::Unmapped), 1);
    assert_eq!(nat46.ask(OTHER, "short.test", "A", PLAIN).answer.len(), 1, "another one is not concerned");
}

#[test]
fn a_client_with_many_mappings_proves_by_tcp_that_it_asks_itself() {
    let mut nat46 = nat46_with(settings(), MappingSettings { max_per_client: 4, ..mapping_settings() });
    nat46.world.add(&ZONE);
    for name in ["v6.test", "short.test"] {
        assert_eq!(nat46.ask(CLIENT, name, "A", PLAIN).answer.len(), 1);
    }
    nat46.world.add(&[("third.test", "AAAA", 60, "2001:db8:80::33")]);
    let got = nat46.ask(CLIENT, "third.test", "A", PLAIN);
    assert_eq!((got.truncated, got.answer.len()), (true, 0), "{got:?}");
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer.len(), 1, "what it has costs nothing");
    nat46.transport = Transport::Tcp;
    assert_eq!(nat46.ask(CLIENT, "third.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(nat46.world.counters().of(Outcome::Truncated), 1);
}

/// Queries in the names of many clients, whose sources are forged.
#[test]
fn a_flood_in_the_names_of_others_leaves_half_of_the_table_to_who_proves_itself() {
    let mut nat46 = nat46_with(settings(), MappingSettings { max_mappings: 20, ..mapping_settings() });
    nat46.world.add(&ZONE);
    for number in 0..50 {
        let got = nat46.ask(Ipv4Addr::new(10, 1, 0, number), "v6.test", "A", PLAIN);
        assert_eq!((got.truncated, got.answer.len()), (number >= 10, usize::from(number < 10)), "{got:?}");
    }
    assert!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).truncated);
    nat46.transport = Transport::Tcp;
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer.len(), 1);
}

#[test]
fn a_chain_to_an_excluded_name_leads_nowhere() {
    let mut nat46 = nat46();
    nat46.world.add(&[("files.test", "CNAME", 60, "FTP.v6.test")]);
    assert_eq!(
        nat46.ask(CLIENT, "files.test", "A", PLAIN).answer.iter().filter(|it| it.contains(" A ")).count(),
        0
    );
    assert_eq!(nat46.table.counts().made, 0);
}

/// One client asks for names as fast as it can, another one for a new name in each turn, whose mappings end after it used them: how many of the
/// latter's queries over TCP get an address. Each name has a server of its own.
fn new_names_that_are_mapped(mappings: MappingSettings, attackers: u8, transport: Transport) -> usize {
    let mut nat46 = nat46_with(settings(), mappings);
    let mut passed = 0;
    for turn in 0..120_u32 {
        for number in 0..10 {
            let name = format!("n{turn}x{number}.test");
            nat46.world.add(&[(&name, "AAAA", 60, &format!("2001:db8:90::{turn:x}:{number}"))]);
            let attacker = Ipv4Addr::new(10, 66, 0, (turn * 10 + number) as u8 % attackers);
            nat46.transport = transport;
            nat46.ask(attacker, &name, "A", PLAIN);
        }
        let name = format!("new{turn}.test");
        nat46.world.add(&[(&name, "AAAA", 60, &format!("2001:db8:91::{turn:x}"))]);
        nat46.transport = Transport::Tcp;
        let got = nat46.ask(CLIENT, &name, "A", PLAIN);
        let is_right = nat46.server(CLIENT, &got) == Some(six(&format!("2001:db8:91::{turn:x}")));
        passed += usize::from(is_right);
        nat46.world.jump(Duration::from_secs(20));
    }
    passed
}

/// The first hundred turns fill what the attackers may have, and the mappings of the other client have begun to end: after about 270 s.
#[test]
fn a_flood_of_names_costs_the_new_names_of_another_client_at_most_one_in_a_hundred() {
    let table = MappingSettings { max_mappings: 500, ..mapping_settings() };
    let shared = MappingSettings { sharing: Sharing::All, ..mapping_settings() };
    for (attackers, transport) in [(1, Transport::Tcp), (8, Transport::Tcp), (250, Transport::Udp)] {
        for mappings in [table.clone(), shared.clone()] {
            let passed = new_names_that_are_mapped(mappings.clone(), attackers, transport);
            assert!(passed >= 119, "{passed} of 120: {attackers}, {mappings:?}");
        }
    }
}

#[test]
fn a_failing_upstream_is_not_a_missing_record() {
    let mut nat46 = nat46();
    nat46.world.manners = vec![Manner::ServfailTo(28)];
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).rcode, "SERVFAIL");
    let mut silent = self::nat46();
    silent.world.manners = vec![Manner::SilentTo(28)];
    assert_eq!(silent.ask(CLIENT, "v6.test", "A", PLAIN).rcode, "SERVFAIL");
    assert_eq!(silent.table.counts().made, 0);
}

#[test]
fn what_is_stale_is_given_for_a_short_time() {
    let mut nat46 = nat46();
    let fresh = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    nat46.world.jump(Duration::from_secs(2_000));
    nat46.world.manners = vec![Manner::Silent];
    let stale = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    assert!(stale.answer[0].starts_with("v6.test. 30 IN A "), "{stale:?}");
    assert_eq!(nat46.server(CLIENT, &stale), Some(six("2001:db8:80::1")));
    assert_eq!(fresh.answer[0].rsplit(' ').next(), stale.answer[0].rsplit(' ').next());
}

/// The table of `docs/mechanisms/nat46.md`: the client's bits, whether A and AAAA are signed and validated here, and what it gets.
#[test]
fn each_client_gets_what_the_table_says() {
    let mapped = |got: &Got| {
        got.rcode == "NOERROR" && got.answer.iter().any(|line| line.contains(" IN A 192.168.46."))
    };
    let untouched = |got: &Got| got.rcode == "NOERROR" && got.answer.is_empty() && !got.authority.is_empty();
    for (bits, is_mapped) in [(PLAIN, true), (AD, true), (DO, true), (CD, true), (CD_DO, false)] {
        for trust_upstream in [false, true] {
            let mut settings = settings();
            settings.dnssec.trust_upstream = trust_upstream;
            settings.dnssec.ad_without_do = true;
            let mut nat46 = nat46_with(settings, mapping_settings());
            nat46.world.add(&ZONE);
            nat46.world.manners = vec![Manner::Authentic];
            let got = nat46.ask(CLIENT, "v6.test", "A", bits);
            assert_eq!((mapped(&got), untouched(&got)), (is_mapped, !is_mapped), "{bits:?}: {got:?}");
            assert!(!got.authentic || !is_mapped, "what is made is never authentic: {bits:?}: {got:?}");
            assert_eq!(nat46.table.counts().made, u64::from(is_mapped));
        }
    }
    let mut settings = settings();
    settings.dnssec.trust_upstream = true;
    settings.dnssec.checking_disabled = CheckingDisabled::PassOn;
    settings.dnssec.dnssec_ok = DnssecOk::PassOn;
    let mut nat46 = nat46_with(settings, mapping_settings());
    nat46.world.add(&ZONE);
    nat46.world.manners = vec![Manner::Authentic];
    for (bits, is_mapped) in [(PLAIN, true), (AD, true), (DO, false), (CD, false), (CD_DO, false)] {
        let got = nat46.ask(CLIENT, "v6.test", "A", bits);
        assert_eq!(
            (mapped(&got), untouched(&got)),
            (is_mapped, !is_mapped),
            "as configured, {bits:?}: {got:?}"
        );
    }
}

#[test]
fn nothing_is_made_of_what_does_not_validate() {
    let settings = Settings { dnssec: validating(), ..settings() };
    let mut nat46 = nat46_with(settings, mapping_settings());
    // The zone has no signatures, and the anchor says that it should have.
    nat46.world.add(&ZONE);
    for bits in [PLAIN, DO] {
        let got = nat46.ask(CLIENT, "v6.test", "A", bits);
        assert_eq!((&*got.rcode, got.answer.len()), ("SERVFAIL", 0), "{got:?}");
    }
    assert_eq!(nat46.table.counts().made, 0);
}

/// That there is no A record is proven, and the AAAA record has no signature.
#[test]
fn a_valid_answer_for_a_is_given_if_the_one_for_aaaa_is_bogus() {
    let settings = Settings { dnssec: validating(), ..settings() };
    let mut nat46 = nat46_with(settings, mapping_settings());
    // Header, x.odd.test AAAA IN, and a record of it.
    let unsigned = "0000819000010001000000000178036f6464047465737400001c0001c00c001c00010000003c001020010db8008000000000000000000009";
    nat46.world =
        nat46.world.with_recorded(RECORDED).with_recorded(&format!("x.odd.test 28 bogus {unsigned}"));
    for bits in [PLAIN, DO] {
        assert_eq!(nat46.ask(CLIENT, "x.odd.test", "AAAA", bits).rcode, "SERVFAIL", "it is bogus");
        let got = nat46.ask(CLIENT, "x.odd.test", "A", bits);
        assert_eq!((&*got.rcode, got.answer.len()), ("NOERROR", 0), "{got:?}");
        assert!(got.authority.iter().any(|record| record.contains("SOA")), "{got:?}");
    }
    assert_eq!(nat46.table.counts().made, 0);
    let got = nat46.ask(CLIENT, "x.odd.test", "A", CD);
    assert_eq!(nat46.server(CLIENT, &got), Some(six("2001:db8:80::9")), "with CD=1 it is the client's risk");
}

#[test]
fn an_address_of_the_pool_has_its_servers_name() {
    let mut nat46 = nat46();
    let name = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    nat46.world.add(&[(name, "PTR", 500, "v6.test")]);
    let got = nat46.ask(CLIENT, "v6.test", "A", PLAIN);
    let address: Ipv4Addr =
        got.answer[0].rsplit(' ').next().and_then(|it| it.parse().ok()).expect("an address");
    let [a, b, c, d] = address.octets();
    let reverse = format!("{d}.{c}.{b}.{a}.in-addr.arpa");
    let got = nat46.ask(CLIENT, &reverse, "PTR", PLAIN);
    assert_eq!(
        got.answer,
        [format!("{reverse}. 120 IN CNAME {name}."), format!("{name}. 120 IN PTR v6.test.")],
        "no longer than the address is certainly this server's: {got:?}"
    );
    assert_eq!(nat46.world.counters().of(Outcome::Reverse), 1);
    // It is nothing to another client.
    assert_eq!(nat46.ask(OTHER, &reverse, "PTR", PLAIN).rcode, "NXDOMAIN");
    let mut rewriting = nat46_with(Settings { reverse: Reverse::Rewrite, ..settings() }, mapping_settings());
    rewriting.world.add(&[(name, "PTR", 500, "v6.test")]);
    let now = rewriting.world.now;
    assert_eq!(rewriting.table.map(CLIENT, six("2001:db8:80::1"), 60, now), Ok(address));
    assert_eq!(
        rewriting.ask(CLIENT, &reverse, "PTR", PLAIN).answer,
        [format!("{reverse}. 120 IN PTR v6.test.")]
    );
    // The mapping's last seconds.
    rewriting.world.jump(Duration::from_secs(260));
    let got = rewriting.ask(CLIENT, &reverse, "PTR", PLAIN);
    let ttl: u32 = got.answer[0].split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a TTL");
    assert!((5..=10).contains(&ttl), "{got:?}");
}

#[test]
fn without_a_translation_prefix_no_aaaa_record_is_made_and_a_records_are_mapped() {
    let mut nat46 = nat46_with(Settings { prefixes: Vec::new(), ..settings() }, mapping_settings());
    nat46.world.add(&ZONE);
    nat46.world.add(&[("v4.test", "A", 60, "192.0.2.1")]);
    assert_eq!(nat46.ask(CLIENT, "v4.test", "AAAA", PLAIN).answer.len(), 0);
    assert_eq!(nat46.world.seen.len(), 1, "A is not asked for");
    assert_eq!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer.len(), 1);
    assert_eq!(nat46.ask(CLIENT, "ipv4only.arpa", "AAAA", PLAIN).answer.len(), 0);
}

#[test]
fn where_only_static_mappings_exist_no_name_makes_another() {
    let mut nat46 = nat46_with(settings(), MappingSettings { by_name: false, ..mapping_settings() });
    nat46.world.add(&ZONE);
    assert!(nat46.ask(CLIENT, "v6.test", "A", PLAIN).answer.is_empty());
    assert_eq!(nat46.table.counts().made, 0);
}

#[test]
fn a_static_address_has_no_name_for_who_is_no_client() {
    let mut nat46 = nat46();
    let name = "0.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa";
    nat46.world.add(&[(name, "PTR", 500, "static.test")]);
    let reverse = "80.46.168.192.in-addr.arpa";
    assert_eq!(nat46.ask(CLIENT, reverse, "PTR", PLAIN).answer.len(), 2);
    assert_eq!(nat46.ask(Ipv4Addr::new(172, 16, 0, 1), reverse, "PTR", PLAIN).rcode, "NXDOMAIN");
}
