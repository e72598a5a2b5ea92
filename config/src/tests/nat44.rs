//! `[nat44]`.

use super::*;
use crate::{Network, Route, SourceRule, Surroundings};

const POOL44: &str = "[[pool]]\nname = \"public\"\naddresses = [\"192.0.2.0/29\"]\n";
const NAT44: &str = "[nat44]\ninside = [\"192.168.0.0/16\"]\npool = \"public\"\n";

fn faults(text: &str) -> String {
    parse(text).map_or_else(|faults| faults.to_string(), |(config, _)| panic!("no fault in {config}"))
}

#[test]
fn a_nat44_is_read_with_its_routes_and_rules() {
    let text = format!("{OWN}{POOL44}{NAT44}interfaces = [\"eth0\"]\nexcept = [\"10.20.0.0/16\"]\n");
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(config.needs_device() && config.routes_ipv4() && !config.translates());
    assert!(config.routes().contains(&Route::V4("192.0.2.0/29".parse().unwrap())));
    let rule = |except: Option<&str>| SourceRule {
        from: Network::V4("192.168.0.0/16".parse().unwrap()),
        except: except.map(|prefix| prefix.parse().unwrap()),
        interface: Some("eth0".into()),
    };
    let rules = config.reach(&Surroundings::default()).rules;
    assert_eq!(rules, [rule(Some("10.20.0.0/16")), rule(Some("192.168.0.0/16")), rule(None)]);
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    assert_eq!(engine.nat44[0].pool.addresses, ["192.0.2.0/29".parse().unwrap()]);
    assert_eq!(engine.nat44[0].except, ["10.20.0.0/16".parse().unwrap()]);
}

#[test]
fn who_is_inside_is_required_and_may_not_overlap_what_is_outside() {
    let without = faults(&format!("{OWN}{POOL44}[nat44]\npool = \"public\"\n"));
    assert!(without.contains("nat44.inside") && without.contains("192.168.1.0/24"), "{without}");
    let empty = faults(&format!("{OWN}{POOL44}[nat44]\ninside = []\npool = \"public\"\n"));
    assert!(empty.contains("is empty"), "{empty}");
    let overlap = faults(&format!("{OWN}{POOL44}[nat44]\ninside = [\"192.0.2.0/24\"]\npool = \"public\"\n"));
    assert!(overlap.contains("overlaps"), "{overlap}");
    let other = faults(&format!(
        "{OWN}{POOL44}{NAT44}[[nat44.static]]\nprotocol = \"udp\"\ninside = \"10.0.0.1:53\"\noutside = \"192.0.2.1:53\"\n"
    ));
    assert!(other.contains("is not in nat44.inside"), "{other}");
}

#[test]
fn the_gateway_has_an_address_for_its_errors() {
    let text = format!("{POOL44}{NAT44}");
    assert!(faults(&text).contains("gateway.ipv4_address"), "{}", faults(&text));
    let inside = faults(&format!("[gateway]\nipv4_address = \"192.168.1.1\"\n{POOL44}{NAT44}"));
    assert!(inside.contains("overlaps"), "{inside}");
}

#[test]
fn a_pool_belongs_to_one_translator() {
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"public\"\ninside = [\"2001:db8:1::/48\"]\n";
    let both = faults(&format!("{OWN}{POOL44}{NAT44}{nat64}"));
    assert!(both.contains("is already used by"), "{both}");
    let twice = faults(&format!("{OWN}{POOL44}{}", NAT44.replace("[nat44]", "[[nat44]]").repeat(2)));
    assert!(twice.contains("nat44"), "{twice}");
}

fn static_row(protocol: &str, inside: &str, outside: &str) -> String {
    format!("[[nat44.static]]\nprotocol = \"{protocol}\"\ninside = \"{inside}\"\noutside = \"{outside}\"\n")
}

#[test]
fn a_binding_without_ports_has_addresses_alone() {
    let rows = ["gre", "esp", "ipv6", "ipip"].map(|name| static_row(name, "192.168.1.2", "192.0.2.3"));
    let with_ports = static_row("udp", "192.168.1.2:53", "192.0.2.3:53");
    let keys = "max_portless_sessions = 1000\nmax_portless_sessions_per_subscriber = 7\n[nat44.timeouts]\nportless = \"3 min\"\n";
    let text = format!("{OWN}{POOL44}{NAT44}{keys}{}{with_ports}", rows.concat());
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let nat44 = config.nat44.as_ref().unwrap();
    assert_eq!((nat44.static_bindings.count(), nat44.static_bindings.portless.len()), (5, 4));
    let engine = &config.engines([0, 0], &Surroundings::default())[0].nat44[0];
    assert_eq!(engine.static_bindings.len(), 1);
    let portless = &engine.portless;
    let numbers: Vec<u8> = portless.bindings.iter().map(|it| it.protocol.number()).collect();
    assert_eq!(numbers, [47, 50, 41, 4]);
    assert_eq!(portless.bindings[0].inside.0.to_string(), "192.168.1.2");
    assert_eq!(portless.bindings[0].outside.0.to_string(), "192.0.2.3");
    assert_eq!((portless.sessions, portless.sessions_per_subscriber), (500, 7), "of each of two workers");
    assert_eq!(portless.timeout.as_secs(), 180);
    let workers = format!("{}workers = 4\n{POOL44}{NAT44}max_portless_sessions = 1001\n", OWN);
    let (config, _) = parse(&workers).unwrap_or_else(|faults| panic!("{faults}"));
    let engines = config.engines([0, 0], &Surroundings::default());
    assert!(engines.iter().all(|engine| engine.nat44[0].portless.sessions == 251));
}

#[test]
fn a_binding_without_ports_that_cannot_be_is_a_fault() {
    let fault = |rows: &str| faults(&format!("{OWN}{POOL44}{NAT44}{rows}"));
    let gre = static_row("gre", "192.168.1.2", "192.0.2.3");
    for (rows, says) in [
        (static_row("gre", "192.168.1.2:1", "192.0.2.3"), "is not an IPv4 address"),
        (static_row("tcp", "192.168.1.2", "192.0.2.3:1"), "is not an IPv4 address with a port"),
        (static_row("gre", "10.0.0.1", "192.0.2.3"), "is not in nat44.inside"),
        (static_row("gre", "192.168.1.2", "198.51.100.1"), "is not an address of pool public"),
        (static_row("sctp", "192.168.1.2:1", "192.0.2.3:1"), "is not valid"),
        (gre.clone() + &static_row("gre", "192.168.1.3", "192.0.2.3"), "gre 192.0.2.3 already has"),
        (gre.clone() + &static_row("gre", "192.168.1.2", "192.0.2.4"), "gre 192.168.1.2 already has"),
    ] {
        assert!(fault(&rows).contains(says), "{says}: {}", fault(&rows));
    }
    let both = gre + &static_row("esp", "192.168.1.2", "192.0.2.3");
    assert!(parse(&format!("{OWN}{POOL44}{NAT44}{both}")).is_ok(), "each protocol has its own");
    let few = fault("[nat44.timeouts]\nportless = \"1 min\"\n");
    assert!(few.contains("nat44.timeouts.portless"), "{few}");
}

#[test]
fn a_shared_pool_has_no_protocols_without_ports() {
    let shared = "[[pool]]\nname = \"public\"\naddresses = [\"203.0.113.7\"]\nshared = true\nports = \"61000-65535\"\n";
    let fault = faults(&format!("{OWN}{shared}{NAT44}{}", static_row("esp", "192.168.1.2", "203.0.113.7")));
    assert!(fault.contains("this host takes their packets to its own address"), "{fault}");
    let (config, _) = parse(&format!("{OWN}{shared}{NAT44}")).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.engines([0, 0], &Surroundings::default())[0].nat44[0].portless.sessions, 0);
    let warnings = |keys: &str| {
        let (_, warnings) =
            parse(&format!("{OWN}{shared}{NAT44}{keys}")).unwrap_or_else(|faults| panic!("{faults}"));
        warnings.iter().map(ToString::to_string).collect::<String>()
    };
    let told = "has no effect: this host takes packets";
    assert!(
        warnings("max_portless_sessions = 100\n").contains(told),
        "{}",
        warnings("max_portless_sessions = 100\n")
    );
    assert!(!warnings("max_portless_sessions = 0\n").contains(told) && !warnings("").contains(told));
}

#[test]
fn a_part_of_a_subscriber_cannot_be_exempt() {
    let read = |keys: &str| parse(&format!("{OWN}{POOL44}{NAT44}{keys}"));
    let exempt = |length: u8, prefix: &str| {
        read(&format!("subscriber_prefix_length = {length}\nexempt_subscribers = [\"{prefix}\"]\n"))
    };
    assert!(exempt(24, "192.168.1.0/24").is_ok() && exempt(24, "192.168.0.0/16").is_ok());
    let fault = exempt(24, "192.168.1.128/25").unwrap_err().to_string();
    assert!(
        fault.contains("nat44.exempt_subscribers  192.168.1.128/25 is a part of a subscriber"),
        "{fault}"
    );
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"public\"\nexempt_subscribers = [\"2001:db8:1::/65\"]\n";
    let fault = faults(&format!("{OWN}{POOL44}{nat64}"));
    assert!(
        fault.contains("2001:db8:1::/65 is a part of a subscriber, whose prefix has a length of 64"),
        "{fault}"
    );
}

#[test]
fn an_uplink_whose_network_is_inside_is_told_of() {
    let of = |interfaces: &str, uplink: &str| {
        let addresses = [("eth0", "192.168.1.1", 24), ("eth1", uplink, 24)];
        let addresses = addresses.map(|(name, address, length)| HostAddress {
            interface: name.into(),
            address: address.parse().unwrap(),
            length,
        });
        let host = HostFacts {
            addresses: addresses.to_vec(),
            interfaces: vec!["eth0".into(), "eth1".into()],
            ..HostFacts::default()
        };
        let text = format!("{OWN}{POOL44}{NAT44}{interfaces}");
        let (_, warnings) = Config::parse("sixway.toml", &text, &host, &mut no_files)
            .unwrap_or_else(|faults| panic!("{faults}"));
        warnings.iter().map(ToString::to_string).collect::<String>()
    };
    let told = "nat44.inside  contains addresses of 192.168.7.0/24 at eth1";
    let only = "interfaces = [\"eth0\"]\n";
    assert!(of(only, "192.168.7.9").contains(told), "{}", of(only, "192.168.7.9"));
    assert!(!of(only, "198.51.100.9").contains("contains addresses"));
    assert!(!of("", "192.168.7.9").contains("contains addresses"), "which one is the uplink is not known");
    assert!(!of("interfaces = [\"eth0\", \"eth1\"]\n", "192.168.7.9").contains("contains addresses"));
}

#[test]
fn inside_hosts_reach_each_other_by_a_shared_pool_from_their_interfaces() {
    let addresses = [("eth0", "203.0.113.7"), ("eth1", "192.168.1.1"), ("eth2", "10.0.0.1")];
    let addresses = addresses.map(|(name, address)| HostAddress {
        interface: name.into(),
        address: address.parse().unwrap(),
        length: 24,
    });
    let of = |pool: &str, keys: &str| {
        let (config, _) =
            parse(&format!("{OWN}{pool}{NAT44}{keys}")).unwrap_or_else(|faults| panic!("{faults}"));
        config.inside_of_shared(&Surroundings::of(&addresses))
    };
    let shared = "[[pool]]\nname = \"public\"\naddresses = [\"203.0.113.7\"]\nshared = true\nports = \"61000-65535\"\n";
    assert_eq!(of(shared, ""), ["eth1"]);
    assert_eq!(of(shared, "interfaces = [\"eth0\"]\n"), ["eth0"]);
    assert!(of(POOL44, "").is_empty());
    // Such a source is accepted there, and nowhere else.
    let believed = |pool: &str, keys: &str, addresses: &[HostAddress]| {
        let (config, _) =
            parse(&format!("{OWN}{pool}{NAT44}{keys}")).unwrap_or_else(|faults| panic!("{faults}"));
        config.inside_of_nat44(&Surroundings::of(addresses))
    };
    let inside = |interface: &str| {
        let interfaces: Vec<String> = interface.split_whitespace().map(str::to_owned).collect();
        (vec!["192.168.0.0/16".parse().unwrap()], interfaces)
    };
    assert_eq!(believed(shared, "", &addresses), inside("eth1"));
    assert_eq!(believed(shared, "interfaces = [\"eth2\"]\n", &addresses), inside("eth2"));
    assert_eq!(believed(shared, "", &addresses[..1]), inside(""), "it is not known where they are");
    assert_eq!(believed(POOL44, "", &addresses), Default::default(), "nothing is steered");
}

#[test]
fn a_tunnel_of_this_host_takes_ipv6_in_ipv4_at_its_address() {
    // Of the host's addresses nothing is known, as when a file is checked elsewhere: with them, a pool has none of them at all.
    let tunnel = "[six_to_four]\nrole = \"router\"\naddress = \"192.0.2.3\"\n";
    let text = |rows: &str| format!("{OWN}{POOL44}{NAT44}{rows}{tunnel}");
    let read = |rows: &str| Config::parse("sixway.toml", &text(rows), &HostFacts::default(), &mut no_files);
    let faults = read(&static_row("ipv6", "192.168.1.2", "192.0.2.3")).unwrap_err().to_string();
    let says = "nat44.static[0].outside  192.0.2.3 is the local end of six_to_four six_to_four: packets of IPv6 in IPv4 for it are the tunnel's";
    assert!(faults.contains(says), "{faults}");
    for rows in [String::new(), static_row("gre", "192.168.1.2", "192.0.2.3")] {
        let (_, warnings) = read(&rows).unwrap_or_else(|faults| panic!("{faults}"));
        let warnings = lines(&warnings).join("\n");
        assert!(
            warnings.contains("nat44.pool  192.0.2.3 is the local end of six_to_four six_to_four"),
            "{warnings}"
        );
    }
    let elsewhere = tunnel.replace("192.0.2.3", "203.0.113.7");
    let (_, warnings) =
        parse(&format!("{OWN}{POOL44}{NAT44}{elsewhere}")).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(!lines(&warnings).join("\n").contains("nat44.pool"));
}

/// A NAT44 with these addresses in its pool and rows, and what is reported of a tunnel at 192.168.0.1.
fn own_tunnels(addresses: &str, rows: &str, tunnel: &str) -> (String, String) {
    let pool = format!("[[pool]]\nname = \"public\"\naddresses = [{addresses}]\n");
    let text = format!("{OWN}{pool}{NAT44}translate_own_tunnels = true\n{rows}{tunnel}");
    match Config::parse("sixway.toml", &text, &HostFacts::default(), &mut no_files) {
        Ok((_, warnings)) => (String::new(), lines(&warnings).join("\n")),
        Err(faults) => (faults.to_string(), String::new()),
    }
}

const ONE: &str = "\"192.0.2.3\"";
const MANY: &str = "\"192.0.2.0/29\"";
const BOUND: &str =
    "add [[nat44.static]] with protocol = \"ipv6\", inside = \"192.168.0.1\" and outside = \"192.0.2.3\"";

fn site(nat_address: &str) -> String {
    format!("[six_to_four]\nrole = \"router\"\naddress = \"192.168.0.1\"\nnat_address = \"{nat_address}\"\n")
}

#[test]
fn the_outside_address_of_a_6to4_site_is_its_nat_address() {
    let row = |outside: &str| static_row("ipv6", "192.168.0.1", outside);
    for (addresses, rows) in [(MANY, row("192.0.2.3")), (ONE, row("192.0.2.3"))] {
        assert_eq!(own_tunnels(addresses, &rows, &site("192.0.2.3")), Default::default());
    }
    let (faults, warnings) = own_tunnels(ONE, "", &site("192.0.2.3"));
    assert!(
        faults.is_empty() && warnings.contains("none can send first") && warnings.contains(BOUND),
        "{warnings}"
    );
    for (addresses, rows, nat_address, says) in [
        (MANY, String::new(), "192.0.2.3", BOUND),
        (MANY, row("192.0.2.4"), "192.0.2.3", "leave with 192.0.2.4, but its nat_address is 192.0.2.3"),
        (
            MANY,
            row("192.0.2.4"),
            "203.0.113.9",
            "203.0.113.9, the nat_address of six_to_four six_to_four, is not in pool public",
        ),
        (ONE, "max_portless_sessions = 0\n".into(), "192.0.2.3", "because max_portless_sessions is 0"),
    ] {
        let (faults, _) = own_tunnels(addresses, &rows, &site(nat_address));
        assert!(faults.contains("nat44.translate_own_tunnels") && faults.contains(says), "{faults}");
    }
}

#[test]
fn the_remote_end_of_a_translated_tunnel_has_to_know_the_outside_address() {
    let tunnel =
        "[[tunnel]]\nlocal = \"192.168.0.1\"\nremote = \"198.51.100.7\"\nprefixes = [\"2001:db8:7::/48\"]\n";
    assert_eq!(own_tunnels(ONE, "", tunnel), Default::default());
    let (fault, warnings) = own_tunnels(MANY, "", tunnel);
    assert!(fault.is_empty() && warnings.contains("may be any address of the pool"), "{fault}{warnings}");
    let ipip =
        "[[ip_in_ip]]\nlocal = \"192.168.0.1\"\nremote = \"198.51.100.7\"\nprefixes = [\"10.7.0.0/16\"]\n";
    assert_eq!(own_tunnels(ONE, "", ipip), Default::default());
    let (_, warnings) = own_tunnels(MANY, &static_row("ipv6", "192.168.0.1", "192.0.2.3"), ipip);
    assert!(warnings.contains("protocol = \"ipip\""), "of another protocol: {warnings}");
    let without = faults(&format!("{OWN}{POOL44}{NAT44}{ipip}"));
    assert!(without.contains("overlaps"), "{without}");
}

#[test]
fn translation_of_tunnels_without_effect_is_reported() {
    let elsewhere =
        "[[tunnel]]\nlocal = \"203.0.113.7\"\nremote = \"198.51.100.7\"\nprefixes = [\"2001:db8:7::/48\"]\n";
    let six_rd = "[six_rd]\nrole = \"customer_edge\"\naddress = \"192.168.0.1\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\nborder_relays = [\"198.51.100.1\"]\n";
    for tunnel in ["", elsewhere] {
        let (_, warnings) = own_tunnels(ONE, "", tunnel);
        assert!(
            warnings.contains("nat44.translate_own_tunnels") && warnings.contains("has no effect"),
            "{warnings}"
        );
    }
    let (_, warnings) = own_tunnels(ONE, "", six_rd);
    assert!(warnings.contains("has no effect"), "6rd: {warnings}");
    let shared = "[[pool]]\nname = \"public\"\naddresses = [\"203.0.113.7\"]\nshared = true\nports = \"61000-65535\"\n";
    let text = format!("{OWN}{shared}{NAT44}translate_own_tunnels = true\n{elsewhere}");
    let (_, warnings) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(lines(&warnings).join("\n").contains("has no effect: the pool is at this host's own address"));
}
