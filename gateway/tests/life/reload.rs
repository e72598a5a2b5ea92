//! `sixway reload`: what it says before, what it does, and the way back.

use super::NAT64;
use super::network::{Network, Running, SIXWAY};
use std::time::{Duration, Instant};

/// Runs `sixway reload` on the gateway's host: exit status, and all that it printed.
fn reload(network: &Network, arguments: &[&str]) -> (i32, String) {
    let socket = network.socket();
    let all = [&["reload"], arguments, &["--socket", socket.to_str().unwrap()]].concat();
    let output = network.on("gateway", SIXWAY, &all);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn status(network: &Network) -> serde_json::Value {
    serde_json::from_str(&network.show(&["--json"])).unwrap()
}

/// Waits until the last reload is in this state.
fn wait_for(network: &Network, gateway: &Running, state: &str, patience: Duration) {
    let begun = Instant::now();
    loop {
        let output = network.on(
            "gateway",
            SIXWAY,
            &["show", "--json", "--socket", network.socket().to_str().unwrap()],
        );
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if status["reload"]["state"] == state {
            return;
        }
        assert!(begun.elapsed() < patience, "not {state}: {status}\n{}", gateway.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn previous_file(network: &Network) -> bool {
    network.state().with_extension("previous").exists()
}

const OTHER_POOL: (&str, &str) = ("192.0.2.0/28", "192.0.2.64/28");

#[test]
fn a_dry_run_says_what_would_change_and_which_sessions_would_end() {
    let network = Network::build();
    let gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let (code, said) = reload(&network, &["--dry-run"]);
    assert!(code == 0 && said.contains("No key changes.\n1 of 1 session continue"), "{said}");

    network.configure(&NAT64.replace(OTHER_POOL.0, OTHER_POOL.1));
    let (code, said) = reload(&network, &["--dry-run"]);
    assert!(code == 0 && said.contains("pool[main].addresses  192.0.2.0/28 → 192.0.2.64/28"), "{said}");
    assert!(
        said.contains("0 of 1 session continue; 1 would end: the outside endpoint is not in the pool"),
        "{said}"
    );
    assert!(said.ends_with("Nothing was changed.\n"), "{said}");
    network.configure("[nat64]\n");
    let (code, said) = reload(&network, &["--dry-run"]);
    assert!(code == 2 && said.contains("nat64"), "{said}");
    assert!(!gateway.said().contains("reload"), "{}", gateway.said());
    assert!(network.show(&["sessions"]).contains("192.0.2."));
}

#[test]
fn a_reload_says_how_many_sessions_continue_and_a_faulty_file_changes_nothing() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let (code, said) = reload(&network, &[]);
    assert!(code == 0 && said.contains("reloaded: 1 of 1 session of the engine continue"), "{said}");
    assert_eq!(status(&network)["reload"]["state"], "on trial");

    network.configure("[nat64]\nprefix = \"64:ff9b::/97\"\n");
    let (code, said) = reload(&network, &[]);
    assert!(code == 2 && said.contains("the length is 97"), "{said}");
    network.ping("64:ff9b::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!previous_file(&network));
}

#[test]
fn a_configuration_that_does_not_start_is_rolled_back_and_sessions_continue() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = network.show(&["sessions", "--json"]);
    let outside = |text: &str| {
        let rows: serde_json::Value = serde_json::from_str(text).unwrap();
        rows["rows"][0]["outside"].clone()
    };
    network.configure(&format!("admin_group = \"no-such-group\"\n{NAT64}"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 1 && said.contains("rolled back") && said.contains("there is no group"), "{said}");
    assert_eq!(outside(&network.show(&["sessions", "--json"])), outside(&sessions), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    assert!(network.show(&[]).contains("the reload was rolled back"));
    // The file is still what it is; mended, it is loaded.
    network.configure(NAT64);
    let (code, said) = reload(&network, &[]);
    assert!(code == 0, "{said}");
    assert_eq!(status(&network)["reload"]["state"], "on trial");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device() && !previous_file(&network));
}

#[test]
fn a_reload_that_nobody_confirms_is_rolled_back_and_one_that_is_confirmed_stays() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    let renamed = NAT64.replace(OTHER_POOL.0, OTHER_POOL.1);
    network.configure(&renamed);
    let (code, said) = reload(&network, &["--confirm", "5"]);
    assert!(code == 0 && said.contains("sixway reload --keep"), "{said}");
    assert!(network.show(&["config"]).contains("192.0.2.64/28"));
    assert!(network.show(&[]).contains("the reload awaits `sixway reload --keep`"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 2 && said.contains("awaits confirmation"), "{said}");
    wait_for(&network, &gateway, "rolled back", Duration::from_secs(20));
    assert!(network.show(&["config"]).contains("192.0.2.0/28"));
    network.ping("64:ff9b::203.0.113.2");

    let (code, said) = reload(&network, &["--confirm", "30"]);
    assert!(code == 0, "{said}");
    let (code, said) = reload(&network, &["--keep"]);
    assert!(code == 0, "{said}");
    assert_eq!(status(&network)["reload"]["state"], "kept");
    let (code, said) = reload(&network, &["--roll-back"]);
    assert!(code == 2 && said.contains("no reload is on trial"), "{said}");
    assert!(network.show(&["config"]).contains("192.0.2.64/28"));

    network.configure(NAT64);
    assert_eq!(reload(&network, &[]).0, 0);
    let (code, said) = reload(&network, &["--roll-back"]);
    assert!(code == 0 && said.contains("in force again"), "{said}");
    assert!(network.show(&["config"]).contains("192.0.2.64/28"));
    let (code, said) = reload(&network, &["--confirm", "1"]);
    assert!(code == 2 && said.contains("between 5 and 86400"), "{said}");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_reload_after_which_nothing_passes_is_rolled_back() {
    let network = Network::build();
    let gateway = network.start(NAT64);
    let client = network.host("client");
    let mut pings = std::process::Command::new("ip")
        .args(["netns", "exec", &client, "ping", "-q", "-i", "0.02", "-w", "60", "64:ff9b::203.0.113.2"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(5));
    network.configure(&NAT64.replace("pool = \"main\"", "pool = \"main\"\ninside = [\"2001:db8:9::/64\"]"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 0, "{said}");
    wait_for(&network, &gateway, "rolled back", Duration::from_secs(50));
    let _ = pings.kill();
    let _ = pings.wait();
    assert!(gateway.said().contains("no packet passed since the reload"), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
}

/// The sessions of the gateway, as their outside endpoints.
fn outsides(network: &Network) -> Vec<String> {
    let page: serde_json::Value = serde_json::from_str(&network.show(&["sessions", "--json"])).unwrap();
    let rows = page["rows"].as_array().unwrap();
    rows.iter().map(|row| row["outside"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_program_that_is_gone_or_cannot_be_executed_does_not_end_the_gateway() {
    let network = Network::build();
    let program = network.directory.join("sixway");
    std::fs::copy(SIXWAY, &program).unwrap();
    let mut gateway = network.start_program(&program, NAT64, &[]);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = outsides(&network);
    for is_there in [false, true] {
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, "half of a program").unwrap();
        if !is_there {
            std::fs::remove_file(&program).unwrap();
        }
        let (code, said) = reload(&network, &[]);
        assert!(code == 0 && said.contains("1 of 1 session"), "{said}\n{}", gateway.said());
        assert!(gateway.said().contains("cannot be executed"), "{}", gateway.said());
        assert_eq!(outsides(&network), sessions);
        std::fs::write(&program, "").unwrap();
    }
    network.ping("64:ff9b::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device() && !previous_file(&network));
}

#[test]
fn sessions_continue_with_another_device() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = outsides(&network);
    network.configure(&format!("{NAT64}[tun]\nname = \"six1\"\n"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 0 && said.contains("1 of 1 session"), "{said}\n{}", gateway.said());
    assert_eq!(outsides(&network), sessions);
    assert!(!network.has_device(), "the former device is gone");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_worker_that_fails_while_a_configuration_is_on_trial_costs_no_session() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = outsides(&network);
    network.configure(&NAT64.replace(OTHER_POOL.0, "192.0.2.0/27"));
    assert_eq!(reload(&network, &[]).0, 0);
    // The workers' queues are gone with it.
    network.ip(&["-n", &network.host("gateway"), "link", "del", "sixway0"]);
    wait_for(&network, &gateway, "rolled back", Duration::from_secs(20));
    assert_eq!(outsides(&network), sessions, "{}", gateway.said());
    assert!(network.show(&["config"]).contains(OTHER_POOL.0));
    network.ping("64:ff9b::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device() && !previous_file(&network));
}

#[test]
fn sessions_in_the_fast_path_continue_when_a_configuration_does_not_start() {
    let network = Network::build();
    let _far = super::shared_pool::Answering::on(&network, "server", super::shared_pool::ECHO);
    let text = format!("{NAT64}[fastpath]\npin_path = {:?}\n", network.pin_path());
    let mut gateway = network.start(&text);
    if !gateway.said().contains("flows · pins") {
        sixway_trial::ignore("needs a fast path");
    }
    let ask = "import socket, time\nu = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.bind(('::', 5555)); u.settimeout(1)\n\
               for i in range(60):\n  \
                 u.sendto(b'x', ('64:ff9b::203.0.113.2', 7))\n  \
                 try: u.recv(9)\n  \
                 except OSError: pass\n  \
                 time.sleep(0.1)\n";
    let client = network.host("client");
    let mut asking = std::process::Command::new("ip")
        .args(["netns", "exec", &client, "python3", "-c", ask])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !network.show(&["sessions"]).contains("fast (") {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", network.show(&["sessions"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    let sessions = outsides(&network);
    network.configure(&format!("admin_group = \"no-such-group\"\n{text}"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 1 && said.contains("rolled back"), "{said}");
    assert_eq!(outsides(&network), sessions, "{}", gateway.said());
    // A route that is another's: what fails earlier.
    network.ip(&["-n", &network.host("gateway"), "route", "add", "192.0.2.64/28", "via", "203.0.113.2"]);
    network.configure(&text.replace(OTHER_POOL.0, "192.0.2.0/28\", \"192.0.2.64/28"));
    let (code, said) = reload(&network, &[]);
    assert!(code == 1 && said.contains("another route"), "{said}");
    assert_eq!(outsides(&network), sessions, "{}", gateway.said());
    let _ = asking.kill();
    let _ = asking.wait();
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device() && network.pinned().is_empty() && !previous_file(&network));
}

#[test]
fn sessions_that_began_on_trial_continue_when_it_is_rolled_back() {
    let network = Network::build();
    let gateway = network.start(NAT64);
    assert_eq!(reload(&network, &[]).0, 0);
    network.ping("64:ff9b::203.0.113.2");
    let sessions = outsides(&network);
    let (code, said) = reload(&network, &["--roll-back"]);
    assert!(code == 0, "{said}");
    assert_eq!((outsides(&network), sessions.len()), (sessions, 1), "{}", gateway.said());
}

#[test]
fn a_takeover_does_not_keep_what_nobody_confirmed() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    assert_eq!(reload(&network, &["--confirm", "60"]).0, 0);
    let mut other = network.start_with(NAT64, &["--takeover"]);
    assert_eq!(other.end(), 1, "{}", other.said());
    assert!(other.said().contains("the last reload awaits confirmation"), "{}", other.said());
    assert_eq!(status(&network)["reload"]["state"], "awaits confirmation");
    assert_eq!(reload(&network, &["--keep"]).0, 0);
    let other = network.start_with(NAT64, &["--takeover"]);
    assert!(other.said().contains("ready in"), "{}", other.said());
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn cleanup_removes_what_a_reload_keeps_for_the_way_back() {
    let network = Network::build();
    let mut gateway = network.start(NAT64);
    assert_eq!(reload(&network, &[]).0, 0);
    assert!(previous_file(&network));
    gateway.signal("KILL");
    gateway.end();
    let kept = network.state().with_extension("handover-kept");
    std::fs::write(&kept, "").unwrap();
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert!(!network.state().exists() && !previous_file(&network) && !kept.exists());
}

#[test]
fn what_is_rolled_back_returns_although_its_file_was_removed() {
    let network = Network::build();
    let gateway = network.start(NAT64);
    network.configure(&NAT64.replace(OTHER_POOL.0, OTHER_POOL.1));
    assert_eq!(reload(&network, &[]).0, 0);
    std::fs::remove_file(network.state().with_extension("previous")).unwrap();
    let (code, said) = reload(&network, &["--roll-back"]);
    assert!(code == 0, "{said}\n{}", gateway.said());
    assert!(network.show(&["config"]).contains(OTHER_POOL.0), "{}", gateway.said());
    assert_eq!(status(&network)["reload"]["state"], "rolled back");
}

#[test]
fn a_pool_follows_its_interface_whatever_the_file_is_and_what_is_on_trial_stays_so() {
    let network = Network::build();
    let host = network.host("gateway");
    network.ip(&["-n", &host, "link", "add", "ppp0", "type", "veth", "peer", "name", "ppp1"]);
    for end in ["ppp0", "ppp1"] {
        network.ip(&["-n", &host, "link", "set", end, "up"]);
    }
    network.ip(&["-n", &host, "addr", "add", "8.8.4.4/32", "dev", "ppp0"]);
    let pool = |ports: &str| {
        format!(
            "[[pool]]\nname = \"own\"\ninterface = \"ppp0\"\nshared = true\nports = \"{ports}\"\n\
             [nat64]\nprefix = \"64:ff9b::/96\"\npool = \"own\"\n"
        )
    };
    let gateway = network.start(&pool("20000-24999"));
    let moves = |from: &str, to: &str| {
        network.ip(&["-n", &host, "addr", "add", to, "dev", "ppp0"]);
        network.ip(&["-n", &host, "addr", "del", from, "dev", "ppp0"]);
    };
    // The pool has an address if it has the outside endpoint of a binding.
    let has = |address: &str, port: &str| {
        let socket = network.socket();
        let outside = format!("{address}:{port}");
        let added = ["binding", "add", "udp", "[2001:db8:1::2]:7", &outside];
        let output =
            network.on("gateway", SIXWAY, &[&added[..], &["--socket", socket.to_str().unwrap()]].concat());
        output.status.success()
    };
    let until_it_has = |address: &str, port: &str| {
        let begun = Instant::now();
        while !has(address, port) {
            assert!(begun.elapsed() < Duration::from_secs(15), "{address}: {}", gateway.said());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    assert!(has("8.8.4.4", "20001"), "{}", gateway.said());
    network.configure("[nat64\n");
    moves("8.8.4.4/32", "8.8.8.8/32");
    until_it_has("8.8.8.8", "20001");

    network.configure(&pool("25000-29999"));
    let (code, said) = reload(&network, &["--confirm", "60"]);
    assert!(code == 0, "{said}");
    network.configure("[nat64\n");
    moves("8.8.8.8/32", "8.8.4.4/32");
    until_it_has("8.8.4.4", "25001");
    let now = status(&network);
    assert_eq!(now["reload"]["state"], "awaits confirmation", "{now}");
    assert!(now["reload"]["seconds_left"].as_u64().unwrap() < 60, "{now}");
    let (code, said) = reload(&network, &["--roll-back"]);
    assert!(code == 0, "{said}");
    until_it_has("8.8.4.4", "20001");
}

#[test]
fn bindings_and_sessions_are_changed_by_command() {
    let network = Network::build();
    let _gateway = network.start(NAT64);
    let sixway = |arguments: &[&str]| {
        let socket = network.socket();
        let all = [arguments, &["--socket", socket.to_str().unwrap()]].concat();
        let output = network.on("gateway", SIXWAY, &all);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    let (code, said) = sixway(&["binding", "add", "tcp", "[2001:db8:1::2]:80", "192.0.2.5:80"]);
    assert!(code == 0 && said.contains("leads to [2001:db8:1::2]:80"), "{said}");
    assert!(network.show(&["bindings"]).contains("192.0.2.5:80"));
    let (code, said) = sixway(&["binding", "add", "tcp", "2001:db8:1::2", "192.0.2.5:81"]);
    assert!(code == 2 && said.contains("[ADDRESS]:PORT"), "{said}");
    // What a file may not have, a command may not make either.
    for (inside, outside) in [
        ("[64:ff9b::1]:80", "192.0.2.5:81"),
        ("[ff02::1]:80", "192.0.2.5:81"),
        ("[2001:db8:1::2]:0", "192.0.2.5:81"),
        ("[2001:db8:1::2]:81", "192.0.2.5:0"),
        ("[2001:db8:1::2]:81", "198.51.100.5:81"),
    ] {
        let (code, said) = sixway(&["binding", "add", "tcp", inside, outside]);
        assert!(code == 2 && said.contains("write "), "{inside} {outside}: {said}");
    }
    let (code, said) = sixway(&["binding", "remove", "tcp", "192.0.2.5:80"]);
    assert!(code == 0, "{said}");
    assert!(!network.show(&["bindings"]).contains("192.0.2.5:80"));
    let (code, said) = sixway(&["binding", "remove", "tcp", "192.0.2.5:80"]);
    assert!(code == 2 && !said.is_empty(), "{said}");

    let (code, said) = sixway(&["subscriber", "end", "2001:db8:1::/64"]);
    assert!(code == 2 && said.contains("no host in 2001:db8:1::/64 has a dynamic binding"), "{said}");
    network.ping("64:ff9b::203.0.113.2");
    let shown = network.show(&["subscribers", "--by", "sessions", "--top", "1"]);
    assert!(shown.contains("2001:db8:1::/64") && shown.contains("1 of 1"), "{shown}");
    let shown = network.show(&["subscribers", "--inside", "2001:db8:2::/48"]);
    assert!(shown.contains("0 of 0"), "{shown}");
    let (code, said) = sixway(&["subscriber", "end", "2001:db8:1::2"]);
    assert!(code == 0 && said.contains("1 binding of 2001:db8:1::2 ended"), "{said}");
    assert!(network.show(&["subscribers"]).contains("0 of 0"));
    network.ping("64:ff9b::203.0.113.2");
    let rows: serde_json::Value = serde_json::from_str(&network.show(&["sessions", "--json"])).unwrap();
    let text = |key: &str| rows["rows"][0][key].as_str().unwrap().to_owned();
    let (code, said) = sixway(&["session", "end", "icmp", &text("inside"), &text("remote")]);
    assert!(code == 0, "{said}");
    assert!(
        network.show(&["sessions"]).contains("0 of 0")
            || !network.show(&["sessions"]).contains("203.0.113.2")
    );
}
