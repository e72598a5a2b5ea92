//! Addresses that are in several pools, each with ports of its own.

use super::*;

/// A NAT44 and a NAT64, each with a pool of these lines.
fn both(four: &str, six: &str) -> String {
    format!(
        "{OWN}[[pool]]\nname = \"four\"\n{four}\n[[pool]]\nname = \"six\"\n{six}\n\
         [nat44]\ninside = [\"192.168.0.0/16\"]\npool = \"four\"\n{}",
        NAT64.replace("main", "six")
    )
}

fn routed(ports: &str) -> String {
    format!("addresses = [\"192.0.2.1\"]\nports = \"{ports}\"")
}

fn shared(ports: &str) -> String {
    format!("interface = \"eth0\"\nshared = true\nports = \"{ports}\"")
}

#[test]
fn an_address_of_this_host_may_be_in_two_pools() {
    let (config, remarks) = parse(&both(&shared("61000-62999"), &shared("63000-65535"))).unwrap();
    assert_eq!(lines(&remarks), [""; 0]);
    let all = [("203.0.113.7".parse().unwrap(), Ports::parse("61000-65535").unwrap())];
    assert_eq!(config.shared_ports(), all);
    for pool in &config.pools {
        assert_eq!(pool.divided, ["203.0.113.7/32".parse().unwrap()]);
    }
    assert_eq!(parse(&config.to_string()).unwrap().0, config);
    // Both follow the interface.
    let moved =
        HostAddress { interface: "eth0".into(), address: "198.51.100.7".parse().unwrap(), length: 24 };
    assert_eq!(config.moved_pools(&Surroundings::of(&[moved])).count(), 2);
}

#[test]
fn a_routed_address_may_be_in_two_pools_and_is_routed_once() {
    let (config, remarks) = parse(&both(&routed("1024-32767"), &routed("32768-65535"))).unwrap();
    assert_eq!(lines(&remarks), [""; 0]);
    let routes: Vec<String> = config.routes().iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["192.0.2.1/32", "192.0.2.254/32", "2001:db8::fe/128", "2001:db8:64::/96"]);
    let reach = config.reach(&Surroundings::default());
    let blackholes: Vec<String> = reach.blackholes.iter().map(ToString::to_string).collect();
    assert_eq!(blackholes, ["192.0.2.1/32", "192.0.2.254/32"]);
    // One of the addresses of a larger pool.
    let wide = routed("1024-32767").replace("192.0.2.1", "192.0.2.0/29");
    let (config, _) = parse(&both(&wide, &routed("32768-65535"))).unwrap();
    assert_eq!(config.pools[0].divided, ["192.0.2.1/32".parse().unwrap()]);
    assert!(config.pools[0].has_part_of("192.0.2.1".parse().unwrap()));
    assert!(!config.pools[0].has_part_of("192.0.2.2".parse().unwrap()));
}

#[test]
fn ports_that_two_pools_have_are_told_with_both_lines() {
    faults(
        &both(&shared("61000-62999"), &shared("62000-65535")),
        &[
            "sixway.toml:13  pool.six.ports = \"62000-65535\"  62000-62999 of 203.0.113.7 overlaps the ports of pool four (line 8); write ports = \"63000-65535\", or use other addresses",
        ],
    );
    faults(
        &both(&routed("1024-65535"), "addresses = [\"192.0.2.0/29\"]"),
        &[
            "sixway.toml:8  pool.six.ports  1024-65535 of 192.0.2.1 overlaps the ports of pool four (line 7); write ports = \"1024-33279\" there and ports = \"33280-65535\" here, or use other addresses",
        ],
    );
}

#[test]
fn ports_of_an_interface_without_an_address_are_compared_before_it_has_one() {
    let waits = |text: &str| shared(text).replace("eth0", "ppp0");
    let found = |four: &str, six: &str| {
        parse(&both(&waits(four), &waits(six))).map(|_| ()).map_err(|it| it.to_string())
    };
    assert_eq!(found("61000-62999", "63000-65535"), Ok(()));
    let said = found("61000-62999", "62000-65535").unwrap_err();
    assert!(said.contains("62000-62999 of ppp0 overlaps the ports of pool four (line 8)"), "{said}");
    let said = found("61000,61010,61020,61030,61040", "62000,62010,62020,62030").unwrap_err();
    assert!(said.contains("have 9 ranges of ports of ppp0"), "{said}");
}

#[test]
fn an_address_is_shared_with_the_host_in_both_pools_or_in_none() {
    let one = "addresses = [\"192.0.2.1\"]\nshared = true\nports = \"61000-62999\"";
    let found =
        parse(&both(one, &routed("63000-65535"))).map(|_| ()).map_err(|faults| lines(faults.remarks()));
    assert_eq!(
        found,
        Err(vec![
            "sixway.toml:9  pool.six  192.0.2.1 is shared with this host in pool four, and not in pool six (pool four is at line 4); write the same in both".to_owned()
        ])
    );
}

#[test]
fn ranges_of_all_pools_of_an_address_are_steered() {
    let four: Vec<String> = (0..5).map(|n| (61_000 + 10 * n).to_string()).collect();
    let six: Vec<String> = (0..5).map(|n| (62_000 + 10 * n).to_string()).collect();
    faults(
        &both(&shared(&four.join(",")), &shared(&six.join(","))),
        &[
            "sixway.toml:13  pool.six.ports = \"62000,62010,62020,62030,62040\"  the pools four, six have 10 ranges of ports of 203.0.113.7: packets can be steered for at most 8; choose adjacent ranges for the pools",
        ],
    );
    // Those that touch are one.
    let six: Vec<String> = (0..5).map(|n| (61_001 + 10 * n).to_string()).collect();
    assert!(parse(&both(&shared(&four.join(",")), &shared(&six.join(",")))).is_ok());
}

#[test]
fn static_bindings_have_ports_of_their_own_pool() {
    let binding = |port: u16| {
        let row = "[[nat64.static]]\nprotocol = \"tcp\"\ninside = \"[2001:db8::80]:80\"\n";
        format!(
            "{}{row}outside = \"192.0.2.1:{port}\"\n",
            both(&routed("1024-32767"), &routed("32768-65535"))
        )
    };
    warnings(&binding(40_080), &[]);
    for port in [80, 8_080] {
        faults(
            &binding(port),
            &[&format!(
                "sixway.toml:21  nat64.static[0].outside = \"192.0.2.1:{port}\"  is outside the ports of the pool six (32768-65535); write a port in this range"
            )],
        );
    }
    // Where the address is one pool's alone, any.
    let (_, alone) =
        (binding(80), binding(80).replace("192.0.2.1\"]\nports = \"1024", "192.0.2.2\"]\nports = \"1024"));
    warnings(&alone, &[]);
}

#[test]
fn protocols_without_ports_are_of_one_translator() {
    let realm = "[[realm]]\nname = \"red\"\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"port0\"]\ntable = 101\npool = \"red\"\n";
    let pools = format!(
        "{OWN}[[pool]]\nname = \"four\"\n{}\n[[pool]]\nname = \"red\"\n{}\n",
        routed("1024-32767"),
        routed("32768-65535")
    );
    let text = format!("{pools}[nat44]\ninside = [\"192.168.0.0/16\"]\npool = \"four\"\n{realm}");
    let said = "packets of protocols without ports (GRE, ESP, 41, 4) to 192.0.2.1 can belong to one translator only, and nat44 translates them (line 12); write max_portless_sessions = 0, or use other addresses";
    faults(&text, &[&format!("sixway.toml:15  realm  {said}")]);
    warnings(&format!("{text}max_portless_sessions = 0\n"), &[]);
}

#[test]
fn a_pool_with_an_address_twice_is_told_as_before() {
    let twice = "addresses = [\"192.0.2.1\", \"192.0.2.0/29\"]";
    let found = parse(&both(twice, &routed("63000-65535").replace("192.0.2.1", "198.51.100.1")));
    assert!(found.unwrap_err().to_string().contains("an address can belong to only one of them"));
}
