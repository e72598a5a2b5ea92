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
fn a_b4_carries_the_dscp_both_ways_or_sets_it() {
    let copies = |text: &str| b4(&read(text), &Surroundings::default()).unwrap().policy.copies_dscp_out;
    assert!(copies(B4));
    assert!(!copies(&format!("{B4}traffic_class = 0\n")));
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
    fault(&B4.replace("1::b4", "ffff::7"), "the kernel would receive the tunnel's packets");
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

const AFTR: &str = "[ds_lite]\nrole = \"aftr\"\naddresses = [\"2001:db8:a::1\", \"2001:db8:a::2\"]\nclients = [\"2001:db8:b4::/48\"]\npool = \"main\"\n";

#[test]
fn an_aftr_is_read_with_its_defaults_and_has_a_share_for_each_worker() {
    let config = read(&format!("[gateway]\nworkers = 2\n{POOL}{AFTR}"));
    let aftr = config.aftrs().next().unwrap();
    assert_eq!((aftr.subscribers.prefix_length, aftr.max_softwires), (56, 262_144));
    assert_eq!(aftr.inside.len(), 4, "RFC 6333 §11");
    let engines = config.engines([1, 2], &Surroundings::default());
    assert_eq!(engines.len(), 2);
    for engine in &engines {
        let [MechanismConfig::DsLite(aftr)] = &engine.others[..] else { panic!("{:?}", engine.others) };
        assert_eq!(aftr.limits.sessions, 524_288);
        assert!(aftr.in_use.is_some() && aftr.tunnel.copies_dscp_out);
        assert_eq!((aftr.tunnel.mtu, aftr.tunnel.encapsulation_limit), (TunnelMtu::Dynamic, None));
    }
    let reach = config.reach(&Surroundings::default());
    let routed = |text: &str| reach.routes.iter().any(|it| it.prefix.to_string() == text);
    assert!(routed("2001:db8:a::1/128") && routed("2001:db8:a::2/128"), "{:?}", reach.routes);
    assert!(config.routes().iter().any(|route| matches!(route, Route::V4(_))), "its pool");
    assert_eq!(config.subscriber_bits().0, 56);
}

#[test]
fn static_bindings_of_an_aftr_say_their_softwire() {
    let row = "[[ds_lite.static]]\nprotocol = \"tcp\"\nsoftwire = \"2001:db8:b4::1\"\ninside = \"10.0.0.5:80\"\noutside = \"192.0.2.1:80\"\n";
    let config = read(&format!("{POOL}{AFTR}{row}"));
    let engines = config.engines([1, 2], &Surroundings::default());
    let [MechanismConfig::DsLite(aftr)] = &engines[0].others[..] else { panic!() };
    let softwire = aftr.static_bindings[0].softwire;
    assert_eq!(softwire, Some("2001:db8:b4::1".parse().unwrap()));
    // Hosts behind other softwires may have the same address.
    let other = row.replace("b4::1", "b4:9::1").replace("192.0.2.1:80", "192.0.2.1:81");
    read(&format!("{POOL}{AFTR}{row}{other}"));
    fault(&format!("{POOL}{AFTR}{row}{row}"), "already has a static binding");
    fault(&format!("{POOL}{AFTR}{}", row.replace("b4::1", "b5::1")), "is not in `clients`");
    fault(&format!("{POOL}{AFTR}{}", row.replace("10.0.0.5", "8.8.8.8")), "is not in `inside`");
    fault(&format!("{POOL}{AFTR}{}", row.replace("192.0.2.1", "198.51.100.1")), "is not an address of pool");
}

#[test]
fn faults_of_an_aftr_say_what_is_wrong() {
    for key in ["addresses", "clients", "pool"] {
        let without: Vec<&str> = AFTR.lines().filter(|line| !line.starts_with(key)).collect();
        fault(&format!("{POOL}{}\n", without.join("\n")), &format!("has no {key}"));
    }
    let own = AFTR.replace("2001:db8:b4::/48", "2001:db8:a::/48");
    fault(&format!("{POOL}{own}"), "the AFTR's own address");
    let narrow = AFTR.replace("2001:db8:b4::/48", "2001:db8:b4::/60");
    fault(&format!("{POOL}{narrow}"), "is a part of a subscriber");
    fault(&format!("{POOL}{AFTR}aftr = \"aftr.example\"\n"), "applies only to role = \"b4\"");
    fault(&format!("{B4}max_softwires = 100\n"), "applies only to role = \"aftr\"");
    fault(&format!("{B4}block_size = 64\n"), "applies only to role = \"aftr\"");
    fault(&format!("{B4}[ds_lite.timeouts]\nicmp_default = \"90 s\"\n"), "applies only to role = \"aftr\"");
}

#[test]
fn an_aftr_serves_someone_at_addresses_that_a_host_can_have() {
    let list = |key: &str, value: &str| {
        let line =
            |line: &str| if line.starts_with(key) { format!("{key} = {value}") } else { line.to_owned() };
        format!("{POOL}{}\n", AFTR.lines().map(line).collect::<Vec<_>>().join("\n"))
    };
    for key in ["addresses", "clients"] {
        fault(&list(key, "[]"), "is empty; write");
    }
    for address in ["fe80::1", "ff02::1", "::1", "::"] {
        fault(&list("addresses", &format!("[\"{address}\"]")), "is not a valid host address");
    }
    let many = |count: u16| {
        let all: Vec<String> = (1..=count).map(|n| format!("\"2001:db8:a::{n:x}\"")).collect();
        list("addresses", &format!("[{}]", all.join(", ")))
    };
    assert_eq!(read(&many(256)).aftrs().next().unwrap().addresses.len(), 256);
    fault(&many(257), "has 257 addresses; write 256 at most");
}

#[test]
fn each_of_many_workers_has_room_for_softwires() {
    let config = read(&format!("{POOL}{AFTR}max_softwires = 16\n"));
    let pool = config.pools.first();
    let most = |workers| config.aftrs().next().unwrap().engine(pool, workers).max_softwires;
    assert_eq!([1, 2, 16, 64].map(most), [16, 16, 2, 2]);
}
