use super::*;
use crate::config::{Config, HostAddress, HostFacts, Surroundings};

/// What a configuration is on a host with 203.0.113.1/24 on out0.
fn text_of(mechanisms: &str) -> Option<String> {
    let own = HostAddress { interface: "out0".into(), address: "203.0.113.1".parse().unwrap(), length: 24 };
    let host = HostFacts { addresses: vec![own], cpus: 1, ..HostFacts::default() };
    let written = format!(
        "[gateway]\nname = \"gw-1.a_b\"\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n{mechanisms}"
    );
    let mut none = |_: &std::path::Path| Err(std::io::Error::other("no files"));
    let (config, _) =
        Config::parse("sixway.toml", &written, &host, &mut none).unwrap_or_else(|f| panic!("{f}"));
    let untracked = config.untracked(true, &Surroundings::of(&host.addresses))?;
    Some(text(&config.gateway.name, &Device::of(&config.tun.name, 7), &untracked))
}

/// The rules of the chains, in their order.
fn rules(mechanisms: &str) -> Vec<String> {
    let text = text_of(mechanisms).unwrap();
    let head =
        "table inet sixway-gw-1.a_b\ndelete table inet sixway-gw-1.a_b\ntable inet sixway-gw-1.a_b {\n";
    assert!(text.starts_with(head), "{text}");
    let rules =
        text.lines().map(str::trim).filter(|line| line.ends_with(" accept") || line.ends_with("drop"));
    rules.map(Into::into).collect()
}

const FROM: &str = "iifname \"sixway0\" notrack accept";
const INTO: &str = "oifname \"sixway0\" notrack accept";

#[test]
fn of_a_nat64_its_prefix_and_its_pool() {
    let pool = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/29\", \"192.0.2.8/29\"]\n";
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";
    let expected = [
        FROM,
        "ip daddr 192.0.2.0/28 notrack accept",
        "ip daddr 192.0.2.254/32 notrack accept",
        "ip6 daddr 2001:db8::fe/128 notrack accept",
        "ip6 daddr 2001:db8:64::/96 notrack accept",
        INTO,
    ];
    assert_eq!(rules(&format!("{pool}{nat64}")), expected);
    let by_hand = [
        FROM,
        "ip daddr 192.0.2.0/28 notrack accept",
        "ip6 daddr 2001:db8:64::/96 notrack accept",
        "meta nfproto ipv4 fib daddr oifname \"sixway0\" notrack accept",
        "meta nfproto ipv6 fib daddr oifname \"sixway0\" notrack accept",
        INTO,
    ];
    assert_eq!(rules(&format!("[tun]\nroutes = \"none\"\n{pool}{nat64}")), by_hand);
}

#[test]
fn dynamic_pools_stay_tracked_because_they_are_masqueraded() {
    let siit = "[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"172.16.0.0/24\"\n";
    let rules = rules(siit);
    assert_eq!(
        rules[..2],
        ["iifname \"sixway0\" ip saddr 172.16.0.0/24 accept", "ip daddr 172.16.0.0/24 accept"]
    );
    assert_eq!(rules[2], FROM);
}

#[test]
fn of_a_shared_pool_its_ports_which_the_host_never_sees() {
    let pool = "[[pool]]\nname = \"main\"\naddresses = [\"203.0.113.1\"]\nshared = true\nports = \"443,61000-65535\"\n";
    let ours = "ip daddr 203.0.113.1 meta l4proto { 6, 17 } th dport { 443, 61000-65535 }";
    let expected = [
        FROM.to_owned(),
        "ip daddr 192.0.2.254/32 notrack accept".into(),
        "ip6 daddr 2001:db8::fe/128 notrack accept".into(),
        "ip6 daddr 2001:db8:64::/96 notrack accept".into(),
        format!("{ours} notrack accept"),
        INTO.into(),
        format!("iifname != \"lo\" {ours} drop"),
    ];
    assert_eq!(rules(&format!("{pool}[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n")), expected);
}

#[test]
fn of_a_siit_both_sides_of_its_mappings_and_of_a_mapping_of_everything_what_is_routed() {
    let eam = |row: &str| format!("[siit]\nprefix = \"2001:db8:64::/96\"\neam = [{row}]\n");
    let expected = [
        FROM,
        "ip daddr 192.0.2.254/32 notrack accept",
        "ip daddr 198.51.100.8/30 notrack accept",
        "ip6 daddr 2001:db8::fe/128 notrack accept",
        "ip6 daddr 2001:db8:1::/126 notrack accept",
        "ip6 daddr 2001:db8:64::/96 notrack accept",
        INTO,
    ];
    assert_eq!(rules(&eam("{ ipv4 = \"198.51.100.8/30\", ipv6 = \"2001:db8:1::/126\" }")), expected);
    let everything = rules(&eam("{ ipv4 = \"0.0.0.0/0\", ipv6 = \"2001:db8:2::/96\" }"));
    assert!(everything.contains(&"meta nfproto ipv4 fib daddr oifname \"sixway0\" notrack accept".into()));
    assert!(!everything.contains(&"meta nfproto ipv6 fib daddr oifname \"sixway0\" notrack accept".into()));
}

#[test]
fn of_tunnels_their_prefixes_and_protocol_41_at_their_ends() {
    let ends = [
        "ip daddr 203.0.113.1 ip protocol 41 notrack accept",
        "ip saddr 203.0.113.1 ip protocol 41 notrack accept",
    ];
    let with = |prefix: &str| {
        let destinations = format!("ip6 daddr {prefix} notrack accept");
        let own6 = "ip6 daddr 2001:db8::fe/128 notrack accept".to_owned();
        let own = "ip daddr 192.0.2.254/32 notrack accept".to_owned();
        [FROM.to_owned(), own, own6, destinations, ends[0].into(), INTO.into(), ends[1].into()]
    };
    let six_to_four = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.1\"\n";
    assert_eq!(rules(six_to_four), with("2002::/16"));
    let six_rd = "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:db9::/32\"\naddress = \"203.0.113.1\"\n";
    assert_eq!(rules(six_rd), with("2001:db9::/32"));
    let tunnel =
        "[tunnel]\nlocal = \"203.0.113.1\"\nremote = \"203.0.113.2\"\nprefixes = [\"2001:db8:7::/48\"]\n";
    assert_eq!(rules(tunnel), with("2001:db8:7::/48"));
    let isatap = "[isatap]\nrole = \"router\"\naddress = \"203.0.113.1\"\nprefix = \"2001:db8:5::/64\"\n";
    assert_eq!(rules(isatap), with("2001:db8:5::/64"));
    let everything = rules(&tunnel.replace("2001:db8:7::/48", "::/0"));
    assert!(
        everything.contains(&"meta nfproto ipv6 fib daddr oifname \"sixway0\" notrack accept".into()),
        "{everything:?}"
    );
}

#[test]
fn many_addresses_are_a_set() {
    let pool =
        |last: u8| (0..last).map(|n| format!("\"198.51.100.{}\"", 2 * n)).collect::<Vec<_>>().join(", ");
    let rules_of = |last| {
        let pool = format!("[[pool]]\nname = \"main\"\naddresses = [{}]\n", pool(last));
        rules(&format!("{pool}[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n"))
    };
    assert_eq!(
        rules_of(3)[1..3],
        ["ip daddr 192.0.2.254/32 notrack accept", "ip daddr 198.51.100.0/32 notrack accept"]
    );
    let set = "ip daddr { 192.0.2.254/32, 198.51.100.0/32, 198.51.100.2/32, 198.51.100.4/32, 198.51.100.6/32 } notrack accept";
    assert_eq!(rules_of(4)[1], set);
}

#[test]
fn without_a_fast_path_only_what_is_steered_is_not_tracked() {
    let text = "[siit]\nprefix = \"2001:db8:64::/96\"\n";
    let config = crate::sample::config(text);
    assert_eq!(config.untracked(false, &Surroundings::default()), None);
    assert!(config.untracked(true, &Surroundings::default()).is_some());
}

#[test]
fn a_name_that_nft_cannot_read_is_a_number() {
    assert_eq!(Device::of("eth0.5@x", 3).is("iif"), "iifname \"eth0.5@x\"");
    for name in ["a\"b", "a*", "a\\"] {
        assert_eq!(Device::of(name, 3).is("oif"), "oif 3");
    }
}

#[test]
fn sources_are_checked_before_anything_is_accepted_and_also_if_everything_is_tracked() {
    let nat64 = |reverse_path: &str| {
        format!(
            "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n{reverse_path}"
        )
    };
    let strict = "ip6 daddr 2001:db8:64::/96 fib saddr . iif oif missing counter drop";
    let loose = "ip6 daddr 2001:db8:64::/96 fib saddr oif missing counter drop";
    assert_eq!(rules(&nat64("reverse_path = \"strict\"\n"))[..2], [strict, FROM]);
    assert_eq!(rules(&nat64("reverse_path = \"loose\"\n"))[..2], [loose, FROM]);
    assert_eq!(rules(&nat64(""))[0], FROM);
    let written = nat64("reverse_path = \"strict\"\n");
    let config = crate::sample::config(&written);
    let untracked = config.untracked(false, &Surroundings::default()).unwrap();
    let text = text("a", &Device::of("sixway0", 7), &untracked);
    assert!(text.contains(strict) && !text.contains("notrack") && !text.contains("output"), "{text}");
}

#[test]
fn of_a_nat44_its_pool_and_what_its_inside_hosts_send_elsewhere() {
    let pool = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n";
    let nat44 = "[nat44]\ninside = [\"10.0.0.0/8\"]\nexcept = [\"172.20.0.0/16\"]\ninterfaces = [\"lan0\"]\npool = \"main\"\n";
    let expected = [
        FROM,
        "ip daddr 192.0.2.0/28 notrack accept",
        "ip daddr 192.0.2.254/32 notrack accept",
        "ip6 daddr 2001:db8::fe/128 notrack accept",
        "iifname { \"lan0\" } ip saddr { 10.0.0.0/8 } ip daddr != { 10.0.0.0/8, 172.20.0.0/16 } fib daddr type unicast notrack accept",
        INTO,
    ];
    assert_eq!(rules(&format!("{pool}{nat44}")), expected);
}

#[test]
fn nothing_unsolicited_comes_to_a_teredo_client_and_its_packets_stay_tracked() {
    let client: std::net::Ipv6Addr = "2001:0:c633:6401::1".parse().unwrap();
    let device = Device::of("sixway0", 7);
    let only = Untracked { client: Some(client), guards_client: true, ..Untracked::default() };
    let table = text("gw", &device, &only);
    let to = "iifname \"sixway0\" ip6 daddr 2001:0:c633:6401::1";
    for rule in ["ct state established,related accept", "counter drop", "packet-too-big"] {
        assert!(table.lines().any(|line| line.contains(to) && line.contains(rule)), "{rule}:\n{table}");
    }
    assert!(table.contains("type filter hook input priority 0;") && !table.contains("notrack"), "{table}");
    let with_fast_path = Untracked { is_any: true, ..only.clone() };
    let table = text("gw", &device, &with_fast_path);
    let before = |first: &str, second: &str| table.find(first).unwrap() < table.find(second).unwrap();
    assert!(before(&format!("{to} accept"), FROM), "{table}");
    assert!(before("oifname \"sixway0\" ip6 saddr 2001:0:c633:6401::1 accept", INTO), "{table}");
    let open = text("gw", &device, &Untracked { guards_client: false, ..with_fast_path });
    assert!(!open.contains("counter drop"), "{open}");
}

#[test]
fn what_comes_out_of_tunnels_stays_tracked_next_to_a_shared_pool_unless_the_fast_path_carries_it() {
    let pool =
        "[[pool]]\nname = \"own\"\naddresses = [\"203.0.113.1\"]\nshared = true\nports = \"61000-65535\"\n";
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"own\"\n";
    let tunnel = "[tunnel]\nlocal = \"203.0.113.1\"\nremote = \"203.0.113.2\"\nprefixes = [\"::/0\"]\n";
    let own = HostAddress { interface: "out0".into(), address: "203.0.113.1".parse().unwrap(), length: 24 };
    let host = HostFacts { addresses: vec![own], cpus: 1, ..HostFacts::default() };
    let written = format!(
        "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n{pool}{nat64}{tunnel}"
    );
    let mut none = |_: &std::path::Path| Err(std::io::Error::other("no files"));
    let (config, _) =
        Config::parse("sixway.toml", &written, &host, &mut none).unwrap_or_else(|f| panic!("{f}"));
    let text_with = |offloads| {
        let untracked = config.untracked(offloads, &Surroundings::of(&host.addresses)).unwrap();
        text("gw", &Device::of("sixway0", 7), &untracked)
    };
    let others = "{ 2001:db8::fe/128, 2001:db8:64::/96 }";
    let without = text_with(false);
    for (rule, before) in [
        (format!("iifname \"sixway0\" meta nfproto ipv6 ip6 saddr != {others} accept"), FROM),
        (format!("oifname \"sixway0\" meta nfproto ipv6 ip6 daddr != {others} accept"), INTO),
    ] {
        assert!(without.find(&rule).unwrap() < without.find(before).unwrap(), "{rule}\nin\n{without}");
    }
    assert!(!without.contains("meta nfproto ipv6 fib"), "{without}");
    let with = text_with(true);
    assert!(!with.contains("addr !=") && with.contains("meta nfproto ipv6 fib daddr oifname"), "{with}");
}
