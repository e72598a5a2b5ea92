//! The demonstration's site, as `make demo` shows it: it fails if a host does not reach a server, if an unsolicited connection is accepted, or if something is
//! left.

use crate::Interop;
use sixway_lab::failure::Result;
use sixway_lab::topology::Network;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "the_demonstration_of_a_site_succeeds_and_leaves_nothing",
    &["sixway", "nsd", "taskset", "unshare", "dnsmasq", "busybox", "nft", "ping", "nginx", "curl", "iperf3"],
    site,
)];

/// Each host with each server that it reaches.
const PAIRS: [[&str; 2]; 5] = [
    ["IPv6 only", "IPv6 only"],
    ["dual stack", "IPv6 only"],
    ["IPv4 only", "IPv4 only"],
    ["dual stack", "IPv4 only"],
    ["IPv6 only", "IPv4 only"],
];

/// In a namespace of its own: what other tests do on this machine meanwhile is not what the demonstration left.
fn site() -> Result<()> {
    let network = Network::new(&["machine"])?;
    let mut demo = Command::new(env!("CARGO_BIN_EXE_sixway-lab"));
    demo.args(["demo", "--site"]).env_remove("KEEP");
    let said = network.host("machine")?.run(demo, Duration::from_secs(120))?;
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(said.status.success(), "{all}");
    for [host, server] in PAIRS {
        let row =
            |line: &str| line.split_once(host).is_some_and(|(_, rest)| rest.trim_start().starts_with(server));
        let rows: Vec<&str> =
            said.stdout.lines().filter(|line| row(line) && line.contains("20 of 20")).collect();
        assert_eq!(rows.len(), 1, "{host} to {server}: {all}");
    }
    let whole = said.stdout.lines().filter(|line| line.trim_end().ends_with("as before")).count();
    assert_eq!(whole, 2, "the box and the machine: {all}");
    Ok(())
}
