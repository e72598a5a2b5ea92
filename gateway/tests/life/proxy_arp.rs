//! `pool.proxy_arp`: a neighbour finds the pool's addresses on its own link.

use super::network::{Network, SIXWAY};
use std::time::{Duration, Instant};

const POOL: &str = "[[pool]]\nname = \"main\"\naddresses = [\"203.0.113.64/30\"]\nproxy_arp = true\n";
const NAT64: &str = "[nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8:1::/64\"]\npool = \"main\"\ntranslate_non_global = true\n";

fn entries(network: &Network) -> Vec<String> {
    let listed = network.ip(&["-n", &network.host("gateway"), "-4", "neigh", "show", "proxy"]);
    let mut entries: Vec<String> =
        listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    entries.sort();
    entries
}

const ALL: [&str; 4] = ["203.0.113.64", "203.0.113.65", "203.0.113.66", "203.0.113.67"];

#[test]
fn a_neighbour_resolves_an_address_of_the_pool_and_its_answer_comes_back() {
    let network = Network::build();
    // The server has no route but that of its own network.
    network.ip(&["-n", &network.host("server"), "route", "del", "default"]);
    let mut gateway = network.start(&format!("{}{NAT64}", POOL.replace("proxy_arp = true\n", "")));
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let unanswered = network.on("client", "ping", &["-c", "1", "-W", "2", "64:ff9b::203.0.113.2"]);
    assert!(!unanswered.status.success(), "nobody answers for the pool's address");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    network.ip(&["-n", &network.host("server"), "neigh", "flush", "all"]);

    // Another program's entry stays its own.
    network.ip(&["-n", &network.host("gateway"), "neigh", "add", "proxy", "203.0.113.66", "dev", "out0"]);
    let mut gateway = network.start(&format!("{POOL}{NAT64}"));
    assert_eq!(entries(&network), ALL, "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    let neighbours = network.ip(&["-n", &network.host("server"), "neigh", "show"]);
    assert!(neighbours.contains("203.0.113.6"), "{neighbours}");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    assert_eq!(entries(&network), ["203.0.113.66"]);
}

#[test]
fn what_others_remove_is_restored_and_a_crash_is_cleaned_up() {
    let network = Network::build();
    let mut gateway = network.start(&format!("{POOL}{NAT64}"));
    assert_eq!(entries(&network), ALL, "{}", gateway.said());
    let host = network.host("gateway");
    network.ip(&["-n", &host, "neigh", "del", "proxy", "203.0.113.65", "dev", "out0"]);
    // The kernel does not tell of the entry in a way that costs little; of the route it does.
    network.ip(&["-n", &host, "route", "del", "203.0.113.64/30"]);
    let start = Instant::now();
    while entries(&network) != ALL {
        assert!(start.elapsed() < Duration::from_secs(10), "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(gateway.said().contains("proxy neighbour entries"), "{}", gateway.said());
    gateway.signal("KILL");
    gateway.end();
    assert_eq!(entries(&network), ALL);
    // It fails if a gateway of another test crashed in another network namespace.
    let output = network.on("gateway", SIXWAY, &["cleanup"]);
    assert_eq!(entries(&network), [""; 0], "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_successor_keeps_the_entries_and_removes_them_at_its_end() {
    let network = Network::build();
    let mut first = network.start(&format!("{POOL}{NAT64}"));
    assert_eq!(entries(&network), ALL, "{}", first.said());
    let mut second = network.start_with(&format!("{POOL}{NAT64}"), &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert_eq!(entries(&network), ALL, "{}", second.said());
    network.ping("64:ff9b::203.0.113.2");
    second.signal("TERM");
    assert_eq!(second.end(), 0);
    assert_eq!(entries(&network), [""; 0]);
}
