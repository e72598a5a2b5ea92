//! Tunnels of IP in IP (RFC 2473, RFC 2003).

use super::*;
use crate::{Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};

const OVER_6: &str = "[ip_in_ip]\nlocal = \"2001:db8:1::1\"\nremote = \"2001:db8:7::1\"\nprefixes = [\"10.7.0.0/16\", \"2001:db8:70::/48\"]\n";
const OVER_4: &str =
    "[ip_in_ip]\nlocal = \"192.0.2.77\"\nremote = \"198.51.100.7\"\nprefixes = \"0.0.0.0/0\"\n";

#[track_caller]
fn read(section: &str) -> Config {
    let config = parse(&format!("{OWN}{section}")).unwrap_or_else(|faults| panic!("{faults}")).0;
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    config
}

#[track_caller]
fn policy(config: &Config) -> TunnelPolicy {
    let engines = config.engines([0; 2], &Surroundings::default());
    let [MechanismConfig::IpInIp(tunnel)] = &engines[0].others[..] else { panic!("{:?}", engines[0].others) };
    tunnel.policy
}

#[track_caller]
fn fault(section: &str, expected: &str) {
    let faults = parse(&format!("{OWN}{section}")).unwrap_err().to_string();
    assert!(faults.contains(expected), "{faults}");
}

#[track_caller]
fn warning(section: &str, expected: &[&str]) {
    let (_, warnings) = parse(section).unwrap_or_else(|faults| panic!("{faults}"));
    let said = lines(&warnings);
    assert_eq!(said.len(), expected.len(), "{said:?}");
    assert!(said.iter().zip(expected).all(|(said, expected)| said.contains(expected)), "{said:?}");
}

#[test]
fn a_tunnel_over_ipv6_is_read_with_its_routes() {
    let config = read(OVER_6);
    let routes = config.routes();
    for route in ["10.7.0.0/16", "2001:db8:70::/48", "2001:db8:1::1/128"] {
        assert!(routes.iter().any(|it| it.to_string() == route), "{route}: {routes:?}");
    }
    let serves: Vec<String> = config.others.all().iter().map(|it| it.serves()).collect();
    assert_eq!(serves, ["2001:db8:1::1 ⇄ 2001:db8:7::1 · 10.7.0.0/16 · 2001:db8:70::/48"]);
    assert!(config.needs_device() && config.routes_ipv4() && config.routes_ipv6() && !config.translates());
    let policy = policy(&config);
    assert_eq!((policy.mtu, policy.encapsulation_limit), (TunnelMtu::Dynamic, Some(4)));
}

#[test]
fn a_tunnel_over_ipv4_takes_a_default_route_and_makes_no_ipv6_router() {
    let config = read(&OVER_4.replace("0.0.0.0/0\"", "10.7.0.0/16\"\nmtu = 1400"));
    assert!(config.routes().contains(&Route::V4("192.0.2.77/32".parse().unwrap())));
    assert!(config.needs_device() && config.routes_ipv4() && !config.routes_ipv6());
    assert_eq!(policy(&config).mtu, TunnelMtu::Static(1_400));
    let config = read(OVER_4);
    assert!(config.routes().contains(&Route::V4("0.0.0.0/0".parse().unwrap())));
}

#[test]
fn no_encapsulation_limit_is_a_word() {
    for (written, limit) in [("\"none\"", None), ("0", Some(0)), ("255", Some(255))] {
        let config = read(&format!("{OVER_6}encapsulation_limit = {written}\n"));
        assert_eq!(policy(&config).encapsulation_limit, limit);
    }
    fault(&format!("{OVER_4}encapsulation_limit = 4\n"), "applies only to tunnels over IPv6; remove it");
}

#[test]
fn ends_that_cannot_be_are_reported_with_what_mends_them() {
    let ends = |local: &str, remote: &str| {
        OVER_6.replace("\"2001:db8:1::1\"", local).replace("\"2001:db8:7::1\"", remote)
    };
    let own = "\"2001:db8:1::1\"";
    fault(&ends(own, own), "have the same address; write the address of the remote end as remote");
    fault(&ends(own, "\"192.0.2.7\""), "the other an IPv6 address; write two addresses of one family");
    fault(&ends("\"192.0.2.77\"", "\"192.0.2.7\""), "(RFC 4213); use a [[tunnel]]");
    fault(
        &ends(own, "\"fe80::1\""),
        "is not a valid host address; write a unicast address that is not link-local",
    );
    fault(&ends(own, "\"gw.example\""), "is not an address; write one such as 2001:db8::1 or 192.0.2.1");
    fault(
        &ends(own, "\"2001:db8:ffff::7\""),
        "is this host's own address on eth0; write the address of the remote end",
    );
    let taken = "2001:db8:ffff::7 is this host's own address on eth0; the kernel would receive the tunnel's packets; remove it from the interface";
    fault(&ends("\"2001:db8:ffff::7\"", "\"2001:db8:7::1\""), taken);
    fault(
        &OVER_4.replace("192.0.2.77", "203.0.113.7"),
        "203.0.113.7 is this host's own address on eth0; the kernel",
    );
}

#[test]
fn prefixes_belong_to_one_tunnel_and_the_longest_decides() {
    let two = |prefix: &str| {
        let other = OVER_4.replace("192.0.2.77", "192.0.2.78").replace("0.0.0.0/0", prefix);
        format!("{OVER_6}{other}").replace("[ip_in_ip]", "[[ip_in_ip]]")
    };
    read(&two("10.7.1.0/24"));
    fault(&two("10.7.0.0/16"), "10.7.0.0/16 overlaps 10.7.0.0/16 of ip_in_ip[0].prefixes");
    let tunnel =
        "[[tunnel]]\nlocal = \"203.0.113.7\"\nremote = \"198.51.100.9\"\nprefixes = \"2001:db8:70::/48\"\n";
    fault(&format!("{OVER_6}{tunnel}"), "2001:db8:70::/48 overlaps 2001:db8:70::/48 of ip_in_ip.prefixes");
    fault(
        &OVER_6.replace("[\"10.7.0.0/16\", \"2001:db8:70::/48\"]", "[]"),
        "is empty; write the prefixes behind the remote end",
    );
    fault(&OVER_6.replace("2001:db8:70::/48", "ff00::/8"), "is link-local or multicast");
    // What a pool has may lie in a prefix, but not the other way round.
    let pool = |addresses: &str| {
        let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";
        format!("[pool]\nname = \"main\"\naddresses = \"{addresses}\"\n{nat64}{OVER_6}")
    };
    read(&pool("10.7.9.0/28"));
    let narrow = pool("10.7.9.0/28").replace("10.7.0.0/16", "10.7.9.1/32");
    fault(&narrow, "10.7.9.1 overlaps 10.7.9.0/28 of pool.main.addresses");
}

#[test]
fn several_tunnels_share_an_end_but_not_both() {
    let two = |local: &str, remote: &str| {
        let other = OVER_6.replace("2001:db8:7::1", remote).replace("2001:db8:1::1", local);
        let other =
            other.replace("10.7.0.0/16", "10.8.0.0/16").replace("2001:db8:70::/48", "2001:db8:80::/48");
        format!("{OVER_6}{other}").replace("[ip_in_ip]", "[[ip_in_ip]]")
    };
    read(&two("2001:db8:1::1", "2001:db8:8::1"));
    read(&two("2001:db8:1::2", "2001:db8:7::1"));
    fault(
        &two("2001:db8:1::1", "2001:db8:7::1"),
        "has the same two ends; write one [[ip_in_ip]] with all prefixes",
    );
    fault(
        &two("2001:db8:7::1", "2001:db8:8::1"),
        "the tunnel's packets would be routed back into the device",
    );
    let named = |text: String| text.replace("[[ip_in_ip]]", "[[ip_in_ip]]\nname = \"one\"");
    fault(&named(two("2001:db8:1::1", "2001:db8:8::1")), "the name one is already used");
    // The gateway's own address may be an end.
    read(&OVER_6.replace("2001:db8:1::1", "2001:db8::fe"));
}

#[test]
fn the_way_to_the_other_end_does_not_lead_into_the_tunnel() {
    let through = |prefix: &str| format!("{OWN}{}", OVER_6.replace("2001:db8:70::/48", prefix));
    warning(
        &through("::/0"),
        &["is within ::/0, one of prefixes: the tunnel's own packets need a more specific route"],
    );
    fault(&OVER_6.replace("2001:db8:70::/48", "2001:db8:7::1/128"), "is one of prefixes");
    let translated = "[npt66]\ninside = \"fd01::/48\"\noutside = \"2001:db8:7::/48\"\n";
    fault(&format!("{OVER_6}{translated}"), "the tunnel's packets would be routed back into the device");
}

#[test]
fn errors_need_a_source_of_each_family_that_is_served() {
    let only =
        |prefix: &str| OVER_6.replace("[\"10.7.0.0/16\", \"2001:db8:70::/48\"]", &format!("\"{prefix}\""));
    warning(&only("10.7.0.0/16"), &["gateway.ipv4_address"]);
    warning(&only("2001:db8:70::/48"), &["gateway.ipv6_address"]);
    warning(OVER_6, &["gateway.ipv4_address", "gateway.ipv6_address"]);
}
