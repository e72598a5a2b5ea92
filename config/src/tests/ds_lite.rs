//! DS-Lite (RFC 6333): both roles of a section.

use super::*;
use crate::{Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::tunnel::TunnelMtu;
use std::net::{IpAddr, Ipv6Addr};

const B4: &str = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:1::b4\"\naftr = \"2001:db8:a::1\"\n";
const NAMED: &str = "[ds_lite]\nrole = \"b4\"\ninterface = \"eth0\"\naftr = \"aftr.example\"\n";

#[track_caller]
fn read(text: &str) -> Config {
    let (config, warnings) = parse(text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(lines(&warnings), Vec::<String>::new());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    config
}

#[track_caller]
fn fault(text: &str, expected: &str) {
    let faults = parse(text).unwrap_err().to_string();
    assert!(faults.contains(expected), "{faults}");
}

fn b4(config: &Config, now: &Surroundings) -> Option<B4Config> {
    let tunnels = config.tunnels(now);
    tunnels.into_iter().find_map(|(_, tunnel)| match tunnel {
        MechanismConfig::B4(b4) => Some(b4),
        _ => None,
    })
}

fn seen(addresses: &[(&str, &str)]) -> Surroundings {
    let own = |(interface, address): &(&str, &str)| HostAddress {
        interface: (*interface).to_owned(),
        address: address.parse().unwrap(),
        length: 64,
    };
    Surroundings::of(&addresses.iter().map(own).collect::<Vec<_>>())
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn a_b4_takes_the_rest_of_ipv4_with_the_well_known_address_and_needs_no_other_section() {
    let config = read(B4);
    let now = Surroundings::default();
    let engine = b4(&config, &now).unwrap();
    assert_eq!((engine.local, engine.remote), (v6("2001:db8:1::b4"), Some(v6("2001:db8:a::1"))));
    assert_eq!((engine.policy.mtu, engine.policy.encapsulation_limit), (TunnelMtu::Dynamic, None));
    assert!(engine.policy.clamp_mss);
    assert_eq!(config.routes(), [Route::V4("0.0.0.0/0".parse().unwrap())]);
    assert_eq!(config.ipv4_address(), Some([192, 0, 0, 2].into()));
    let reach = config.reach(&now);
    assert_eq!(reach.addresses, [IpAddr::from([192, 0, 0, 2])]);
    assert_eq!(reach.routes[0].prefix.to_string(), "2001:db8:1::b4/128");
    assert_eq!(reach.proxies, []);
    assert!(config.needs_device() && config.routes_ipv4() && config.routes_ipv6() && !config.has_tunnels());
}

#[test]
fn a_b4_on_an_interface_follows_its_newest_prefix_and_is_looked_for_there() {
    let config = read(NAMED);
    assert!(b4(&config, &seen(&[("eth0", "fe80::1"), ("eth1", "2001:db8:2::1")])).is_none());
    for (address, local) in [("2001:db8:ffff::7", "2001:db8:ffff::b4"), ("fd00:7:7:7::1", "fd00:7:7:7::b4")] {
        let now = seen(&[("eth0", "fe80::1"), ("eth0", address)]);
        assert_eq!(b4(&config, &now).unwrap().local, v6(local));
        let [proxy] = &config.reach(&now).proxies[..] else { panic!("no proxy") };
        assert_eq!((&*proxy.interface, proxy.address), ("eth0", v6(local).into()));
    }
    // The kernel lists the newest first.
    let now = seen(&[("eth0", "fd00::1"), ("eth0", "2001:db8:3::7"), ("eth0", "2001:db8:2::7")]);
    assert_eq!(b4(&config, &now).unwrap().local, v6("2001:db8:3::b4"));
    let config = read(&format!("{NAMED}identifier = \"::1:2\"\n"));
    assert_eq!(b4(&config, &now).unwrap().local, v6("2001:db8:3::1:2"));
}

#[test]
fn an_aftr_that_is_a_name_is_where_the_name_leads() {
    let config = read(NAMED);
    let mut now = seen(&[("eth0", "2001:db8:ffff::7")]);
    assert_eq!(b4(&config, &now).unwrap().remote, None);
    now.aftrs.insert("ds_lite".into(), v6("2001:db8:a::2"));
    assert_eq!(b4(&config, &now).unwrap().remote, Some(v6("2001:db8:a::2")));
}

#[test]
fn faults_of_a_b4_say_how_to_mend_them() {
    for (line, expected) in [
        ("aftr = \"192.0.2.1\"\n", "is neither an IPv6 address nor a name; write one such as aftr.example"),
        ("aftr = \"fe80::1\"\n", "write a unicast address that is not link-local"),
        (
            "aftr = \"2001:db8:ffff::7\"\n",
            "is this host's own address on eth0; write the address of the AFTR",
        ),
        ("", "has no AFTR; write aftr = \"aftr.example\""),
    ] {
        fault(&B4.replace("aftr = \"2001:db8:a::1\"\n", line), expected);
    }
    for (line, expected) in [
        ("clients = \"2001:db8:9::/48\"\n", "applies only to role = \"aftr\"; remove it"),
        ("interface = \"eth0\"\n", "cannot be combined with local; remove one"),
        ("identifier = \"::1\"\n", "applies only with interface; remove it"),
        ("ipv4_address = \"192.0.0.1\"\n", "is the AFTR's; write 192.0.0.2"),
        (
            "ipv4_address = \"203.0.113.1\"\n",
            "is not in `inside`, so that its packets are dropped; write 192.0.0.2",
        ),
        ("aftr_within = \"2001:db8:a::/64\"\n", "applies only to an AFTR that is a name; remove it"),
        ("mtu = 9000\n", "is more than tun.mtu"),
    ] {
        fault(&format!("{B4}{line}"), expected);
    }
    fault(&B4.replace("local = \"2001:db8:1::b4\"\n", ""), "has no local end; write interface = \"eth0\"");
    fault(&B4.replace("1::b4", "ffff::7"), "the kernel would take the tunnel's packets");
    fault(&format!("{NAMED}identifier = \"2001::1\"\n"), "is not an interface identifier");
    fault(&format!("{NAMED}identifier = \"::7\"\n"), "write another identifier");
    let two = format!("{}name = \"one\"\n{}", B4, B4).replace("[ds_lite]", "[[ds_lite]]");
    fault(&two, "there is a B4 already (line 1); IPv4 packets go to one AFTR");
}

#[test]
fn an_interface_without_a_prefix_is_a_warning() {
    let (_, warnings) = parse(&NAMED.replace("eth0", "port0")).unwrap();
    assert!(
        lines(&warnings)[0].contains("has no global IPv6 address yet; the tunnel starts when it has one")
    );
}
