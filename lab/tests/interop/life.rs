//! The daemon's life: it starts, shows what it does, ends without a trace, and starts again after a crash.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::{Forwarder, NAT64, Running};
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::{Network, client_gateway_server};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("sixway_shows_what_it_did", &["sixway", "ping"], shows_what_it_did),
    Interop::new("sixway_leaves_the_host_as_it_was", &["sixway", "ping"], leaves_the_host_as_it_was),
    Interop::new("sixway_with_tunnels_leaves_the_host_as_it_was", &["sixway"], leaves_no_tunnel_behind),
    Interop::new("sixway_starts_again_after_a_crash", &["sixway", "ping"], starts_again_after_a_crash),
    Interop::new(
        "sixway_names_the_capability_that_it_lacks",
        &["sixway"],
        names_the_capability_that_it_lacks,
    ),
];

fn pings(running: &Running) -> Result<()> {
    let trips = ping(running.network.host("client")?, running.target, 5, 56, Duration::from_millis(5))?;
    match trips.answered {
        5 => Ok(()),
        few => Err(Failure::Unexpected(format!("{few} of 5 pings came back"))),
    }
}

fn shows_what_it_did() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    pings(&running)?;
    let gateway = running.network.host("gateway")?;
    for (what, word) in
        [("bindings", "2001:db8:1::2"), ("sessions", "203.0.113.2"), ("counters", "forwarded")]
    {
        for json in [false, true] {
            let words: &[&str] = if json { &[what, "--json"] } else { &[what] };
            let said =
                gateway.run(show(&running.network, words)?, Duration::from_secs(5))?.succeeded()?.stdout;
            assert!(said.contains(word), "sixway show {what} says nothing of {word}: {said}");
            if json {
                let value: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
                assert!(!value.is_null(), "sixway show {what} --json: {said}");
            }
        }
    }
    let config =
        gateway.run(show(&running.network, &["config"])?, Duration::from_secs(5))?.succeeded()?.stdout;
    assert!(config.contains("64:ff9b::/96"), "{config}");
    Ok(())
}

/// All that the gateway might change on its host.
fn state(network: &Network) -> Result<Vec<String>> {
    let gateway = network.host("gateway")?;
    let mut state = Vec::new();
    for words in [
        "link show",
        "address show",
        "-4 route show table all",
        "-6 route show table all",
        "-4 rule show",
        "-6 rule show",
    ] {
        let said = gateway.ip(words)?;
        // Counts of packets and life times move by themselves.
        state.push(
            said.lines()
                .map(str::trim)
                .filter(|line| !line.contains("valid_lft"))
                .collect::<Vec<_>>()
                .join("\n"),
        );
    }
    for key in [
        "ipv4/conf/all/rp_filter",
        "ipv4/conf/all/accept_local",
        "ipv4/conf/out0/rp_filter",
        "ipv4/conf/out0/accept_local",
        "ipv4/ip_forward",
        "ipv6/conf/all/forwarding",
    ] {
        state.push(format!("{key} {}", gateway.read_sysctl(key)?));
    }
    Ok(state)
}

fn leaves_the_host_as_it_was() -> Result<()> {
    let network = client_gateway_server()?;
    let mut running = Running {
        forwarder: Forwarder::Nat64,
        network,
        process: None,
        target: "64:ff9b::203.0.113.2",
        listens: "",
    };
    ping(running.network.host("client")?, "2001:db8:1::1", 1, 56, Duration::from_millis(5))?;
    ping(running.network.host("server")?, "203.0.113.1", 1, 56, Duration::from_millis(5))?;
    let before = state(&running.network)?;
    let process = run_sixway(&running.network, NAT64)?;
    running.process = Some(process);
    pings(&running)?;
    let status = running.network.with_process(process, |process| process.stop())?;
    assert_eq!(status.and_then(|status| status.code()), Some(0), "its exit status after SIGTERM");
    assert_eq!(state(&running.network)?, before);
    Ok(())
}

/// One of each mechanism, and advertisements.
const TUNNELS: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "router"
interface = "out0"
relay = "203.0.113.2"

[[tunnel]]
local = "203.0.113.1"
remote = "203.0.113.9"
prefixes = ["2001:db8:9::/48"]

[six_rd]
role = "border_relay"
prefix = "3fff:6d::/32"
address = "203.0.113.1"

[[router_advertisement]]
interface = "in0"
prefixes = [{ from = "six_to_four", subnet = 1 }]

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// Ended by a signal; and killed, started again and ended.
fn leaves_no_tunnel_behind() -> Result<()> {
    let network = client_gateway_server()?;
    let gateway = network.host("gateway")?;
    let traffic_control = || {
        let mut tc = command("tc")?;
        tc.args(["filter", "show", "dev", "out0", "ingress"]);
        Ok::<_, Failure>(gateway.run(tc, Duration::from_secs(5))?.stdout)
    };
    let before = (state(&network)?, traffic_control()?);
    let process = run_sixway(&network, TUNNELS)?;
    assert_ne!(state(&network)?, before.0, "it has routes of its own");
    let status = network.with_process(process, |process| process.stop())?;
    assert_eq!(status.and_then(|status| status.code()), Some(0), "its exit status after SIGTERM");
    assert_eq!((state(&network)?, traffic_control()?), before, "after SIGTERM");
    let process = run_sixway(&network, TUNNELS)?;
    network.with_process(process, |process| process.kill())?;
    let next = run_sixway(&network, TUNNELS)?;
    network.with_process(next, |process| process.stop())?;
    assert_eq!((state(&network)?, traffic_control()?), before, "after SIGKILL, another start and its end");
    Ok(())
}

fn starts_again_after_a_crash() -> Result<()> {
    let running = Forwarder::Nat64.start()?;
    pings(&running)?;
    let first = running.process.ok_or_else(|| Failure::Unexpected("it has no process".to_owned()))?;
    running.network.with_process(first, |process| process.kill())?;
    let second = run_sixway(&running.network, NAT64)?;
    pings(&running)?;
    running.network.with_process(second, |process| process.stop())?;
    let links = running.network.host("gateway")?.ip("link show")?;
    assert!(!links.contains("sixway0"), "the device outlived the gateway: {links}");
    Ok(())
}

fn names_the_capability_that_it_lacks() -> Result<()> {
    let network = client_gateway_server()?;
    let file = network
        .file("sixway.toml", &NAT64.replace("[nat64]\n", "[nat64]\ninside = [\"2001:db8:1::/48\"]\n"))?;
    // A copy, where all users may read it.
    let copy = network.folder().join("sixway");
    std::fs::copy(sixway()?, &copy).map_err(|error| Failure::Io("copying sixway".to_owned(), error))?;
    let mut run = Command::new(copy);
    run.arg("run").arg("-c").arg(file).uid(65_534).gid(65_534);
    let finished = network.host("gateway")?.run(run, Duration::from_secs(5))?;
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("CAP_NET_ADMIN"), "{}", finished.stderr);
    assert_eq!(finished.stderr.trim().lines().count(), 1, "one clear line: {}", finished.stderr);
    Ok(())
}
