//! Tunnels of IP in IP: packets pass between two gateways, what is set up for them is put back, and an address in the wrong place is reported.

use super::network::Network;
use std::time::{Duration, Instant};

/// The client's gateway, and the server, whose tunnel ends at another address than its own.
const NEAR: &str = "[ip_in_ip]\nlocal = \"2001:db8:a::1\"\nremote = \"2001:db8:b::1\"\nprefixes = [\"10.7.0.0/16\", \"2001:db8:70::/48\"]\n";
const FAR: &str = "[ip_in_ip]\nlocal = \"2001:db8:b::1\"\nremote = \"2001:db8:a::1\"\nprefixes = [\"10.1.0.0/16\", \"2001:db8:1::/64\"]\n";
/// The same over IPv4.
const NEAR4: &str =
    "[ip_in_ip]\nlocal = \"192.0.2.77\"\nremote = \"198.51.100.7\"\nprefixes = \"10.7.0.0/16\"\n";
const FAR4: &str =
    "[ip_in_ip]\nlocal = \"198.51.100.7\"\nremote = \"192.0.2.77\"\nprefixes = \"10.1.0.0/16\"\n";

/// Addresses and routes between the two, and an IPv4 address of the client.
fn prepare(network: &Network) {
    let on = |host: &str, words: &str| {
        let host = network.host(host);
        let all: Vec<&str> = ["-n", &host].into_iter().chain(words.split(' ')).collect();
        network.ip(&all);
    };
    on("gateway", "address add 10.1.0.1/24 dev in0");
    on("gateway", "address add 2001:db8:99::1/64 dev out0 nodad");
    on("gateway", "route add 2001:db8:b::1 via 2001:db8:99::2");
    on("gateway", "route add 198.51.100.7 via 203.0.113.2");
    on("server", "address add 2001:db8:99::2/64 dev eth0 nodad");
    on("server", "address add 10.7.0.2/32 dev lo");
    on("server", "address add 2001:db8:70::2/128 dev lo");
    on("server", "route add 2001:db8:a::1 via 2001:db8:99::1");
    on("client", "address add 10.1.0.2/24 dev eth0");
    on("client", "route add default via 10.1.0.1");
}

#[test]
fn both_families_pass_between_two_gateways_and_everything_is_put_back() {
    let network = Network::build();
    prepare(&network);
    let (settings, routes) = (network.settings(), network.routes());
    for (near, far, targets) in
        [(NEAR, FAR, &["10.7.0.2", "2001:db8:70::2"][..]), (NEAR4, FAR4, &["10.7.0.2"])]
    {
        let mut gateway = network.start(near);
        let mut peer = network.start_peer("server", far);
        targets.iter().for_each(|target| network.ping(target));
        let large =
            network.on("client", "ping", &["-c", "3", "-i", "0.2", "-W", "2", "-s", "3000", "10.7.0.2"]);
        let said = String::from_utf8_lossy(&large.stdout).into_owned();
        assert!(said.contains(" 0% packet loss"), "{said}{}", network.show(&["drops"]));
        assert!(network.show(&[]).contains("⇄"), "{}", network.show(&[]));
        for running in [&mut gateway, &mut peer] {
            running.signal("TERM");
            assert_eq!(running.end(), 0, "{}", running.said());
        }
        assert_eq!((network.routes(), network.settings()), (routes.clone(), settings.clone()));
    }
}

#[test]
fn who_takes_over_keeps_the_tunnels_going() {
    let network = Network::build();
    prepare(&network);
    let mut first = network.start(NEAR);
    let _peer = network.start_peer("server", FAR);
    network.ping("10.7.0.2");
    let mut second = network.start_with(NEAR, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    network.ping("10.7.0.2");
    second.signal("TERM");
    assert_eq!(second.end(), 0, "{}", second.said());
}

#[test]
fn an_end_that_an_interface_gets_is_told_when_it_happens_and_at_the_next_start() {
    let network = Network::build();
    prepare(&network);
    let mut gateway = network.start(NEAR);
    let host = network.host("gateway");
    network.ip(&["-n", &host, "address", "add", "2001:db8:a::1/64", "dev", "out0", "nodad"]);
    let told = "2001:db8:a::1, the local address of tunnel ip_in_ip, was added to out0";
    let patience = Instant::now() + Duration::from_secs(5);
    while !gateway.said().contains(told) {
        assert!(Instant::now() < patience, "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    let mut again = network.start(NEAR);
    assert_ne!(again.end(), 0);
    assert!(
        again.said().contains("is this host's own address on out0; the kernel would receive"),
        "{}",
        again.said()
    );
}
