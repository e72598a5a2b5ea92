//! Tunnels: packets pass between two gateways, and what is set up for them is put back.

use super::network::Network;

/// A relay with the client behind it.
const RELAY: &str = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.1\"\n";
/// A host of its own, on the server.
const HOST: &str = "[six_to_four]\nrole = \"host\"\naddress = \"203.0.113.2\"\nrelay = \"203.0.113.1\"\n";

fn steering(choice: &str) -> String {
    format!("[tunnels]\nsteering = \"{choice}\"\n")
}

/// A ping, and one with large packets, which are cut by their sender once it learns the tunnel's MTU.
fn pings(network: &Network, from: &str, to: &str) {
    network.ping_from(from, to);
    network.on(from, "ping", &["-c", "1", "-W", "1", "-s", "2000", to]);
    let output = network.on(from, "ping", &["-c", "2", "-i", "0.2", "-W", "2", "-s", "2000", to]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(" 0% packet loss"), "{said}");
}

#[test]
fn a_six_to_four_host_reaches_a_native_one_through_a_relay_by_steering_and_by_raw_sockets() {
    let network = Network::build();
    for choice in ["auto", "off"] {
        let mut relay = network.start(&format!("{RELAY}{}", steering(choice)));
        let mut host = network.start_peer("server", &format!("{HOST}{}", steering(choice)));
        let way = if choice == "off" { "through raw sockets" } else { "protocol 41" };
        assert!(relay.said().contains("relay 203.0.113.1 · protocol 41"), "{}", relay.said());
        assert!(relay.said().contains(way), "{}", relay.said());
        assert!(host.said().contains("everything else via 203.0.113.1"), "{}", host.said());
        pings(&network, "client", "2002:cb00:7102::1");
        pings(&network, "server", "2001:db8:1::2");
        let shown = network.show(&[]);
        assert!(shown.contains("six_to_four"), "{shown}");
        for running in [&mut relay, &mut host] {
            running.signal("TERM");
            assert_eq!(running.end(), 0, "{}", running.said());
        }
    }
}

/// The kernel takes one of the device's addresses for the source of its errors, and there the relay has those of other tunnels.
#[test]
fn a_six_to_four_host_hears_the_errors_of_a_relay_that_has_other_tunnels_too() {
    let network = Network::build();
    let isatap = "[isatap]\nrole = \"router\"\naddress = \"203.0.113.1\"\nprefix = \"2001:db8:a:b::/64\"\n";
    let six_rd = "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:db9::/32\"\nipv4_mask_length = 8\n\
                  address = \"203.0.113.1\"\n";
    let mut host = network.start_peer("server", HOST);
    for other in ["", isatap, six_rd] {
        let mut relay = network.start(&format!("{RELAY}{other}"));
        for (hops, to, said) in
            [("1", "2001:db8:1::2", "Time exceeded"), ("64", "2001:db8:ffff::1", "Destination unreachable")]
        {
            let output = network.on("server", "ping", &["-c", "1", "-W", "2", "-t", hops, to]);
            let heard = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(heard.contains(said), "{other}: {heard} {}", network.show(&["drops"]));
        }
        relay.signal("TERM");
        assert_eq!(relay.end(), 0, "{}", relay.said());
    }
    host.signal("TERM");
    assert_eq!(host.end(), 0, "{}", host.said());
}

#[test]
fn a_host_that_is_not_a_router_stays_a_host_and_everything_is_restored() {
    let network = Network::build();
    let (settings, routes) = (network.settings(), network.routes());
    network.set("ipv4/conf/all/rp_filter", "1");
    let before = network.settings();
    let host = HOST
        .replace("203.0.113.2", "203.0.113.1")
        .replace("relay = \"203.0.113.1\"", "relay = \"203.0.113.2\"");
    let mut gateway = network.start(&host);
    let during = network.settings();
    for name in ["ipv4/conf/in0/forwarding", "ipv6/conf/all/forwarding"] {
        assert_eq!(during[&format!("/proc/sys/net/{name}")], before[&format!("/proc/sys/net/{name}")]);
    }
    let routes_now = network.routes();
    for route in ["2002::/16 dev sixway0", "unreachable 2002:cb00:7101::/48", "default dev sixway0"] {
        assert!(routes_now.iter().any(|line| line.starts_with(route)), "{route}: {routes_now:?}");
    }
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    network.set("ipv4/conf/all/rp_filter", "0");
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn what_a_killed_gateway_left_of_its_tunnels_is_cleared_up() {
    let network = Network::build();
    let (settings, routes) = (network.settings(), network.routes());
    let lan =
        "[router_advertisement]\ninterface = \"in0\"\nprefixes = [{ from = \"six_to_four\", subnet = 1 }]\n";
    let router = "[six_to_four]\nrole = \"router\"\ninterface = \"out0\"\n";
    let mut gateway = network.start(&format!("{router}{lan}"));
    let addresses = || network.ip(&["-n", &network.host("gateway"), "-6", "addr", "show", "dev", "in0"]);
    assert!(addresses().contains("2002:cb00:7101:1::1/64"), "{}", addresses());
    assert!(network.routes().iter().any(|line| line.starts_with("unreachable 2002:cb00:7101::/48")));
    gateway.signal("KILL");
    gateway.end();
    assert!(addresses().contains("2002:cb00:7101:1::1/64"));
    network.on("gateway", super::SIXWAY, &["cleanup"]);
    assert!(!addresses().contains("2002:"), "{}", addresses());
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn a_site_follows_the_address_of_its_interface() {
    let network = Network::build();
    let mut gateway =
        network.start("[six_to_four]\nrole = \"router\"\ninterface = \"out0\"\nrelay = \"203.0.113.2\"\n[tunnels]\nsteering = \"off\"\n");
    let gw = network.host("gateway");
    network.ip(&["-n", &gw, "addr", "del", "203.0.113.1/24", "dev", "out0"]);
    network.ip(&["-n", &gw, "addr", "add", "203.0.113.9/24", "dev", "out0"]);
    let site = "unreachable 2002:cb00:7109::/48";
    let follows = (0..150).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        network.routes().iter().any(|line| line.starts_with(site))
    });
    assert!(follows, "{:?} {}", network.routes(), gateway.said());
    let is_gone = (0..150).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !network.routes().iter().any(|line| line.contains("2002:cb00:7101"))
    });
    assert!(is_gone, "{:?}", network.routes());
    assert!(network.show(&[]).contains("203.0.113.9 of out0 · 2002:cb00:7109::/48"), "{}", network.show(&[]));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn an_interface_that_is_made_again_within_a_second_is_steered_from_again() {
    let network = Network::build();
    let mut relay = network.start(&format!("{RELAY}{}", steering("on")));
    let mut host = network.start_peer("server", HOST);
    network.ping_from("client", "2002:cb00:7102::1");
    let (gateway, server) = (network.host("gateway"), network.host("server"));
    network.ip(&["-n", &gateway, "link", "delete", "out0"]);
    let peer = ["type", "veth", "peer", "name", "up0", "netns", &server];
    network.ip(&[&["-n", &gateway, "link", "add", "out0"][..], &peer].concat());
    for (host, device, address) in [(&gateway, "out0", "203.0.113.1/24"), (&server, "up0", "203.0.113.2/24")]
    {
        network.ip(&["-n", host, "addr", "add", address, "dev", device]);
        network.ip(&["-n", host, "link", "set", device, "up"]);
    }
    let again = "steering changed: protocol 41 steered from out0";
    assert!(comes(|| relay.said().contains(again)), "{}", relay.said());
    assert!(!relay.said().contains("raw sockets"), "{}", relay.said());
    network.ping_from("client", "2002:cb00:7102::1");
    for running in [&mut relay, &mut host] {
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
    }
}

#[test]
fn the_prefix_of_a_customer_is_shown_and_computed() {
    let network = Network::build();
    let edge = "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\ninterface = \"out0\"\n\
                border_relays = [\"203.0.113.2\"]\n";
    let mut gateway = network.start(edge);
    let shown = network.show(&["six-rd"]);
    assert!(shown.contains("customer edge") && shown.contains("2001:db8:71:100::/56"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&network.show(&["six-rd", "--json"])).unwrap();
    assert_eq!(json[0]["delegated"], "2001:db8:71:100::/56");
    let nowhere = |line: &String| line.starts_with("unreachable 2001:db8:71:100::/56");
    assert!(network.routes().iter().any(nowhere), "{:?}", network.routes());
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

/// Looks again and again, for ten seconds.
fn comes(mut what: impl FnMut() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        what()
    })
}

#[test]
fn an_isatap_host_finds_its_router_and_reaches_what_is_behind_it() {
    let network = Network::build();
    let mut router = network
        .start("[isatap]\nrole = \"router\"\naddress = \"203.0.113.1\"\nprefix = \"2001:db8:5::/64\"\n");
    let mut host = network.start_peer(
        "server",
        "[isatap]\nrole = \"host\"\naddress = \"203.0.113.2\"\npotential_routers = [\"203.0.113.1\"]\n",
    );
    let routes = || network.ip(&["-n", &network.host("server"), "-6", "route"]);
    assert!(
        comes(|| routes().contains("default dev sixway0")),
        "{}{}{}",
        routes(),
        host.said(),
        router.said()
    );
    network.ping_from("client", "2001:db8:5::5efe:cb00:7102");
    network.ping_from("server", "2001:db8:1::2");
    let shown = network.show(&["router-advertisements"]);
    assert!(shown.contains("isatap") && shown.contains("2001:db8:5::/64"), "{shown}");
    for running in [&mut host, &mut router] {
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
    }
}

#[test]
fn hosts_of_a_lan_get_the_prefix_that_follows_the_address_and_lose_it_again() {
    let network = Network::build();
    let client = network.host("client");
    network.ip(&["-n", &client, "addr", "flush", "dev", "eth0", "scope", "global"]);
    network.ip(&["-n", &client, "route", "flush", "dev", "eth0", "scope", "global"]);
    let lan = "[router_advertisement]\ninterface = \"in0\"\nmax_interval = \"4 s\"\nmin_interval = \"3 s\"\n\
               prefixes = [{ from = \"six_to_four\", subnet = 1 }]\nrdnss = [\"2001:db8::53\"]\n";
    let mut gateway =
        network.start(&format!("[six_to_four]\nrole = \"router\"\ninterface = \"out0\"\n{lan}"));
    network.ip(&["-n", &client, "link", "set", "eth0", "down"]);
    network.ip(&["-n", &client, "link", "set", "eth0", "up"]);
    let addresses = || network.ip(&["-n", &client, "-6", "addr", "show", "dev", "eth0"]);
    let line = |text: &str, prefix: &str| {
        text.lines()
            .any(|line| line.contains(prefix) && !line.contains("deprecated") && !line.contains("tentative"))
    };
    assert!(comes(|| line(&addresses(), "2002:cb00:7101:1:")), "{} {}", addresses(), gateway.said());
    let routes = network.ip(&["-n", &client, "-6", "route"]);
    assert!(routes.lines().any(|line| line.starts_with("default via fe80:")), "{routes}");
    network.ping("2002:cb00:7101:1::1");

    let gw = network.host("gateway");
    network.ip(&["-n", &gw, "addr", "del", "203.0.113.1/24", "dev", "out0"]);
    network.ip(&["-n", &gw, "addr", "add", "203.0.113.9/24", "dev", "out0"]);
    assert!(comes(|| line(&addresses(), "2002:cb00:7109:1:")), "{} {}", addresses(), gateway.said());
    let deprecated =
        || addresses().lines().any(|line| line.contains("2002:cb00:7101:1:") && line.contains("deprecated"));
    assert!(comes(deprecated), "{}", addresses());
    let shown = network.show(&["router-advertisements"]);
    assert!(
        shown.contains("2002:cb00:7101:1::/64 deprecated") && shown.contains("2002:cb00:7109:1::/64 for"),
        "{shown}"
    );
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    let routes = network.ip(&["-n", &client, "-6", "route"]);
    assert!(!routes.lines().any(|line| line.starts_with("default via fe80:")), "it said farewell: {routes}");
}

#[test]
fn a_lan_that_was_switched_off_or_was_not_there_yet_gets_its_address_back() {
    let network = Network::build();
    let gw = network.host("gateway");
    let lans = "[[router_advertisement]]\ninterface = \"in0\"\nprefixes = [{ from = \"six_to_four\", subnet = 1 }]\n\
                [[router_advertisement]]\ninterface = \"later0\"\nprefixes = [{ from = \"six_to_four\", subnet = 2 }]\n";
    let mut gateway =
        network.start(&format!("[six_to_four]\nrole = \"router\"\ninterface = \"out0\"\n{lans}"));
    let routes = |lan: &str| network.routes().iter().any(|line| line.starts_with(lan));
    assert!(comes(|| routes("2002:cb00:7101:1::/64 dev in0")), "{}", gateway.said());
    network.ip(&["-n", &gw, "link", "set", "in0", "down"]);
    assert!(comes(|| !routes("2002:cb00:7101:1::/64")));
    network.ip(&["-n", &gw, "link", "set", "in0", "up"]);
    network.ip(&["-n", &gw, "link", "add", "later0", "type", "veth", "peer", "name", "later1"]);
    network.ip(&["-n", &gw, "link", "set", "later1", "up"]);
    network.ip(&["-n", &gw, "link", "set", "later0", "up"]);
    assert!(comes(|| routes("2002:cb00:7101:1::/64 dev in0")), "{:?} {}", network.routes(), gateway.said());
    assert!(
        comes(|| routes("2002:cb00:7101:2::/64 dev later0")),
        "{:?} {}",
        network.routes(),
        gateway.said()
    );
    network.ip(&["-n", &gw, "link", "delete", "later0"]);
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!routes("2002:cb00:7101"), "{:?}", network.routes());
}

#[test]
fn a_default_route_that_is_there_already_is_named_and_everything_is_put_back() {
    let network = Network::build();
    let gw = network.host("gateway");
    network.ip(&["-n", &gw, "-6", "route", "add", "default", "dev", "in0"]);
    let (settings, routes) = (network.settings(), network.routes());
    let edge = "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\ninterface = \"out0\"\n\
                border_relays = [\"203.0.113.2\"]\n";
    let mut gateway = network.start(edge);
    assert_eq!(gateway.end(), 1, "{}", gateway.said());
    let said = "another route to ::/0 exists; remove it (see: ip -6 route show ::/0)";
    assert!(gateway.said().contains(said), "{}", gateway.said());
    assert_eq!((network.routes(), network.settings()), (routes, settings));
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn packets_pass_between_a_customer_and_his_border_relay_and_between_the_ends_of_a_tunnel() {
    let network = Network::build();
    let domain = "prefix = \"2001:db8:6d::/48\"\nipv4_mask_length = 24\n";
    let relay = format!("[six_rd]\nrole = \"border_relay\"\n{domain}address = \"203.0.113.1\"\n");
    let tunnel = |local: u8, remote: u8, prefix: &str, own: &str| {
        format!(
            "[tunnel]\nlocal = \"203.0.113.{local}\"\nremote = \"203.0.113.{remote}\"\nprefixes = \"{prefix}\"\n\
             ipv6_address = \"{own}\"\n"
        )
    };
    let near = tunnel(1, 2, "2001:db8:7::/48", "2001:db8:8::1");
    let mut gateway = network.start(&format!("{relay}{near}"));
    let edge = format!(
        "[six_rd]\nrole = \"customer_edge\"\n{domain}interface = \"eth0\"\nborder_relays = [\"203.0.113.1\"]\n"
    );
    let mut customer = network.start_peer("server", &edge);
    pings(&network, "client", "2001:db8:6d:200::1");
    pings(&network, "server", "2001:db8:1::2");
    // The relay's own Subnet-Router anycast address (RFC 5969 §5, §8).
    network.ping_from("server", "2001:db8:6d:100::");
    let nowhere = |line: &String| line.starts_with("unreachable 2001:db8:6d:100::/56");
    assert!(network.routes().iter().any(nowhere), "{:?}", network.routes());
    customer.signal("TERM");
    assert_eq!(customer.end(), 0, "{}", customer.said());

    let far = tunnel(2, 1, "::/0", "2001:db8:7::1");
    let mut end = network.start_peer("server", &far);
    pings(&network, "client", "2001:db8:7::1");
    pings(&network, "server", "2001:db8:1::2");
    for running in [&mut end, &mut gateway] {
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
    }
}

#[test]
fn the_next_run_takes_back_a_prefix_that_it_does_not_advertise() {
    let network = Network::build();
    let lan = |prefix: &str| {
        format!(
            "[router_advertisement]\ninterface = \"in0\"\ngoodbye = false\nprefixes = [{{ prefix = \"{prefix}\" }}]\n"
        )
    };
    let shown = |what: &str| comes(|| network.show(&["router-advertisements"]).contains(what));
    let said = |number: &str| {
        let rows: serde_json::Value =
            serde_json::from_str(&network.show(&["router-advertisements", "--json"])).unwrap();
        rows[0][number].as_u64().unwrap_or(0) > 0
    };
    let client = network.host("client");
    let mut first = network.start(&lan("2001:db8:a::/64"));
    network.ip(&["-n", &client, "link", "set", "eth0", "down"]);
    network.ip(&["-n", &client, "link", "set", "eth0", "up"]);
    assert!(comes(|| said("multicast")), "{}", first.said());
    // It is written within a second.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    first.signal("KILL");
    first.end();
    let mut second = network.start(&lan("2001:db8:b::/64"));
    assert!(
        shown("2001:db8:a::/64 deprecated"),
        "{} {}",
        network.show(&["router-advertisements"]),
        second.said()
    );
    second.signal("TERM");
    assert_eq!(second.end(), 0, "{}", second.said());
}

#[test]
fn a_host_that_does_not_forward_is_not_a_default_router() {
    let network = Network::build();
    let lan = "[router_advertisement]\ninterface = \"in0\"\nprefixes = [{ prefix = \"2001:db8:a::/64\" }]\n";
    let mut gateway = network.start(lan);
    let lifetime = |wanted: u64| {
        comes(|| {
            let rows: serde_json::Value =
                serde_json::from_str(&network.show(&["router-advertisements", "--json"])).unwrap();
            rows[0]["router_lifetime_seconds"] == wanted && rows[0]["state"] == "advertises"
        })
    };
    assert!(lifetime(1_800), "{}", network.show(&["router-advertisements"]));
    // The gateway restores it twice; then the other program has its way.
    let forwards = || network.settings()["/proc/sys/net/ipv6/conf/all/forwarding"] == "1";
    for _ in 0..2 {
        network.set("ipv6/conf/all/forwarding", "0");
        assert!(comes(forwards), "{}", gateway.said());
    }
    network.set("ipv6/conf/all/forwarding", "0");
    assert!(lifetime(0), "{}", network.show(&["router-advertisements"]));
    network.set("ipv6/conf/all/forwarding", "1");
    assert!(lifetime(1_800));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_tunnel_whose_remote_is_a_name_goes_where_it_is_told_to() {
    let network = Network::build();
    let near = "[tunnel]\nname = \"bob\"\nlocal = \"203.0.113.1\"\nremote = \"bob.invalid\"\nremote_within = \"203.0.113.0/24\"\n\
                prefixes = \"2001:db8:7::/48\"\nipv6_address = \"2001:db8:8::1\"\n";
    let far = "[tunnel]\nlocal = \"203.0.113.2\"\nremote = \"203.0.113.1\"\nprefixes = \"::/0\"\nipv6_address = \"2001:db8:7::1\"\n";
    let mut gateway = network.start(near);
    let mut end = network.start_peer("server", far);
    assert!(network.show(&[]).contains("bob.invalid (not resolved yet)"), "{}", network.show(&[]));
    let tell = |tunnel: &str, remote: &str| {
        let body = format!(r#"{{"tunnel":"{tunnel}","remote":"{remote}"}}"#);
        super::asked(&network, "POST", "/v1/remotes", &body)
    };
    assert_eq!(tell("alice", "203.0.113.2"), "404");
    assert_eq!(tell("bob", "nowhere"), "400");
    assert_eq!(tell("bob", "198.51.100.1"), "409");
    assert_eq!(tell("bob", "203.0.113.2"), "204");
    assert!(comes(|| network.show(&[]).contains("203.0.113.2 (bob.invalid)")), "{}", network.show(&[]));
    pings(&network, "client", "2001:db8:7::1");
    for running in [&mut end, &mut gateway] {
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
    }
}
