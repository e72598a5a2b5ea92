//! A gateway's life on a real host, in network namespaces of its own: what it sets up, and that nothing is left of it.
//! These tests want root, `ip` and `ping`; without them they are ignored.

mod check;
mod doctor;
mod ds_lite;
mod fast_path;
mod four_over_six;
mod identity;
mod ip_in_ip;
mod nat44;
mod network;
mod npt66;
mod others;
mod problems;
mod proxy_arp;
mod reload;
mod service;
mod shared_pool;
mod takeover;
mod trace;
mod tunnels;
mod ufw;

use network::{Network, SIXWAY};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const NAT64: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\n\
                     pool = \"main\"\ntranslate_non_global = true\n";

#[test]
fn a_gateway_sets_its_host_up_and_puts_everything_back_on_sigterm() {
    let network = Network::build();
    // A host with a reverse path filter for all, and an interface that forwards already.
    network.set("ipv4/conf/all/rp_filter", "1");
    network.set("ipv6/conf/in0/forwarding", "1");
    let (settings, routes) = (network.settings(), network.routes());

    let mut gateway = network.start(NAT64);
    assert!(network.has_device(), "{}", gateway.said());
    for route in ["192.0.2.0/28 dev sixway0", "192.0.2.254 dev sixway0", "64:ff9b::/96 dev sixway0"] {
        let routes = network.routes();
        assert!(routes.iter().any(|line| line.starts_with(route)), "{route}: {routes:?}");
    }
    let during = network.settings();
    let value = |name: &str| during[&format!("/proc/sys/net/{name}")].as_str();
    assert_eq!(value("ipv4/conf/in0/forwarding"), "1");
    assert_eq!(value("ipv6/conf/all/forwarding"), "1");
    assert_eq!(value("ipv4/conf/all/rp_filter"), "0");
    assert_eq!(value("ipv4/conf/out0/rp_filter"), "1");
    assert_eq!(value("ipv6/conf/out0/accept_ra"), "2");
    let addresses = network.ip(&["-n", &network.host("gateway"), "addr", "show", "dev", "sixway0"]);
    assert!(!addresses.contains("inet"), "the host has no business of its own there: {addresses}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(network.socket()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device());
    assert_eq!(network.routes(), routes);
    assert_eq!(network.settings(), settings);
    assert!(!network.socket().exists() && !network.state().exists());
}

#[test]
fn a_killed_gateway_is_cleared_up_by_the_next_start() {
    let network = Network::build();
    let (settings, routes) = (network.settings(), network.routes());
    let mut first = network.start(NAT64);
    first.signal("KILL");
    assert_eq!(first.end(), -1);
    assert!(network.state().exists() && network.socket().exists());
    assert_ne!(network.settings(), settings);

    let mut second = network.start(NAT64);
    // The device of a killed process may still be there for a moment: it is nobody else's.
    for _ in 0..10 {
        second.signal("KILL");
        second = network.start(NAT64);
        assert!(!second.said().contains("it is used as it is"), "{}", second.said());
    }
    assert!(second.said().contains("the previous process crashed"), "{}", second.said());
    assert!(network.has_device());
    assert!(network.show(&[]).contains("nat64"));
    second.signal("INT");
    assert_eq!(second.end(), 0);
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn cleanup_puts_back_what_a_killed_gateway_left() {
    let network = Network::build();
    let settings = network.settings();
    let mut gateway = network.start(NAT64);
    gateway.signal("KILL");
    gateway.end();
    // From another namespace nothing is touched: the settings are not there.
    let _ = Command::new(SIXWAY).arg("cleanup").output().unwrap();
    assert!(network.state().exists());
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert_eq!(network.settings(), settings);
    assert!(!network.socket().exists() && !network.state().exists());
}

#[test]
fn a_second_gateway_of_the_same_name_is_refused_and_disturbs_nothing() {
    let network = Network::build();
    let mut first = network.start(NAT64);
    let mut second = network.start(NAT64);
    assert_eq!(second.end(), 1);
    assert!(second.said().contains("is already running (process "), "{}", second.said());
    assert!(network.show(&[]).contains("nat64"));
    network.ping("64:ff9b::203.0.113.2");
    first.signal("TERM");
    assert_eq!(first.end(), 0);
}

#[test]
fn the_last_of_two_gateways_puts_back_the_settings_of_both() {
    let network = Network::build();
    network.set("ipv4/conf/all/rp_filter", "1");
    let settings = network.settings();
    let relay = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.1\"\n";
    let clear = || network.on("gateway", SIXWAY, &["cleanup"]);
    for [first_ends, second_ends] in [["TERM", "TERM"], ["KILL", "TERM"], ["TERM", "KILL"]] {
        for in_turn in [true, false] {
            let mut ends = [network.start(relay), network.start_second(NAT64)];
            if !in_turn {
                ends.reverse();
            }
            ends[0].signal(first_ends);
            ends[0].end();
            clear();
            let during = network.settings();
            let value = |name: &str| during[&format!("/proc/sys/net/{name}")].as_str();
            assert_eq!(value("ipv6/conf/all/forwarding"), "1", "the other needs it");
            assert_eq!(value("ipv4/conf/in0/forwarding"), "1", "the other may need it");
            ends[1].signal(second_ends);
            ends[1].end();
            if second_ends == "KILL" {
                assert!(!clear().stdout.is_empty());
            }
            assert_eq!(network.settings(), settings, "{first_ends} {second_ends} {in_turn}");
            clear();
            assert!(!network.state().exists());
        }
    }
}

#[test]
fn a_route_that_is_taken_is_named_and_everything_is_put_back() {
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "192.0.2.0/28", "via", "203.0.113.2"]);
    let (settings, routes) = (network.settings(), network.routes());
    let mut gateway = network.start(NAT64);
    assert_eq!(gateway.end(), 1);
    assert!(gateway.said().contains("another route to 192.0.2.0/28"), "{}", gateway.said());
    assert_eq!((network.routes(), network.settings()), (routes, settings));
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn packets_pass_both_ways_and_show_tells_of_them() {
    let network = Network::build();
    let state = network.directory.join("dynamic.state");
    let siit = format!(
        "[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"172.16.0.0/24\"\ndynamic_state = {state:?}\n"
    );
    let mut gateway = network.start(&format!("{NAT64}{siit}"));
    network.ping("64:ff9b::203.0.113.2");
    network.ping("2001:db8:64::203.0.113.2");
    let sessions = network.show(&["sessions", "--inside", "2001:db8:1::2", "--protocol", "icmp"]);
    assert!(sessions.contains("3/3") && sessions.contains("203.0.113.2"), "{sessions}");
    assert!(network.show(&["sessions", "--remote", "203.0.113.9"]).contains("\n0 of 1\n"));
    let bindings = network.show(&["bindings"]);
    assert!(bindings.contains("icmp") && bindings.contains("172.16.0."), "{bindings}");
    let counters: serde_json::Value = serde_json::from_str(&network.show(&["counters", "--json"])).unwrap();
    let value = |name: &str| {
        let row = counters.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["value"].as_u64().unwrap()
    };
    assert_eq!((value("nat64.v6_to_v4"), value("nat64.v4_to_v6")), (3, 3));
    assert_eq!((value("siit.v6_to_v4"), value("siit.v4_to_v6")), (3, 3));
    assert!(value("handed_over") == value("taken_over"));

    // The host has the same address after a restart.
    let address = bindings.split_whitespace().find(|word| word.starts_with("172.16.0.")).unwrap().to_owned();
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    assert!(fs::read_to_string(&state).unwrap().contains(&format!("{address} 2001:db8:1::2")));
    let mut gateway = network.start(&format!("{NAT64}{siit}"));
    assert!(network.show(&["bindings"]).contains(&address));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
}

#[test]
fn hosts_of_a_dynamic_pool_that_get_another_address_are_a_warning() {
    let network = Network::build();
    let state = network.directory.join("dynamic.state");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // As one worker wrote them: of two, many hosts and addresses belong to different ones.
    let line = |number: u32| format!("172.16.0.{number} 2001:db8:{number:x}::1 {now}\n");
    fs::write(&state, (1..60).map(line).collect::<String>()).unwrap();
    let mut gateway = network.start(&format!(
        "[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"172.16.0.0/24\"\ndynamic_state = {state:?}\n"
    ));
    let said = gateway.said();
    assert!(said.contains("will get another address") && said.contains("number of workers"), "{said}");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
}

/// Status of the answer to a request at the admin socket.
pub(crate) fn asked(network: &Network, method: &str, target: &str, body: &str) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(network.socket()).unwrap();
    let head = format!("{method} {target} HTTP/1.0\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().into()
}

#[test]
fn static_bindings_come_and_go_at_run_time_and_sessions_are_ended() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    for port in [80, 8_001, 8_065] {
        let inside = format!("[2001:db8:1::2]:{port}");
        let outside = format!("192.0.2.1:{port}");
        let binding = format!(r#"{{"protocol":"tcp","inside":"{inside}","outside":"{outside}"}}"#);
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "201", "{port}");
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "409", "{port}");
        assert!(network.show(&["bindings", "--outside", &outside]).contains("static"));
        let named = format!("/v1/bindings?protocol=tcp&outside={outside}");
        assert_eq!(asked(&network, "DELETE", &named, ""), "204", "{port}");
        assert_eq!(asked(&network, "DELETE", &named, ""), "404", "{port}");
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "201", "{port}");
    }
    let elsewhere = r#"{"protocol":"tcp","inside":"[2001:db8:1::2]:81","outside":"198.51.100.1:81"}"#;
    assert_eq!(asked(&network, "POST", "/v1/bindings", elsewhere), "409");

    network.ping("64:ff9b::203.0.113.2");
    let sessions: serde_json::Value =
        serde_json::from_str(&network.show(&["sessions", "--protocol", "icmp", "--json"])).unwrap();
    let (inside, remote) = (&sessions["rows"][0]["inside"], &sessions["rows"][0]["remote"]);
    let (inside, remote) = (inside.as_str().unwrap(), remote.as_str().unwrap());
    let named = format!("/v1/sessions?protocol=icmp&inside={inside}&remote={remote}");
    assert_eq!(asked(&network, "DELETE", &named, ""), "204");
    assert_eq!(asked(&network, "DELETE", &named, ""), "404");
    assert!(network.show(&["sessions"]).ends_with("0 of 0\n"));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
}

/// What the program says to a user without rights.
pub(crate) fn as_nobody(network: &Network, arguments: &[&str]) -> Output {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&network.directory, open).unwrap();
    let program = network.directory.join("sixway");
    fs::copy(SIXWAY, &program).unwrap();
    // Another test's child may hold the fresh copy open for a moment.
    loop {
        match Command::new(&program).args(arguments).uid(65_534).output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            outcome => break outcome.unwrap(),
        }
    }
}

#[test]
fn without_the_capability_one_line_says_which() {
    let network = Network::build();
    let configuration = network.directory.join("sixway.toml");
    fs::write(&configuration, "[siit]\nprefix = \"2001:db8:64::/96\"\n").unwrap();
    fs::set_permissions(&configuration, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let output = as_nobody(&network, &["run", "-c", configuration.to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    let line = error.lines().rfind(|line| !line.starts_with("warning")).unwrap();
    assert!(line.starts_with("sixway needs CAP_NET_ADMIN to create sixway0."), "{error}");
    assert_eq!(output.status.code(), Some(1));
}
