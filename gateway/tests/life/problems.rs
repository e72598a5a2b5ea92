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
    until("it is seen", &network, |shown| {
        shown.starts_with("WARNING  nat64: 20 of 21 sessions looked at have packets out and none back → no route back to 192.0.2.") || shown.starts_with("ERROR  nat64: 20 sessions with packets out and none back → no route back to 192.0.2.")
    });
    let found = problems(&network);
    assert_eq!((found.len(), &found[0]["kind"]), (1, &"no_answers".into()), "{found:?}");
    assert!(found[0]["advice"].as_str().unwrap().ends_with("run `sixway doctor`"));
}

#[test]
fn a_router_that_does_not_answer_is_named() {
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.9"]);
    let _gateway = network.start(NAT64);
    assert_eq!(problems(&network), [""; 0], "nobody has asked for it yet");
    send(&network, 1, "64:ff9b::c633:6407");
    let line = "ERROR  the router 203.0.113.9 on out0 does not answer ARP → ";
    until("it is seen", &network, |shown| shown.starts_with(line));
}

#[test]
fn a_subscriber_at_its_limit_is_a_warning_in_the_log_and_a_problem() {
    let network = Network::build();
    let gateway = network.start(&format!("{NAT64}max_bindings_per_subscriber = 4\n"));
    send(&network, 8, "64:ff9b::cb00:7102");
    let what = "a subscriber has reached its limit: its new bindings are refused";
    until("it is seen", &network, |shown| shown.contains(&format!("WARNING  {what} → raise nat64.max")));
    let start = Instant::now();
    while !gateway.said().contains(&format!("{what} (4 packets, SubscriberLimit): raise nat64.max")) {
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
