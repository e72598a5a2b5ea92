//! DNS64: what is read, and what a resolver and hosts learn.

use super::*;
use sixway_control::dns64::{Access, Limits, Reverse as ControlReverse, Settings, SynthesisedTtl, Wire};
use std::net::SocketAddr;
use std::time::Duration;

pub(super) const DNS64: &str =
    "[dns64]\nlisten = \"2001:db8:ffff::7\"\nupstream = [{ address = \"198.51.100.53\" }]\n";
pub(super) const ELSEWHERE: &str = "prefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n";

#[track_caller]
pub(super) fn good(text: &str) -> Config {
    let (config, _) = parse(text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}"));
    let again = config.to_string();
    assert_eq!(parse(&again).unwrap_or_else(|faults| panic!("{faults}\nin:\n{again}")).0, config);
    config
}

fn settings(config: &Config) -> Settings {
    let access = config.dns64_access(&host().addresses, &Surroundings::default());
    config.dns64_settings(access, Vec::new()).unwrap()
}

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn alone_it_needs_where_it_listens_whom_it_asks_and_a_prefix() {
    let config = good(&format!("{DNS64}{ELSEWHERE}"));
    assert!(!config.needs_device() && config.routes().is_empty());
    let dns64 = config.dns64.as_ref().unwrap();
    assert_eq!(dns64.listening.listen, [socket("[2001:db8:ffff::7]:53")]);
    assert_eq!(dns64.upstreams[0].endpoint(), socket("198.51.100.53:53"));
    let told = settings(&config);
    assert!(told.prefixes[0].is_well_known() && told.prefixes[0].is_global_only());
    assert_eq!(told.exclude, ["::ffff:0:0/96".parse().unwrap()]);
    assert_eq!(told.reverse, ControlReverse::Cname { ttl: 600 });
    assert_eq!(told.synthesised_ttl, SynthesisedTtl::Negative);
    assert!(told.upstreams[0].datagrams && told.parallel && told.prefetch && told.minimal_any);
    let limits = Limits {
        cache: 64 << 20,
        waiting: 10_000,
        per_client: None,
        udp_payload: 1_232,
        longest_ttl: 86_400,
        longest_negative_ttl: 10_800,
        deadline: Duration::from_secs(5),
    };
    assert_eq!(told.limits, limits);
}

#[test]
fn the_prefix_is_the_translators() {
    let config = good(&format!("{OWN}{POOL}{NAT64}{DNS64}"));
    assert_eq!(settings(&config).prefixes, [config.nat64[0].prefix]);
    let siit = good(&format!("{OWN}[siit]\nprefix = \"64:ff9b::/96\"\ntranslate_non_global = true\n{DNS64}"));
    assert!(!settings(&siit).prefixes[0].is_global_only(), "and so are its choices");
}

#[test]
fn queries_are_logged_only_if_that_is_written() {
    let logs = |more: &str| good(&format!("{DNS64}{ELSEWHERE}{more}")).dns64.unwrap().query_log;
    assert!(!logs(""));
    assert!(!logs("query_log = false\n"));
    assert!(logs("query_log = true\n"));
}

#[test]
fn who_may_ask_is_who_is_near() {
    let told = settings(&good(&format!("{DNS64}{ELSEWHERE}"))).access;
    let v4 = ["127.0.0.0/8", "203.0.113.0/24"].map(|p| p.parse().unwrap()).to_vec();
    let v6 = ["::1/128", "2001:db8:ffff::/64", "fe80::/10"].map(|p| p.parse().unwrap()).to_vec();
    assert_eq!(told, Access { v4, v6, ..told.clone() }, "the device's own network is another");
    let lan = "[router_advertisement]\ninterface = \"eth0\"\nprefixes = [{ prefix = \"2001:db8:5::/64\" }]\n";
    let told = settings(&good(&format!("{DNS64}{ELSEWHERE}{lan}"))).access;
    assert!(told.v6.contains(&"2001:db8:5::/64".parse().unwrap()));
    let written =
        settings(&good(&format!("{DNS64}{ELSEWHERE}allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n"))).access;
    assert_eq!(
        written,
        Access {
            v4: vec!["10.0.0.0/8".parse().unwrap()],
            v6: vec!["2001:db8::/32".parse().unwrap()],
            ..Access::default()
        }
    );
}

#[test]
fn an_upstream_through_a_nat64_is_asked_by_ipv6() {
    let upstream = |more: &str| DNS64.replace(" }]", &format!(", {more} }}]"));
    let config = good(&format!("{OWN}{POOL}{NAT64}{}", upstream("through = \"nat64\"")));
    assert_eq!(config.dns64.unwrap().upstreams[0].endpoint(), socket("[2001:db8:64::c633:6435]:53"));
    let tls = upstream("through = \"2001:db8:1::/96\", transport = \"tls\", name = \"dns.example\"");
    let config = good(&format!("{OWN}{POOL}{NAT64}{tls}"));
    assert_eq!(config.dns64.unwrap().upstreams[0].endpoint(), socket("[2001:db8:1::c633:6435]:853"));
}

#[test]
fn everything_that_can_be_said_is_read_and_written_out_again() {
    let text = "[dns64]\nlisten = [\"[2001:db8:ffff::7]:53\", \"203.0.113.7\"]\nprefix = [\"64:ff9b::/96\", \"2001:db8:64::/96\"]\ntranslated_elsewhere = true\ntranslate_non_global = true\nexclude = [\"::ffff:0:0/96\", \"2001:db8:bad::/48\"]\nallow = [\"2001:db8::/32\", \"192.0.2.0/24\"]\nreverse = \"Nat64.example.\"\nreverse_ttl = \"1 h\"\nsynthesised_ttl = \"a\"\nipv4only_arpa = \"upstream\"\nminimal_any = false\nparallel = false\nudp_payload = 1400\ncache = \"8 MiB\"\nthreads = 4\nmax_ttl = \"1 h\"\nstale = \"off\"\nprefetch = false\nwaiting = 1000\nqueries_per_second = 50\nquery_log = true\n[[dns64.upstream]]\naddress = \"[2001:db8:53::1]:5353\"\nnames = [\"Corp.Example\", \"10.in-addr.arpa\"]\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\ntransport = \"https\"\nname = \"dns.example\"\npath = \"/q\"\nthrough = \"64:ff9b::/96\"\n[[dns64.rule]]\nclients = [\"2001:db8:2::/48\", \"192.0.2.0/25\"]\nnames = \"corp.example\"\naddresses = \"10.0.0.0/8\"\nsynthesis = \"never\"\na_records = \"hide\"\n[[dns64.rule]]\nprefix = \"2001:db8:65::/96\"\nsynthesis = \"always\"\n[dns64.dnssec]\nvalidate = true\ntrust_anchor_state = \"off\"\ninsecure = [\"lan\"]\nchecking_disabled = \"pass_on\"\ndnssec_ok = \"pass_on\"\nad_without_do = true\n";
    let text = text.replace("through = \"64:ff9b::/96\"", "through = \"2001:db8:64::/96\"");
    let told = settings(&good(&text));
    let corp = Wire(b"\x04corp\x07example\0".to_vec().into());
    assert_eq!(told.upstreams[0].names[0], corp);
    assert_eq!(told.synthesised_ttl, SynthesisedTtl::A);
    assert!(!told.upstreams[1].datagrams && told.stale.is_none() && told.dnssec.ad_without_do);
    assert_eq!(
        told.reverse,
        ControlReverse::Name { name: Wire(b"\x05nat64\x07example\0".to_vec().into()), ttl: 3_600 }
    );
    assert_eq!(
        (told.limits.cache, told.limits.waiting, told.limits.per_client),
        (2 << 20, 250, Some((50, 100)))
    );
    assert_eq!((told.limits.longest_ttl, told.limits.longest_negative_ttl), (3_600, 3_600));
    assert_eq!((told.rules[0].names.clone(), told.rules[0].hide_a), (vec![corp], true));
    assert_eq!((told.rules[1].prefixes.len(), told.rules[0].clients4.len()), (1, 1));
}

const LAN: &str = "[router_advertisement]\ninterface = \"eth0\"\n";

#[test]
fn hosts_are_told_of_a_dns64_on_their_link() {
    let told = |text: &str| {
        let config = good(text);
        let now = Surroundings::of(&host().addresses);
        config.advertised(&config.router_advertisements[0], &now)
    };
    let here: Vec<std::net::Ipv6Addr> = vec!["2001:db8:ffff::7".parse().unwrap()];
    let both = told(&format!("{DNS64}{ELSEWHERE}{LAN}"));
    assert_eq!((both.dns_servers, both.pref64[0].prefix), (here.clone(), "64:ff9b::/96".parse().unwrap()));
    assert!(told(&format!("{DNS64}{ELSEWHERE}{LAN}rdnss = []\n")).dns_servers.is_empty());
    let other: Vec<std::net::Ipv6Addr> = vec!["2001:db8::53".parse().unwrap()];
    assert_eq!(told(&format!("{DNS64}{ELSEWHERE}{LAN}rdnss = \"2001:db8::53\"\n")).dns_servers, other);
    let every = DNS64.replace("listen = \"2001:db8:ffff::7\"", "listen = \"::\"\nallow = \"2001:db8::/32\"");
    assert_eq!(told(&format!("{every}{ELSEWHERE}{LAN}")).dns_servers, here);
    let other_port = DNS64.replace("2001:db8:ffff::7", "[2001:db8:ffff::7]:5353");
    assert!(told(&format!("{other_port}{ELSEWHERE}{LAN}")).dns_servers.is_empty(), "hosts know port 53 only");
    assert!(told(&format!("{DNS64}{ELSEWHERE}{}", LAN.replace("eth0", "eth1"))).dns_servers.is_empty());
    let two = ELSEWHERE.replace("\"64:ff9b::/96\"", "[\"64:ff9b::/96\", \"2001:db8:64::/96\"]");
    assert_eq!(told(&format!("{DNS64}{two}{LAN}")).pref64.len(), 2);
}

#[test]
fn advertisements_that_contradict_the_dns64_are_warned_of() {
    let text = |line: &str| format!("{DNS64}{ELSEWHERE}{LAN}{line}\n");
    warnings(
        &text("pref64 = \"2001:db8:64::/96\""),
        &[
            "sixway.toml:8  router_advertisement.pref64 = \"2001:db8:64::/96\"  [dns64] synthesises with 64:ff9b::/96, and hosts would use a different prefix; remove pref64, or write the same prefix in both",
        ],
    );
    warnings(
        &text("rdnss = \"2001:db8::53\""),
        &[
            "sixway.toml:8  router_advertisement.rdnss = \"2001:db8::53\"  leaves out 2001:db8:ffff::7, where [dns64] listens on this link: hosts that query other servers get no addresses for IPv4-only names; add it, or remove rdnss",
        ],
    );
    let refused = text("prefixes = [{ prefix = \"2001:db8:5::/64\" }]")
        .replace("listen", "allow = \"2001:db8:1::/48\"\nlisten");
    warnings(
        &refused,
        &[
            "sixway.toml:9  router_advertisement.prefixes  dns64.allow does not contain 2001:db8:5::/64: hosts there are configured to query [dns64], which would refuse them; add it",
        ],
    );
}
