//! Tunnels whose ends, sizes or names cannot be: what is said of them.

use super::tunnels::{fault, with};
use super::*;

const RELAY: &str = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n";
const ROUTER: &str = "[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\n";
const ISATAP: &str =
    "[isatap]\nrole = \"host\"\ninterface = \"eth0\"\npotential_routers = [\"198.51.100.1\"]\n";

fn edge(more: &str) -> String {
    let own = "prefix = \"2a00::/32\"\ninterface = \"eth0\"\nborder_relays = \"198.51.100.1\"";
    format!("[six_rd]\nrole = \"customer_edge\"\n{own}\n{more}")
}

fn tunnel(remote: &str, more: &str) -> String {
    format!("[tunnel]\nlocal = \"203.0.113.7\"\nremote = \"{remote}\"\nprefixes = \"::/0\"\n{more}")
}

#[test]
fn a_tunnels_mtu_is_no_more_than_the_devices() {
    warnings(&with(&format!("{RELAY}mtu = 1500\n")), &[]);
    fault(
        &format!("{RELAY}mtu = 1501\n"),
        "sixway.toml:7  six_to_four.mtu = 1501  is more than tun.mtu, 1500; lower it, or raise tun.mtu",
    );
    warnings(&with(&format!("{RELAY}mtu = 1501\n[tun]\nmtu = 9000\n")), &[]);
}

#[test]
fn tunnels_come_in_by_interfaces_of_others_than_this_host() {
    let steered = |name: &str| format!("{RELAY}[tunnels]\ninterfaces = [\"{name}\"]\n");
    for name in ["lo", "sixway0"] {
        fault(
            &steered(name),
            &format!(
                "sixway.toml:8  tunnels.interfaces  \"{name}\" is this host's own: tunnel packets do not arrive on it; write the interface that they arrive on"
            ),
        );
    }
    let mut host = host();
    let own = |interface: &str, address: &str| HostAddress {
        interface: interface.into(),
        address: address.parse().unwrap(),
        length: 24,
    };
    host.addresses.push(own("eth1", "198.51.100.7"));
    host.interfaces.push("eth1".into());
    let told = |host: &HostFacts, text: &str| {
        lines(&Config::parse("sixway.toml", &with(text), host, &mut no_files).unwrap().1)
    };
    assert_eq!(
        told(&host, &steered("eth1")),
        [
            "sixway.toml:8  tunnels.interfaces  \"eth1\" has none of the tunnels' addresses, which are on eth0; remove it, unless their packets arrive on it"
        ]
    );
    assert_eq!(told(&host, &steered("eth0")), [""; 0]);
    host.addresses.push(own("lo", "192.0.2.77"));
    assert_eq!(told(&host, &steered("eth1").replace("203.0.113.7", "192.0.2.77")), [""; 0]);
}

#[test]
fn no_pool_holds_an_end_of_a_tunnel() {
    let what = "the tunnel's packets would be routed back into the device; choose other addresses";
    let pool = "[[pool]]\nname = \"main\"\naddresses = \"198.51.100.0/28\"\n";
    let ends = [
        (tunnel("198.51.100.1", ""), 6, 8, "tunnel.remote = \"198.51.100.1\"", "tunnel.remote"),
        (
            format!("{ROUTER}relay = \"198.51.100.1\"\n"),
            7,
            8,
            "six_to_four.relay = \"198.51.100.1\"",
            "six_to_four.relay",
        ),
        (edge(""), 8, 9, "six_rd.border_relays = \"198.51.100.1\"", "six_rd.border_relays"),
        (ISATAP.into(), 7, 8, "isatap.potential_routers", "isatap.potential_routers"),
    ];
    for (text, line, next, place, path) in ends {
        fault(
            &format!("{text}{pool}{NAT64}"),
            &format!(
                "sixway.toml:{}  pool.main.addresses = \"198.51.100.0/28\"  198.51.100.0/28 overlaps 198.51.100.1 of {path} (line {line}); {what}",
                next + 2
            ),
        );
        let line = line + 6;
        fault(
            &format!("{pool}{NAT64}{text}"),
            &format!(
                "sixway.toml:{line}  {place}  198.51.100.1 overlaps 198.51.100.0/28 of pool.main.addresses (line 6); {what}"
            ),
        );
    }
    let siit = "[siit]\nprefix = \"2001:db8:65::/96\"\n";
    let remote = tunnel("198.51.100.1", "");
    fault(
        &format!("{siit}dynamic_pool = \"198.51.100.0/28\"\n{remote}"),
        &format!(
            "sixway.toml:9  tunnel.remote = \"198.51.100.1\"  198.51.100.1 overlaps 198.51.100.0/28 of siit.dynamic_pool (line 6); {what}"
        ),
    );
    let eam = "[[siit.eam]]\nipv4 = \"198.51.100.1\"\nipv6 = \"2001:db8:1::1\"\n";
    fault(
        &format!("{siit}{eam}{remote}"),
        &format!(
            "sixway.toml:11  tunnel.remote = \"198.51.100.1\"  198.51.100.1 overlaps 198.51.100.1 of siit.eam[0] (line 6); {what}"
        ),
    );
}

#[test]
fn a_broadcast_address_is_not_an_end_of_a_tunnel() {
    let said = "203.0.113.255 is the broadcast address of 203.0.113.0/24 on eth0; write a host address";
    fault(&tunnel("203.0.113.255", ""), &format!("sixway.toml:6  tunnel.remote = \"203.0.113.255\"  {said}"));
    fault(
        &format!("{ROUTER}relay = \"203.0.113.255\"\n"),
        &format!("sixway.toml:7  six_to_four.relay = \"203.0.113.255\"  {said}"),
    );
    fault(
        &edge("").replace("198.51.100.1", "203.0.113.255"),
        &format!("sixway.toml:8  six_rd.border_relays = \"203.0.113.255\"  {said}"),
    );
    fault(
        &ISATAP.replace("198.51.100.1", "203.0.113.255"),
        &format!("sixway.toml:7  isatap.potential_routers  {said}"),
    );
    fault(
        &tunnel("255.255.255.255", ""),
        "sixway.toml:6  tunnel.remote = \"255.255.255.255\"  is not a valid host address; write a unicast address",
    );
    fault(
        &ISATAP.replace("198.51.100.1", "255.255.255.255"),
        "sixway.toml:7  isatap.potential_routers  255.255.255.255 is not a valid host address",
    );
}

#[test]
fn names_have_no_control_characters_and_none_reaches_the_terminal() {
    fault(
        &tunnel("198.51.100.1", "name = \"a\\u001b[2Jb\"\n"),
        "sixway.toml:8  tunnel.name = \"a\\u001b[2Jb\"  contains control characters; remove them",
    );
    for text in
        ["\"\\u001b[2J\" = 1\n", "[nat64]\npool = \"\\u0007\"\n", "[pool]\n\"\\u009b\" = \"\\u009b\"\n"]
    {
        let all = parse(text).unwrap_err().to_string();
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{all:?}");
    }
}

#[test]
fn two_tunnels_do_not_give_the_host_the_same_address() {
    let named = |name: &str, remote: &str, prefix: &str| {
        let more = format!("name = \"{name}\"\nipv6_address = \"2001:db8:ffff:1::2\"\n");
        tunnel(remote, &more).replace("[tunnel]", "[[tunnel]]").replace("::/0", prefix)
    };
    fault(
        &(named("a", "198.51.100.1", "2a00:1::/48") + &named("b", "198.51.100.2", "2a00:2::/48")),
        "sixway.toml:10  tunnel[1].ipv6_address  2001:db8:ffff:1::2 is already used by tunnel[0] (line 4): an address can be used only once; remove one",
    );
}

#[test]
fn locators_are_some_networks_and_the_routers_lie_in_them() {
    fault(
        &format!("{ISATAP}locators = []\n"),
        "sixway.toml:8  isatap.locators  is empty; write networks such as [\"192.0.2.0/28\"], or remove it",
    );
    let warned = "sixway.toml:8  isatap.locators  contains none of the potential routers: packets of the routers are dropped; add their networks";
    let told = |network: &str| {
        let text = with(&format!("{ISATAP}locators = [\"{network}\"]\n"));
        let warnings = lines(&parse(&text).unwrap().1);
        warnings.into_iter().filter(|line| line.contains("locators")).collect::<Vec<_>>()
    };
    assert_eq!(told("10.0.0.0/8"), [warned]);
    assert_eq!(told("198.51.100.0/24"), [""; 0]);
}

#[test]
fn other_relays_are_a_border_relays_and_not_everybody() {
    warnings(
        &with(&edge("other_relays = [\"10.0.0.0/8\"]\n")),
        &["sixway.toml:9  six_rd.other_relays  has no effect: only a border relay uses it; remove it"],
    );
    let border = "[six_rd]\nrole = \"border_relay\"\nprefix = \"2a00::/32\"\naddress = \"203.0.113.7\"\n";
    let what = "six_rd.other_relays  0.0.0.0/0 contains every address, including the customers'; write only the networks of the relays";
    fault(&format!("{border}other_relays = [\"0.0.0.0/0\"]\n"), &format!("sixway.toml:8  {what}"));
    fault(&edge("other_relays = [\"0.0.0.0/0\"]\n"), &format!("sixway.toml:9  {what}"));
}

#[test]
fn a_missing_6rd_prefix_is_asked_for_with_one_that_could_be() {
    fault(
        &edge("").replace("prefix = \"2a00::/32\"\n", ""),
        "sixway.toml:4  six_rd.prefix  is missing; write prefix = \"2001:db8::/32\"",
    );
}
