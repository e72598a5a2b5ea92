//! Other programs change the host's configuration while the gateway runs.

use super::NAT64;
use super::network::{Network, Running, SIXWAY};
use super::shared_pool::{Answering, ECHO, SHARED};
use std::time::{Duration, Instant};

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the gateway's routes are complete.
fn until_routed(network: &Network, gateway: &Running) {
    let wanted = ["192.0.2.0/28 dev sixway0", "192.0.2.254 dev sixway0", "64:ff9b::/96 dev sixway0"];
    until("the routes are there", || {
        let routes = network.routes();
        let there = wanted.iter().all(|route| routes.iter().any(|line| line.starts_with(route)));
        assert!(!gateway.said().contains("panicked"), "{}", gateway.said());
        there
    });
}

fn restored(network: &Network, what: &str) -> u64 {
    let status: serde_json::Value = serde_json::from_str(&network.show(&["--json"])).unwrap();
    let rows = status["host"]["restored"].as_array().unwrap();
    rows.iter().find(|row| row["what"] == what).unwrap()["times"].as_u64().unwrap()
}

#[test]
fn a_device_that_is_taken_down_and_routes_that_are_removed_are_restored() {
    let network = Network::build();
    let (settings, routes) = (network.settings(), network.routes());
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let host = network.host("gateway");
    network.ip(&["-n", &host, "link", "set", "sixway0", "down"]);
    until_routed(&network, &gateway);
    network.ping("64:ff9b::203.0.113.2");
    assert!(
        gateway.said().contains("sixway0: changed by another program, restored: it was down"),
        "{}",
        gateway.said()
    );
    until("it is counted", || (restored(&network, "device"), restored(&network, "route")) == (1, 1));

    network.ip(&["-n", &host, "route", "del", "192.0.2.0/28"]);
    network.ip(&["-n", &host, "-6", "route", "flush", "dev", "sixway0"]);
    until_routed(&network, &gateway);
    until("it is counted", || restored(&network, "route") == 2);
    network.ping("64:ff9b::203.0.113.2");
    let shown = network.show(&[]);
    assert!(shown.contains("restored, after other programs changed it: device (1), route (2)\n"), "{shown}");

    // The third time within a minute is a fight, and the other program wins it.
    network.ip(&["-n", &host, "route", "del", "192.0.2.0/28"]);
    until("it is left alone", || network.show(&[]).contains("repeatedly: routes into sixway0 → "));
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!network.routes().iter().any(|line| line.starts_with("192.0.2.0/28")), "{}", gateway.said());
    assert_eq!(restored(&network, "route"), 2);
    // Whoever ends it is noticed.
    network.ip(&[
        "-n",
        &host,
        "route",
        "add",
        "192.0.2.0/28",
        "dev",
        "sixway0",
        "proto",
        "64",
        "scope",
        "link",
    ]);
    network.ip(&["-n", &host, "link", "set", "sixway0", "txqueuelen", "9999"]);
    until("it is as configured", || !network.show(&[]).contains("not restored"));

    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn settings_that_are_changed_are_restored_and_are_as_before_at_the_end() {
    let network = Network::build();
    network.set("ipv4/conf/all/rp_filter", "1");
    let settings = network.settings();
    let mut gateway = network.start(NAT64);
    for (path, value, wanted) in [
        ("ipv4/conf/in0/forwarding", "0", "1"),
        ("ipv4/conf/all/rp_filter", "1", "0"),
        ("ipv4/conf/sixway0/rp_filter", "1", "0"),
    ] {
        network.set(path, value);
        until(path, || network.settings()[&format!("/proc/sys/net/{path}")] == wanted);
        let said = format!(
            "net.{}: changed by another program, restored: {value}, not {wanted}",
            path.replace('/', ".")
        );
        assert!(gateway.said().contains(&said), "{}", gateway.said());
    }
    network.ping("64:ff9b::203.0.113.2");
    assert_eq!(restored(&network, "sysctl"), 3);
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    assert_eq!(network.settings(), settings);
}

#[test]
fn routes_that_others_added_into_the_device_stay() {
    let network = Network::build();
    let host = network.host("gateway");
    let foreign = "198.51.100.0/24 dev sixway0 proto static scope link";
    let is_there =
        || network.routes().iter().any(|line| line.starts_with("198.51.100.0/24 dev sixway0 proto static"));
    let mut first = network.start(NAT64);
    network.ip(&[&["-n", &host, "route", "add"][..], &foreign.split(' ').collect::<Vec<_>>()].concat());
    let mut second = network.start_with(NAT64, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert!(is_there(), "{}", second.said());
    // A route of the gateway's that is gone already is nobody's trouble.
    let other = NAT64.replace("192.0.2.0/28", "192.0.2.64/28");
    network.ip(&["-n", &host, "route", "del", "192.0.2.0/28"]);
    let mut third = network.start_with(&other, &["--takeover"]);
    assert_eq!(second.end(), 0, "{}", second.said());
    assert!(third.said().contains("ready in") && is_there(), "{}", third.said());
    network.ping("64:ff9b::203.0.113.2");
    third.signal("TERM");
    assert_eq!(third.end(), 0, "{}", third.said());
}

#[test]
fn forwarding_that_another_program_enables_survives_the_end() {
    let network = Network::build();
    network.set("ipv4/ip_forward", "0");
    let mut gateway = network.start(NAT64);
    // As Docker does.
    network.set("ipv4/ip_forward", "1");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    assert!(
        gateway.said().contains("kept, because net.ipv4.ip_forward was enabled meanwhile"),
        "{}",
        gateway.said()
    );
    let settings = network.settings();
    for path in ["ipv4/conf/in0/forwarding", "ipv4/conf/out0/forwarding", "ipv6/conf/all/forwarding"] {
        assert_eq!(settings[&format!("/proc/sys/net/{path}")], "1", "{path}");
    }
}

#[test]
fn sighup_reloads_a_gateway_without_a_fast_path() {
    let network = Network::build();
    let before = (network.routes(), network.settings());
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = || network.show(&["sessions", "--protocol", "icmp"]);
    assert!(sessions().contains("203.0.113.2"));
    network.configure("[nat64]\nprefix = 7\n");
    gateway.signal("HUP");
    until("a faulty file is refused", || gateway.said().contains("not reloaded: "));
    assert!(sessions().contains("203.0.113.2"));
    network.configure(&format!("{NAT64}[siit]\nprefix = \"2001:db8:64::/96\"\neam = [{{ ipv4 = \"198.51.100.7\", ipv6 = \"2001:db8:1::2\" }}]\n"));
    gateway.signal("HUP");
    until("it reloads", || gateway.said().matches("ready in").count() == 2);
    assert!(sessions().contains("203.0.113.2"), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    network.ping("2001:db8:64::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!((network.routes(), network.settings()), before);
}

#[test]
fn a_queueing_discipline_and_a_table_that_are_removed_are_restored() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let works = || {
        let output = network.on("client", "ping", &["-c", "1", "-W", "1", "2001:db8:64::203.0.113.2"]);
        output.status.success()
    };
    until("the neighbours are known", works);
    for _ in 0..2 {
        let before = restored(&network, "steering");
        assert!(network.on("gateway", "tc", &["qdisc", "del", "dev", "out0", "clsact"]).status.success());
        until("steering is restored", || restored(&network, "steering") > before);
        until("it works again", works);
        let before = restored(&network, "packet_filter");
        assert!(network.on("gateway", "nft", &["flush", "ruleset"]).status.success());
        until("the table is restored", || restored(&network, "packet_filter") > before);
        assert!(super::shared_pool::table(&network).contains("61000-65535"));
    }
    // What the gateway does itself is nobody else's change.
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(
        (restored(&network, "steering"), restored(&network, "packet_filter")),
        (2, 2),
        "{}",
        gateway.said()
    );
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    let left = network.on("gateway", "tc", &["filter", "show", "dev", "out0", "ingress"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains("sixway"), "{left:?}");
}

#[test]
fn filters_that_are_flushed_are_restored_and_what_the_gateway_does_is_nobody_elses_change() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    // All filters of the chain go with one notification, which names none.
    assert!(network.on("gateway", "tc", &["filter", "del", "dev", "out0", "ingress"]).status.success());
    until("steering is restored", || restored(&network, "steering") == 1);
    network.ping("2001:db8:64::203.0.113.2");
    // A reload replaces its own filters, and other ports change its own setting twice.
    for (ready, ports) in [(2, "61000-65000"), (3, "61000-65500")] {
        network.configure(&SHARED.replace("61000-65535", ports));
        gateway.signal("HUP");
        until("it is reloaded", || gateway.said().matches("ready in").count() == ready);
    }
    // Others reserve ports too, and load sets of their own.
    network.set("ipv4/ip_local_reserved_ports", "8080,61000-65500");
    for rules in ["add table inet other", "add chain inet other c", "delete table inet other"] {
        assert!(network.on("gateway", "nft", &[rules]).status.success());
    }
    std::thread::sleep(Duration::from_millis(3_500));
    let said = gateway.said();
    let accused = said.matches("changed by another program").count();
    assert_eq!(accused, 1, "the flushed filters alone: {said}");
    let read = network.on("gateway", "cat", &["/proc/sys/net/ipv4/ip_local_reserved_ports"]);
    assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), "8080,61000-65500");
    // Without ours, they are added.
    network.set("ipv4/ip_local_reserved_ports", "8080");
    until("ours are reserved again", || {
        let read = network.on("gateway", "cat", &["/proc/sys/net/ipv4/ip_local_reserved_ports"]);
        String::from_utf8_lossy(&read.stdout).trim() == "8080,61000-65500"
    });
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_route_that_another_program_replaced_is_reported_once_and_left_to_it() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    let host = network.host("gateway");
    network.ip(&["-n", &host, "route", "replace", "192.0.2.0/28", "dev", "out0"]);
    let reported = "another program's route to 192.0.2.0/28 has taken the place of the gateway's";
    until("it is reported", || gateway.said().contains(reported));
    // Looked at again, it is the same.
    for _ in 0..2 {
        network.ip(&["-n", &host, "route", "replace", "198.51.100.0/24", "dev", "out0"]);
        std::thread::sleep(Duration::from_millis(1_500));
    }
    assert_eq!(restored(&network, "route"), 0);
    assert_eq!(gateway.said().matches(reported).count(), 1, "{}", gateway.said());
    assert!(!gateway.said().contains("restored: 192.0.2.0/28"), "{}", gateway.said());
    network.ip(&["-n", &host, "route", "del", "192.0.2.0/28", "dev", "out0"]);
    network.ip(&["-n", &host, "-6", "route", "del", "64:ff9b::/96"]);
    until_routed(&network, &gateway);
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_reload_next_to_a_new_masquerade_rule_is_refused_and_the_gateway_goes_on() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let masquerade = |device: &str| {
        let rules = format!(
            "table ip nat {{ chain post {{ type nat hook postrouting priority 100; oifname \"{device}\" masquerade; }}; }}"
        );
        assert!(network.on("gateway", "nft", &[&rules]).status.success());
    };
    // By another interface than the one with the pool's address.
    masquerade("wg0");
    gateway.signal("HUP");
    until("it is reloaded", || gateway.said().matches("ready in").count() == 2);
    masquerade("out0");
    gateway.signal("HUP");
    until("it is refused", || gateway.said().contains("not reloaded: ip nat post masquerades connections"));
    let mut next = network.start_with(SHARED, &["--takeover"]);
    assert_eq!(next.end(), 1);
    assert!(next.said().contains("ip nat post masquerades connections"), "{}", next.said());
    network.ping("2001:db8:64::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn two_gateways_share_an_address_by_their_ports() {
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let second = SHARED.replace("61000-65535", "50000-54999").replace("2001:db8:64::/96", "2001:db8:65::/96");
    network.set("ipv4/ip_local_port_range", "\"32768 49999\"");
    let mut first = network.start(SHARED);
    assert!(first.said().contains("ready in"), "{}", first.said());
    network.ping("2001:db8:64::203.0.113.2");
    let mut other = network.start_second(&second);
    assert!(other.said().contains("ready in"), "{}", other.said());
    network.ping("2001:db8:65::203.0.113.2");
    network.ping("2001:db8:64::203.0.113.2");
    // Each reserves its ports, and neither takes the other's away.
    let reserved = || {
        let read = network.on("gateway", "cat", &["/proc/sys/net/ipv4/ip_local_reserved_ports"]);
        String::from_utf8_lossy(&read.stdout).trim().to_owned()
    };
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(reserved(), "50000-54999,61000-65535");
    assert!(!(first.said() + &other.said()).contains("another program"), "{}{}", first.said(), other.said());
    other.signal("TERM");
    assert_eq!(other.end(), 0, "{}", other.said());
    network.ping("2001:db8:64::203.0.113.2");
    first.signal("TERM");
    assert_eq!(first.end(), 0, "{}", first.said());
}

#[test]
fn a_renamed_device_is_reported_and_does_not_survive_the_end() {
    let (network, text) = super::fast_path::build();
    let routes = network.routes();
    let mut gateway = network.start(&text);
    let host = network.host("gateway");
    network.ip(&["-n", &host, "link", "set", "sixway0", "down"]);
    network.ip(&["-n", &host, "link", "set", "sixway0", "name", "other0"]);
    until("it is reported", || {
        gateway.said().contains("sixway0: renamed or removed by another program; restart")
    });
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.ip(&["-n", &host, "-br", "link"]).contains("other0"));
    assert_eq!(network.routes(), routes);

    // Also after a crash.
    let mut gateway = network.start(&text);
    network.ip(&["-n", &host, "link", "set", "sixway0", "down"]);
    network.ip(&["-n", &host, "link", "set", "sixway0", "name", "other0"]);
    gateway.signal("KILL");
    gateway.end();
    assert!(network.ip(&["-n", &host, "-br", "link"]).contains("other0"));
    network.on("gateway", super::SIXWAY, &["cleanup"]);
    assert!(!network.ip(&["-n", &host, "-br", "link"]).contains("other0"));
    assert!(!network.state().exists());
}

#[test]
fn a_reload_without_the_fast_path_keeps_the_sessions_that_it_carried() {
    for without in ["", "[fastpath]\nmode = \"off\"\n"] {
        let (network, text) = super::fast_path::build();
        let mut gateway = super::fast_path::carries_a_session(&network, &text);
        let ports = || -> Vec<String> {
            let rows: serde_json::Value =
                serde_json::from_str(&network.show(&["sessions", "--protocol", "udp", "--json"])).unwrap();
            rows["rows"].as_array().unwrap().iter().map(|row| row["outside"].to_string()).collect()
        };
        let before = ports();
        assert_eq!(before.len(), 1);
        network.configure(&format!("{NAT64}{without}"));
        gateway.signal("HUP");
        until("it reloads", || gateway.said().matches("ready in").count() == 2);
        assert_eq!(ports(), before, "{}", gateway.said());
        assert!(network.show(&["sessions"]).contains("engine"));
        gateway.signal("TERM");
        assert_eq!(gateway.end(), 0, "{}", gateway.said());
        assert!(!network.has_device() && network.pinned().is_empty());
    }
}

#[test]
fn a_shared_pool_waits_for_its_address() {
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let host = network.host("gateway");
    let other = SHARED.replace("203.0.113.1", "203.0.113.9");
    let mut gateway = network.start(&other);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let works = || {
        let output = network.on("client", "ping", &["-c", "1", "-W", "1", "2001:db8:64::203.0.113.2"]);
        output.status.success()
    };
    assert!(!works());
    for _ in 0..2 {
        network.ip(&["-n", &host, "addr", "add", "203.0.113.9/24", "dev", "out0"]);
        until("it works with the address", works);
        assert!(gateway.said().contains("the pool address 203.0.113.9 is on out0"), "{}", gateway.said());
        network.ip(&["-n", &host, "addr", "del", "203.0.113.9/24", "dev", "out0"]);
        until("its loss is reported", || gateway.said().contains("out0 lost the pool address 203.0.113.9: "));
        let problem = "pool main, 203.0.113.9: waiting for an IPv4 address on this host";
        until("it is a problem", || network.show(&[]).contains(problem));
    }
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_pool_follows_the_address_of_its_interface() {
    let network = Network::build();
    let host = network.host("gateway");
    let _far = Answering::on(&network, "server", ECHO);
    network.ip(&["-n", &host, "addr", "flush", "dev", "out0"]);
    let text = SHARED.replace("addresses = [\"203.0.113.1\"]", "interface = \"out0\"");
    let mut gateway = network.start(&text);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let server = "2001:db8:64::203.0.113.2";
    let ping = || {
        let output = network.on("client", "ping", &["-6", "-c", "1", "-W", "1", server]);
        output.status.success()
    };
    assert!(!ping(), "no address yet");
    for (times, address) in [(1, "203.0.113.1"), (2, "203.0.113.77")] {
        network.ip(&["-n", &host, "addr", "flush", "dev", "out0"]);
        network.ip(&["-n", &host, "addr", "add", &format!("{address}/24"), "dev", "out0"]);
        let reloaded = "the address of a pool changed: reloading";
        until("it is reloaded", || gateway.said().matches(reloaded).count() == times);
        until("it is translated", ping);
        until("the binding has it", || network.show(&["bindings"]).contains(&format!("{address}:6")));
    }
    assert!(gateway.said().contains("out0 lost the pool address 203.0.113.1"), "{}", gateway.said());
    assert!(!network.show(&[]).contains("waiting for"), "{}", network.show(&[]));
    network.ip(&["-n", &host, "addr", "flush", "dev", "out0"]);
    let problem = "pool main: waiting for an IPv4 address on out0";
    until("an address that was lost is a problem", || network.show(&[]).contains(problem));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn masquerading_next_to_a_shared_pool_is_refused_with_the_rule_to_write() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let rules = "table ip nat { chain post { type nat hook postrouting priority 100; oifname \"out0\" masquerade; }; }";
    assert!(network.on("gateway", "nft", &[rules]).status.success());
    let mut gateway = network.start(SHARED);
    assert_eq!(gateway.end(), 1, "{}", gateway.said());
    let said = gateway.said();
    let cure = said
        .split("limit its ports: ")
        .nth(1)
        .unwrap_or_else(|| panic!("{said}"))
        .lines()
        .next()
        .unwrap()
        .to_owned();
    assert!(cure.contains("oifname \"out0\" meta l4proto { tcp, udp } masquerade to :1024-60999"), "{cure}");
    assert!(network.on("gateway", "sh", &["-c", &cure]).status.success(), "{cure}");
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    network.ping("2001:db8:64::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_dynamic_pool_is_masqueraded_although_there_is_a_fast_path() {
    super::shared_pool::needs_nft();
    let (network, text) = super::fast_path::build();
    let state = network.directory.join("dynamic.state");
    let siit = format!(
        "[siit]\nprefix = \"2001:db8:65::/96\"\ndynamic_pool = \"172.16.0.0/24\"\ndynamic_state = {state:?}\n"
    );
    let rules = "table ip nat { chain post { type nat hook postrouting priority 100; oifname \"out0\" masquerade; }; }";
    assert!(network.on("gateway", "nft", &[rules]).status.success());
    // The server knows nobody but the gateway's own address.
    network.ip(&["-n", &network.host("server"), "route", "del", "default"]);
    let mut gateway = network.start(&super::fast_path::instead_of_siit(&text, &siit));
    network.ping("2001:db8:65::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

/// What `tun.routes` says of docs/configuration.md: IPv4 addresses of hosts that have IPv6 addresses under the prefix.
#[test]
fn a_packet_for_a_translatable_address_without_a_host_does_not_circle() {
    let network = Network::build();
    let routes = network.routes();
    let mut gateway = network
        .start("[tun]\nroutes = [\"auto\", \"198.51.100.0/24\"]\n[siit]\nprefix = \"2001:db8:64::/96\"\n");
    let unreachable = "unreachable 2001:db8:64::c633:6400/120";
    assert!(network.routes().iter().any(|line| line.starts_with(unreachable)), "{:?}", network.routes());
    network.ip(&[
        "-n",
        &network.host("client"),
        "-6",
        "route",
        "replace",
        "2001:db8:64::c633:6409",
        "via",
        "2001:db8:1::1",
    ]);
    let client = network.host("client");
    network.ip(&["-n", &client, "addr", "add", "2001:db8:64::c633:6401/128", "dev", "eth0", "nodad"]);
    let ping =
        ["-6", "-c", "1", "-W", "1", "-t", "255", "-I", "2001:db8:64::c633:6401", "2001:db8:64::c633:6409"];
    assert!(!network.on("client", "ping", &ping).status.success());
    let counters: serde_json::Value = serde_json::from_str(&network.show(&["counters", "--json"])).unwrap();
    let value = |name: &str| {
        let row = counters.as_array().unwrap().iter().find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_u64()).unwrap()
    };
    assert_eq!(value("siit.v6_to_v4") + value("siit.v4_to_v6"), 0, "it is not translated at all");
    // A host with a route of the same length is reached, and the route that the gateway added goes with it.
    let host = network.host("gateway");
    network.ip(&["-n", &host, "-6", "route", "add", "2001:db8:64::c633:6400/120", "via", "2001:db8:1::2"]);
    let chosen = network.ip(&["-n", &host, "-6", "route", "get", "2001:db8:64::c633:6401"]);
    assert!(chosen.contains("dev in0"), "{chosen}");
    network.ip(&["-n", &host, "-6", "route", "del", "2001:db8:64::c633:6400/120", "via", "2001:db8:1::2"]);
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!(network.routes(), routes);
}

#[test]
fn addresses_that_this_host_gets_are_no_destinations_of_nat64_from_then_on() {
    let network = Network::build();
    let mut gateway = network.start(&format!("{NAT64}allow_own = [\"203.0.113.1\"]\n"));
    network.ping("64:ff9b::203.0.113.1");
    let pings = |address: &str| {
        let address = format!("64:ff9b::{address}");
        network.on("client", "ping", &["-6", "-c", "1", "-W", "1", &address]).status.success()
    };
    network.ip(&["-n", &network.host("gateway"), "addr", "add", "203.0.113.77/32", "dev", "lo"]);
    until("the address is known", || {
        let _ = pings("203.0.113.77");
        network.show(&["drops"]).contains("DestinationIsHost")
    });
    assert!(!pings("203.0.113.77"));
    network.ping("64:ff9b::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn packets_that_its_rules_count_are_no_change_of_its_table_by_another_program() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let gateway = network.start(&format!("{NAT64}reverse_path = \"strict\"\n"));
    let listed = network.on("gateway", "nft", &["list", "tables", "inet"]).stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let table = listed.lines().find_map(|line| line.strip_prefix("table inet ")).unwrap().to_owned();
    let rules = || {
        let listed = network.on("gateway", "nft", &["list", "table", "inet", &table]).stdout;
        String::from_utf8_lossy(&listed).into_owned()
    };
    let client = network.host("client");
    network.ip(&["-n", &client, "addr", "add", "2001:db8:77::2/128", "dev", "eth0", "nodad"]);
    network.on("client", "ping", &["-c", "1", "-W", "1", "-I", "2001:db8:77::2", "64:ff9b::203.0.113.2"]);
    until("the rule counts the packet", || rules().contains("counter packets 1 "));
    // The deletion of something that has the table's name makes the gateway look at it.
    let other =
        format!("add table inet other; add chain inet other {table}; delete chain inet other {table}");
    for command in other.split("; ") {
        assert!(network.on("gateway", "nft", &[command]).status.success(), "{command}");
    }
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!gateway.said().contains("changed by another program"), "{}", gateway.said());
    assert!(rules().contains("counter packets 1 "), "{}", rules());
    assert!(network.on("gateway", "nft", &["flush", "table", "inet", &table]).status.success());
    until("a real change is restored", || restored(&network, "packet_filter") == 1);
    assert!(rules().contains("counter packets 0 "), "{}", rules());
}

#[test]
fn forged_sources_do_not_reach_a_nat64_that_checks_the_reverse_path() {
    let network = Network::build();
    if !network.on("gateway", "nft", &["list", "ruleset"]).status.success() {
        sixway_trial::ignore("needs nft");
    }
    let (client, host) = (network.host("client"), network.host("gateway"));
    network.ip(&["-n", &client, "addr", "add", "2001:db8:99::1/128", "dev", "eth0", "nodad"]);
    // The forged source is routed, but elsewhere.
    network.ip(&["-n", &host, "link", "add", "other", "type", "veth", "peer", "name", "another"]);
    network.ip(&["-n", &host, "link", "set", "another", "up"]);
    network.ip(&["-n", &host, "link", "set", "other", "up"]);
    network.ip(&["-n", &host, "-6", "route", "add", "2001:db8:99::/64", "dev", "other"]);
    for (reverse_path, created) in [("strict", 0), ("loose", 1)] {
        let mut gateway = network.start(&format!("{NAT64}reverse_path = \"{reverse_path}\"\n"));
        let ping = ["-6", "-c", "1", "-W", "1", "-I", "2001:db8:99::1", "64:ff9b::203.0.113.2"];
        let _ = network.on("client", "ping", &ping);
        let rows: serde_json::Value = serde_json::from_str(&network.show(&["sessions", "--json"])).unwrap();
        assert_eq!(rows["rows"].as_array().map(Vec::len), Some(created), "{reverse_path}: {rows}");
        let own = ["-6", "-c", "1", "-W", "2", "-I", "2001:db8:1::2", "64:ff9b::203.0.113.2"];
        until(reverse_path, || network.on("client", "ping", &own).status.success());
        gateway.signal("TERM");
        assert_eq!(gateway.end(), 0, "{}", gateway.said());
    }
}

#[test]
fn an_mtu_too_small_for_ipv6_takes_no_route_for_long() {
    let network = Network::build();
    let gateway = network.start(NAT64);
    network.ip(&["-n", &network.host("gateway"), "link", "set", "sixway0", "mtu", "1000"]);
    until("the MTU is restored", || gateway.said().contains("restored: MTU 1000, not 1500"));
    let restored_at = Instant::now();
    until_routed(&network, &gateway);
    // The routes are compared every 30 s otherwise.
    assert!(restored_at.elapsed() < Duration::from_secs(5), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
}

/// The device as its maker sees it: flags, MTU, queue, addresses, routes and settings.
fn found_device(network: &Network) -> (String, Vec<String>, Vec<String>, String) {
    let gateway = network.host("gateway");
    let link = network.ip(&["-n", &gateway, "-o", "link", "show", "dev", "sixway0"]);
    let link = link.split_once(": ").unwrap().1.split(" link/").next().unwrap().to_owned();
    let addresses = network.ip(&["-n", &gateway, "-o", "-6", "address", "show", "dev", "sixway0"]);
    let addresses = addresses.lines().filter(|line| !line.contains("fe80")).map(Into::into).collect();
    let routes = network.routes().into_iter().filter(|route| route.contains("sixway0")).collect();
    let script = "cat /proc/sys/net/ipv[46]/conf/sixway0/forwarding /proc/sys/net/ipv4/conf/sixway0/rp_filter \
                  /proc/sys/net/ipv4/conf/sixway0/accept_local /proc/sys/net/ipv6/conf/sixway0/accept_ra";
    let settings = String::from_utf8(network.on("gateway", "sh", &["-c", script]).stdout).unwrap();
    (link, addresses, routes, settings)
}

#[test]
fn a_device_that_somebody_else_made_is_used_and_left_as_it_was_found() {
    for kind in [&["mode", "tun"][..], &["mode", "tun", "multi_queue"]] {
        let network = Network::build();
        let gateway = network.host("gateway");
        network.ip(&[&["-n", &gateway, "tuntap", "add", "dev", "sixway0"], kind].concat());
        network.ip(&["-n", &gateway, "link", "set", "sixway0", "mtu", "1400", "up"]);
        network.ip(&["-n", &gateway, "address", "add", "2001:db8:f::1/64", "dev", "sixway0", "nodad"]);
        network.ip(&["-n", &gateway, "route", "add", "2001:db8:e::/64", "dev", "sixway0"]);
        let (before, settings) = (found_device(&network), network.settings());

        let mut running = network.start(NAT64);
        assert!(running.said().contains("sixway0 exists: it is used as it is"), "{}", running.said());
        network.ping("64:ff9b::203.0.113.2");
        // Through a reload it stays what it is.
        running.signal("HUP");
        let begun = std::time::Instant::now();
        while running.said().matches("ready in").count() < 2 {
            assert!(begun.elapsed().as_secs() < 10, "{}", running.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        network.ping("64:ff9b::203.0.113.2");
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
        assert_eq!(
            (found_device(&network), network.settings()),
            (before.clone(), settings.clone()),
            "{kind:?}"
        );

        let mut running = network.start(NAT64);
        running.signal("KILL");
        running.end();
        network.on("gateway", SIXWAY, &["cleanup"]);
        assert_eq!((found_device(&network), network.settings()), (before, settings), "{kind:?}, killed");

        // One of the same name that was made later is another one.
        let mut running = network.start(NAT64);
        running.signal("KILL");
        running.end();
        network.ip(&["-n", &gateway, "link", "del", "sixway0"]);
        network.ip(&[&["-n", &gateway, "tuntap", "add", "dev", "sixway0"], kind].concat());
        network.ip(&["-n", &gateway, "link", "set", "sixway0", "mtu", "1480"]);
        network.on("gateway", SIXWAY, &["cleanup"]);
        let link = network.ip(&["-n", &gateway, "link", "show", "dev", "sixway0"]);
        assert!(link.contains("mtu 1480"), "{link}");
    }
}

#[test]
fn a_device_of_another_kind_with_our_name_is_refused_with_what_to_do() {
    let network = Network::build();
    let gateway = network.host("gateway");
    for kind in [
        &["tuntap", "add", "dev", "sixway0", "mode", "tap"][..],
        &["link", "add", "sixway0", "type", "bridge"],
    ] {
        network.ip(&[&["-n", &gateway], kind].concat());
        let mut running = network.start(NAT64);
        assert_eq!(running.end(), 1);
        assert!(running.said().contains("not a TUN device; remove it, or set another"), "{}", running.said());
        network.ip(&["-n", &gateway, "link", "del", "sixway0"]);
    }
}

#[test]
fn a_device_that_lives_with_another_process_is_not_one_that_was_found() {
    let network = Network::build();
    let first = network.start(NAT64);
    let mut second = network.start_peer("gateway", "[siit]\nprefix = \"2001:db8:64::/96\"\n");
    assert_eq!(second.end(), 1, "{}", second.said());
    assert!(second.said().contains("is in use by another process"), "{}", second.said());
    assert!(!second.said().contains("it is used as it is"), "{}", second.said());
    network.ping("64:ff9b::203.0.113.2");
    drop(first);
    until("it vanished with its process", || !network.has_device());
}
