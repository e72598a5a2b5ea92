//! What gateways and hosts count, as a user would ask for it.

use serde_json::Value;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::show;
use sixway_lab::process::RunsCommands;
use sixway_lab::topology::Network;
use std::process::Command;
use std::time::Duration;

/// One of the counters of the gateway on the host "gateway".
pub fn counter(network: &Network, name: &str) -> Result<u64> {
    shown(network, "counters", ("name", name), "value")
}

/// How many packets that gateway has dropped for a reason.
pub fn dropped(network: &Network, reason: &str) -> Result<u64> {
    shown(network, "drops", ("reason", reason), "count")
}

fn shown(network: &Network, what: &str, (key, name): (&str, &str), figure: &str) -> Result<u64> {
    let words = show(network, &[what, "--json"])?;
    let said = network.host("gateway")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout;
    let rows: Value = serde_json::from_str(&said).unwrap_or_default();
    let row = rows.as_array().and_then(|rows| rows.iter().find(|row| row[key] == name));
    row.and_then(|row| row[figure].as_u64())
        .ok_or_else(|| Failure::Unexpected(format!("no {name} in what `show {what}` said: {said}")))
}

/// IPv6 packets in which a host's kernel has found a wrong checksum.
pub fn wrong_checksums(host: &impl RunsCommands) -> Result<u64> {
    let mut grep = Command::new("grep");
    grep.args(["-h", "InCsumErrors", "/proc/net/snmp6"]);
    let said = host.run(grep, Duration::from_secs(5))?.succeeded()?.stdout;
    let figures = said.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Ok(figures.sum())
}
