//! `sixway show` names what is wrong first.

use super::NAT64;
use super::network::{Network, SIXWAY};
use std::time::{Duration, Instant};

fn until(what: &str, network: &Network, is: impl Fn(&str) -> bool) {
    let start = Instant::now();
    loop {
        let shown = network.show(&[]);
        if is(&shown) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: {shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

const RELAY: &str = "[teredo_relay]\naddress = \"203.0.113.1\"\nipv6_address = \"2001:db8::fe\"\n";

/// Sends datagrams, each from another port of the client.
fn send(network: &Network, number: usize, to: &str) {
    let script = format!("for i in $(seq {number}); do echo x > /dev/udp/{to}/9; done");
    let output = network.on("client", "bash", &["-c", &script]);
    if !output.status.success() {
        sixway_trial::ignore("needs bash, with /dev/udp");
    }
}

fn problems(network: &Network) -> Vec<serde_json::Value> {
    let status: serde_json::Value = serde_json::from_str(&network.show(&["--json"])).unwrap();
    status["problems"].as_array().unwrap().clone()
}

#[test]
fn sessions_without_answers_are_named_first_and_nothing_is_said_when_all_is_well() {
    let network = Network::build();
    let _gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    assert_eq!(problems(&network), [""; 0]);
    assert!(network.show(&[]).starts_with("life-"), "{}", network.show(&[]));

    network.ip(&["-n", &network.host("server"), "route", "del", "default"]);
    send(&network, 20, "64:ff9b::cb00:7102");
    // The session of the ping had its answers.
    let what = "examined sessions have packets out and none back → no route back to 192.0.2.";
    until("it is seen", &network, |shown| shown.starts_with("WARNING  nat64: ") && shown.contains(what));
    let found = problems(&network);
    assert_eq!((found.len(), &found[0]["kind"]), (1, &"no_answers".into()), "{found:?}");
    assert!(found[0]["advice"].as_str().unwrap().ends_with("run `sixway doctor`"));
}

#[test]
fn a_router_that_does_not_answer_is_named() {
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.9"]);
    let _gateway = network.start(NAT64);
    // A host that does not answer is not a router.
    network.on("gateway", "ping", &["-c", "1", "-W", "1", "203.0.113.77"]);
    assert_eq!(problems(&network), [""; 0], "nobody has asked for it yet");
    send(&network, 1, "64:ff9b::c633:6407");
    let line = "ERROR  the router 203.0.113.9 on out0 does not answer ARP → ";
    until("it is seen", &network, |shown| shown.starts_with(line));
}

#[test]
fn a_router_of_ipv6_on_the_way_to_ipv4_is_named_too() {
    let network = Network::build();
    let gateway = network.host("gateway");
    network.ip(&["-n", &gateway, "-4", "route", "add", "default", "via", "inet6", "fe80::9", "dev", "out0"]);
    let _gateway = network.start(NAT64);
    send(&network, 1, "64:ff9b::c633:6407");
    let line = "ERROR  the router fe80::9 on out0 does not answer neighbour discovery → ";
    until("it is seen", &network, |shown| shown.starts_with(line));
}

#[test]
fn a_tunnel_and_a_pool_that_wait_for_an_address_are_named() {
    let network = Network::build();
    network.ip(&[
        "-n",
        &network.host("gateway"),
        "link",
        "add",
        "ppp0",
        "type",
        "veth",
        "peer",
        "name",
        "ppp1",
    ]);
    let tunnel = "[six_to_four]\nrole = \"router\"\ninterface = \"ppp0\"\n";
    let pool = "[[pool]]\nname = \"own\"\ninterface = \"ppp0\"\nshared = true\nports = \"20000-24999\"\n\
                [nat64]\nprefix = \"64:ff9b::/96\"\npool = \"own\"\n";
    let _gateway = network.start(&format!("{pool}{tunnel}"));
    for name in ["six_to_four", "pool own"] {
        let line = format!("ERROR  {name}: waiting for an IPv4 address on ppp0 → check that ppp0 is up");
        until("it is seen", &network, |shown| shown.contains(&line));
    }
    let host = network.host("gateway");
    network.ip(&["-n", &host, "addr", "add", "8.8.4.4/32", "dev", "ppp0"]);
    for end in ["ppp0", "ppp1"] {
        network.ip(&["-n", &host, "link", "set", end, "up"]);
    }
    let patience = Instant::now() + Duration::from_secs(20);
    // The gateway reloads, and nobody answers for a moment.
    let shown = || network.on("gateway", SIXWAY, &["show", "--socket", network.socket().to_str().unwrap()]);
    while String::from_utf8_lossy(&shown().stdout).contains("waiting for") || !shown().status.success() {
        assert!(Instant::now() < patience, "{}", network.show(&[]));
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_pool_that_one_subscriber_fills_is_a_problem_and_the_rest_is_kept_for_others() {
    let network = Network::build();
    let small = NAT64.replace("[\"192.0.2.0/28\"]", "[\"192.0.2.1\"]\nports = \"2048-3071\"");
    let gateway = network.start(&small);
    // Neighbours are known from here on: the kernel holds few packets for one that is not.
    network.ping("64:ff9b::203.0.113.2");
    // Port blocks of the other worker come when they are needed, which takes a moment.
    let warning = |shown: &str| {
        shown.contains("WARNING  nat64: pool main, UDP: 8")
            && shown.contains(" % of the ports are in use; worker ")
    };
    let bindings = |shown: &str| {
        let (before, _) = shown.split_once(" bindings")?;
        before.rsplit(' ').next()?.parse::<u32>().ok()
    };
    for _ in 0..100 {
        send(&network, 40, "64:ff9b::cb00:7102");
        if bindings(&network.show(&[])).is_some_and(|bindings| bindings > 824) {
            break;
        }
    }
    // Problems are looked for once a second.
    until("many ports are in use", &network, warning);
    send(&network, 400, "64:ff9b::cb00:7102");
    let what =
        "a subscriber has most of a session table, or of an address's ports: the rest is reserved for others";
    until("it has its share", &network, |shown| {
        shown.contains(&format!("WARNING  {what} → sixway show subscribers --by refused"))
    });
    assert!(network.show(&[]).contains("ERROR  nat64: pool main, UDP: "), "{}", network.show(&[]));
    let start = Instant::now();
    while !gateway.said().contains(&format!("{what} (")) {
        assert!(start.elapsed() < Duration::from_secs(5), "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_subscriber_at_its_limit_is_a_warning_in_the_log_and_a_problem() {
    let network = Network::build();
    let gateway = network.start(&format!("{NAT64}max_bindings_per_subscriber = 4\n"));
    send(&network, 8, "64:ff9b::cb00:7102");
    let what = "a subscriber has reached a limit: its new bindings or sessions are refused";
    until("it is seen", &network, |shown| {
        shown.contains(&format!("WARNING  {what} → sixway show subscribers"))
    });
    let start = Instant::now();
    while !gateway.said().contains(&format!("{what} (4 packets, SubscriberLimit): sixway show subscribers")) {
        assert!(start.elapsed() < Duration::from_secs(5), "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(100));
    }
    send(&network, 8, "64:ff9b::cb00:7102");
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(gateway.said().matches(what).count(), 1, "once in a minute");

    let pools = network.show(&["pools"]);
    let udp = pools.lines().find(|line| line.starts_with("nat64      main  udp    4 ")).unwrap_or_default();
    assert!(udp.contains("1,032,188"), "{pools}");
}

#[test]
fn the_running_configuration_is_a_configuration_file() {
    let network = Network::build();
    let _gateway = network.start(NAT64);
    let shown = network.show(&["config"]);
    let file = network.directory.join("shown.toml");
    std::fs::write(&file, &shown).unwrap();
    let check = network.on("gateway", SIXWAY, &["check", "-c", &file.to_string_lossy()]);
    assert!(check.status.success(), "{}\n{shown}", String::from_utf8_lossy(&check.stderr));
    assert!(shown.contains("translate_non_global = true"), "{shown}");
}

#[test]
fn a_teredo_relay_whose_address_is_gone_is_a_problem_until_it_returns() {
    let network = Network::build();
    let gateway = network.start(RELAY);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let change = |what: &str| {
        let host = network.host("gateway");
        network.ip(&["-n", &host, "addr", what, "203.0.113.1/24", "dev", "out0"]);
    };
    let problem = "ERROR  teredo_relay: this host does not have 203.0.113.1 → add it: ip address add";
    assert!(!network.show(&[]).contains(problem));
    change("del");
    until("it is gone", &network, |shown| shown.contains(problem) && shown.contains("no socket · 0 peers"));
    let shown = network.show(&["teredo"]);
    assert!(shown.contains("no socket: this host does not have 203.0.113.1"), "{shown}");
    change("add");
    until("it is back", &network, |shown| !shown.contains(problem) && !shown.contains("no socket"));
}
