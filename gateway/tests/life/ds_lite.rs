//! The B4 of DS-Lite: it follows a lease, a command and its uplink's prefix while it runs, and puts everything back.

use super::network::{Network, Running, SIXWAY};
use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A host of the rest of IPv4, behind the AFTR.
const FAR: &str = "198.51.100.7";
/// The AFTR's two addresses, and the B4's with each of two prefixes.
const AFTRS: [&str; 2] = ["2001:db8:a::1", "2001:db8:a::2"];
const B4S: [&str; 2] = ["2001:db8:99::b4", "2001:db8:98::b4"];

/// Addresses and routes; the server is on the uplink, and looks for the B4 there.
fn prepare(network: &Network) {
    let on = |host: &str, words: &str| {
        let host = network.host(host);
        let all: Vec<&str> = ["-n", &host].into_iter().chain(words.split(' ')).collect();
        network.ip(&all);
    };
    on("gateway", "address add 10.1.0.1/24 dev in0");
    on("gateway", "address add 2001:db8:99::1/64 dev out0 nodad");
    on("gateway", "route add 2001:db8:a::/64 via 2001:db8:99::2");
    on("server", "address add 2001:db8:99::2/64 dev eth0 nodad");
    on("server", "address add 2001:db8:98::2/64 dev eth0 nodad");
    on("server", "address add 198.51.100.7/32 dev lo");
    on("client", "address add 10.1.0.2/24 dev eth0");
    on("client", "route add default via 10.1.0.1");
    // Until duplicate address detection is over, the server has no source for its neighbour solicitations.
    let patience = Instant::now() + Duration::from_secs(10);
    let tentative = || network.ip(&["-n", &network.host("server"), "-6", "address", "show", "tentative"]);
    while !tentative().trim().is_empty() {
        assert!(Instant::now() < patience, "{}", tentative());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The AFTR, as far as a tunnel without a NAT is one.
fn aftr(network: &Network, aftr: &str, b4: &str) -> Running {
    network.start_peer(
        "server",
        &format!(
            "[ip_in_ip]\nlocal = \"{aftr}\"\nremote = \"{b4}\"\nprefixes = [\"10.1.0.0/16\", \"192.0.0.2/32\"]\n\
             encapsulation_limit = \"none\"\n"
        ),
    )
}

fn b4(network: &Network, more: &str) -> Running {
    network.start_peer("gateway", &format!("[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\n{more}"))
}

fn sixway(network: &Network, arguments: &[&str]) -> Output {
    let socket = network.directory.join("gateway.sock");
    Command::new(SIXWAY).args(arguments).arg("--socket").arg(socket).output().unwrap()
}

fn show(network: &Network) -> String {
    let output = sixway(network, &["show"]);
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn shows(network: &Network, expected: &str) {
    let patience = Instant::now() + Duration::from_secs(8);
    loop {
        let said = show(network);
        if said.contains(expected) {
            return;
        }
        assert!(Instant::now() < patience, "{expected} is not in:\n{said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn proxy_ndp(network: &Network) -> String {
    let output = network.on("gateway", "cat", &["/proc/sys/net/ipv6/conf/out0/proxy_ndp"]);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_lan_and_this_host_reach_ipv4_by_an_aftr_without_further_settings_and_everything_is_put_back() {
    let network = Network::build();
    prepare(&network);
    let (settings, routes) = (network.settings(), network.routes());
    let mut far = aftr(&network, AFTRS[0], B4S[0]);
    let mut near = b4(&network, &format!("aftr = \"{}\"\n", AFTRS[0]));
    network.ping(FAR);
    network.ping_from("gateway", FAR);
    for host in ["client", "gateway"] {
        let large = network.on(host, "ping", &["-c", "3", "-i", "0.2", "-W", "2", "-s", "3000", FAR]);
        assert!(String::from_utf8_lossy(&large.stdout).contains(" 0% packet loss"), "{}", show(&network));
    }
    // The tunnel's MTU is reported to senders of packets with DF, by the address on the device.
    let said = network.on("client", "ping", &["-c", "2", "-W", "2", "-M", "do", "-s", "1472", FAR]).stdout;
    assert!(String::from_utf8_lossy(&said).contains("mtu = 1460"), "{}", String::from_utf8_lossy(&said));
    let default = network.ip(&["-n", &network.host("gateway"), "route", "show", "default"]);
    assert!(default.contains("dev sixway0") && default.contains("metric 30000"), "{default}");
    assert_eq!(proxy_ndp(&network), "1");
    shows(&network, &format!("b4 {} by out0 ⇄ AFTR {}", B4S[0], AFTRS[0]));
    for running in [&mut near, &mut far] {
        running.signal("TERM");
        assert_eq!(running.end(), 0, "{}", running.said());
    }
    assert_eq!((network.routes(), network.settings()), (routes, settings));
    assert_eq!(proxy_ndp(&network), "0");
    let proxies = network.ip(&["-n", &network.host("gateway"), "-6", "neighbour", "show", "proxy"]);
    assert_eq!(proxies.trim(), "");
}

#[test]
fn a_b4_follows_its_lease_a_command_and_its_prefix_without_a_restart() {
    let network = Network::build();
    prepare(&network);
    let lease = network.directory.join("lease");
    let mut near = b4(&network, &format!("aftr_lease_file = {lease:?}\n"));
    shows(&network, "no AFTR known yet");
    shows(&network, "check that the DHCPv6 client requests option 64");
    let far = aftr(&network, AFTRS[0], B4S[0]);
    fs::write(&lease, format!("{}\n", AFTRS[0])).unwrap();
    shows(&network, &format!("⇄ AFTR {}", AFTRS[0]));
    network.ping(FAR);
    drop(far);
    let far = aftr(&network, AFTRS[1], B4S[0]);
    fs::write(&lease, format!("new_dhcp6_aftr_name='{}'\n", AFTRS[1])).unwrap();
    shows(&network, &format!("⇄ AFTR {}", AFTRS[1]));
    network.ping(FAR);
    drop(far);
    let _far = aftr(&network, AFTRS[0], B4S[1]);
    let said = sixway(&network, &["ds-lite", "aftr", AFTRS[0]]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    shows(&network, &format!("⇄ AFTR {}", AFTRS[0]));
    // The provider renumbers the uplink.
    let host = network.host("gateway");
    network.ip(&["-n", &host, "address", "add", "2001:db8:98::1/64", "dev", "out0", "nodad"]);
    shows(&network, &format!("b4 {} by out0", B4S[1]));
    network.ping(FAR);
    let proxies = network.ip(&["-n", &host, "-6", "neighbour", "show", "proxy"]);
    assert!(proxies.contains(B4S[1]) && !proxies.contains(B4S[0]), "{proxies}");
    near.signal("TERM");
    assert_eq!(near.end(), 0, "{}", near.said());
}

#[test]
fn who_takes_over_from_a_b4_keeps_it_going() {
    let network = Network::build();
    prepare(&network);
    let section = format!("[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"{}\"\n", AFTRS[0]);
    let _far = aftr(&network, AFTRS[0], B4S[0]);
    let mut first = network.start(&section);
    network.ping(FAR);
    let mut second = network.start_with(&section, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    network.ping(FAR);
    second.signal("TERM");
    assert_eq!(second.end(), 0, "{}", second.said());
}

#[test]
fn a_command_for_a_b4_that_does_not_exist_or_with_no_name_says_so() {
    let network = Network::build();
    prepare(&network);
    let mut near = b4(&network, &format!("aftr = \"{}\"\n", AFTRS[0]));
    let said = sixway(&network, &["ds-lite", "aftr", "aftr.example", "--name", "other"]);
    let what = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && what.contains("no tunnel named other"), "{what}");
    let said = sixway(&network, &["ds-lite", "aftr", "192.0.2.1"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("neither an IPv6 address nor a name"));
    near.signal("TERM");
    assert_eq!(near.end(), 0, "{}", near.said());
}

#[test]
fn an_aftr_that_is_the_only_one_and_does_not_answer_is_a_problem_until_it_does() {
    let network = Network::build();
    prepare(&network);
    let near = b4(&network, &format!("aftr = \"{}\"\n", AFTRS[0]));
    let until_shown = |expected: &str| {
        let patience = Instant::now() + Duration::from_secs(30);
        while !show(&network).contains(expected) {
            assert!(Instant::now() < patience, "{expected} is not in:\n{}{}", show(&network), near.said());
            network.on("client", "ping", &["-c", "4", "-i", "0.2", "-W", "1", FAR]);
        }
    };
    until_shown(&format!("ds_lite: the AFTR {} does not answer (", AFTRS[0]));
    assert!(near.said().contains("does not answer"), "{}", near.said());
    shows(&network, &format!("AFTR {} does not answer", AFTRS[0]));
    let _far = aftr(&network, AFTRS[0], B4S[0]);
    network.ping(FAR);
    let patience = Instant::now() + Duration::from_secs(8);
    while show(&network).contains("does not answer") {
        assert!(Instant::now() < patience, "{}", show(&network));
        std::thread::sleep(Duration::from_millis(200));
    }
}
