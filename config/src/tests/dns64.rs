//! DNS64: what is read, and what a resolver and hosts learn.

use super::*;
use crate::dns64::ThreadsBy;
use sixway_control::dns64::{
    Access, Family, Limits, Reverse as ControlReverse, Settings, SpecialNames, SynthesisedTtl,
    ValidatingClients, Wire,
};
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
    assert_eq!((told.special_names, told.synthesise_reserved), (SpecialNames::Local, false));
    assert!(told.upstreams[0].datagrams && told.parallel && told.prefetch && told.minimal_any);
    let limits = Limits {
        cache: 64 << 20,
        waiting: 10_000,
        per_client: None,
        udp_payload: 1_232,
        longest_ttl: 86_400,
        longest_negative_ttl: 10_800,
        upstream_questions: 8_192,
        client_prefix_length: 64,
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
fn what_a_client_is_and_how_many_connections_it_may_have_is_read() {
    let connections = |more: &str| good(&format!("{DNS64}{ELSEWHERE}{more}")).dns64.unwrap().connections;
    let usual = connections("");
    assert_eq!((usual.connections, usual.connections_per_client), (4_096, None));
    assert_eq!((usual.idle_timeout.as_secs(), usual.handshake_timeout.as_secs()), (30, 5));
    assert_eq!(usual.threads_by, ThreadsBy::Client);
    let many = connections("connections = 20000\nconnections_per_client = 100\n");
    assert_eq!((many.connections, many.connections_per_client), (20_000, Some(100)));
    let text = format!("{DNS64}{ELSEWHERE}connections = 64\nconnections_per_client = 100\n");
    let faults = parse(&text).unwrap_err().to_string();
    assert!(faults.contains("is more than connections, 64; lower it, or raise connections"), "{faults}");
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
    let text = "[dns64]\nlisten = [\"[2001:db8:ffff::7]:53\", \"203.0.113.7\"]\nprefix = [\"64:ff9b::/96\", \"2001:db8:64::/96\"]\ntranslated_elsewhere = true\ntranslate_non_global = true\nexclude = [\"::ffff:0:0/96\", \"2001:db8:bad::/48\"]\nallow = [\"2001:db8::/32\", \"192.0.2.0/24\"]\nreverse = \"Nat64.example.\"\nreverse_ttl = \"1 h\"\nsynthesised_ttl = \"a\"\nipv4only_arpa = \"upstream\"\nspecial_names = \"upstream\"\nsynthesise_reserved = true\nminimal_any = false\nparallel = false\nudp_payload = 1400\ncache = \"8 MiB\"\nthreads = 4\nmax_ttl = \"1 h\"\nstale = \"off\"\nprefetch = false\nwaiting = 1000\nqueries_per_second = 50\nconnections = 20000\nconnections_per_client = 64\nidle_timeout = \"1 min\"\nhandshake_timeout = \"3 s\"\nclient_prefix_length = 56\nthreads_by = \"flow\"\nquery_log = true\n[[dns64.upstream]]\naddress = \"[2001:db8:53::1]:5353\"\nnames = [\"Corp.Example\", \"10.in-addr.arpa\"]\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\ntransport = \"https\"\nname = \"dns.example\"\npath = \"/q\"\nthrough = \"64:ff9b::/96\"\n[[dns64.rule]]\nclients = [\"2001:db8:2::/48\", \"192.0.2.0/25\"]\nnames = \"corp.example\"\nover = \"ipv4\"\naddresses = \"10.0.0.0/8\"\nsynthesis = \"never\"\na_records = \"hide\"\n[[dns64.rule]]\nprefix = \"2001:db8:65::/96\"\nsynthesis = \"always\"\n[dns64.dnssec]\nvalidate = true\ntrust_anchor_state = \"off\"\ninsecure = [\"lan\"]\nchecking_disabled = \"pass_on\"\ndnssec_ok = \"pass_on\"\nvalidating_clients = \"unsigned\"\nad_without_do = true\n";
    let text = text.replace("through = \"64:ff9b::/96\"", "through = \"2001:db8:64::/96\"");
    let told = settings(&good(&text));
    let corp = Wire(b"\x04corp\x07example\0".to_vec().into());
    assert_eq!(told.upstreams[0].names[0], corp);
    assert_eq!(told.synthesised_ttl, SynthesisedTtl::A);
    assert_eq!((told.special_names, told.synthesise_reserved), (SpecialNames::Upstream, true));
    assert_eq!(told.dnssec.validating_clients, ValidatingClients::Unsigned);
    assert_eq!((told.rules[0].over, told.rules[1].over), (Some(Family::Ipv4), None));
    assert_eq!(*told.upstream_labels, ["2001:db8:53::1".into(), "192.0.2.53".into()]);
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

/// Reads a text on a host with these DNS servers.
fn on_a_host_with(servers: &[&str], text: &str) -> Result<Config, String> {
    let resolvers = servers.iter().map(|server| socket(server)).collect();
    let host = HostFacts { resolvers, ..host() };
    let parsed = Config::parse("sixway.toml", text, &host, &mut no_files);
    let (config, _) = parsed.map_err(|faults| faults.to_string())?;
    let again = Config::parse("sixway.toml", &config.to_string(), &host, &mut no_files);
    assert_eq!(again.expect("it reads as the same").0, config);
    Ok(config)
}

#[test]
fn the_hosts_own_servers_are_asked_but_for_this_dns64_itself() {
    let text = "[dns64]\nlisten = [\"203.0.113.7\", \"[::]:53\"]\nallow = [\"2001:db8::/32\"]\nupstream = \"system\"\n";
    let text = format!("{text}{ELSEWHERE}");
    let servers =
        ["203.0.113.7:53", "[2001:db8:ffff::7]:53", "[::1]:53", "198.51.100.53:53", "127.0.0.53:53"];
    let config = on_a_host_with(&servers, &text).unwrap();
    assert!(config.to_string().contains("upstream = \"system\""), "{config}");
    let dns64 = config.dns64.unwrap();
    let asked: Vec<SocketAddr> = dns64.upstreams.iter().map(|it| it.endpoint()).collect();
    assert_eq!(asked, [socket("198.51.100.53:53"), socket("127.0.0.53:53")]);
    assert!(dns64.upstreams.are_the_systems());
    let many: Vec<String> = (1..20).map(|number| format!("198.51.100.{number}:53")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(on_a_host_with(&many, &text).unwrap().dns64.unwrap().upstreams.len(), 8);
    let none = on_a_host_with(&[], &text).unwrap_err();
    assert!(none.contains("dns64.upstream") && none.contains("has no nameserver;"), "{none}");
    let own = on_a_host_with(&servers[..3], &text).unwrap_err();
    assert!(own.contains("no nameserver but this DNS64 itself"), "{own}");
    let other = on_a_host_with(&servers, &text.replace("\"system\"", "\"sytem\"")).unwrap_err();
    assert!(other.contains("upstream"), "{other}");
}

#[test]
fn more_questions_than_the_process_may_have_sockets_for_are_warned_of() {
    let warned = |descriptors, text: &str| {
        let host = HostFacts { descriptors, ..host() };
        let (_, warnings) = Config::parse("sixway.toml", text, &host, &mut no_files).unwrap();
        lines(&warnings).join("\n").contains("dns64.upstream_queries  the process may open")
    };
    let text = format!("{DNS64}{ELSEWHERE}");
    assert!(!warned(None, &text) && !warned(Some(65_536), &text));
    assert!(warned(Some(4_096), &text));
    let few = text.replacen("[dns64]\n", "[dns64]\nupstream_queries = 64\nclient_prefix_length = 56\n", 1);
    assert!(!warned(Some(8_192), &few));
    let told = settings(&good(&few)).limits;
    assert_eq!((told.upstream_questions, told.client_prefix_length), (64, 56));
    let two = few.replacen("[dns64]\n", "[dns64]\nthreads = 2\n", 1);
    assert_eq!(settings(&good(&two)).limits.upstream_questions, 32, "of all threads together");
}
