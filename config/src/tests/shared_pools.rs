//! Pools of this host's own addresses.

use super::*;

/// With what is at line 6 and below.
fn pool(lines: &str) -> String {
    format!("{OWN}[[pool]]\nname = \"main\"\n{lines}\n{NAT64}")
}

const SHARED: &str = "addresses = [\"203.0.113.7\"]\nshared = true\nports = \"61000-65535\"";

#[test]
fn a_shared_address_is_not_routed_and_its_ports_are_known() {
    let (config, remarks) = parse(&pool(SHARED)).unwrap();
    assert_eq!(lines(&remarks), [""; 0]);
    let shared = config.shared_ports();
    assert_eq!(shared, [("203.0.113.7".parse().unwrap(), Ports::parse("61000-65535").unwrap())]);
    let routes: Vec<String> = config.routes().iter().map(ToString::to_string).collect();
    assert_eq!(routes, ["192.0.2.254/32", "2001:db8::fe/128", "2001:db8:64::/96"]);
    assert_eq!(parse(&config.to_string()).unwrap().0, config);
    let routed = parse(&format!("{OWN}{POOL}{NAT64}")).unwrap().0;
    assert!(routed.shared_ports().is_empty());
}

#[test]
fn the_gateways_own_address_may_be_the_shared_one() {
    let text = pool(SHARED).replace("ipv4_address = \"192.0.2.254\"", "ipv4_address = \"203.0.113.7\"");
    warnings(&text, &[]);
    let tunnel = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n";
    let text = text.replace("[nat64]\n", "[nat64]\ninside = [\"2001:db8:1::/48\"]\n");
    warnings(&format!("{text}{tunnel}"), &[]);
}

#[test]
fn a_shared_pool_has_ports_that_the_host_leaves() {
    let said = "sixway.toml:4  pool.main.ports  is missing; write ports = \"61000-65535\"";
    faults(&pool(&SHARED.replace("ports = \"61000-65535\"", "")), &[said]);
    let overlaps = "overlaps net.ipv4.ip_local_port_range; the host's own connections would collide";
    faults(
        &pool(&SHARED.replace("61000", "60000")),
        &[&format!(
            "sixway.toml:8  pool.main.ports = \"60000-65535\"  60000-60999 {overlaps}; choose other ports, such as 61000-65535"
        )],
    );
    let many = "1,3,5,7,9,11,13,15,17";
    faults(
        &pool(&SHARED.replace("61000-65535", many)),
        &[&format!(
            "sixway.toml:8  pool.main.ports = \"{many}\"  9 ranges are too many: packets can be steered for at most 8; merge some"
        )],
    );
}

#[test]
fn an_address_that_this_host_does_not_have_yet_is_waited_for() {
    let (_, warnings) = parse(&pool(&SHARED.replace("203.0.113.7", "203.0.113.9"))).unwrap();
    let said = "pool.main.addresses  203.0.113.9 is not configured on this host; no packets are received until it is: ip address add 203.0.113.9/32 dev INTERFACE, or remove `shared`";
    assert!(warnings.iter().any(|warning| warning.to_string().ends_with(said)), "{warnings:?}");
    faults(
        &pool(&SHARED.replace("203.0.113.7", "203.0.113.0/29")),
        &[
            "sixway.toml:6  pool.main.addresses  203.0.113.0/29 is a network; write this host's own addresses one by one, or remove `shared`",
        ],
    );
}

#[test]
fn shared_pools_want_steering() {
    faults(
        &format!("{}[tunnels]\nsteering = \"off\"\n", pool(SHARED)),
        &[
            "sixway.toml:4  pool.main.shared  without steering this host's own stack would take the packets; write tunnels.steering = \"auto\"",
        ],
    );
}

#[test]
fn static_bindings_of_a_shared_pool_have_its_ports() {
    let binding = |port: u16| {
        let row = "[[nat64.static]]\nprotocol = \"tcp\"\ninside = \"[2001:db8::80]:80\"\n";
        format!("{}{row}outside = \"203.0.113.7:{port}\"\n", pool(SHARED))
    };
    warnings(&binding(61_080), &[]);
    faults(
        &binding(80),
        &[
            "sixway.toml:15  nat64.static[0].outside = \"203.0.113.7:80\"  is outside the ports of the shared pool main (61000-65535); write a port in this range",
        ],
    );
    faults(
        &binding(80).replace("ports = \"61000-65535\"", ""),
        &["sixway.toml:4  pool.main.ports  is missing; write ports = \"61000-65535\""],
    );
}

#[test]
fn a_pool_follows_an_interface() {
    let text = pool("interface = \"eth0\"\nshared = true\nports = \"61000-65535\"");
    let (config, remarks) = parse(&text).unwrap();
    assert_eq!(lines(&remarks), [""; 0]);
    assert_eq!(config.pools[0].addresses, ["203.0.113.7/32".parse().unwrap()]);
    assert_eq!(parse(&config.to_string()).unwrap().0, config);
    let own = |address: &str| HostAddress {
        interface: "eth0".into(),
        address: address.parse().unwrap(),
        length: 24,
    };
    let moved = |address| config.moved_pools(&Surroundings::of(&[own(address)])).map(|(_, to)| to).next();
    assert_eq!(moved("203.0.113.7"), None);
    assert_eq!(moved("198.51.100.7"), "198.51.100.7".parse().ok());
    // Without an address, the pool keeps the last one.
    assert_eq!(config.moved_pools(&Surroundings::of(&[])).count(), 0);
    warnings(
        &text.replace("eth0", "eht0"),
        &[
            "sixway.toml:6  pool.main.interface = \"eht0\"  has no IPv4 address yet; the pool has no ports until it has one; did you mean \"eth0\"?",
        ],
    );
}

#[test]
fn a_pool_has_addresses_or_an_interface() {
    faults(
        &pool("ports = \"61000-65535\""),
        &[
            "sixway.toml:4  pool.main  has no address; write addresses = [\"192.0.2.0/28\"], or interface = \"eth0\" and shared = true",
        ],
    );
    faults(
        &pool(&format!("{SHARED}\ninterface = \"eth0\"")),
        &["sixway.toml:9  pool.main.interface = \"eth0\"  cannot be combined with addresses; remove one"],
    );
    faults(
        &pool("interface = \"eth0\"\nports = \"61000-65535\""),
        &[
            "sixway.toml:6  pool.main.interface = \"eth0\"  is this host's own address; write shared = true and the ports of the pool",
        ],
    );
}

#[test]
fn a_host_answers_for_a_pool_in_its_network_and_for_no_more_than_it_can() {
    let answered = |addresses: &str| pool(&format!("addresses = [\"{addresses}\"]\nproxy_arp = true"));
    let (config, _) = parse(&answered("198.51.100.8/30")).unwrap();
    let on = |interface: &str, address: &str, length| HostAddress {
        interface: interface.into(),
        address: address.parse().unwrap(),
        length,
    };
    let now = Surroundings::of(&[on("eth0", "198.51.100.1", 24), on("eth1", "203.0.113.1", 24)]);
    let proxies = config.reach(&now).proxies;
    let told: Vec<String> = proxies.iter().map(|it| format!("{} {}", it.interface, it.address)).collect();
    let expected = ["eth0 198.51.100.8", "eth0 198.51.100.9", "eth0 198.51.100.10", "eth0 198.51.100.11"];
    assert_eq!(told, expected);
    assert!(config.reach(&Surroundings::default()).proxies.is_empty());
    assert_eq!(parse(&config.to_string()).unwrap().0, config);
    assert!(parse(&answered("198.18.0.0/22")).is_ok());
    faults(
        &answered("198.18.0.0/21"),
        &[
            "sixway.toml:7  pool.main.proxy_arp = true  answers for 1,024 addresses at most, and the pool has 2,048; route the pool's prefixes to this host instead",
        ],
    );
    faults(
        &pool(&format!("{SHARED}\nproxy_arp = true")),
        &[
            "sixway.toml:9  pool.main.proxy_arp = true  cannot be combined with shared: this host answers for its own addresses; remove one",
        ],
    );
}
