//! What is said of the fast path before a start, and at it.

use super::SIXWAY;
use super::network::Network;
use std::process::Output;

/// `sixway check` of the last configuration, on the gateway's host.
fn check(network: &Network) -> Output {
    let file = network.directory.join("gateway.toml");
    network.on("gateway", SIXWAY, &["check", "-c", file.to_str().unwrap()])
}

/// What was remarked upon, without the words before it.
fn remarks(checked: &Output) -> Vec<String> {
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    assert_eq!(String::from_utf8_lossy(&checked.stdout), "No errors.\n");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    said.lines().filter_map(|line| line.strip_prefix("note: fast path: ")).map(Into::into).collect()
}

/// 17 tunnels, and there is room for 16.
fn tunnels() -> String {
    let tunnel = |number: usize| {
        format!(
            "[[tunnel]]\nname = \"t{number}\"\nlocal = \"{}\"\nremote = \"198.51.100.{number}\"\nprefixes = [\"2001:db8:{number}::/48\"]\n",
            // The last ones end at one address.
            if number < 16 { "203.0.113.1" } else { "203.0.113.7" }
        )
    };
    (1..=17).map(tunnel).collect()
}

#[test]
fn a_check_says_of_the_fast_path_what_the_start_says() {
    let network = Network::build();
    let gateway = network.host("gateway");
    network.ip(&["-n", &gateway, "addr", "add", "203.0.113.7/24", "dev", "out0"]);
    network.ip(&["-n", &gateway, "link", "add", "br0", "type", "bridge"]);
    network.ip(&["-n", &gateway, "link", "set", "in0", "master", "br0"]);
    let section = "interfaces = [\"eth9\", \"in0\", \"out0\", \"br0\"]\n";
    let text = format!("[fastpath]\n{section}pin_path = {:?}\n{}", network.pin_path(), tunnels());
    let mut running = network.start(&text);
    let said = running.said();
    assert!(said.contains("ready in"), "{said}");
    let remarks_of = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches("fast path").trim_start());
        lines.filter(|line| line.starts_with("not ")).map(Into::into).collect()
    };
    let told = remarks_of(&said);
    assert_eq!(remarks(&check(&network)), told);
    for expected in [
        "not eth9: no such interface",
        "not br0: the interface is down or not an Ethernet device",
        "not in0: it belongs to br0",
        "not t16: another tunnel that ends at 203.0.113.7",
        "not t17: too many tunnels; the fast path has room for 16",
    ] {
        assert!(told.iter().any(|line| line.starts_with(expected)), "{expected}: {told:?}");
    }
    assert!(!told.iter().any(|line| line.starts_with("not t1:")), "{told:?}");
    running.signal("TERM");
    assert_eq!(running.end(), 0);

    // Where the kernel's routes do not follow from the destination alone, every tunnel is the engine's.
    network.ip(&["-n", &gateway, "rule", "add", "fwmark", "7", "lookup", "100", "priority", "50"]);
    let told = remarks(&check(&network));
    let ruled = |line: &&String| line.contains("the policy rule of priority 50");
    assert_eq!(told.iter().filter(ruled).count(), 17, "{told:?}");

    // Without the section nothing is remarked upon.
    std::fs::write(network.directory.join("gateway.toml"), tunnels()).unwrap();
    assert_eq!(remarks(&check(&network)), [] as [String; 0]);
}

/// An open relay and an open server are what they are by intention: both are named.
#[test]
fn a_check_and_the_doctor_say_what_is_exposed_to_the_internet_and_to_whom() {
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "addr", "add", "80.64.79.1/32", "dev", "out0"]);
    let server = "[teredo_server]\naddress = \"80.64.79.1\"\n";
    let relay = "[teredo_relay]\naddress = \"80.64.79.1\"\nport = 3545\nipv6_address = \"2001:db8:1::1\"\n";
    let file = network.directory.join("gateway.toml");
    let said = |text: &str, command: &str| {
        std::fs::write(&file, text).unwrap();
        let output = network.on("gateway", SIXWAY, &[command, "-c", file.to_str().unwrap()]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let open = format!("{server}{relay}");
    let checked = said(&open, "check");
    for line in [
        "warning: teredo_server is open to any host: UDP 80.64.79.1:3544 · serves any IPv4 host",
        "warning: teredo_relay is open to any host: UDP 80.64.79.1:3545 · takes packets of any IPv4 host",
    ] {
        assert!(checked.contains(line), "{checked}");
    }
    let restricted = said(&format!("{relay}serves = [\"2001:db8::/32\"]\n"), "check");
    assert!(restricted.contains("note: teredo_relay: UDP 80.64.79.1:3545"), "{restricted}");
    let examined = said(&open, "doctor");
    assert!(examined.contains("teredo_server is open to any host, as configured"), "{examined}");
    assert!(examined.contains("teredo_relay is open to any host, as configured"), "{examined}");
}
