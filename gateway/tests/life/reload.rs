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
    let (code, said) = sixway(&["binding", "remove", "tcp", "192.0.2.5:80"]);
    assert!(code == 0, "{said}");
    assert!(!network.show(&["bindings"]).contains("192.0.2.5:80"));
    let (code, said) = sixway(&["binding", "remove", "tcp", "192.0.2.5:80"]);
    assert!(code == 2 && !said.is_empty(), "{said}");

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
