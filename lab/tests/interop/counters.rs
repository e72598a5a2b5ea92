//! What gateways and hosts count, as a user would ask for it.

use serde_json::Value;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::show;
use sixway_lab::namespace::Namespace;
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

/// How many rows `show` has, of that gateway: those of bindings and sessions come in pages.
pub fn total(network: &Network, what: &str) -> Result<u64> {
    let said = said(network, what)?;
    said["total"].as_u64().ok_or_else(|| Failure::Unexpected(format!("`show {what}` said no total: {said}")))
}

fn said(network: &Network, what: &str) -> Result<Value> {
    let words = show(network, &[what, "--json"])?;
    let said = network.host("gateway")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout;
    Ok(serde_json::from_str(&said).unwrap_or_default())
}

fn shown(network: &Network, what: &str, (key, name): (&str, &str), figure: &str) -> Result<u64> {
    let rows = said(network, what)?;
    let row = rows.as_array().and_then(|rows| rows.iter().find(|row| row[key] == name));
    row.and_then(|row| row[figure].as_u64())
        .ok_or_else(|| Failure::Unexpected(format!("no {name} in what `show {what}` said: {rows}")))
}

/// IPv6 packets in which a host's kernel has found a wrong checksum.
pub fn wrong_checksums(host: &impl RunsCommands) -> Result<u64> {
    let mut grep = Command::new("grep");
    grep.args(["-h", "InCsumErrors", "/proc/net/snmp6"]);
    let said = host.run(grep, Duration::from_secs(5))?.succeeded()?.stdout;
    let figures = said.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Ok(figures.sum())
}

/// The hosts' own counters of packets with a wrong checksum are zero.
pub fn no_checksum_is_wrong(network: &Network) -> Result<()> {
    for host in network.hosts() {
        for (name, value) in checksum_errors(host)? {
            assert_eq!(value, 0, "{name} of {}", host.name());
        }
    }
    Ok(())
}

/// Counters named `…InCsumErrors`, of IPv4 and IPv6 (one line for each counter).
fn checksum_errors(host: &Namespace) -> Result<Vec<(String, u64)>> {
    let mut found = figures_of(host, "snmp")?;
    found.retain(|(name, _)| name.ends_with("InCsumErrors"));
    for line in read(host, "snmp6")?.lines() {
        if let Some((name, figure)) = line.split_once(char::is_whitespace)
            && name.ends_with("InCsumErrors")
        {
            found.push((name.to_owned(), figure.trim().parse().unwrap_or(u64::MAX)));
        }
    }
    match found.len() {
        0..5 => Err(Failure::Unexpected(format!("the kernel counts no wrong checksums: {found:?}"))),
        _ => Ok(found),
    }
}

/// What a host's TCP counts where segments come late, twice or again: the counters of these names, as `nstat` calls them.
pub fn tcp_counters(host: &Namespace, names: &[&str]) -> Result<Vec<(String, u64)>> {
    let mut found = figures_of(host, "netstat")?;
    found.extend(figures_of(host, "snmp")?);
    found.retain(|(name, _)| names.contains(&name.as_str()));
    match found.len() == names.len() {
        true => Ok(found),
        false => Err(Failure::Unexpected(format!("the kernel counts but {found:?} of {names:?}"))),
    }
}

fn read(host: &Namespace, file: &str) -> Result<String> {
    let path = format!("/proc/thread-self/net/{file}");
    host.enter(|| std::fs::read_to_string(&path))?.asking(|| format!("reading {path}"))
}

/// The counters of a file with two lines for each protocol, names and figures.
fn figures_of(host: &Namespace, file: &str) -> Result<Vec<(String, u64)>> {
    let said = read(host, file)?;
    let lines: Vec<_> = said.lines().collect();
    let mut found = Vec::new();
    for pair in lines.chunks(2) {
        let [names, figures] = pair else { continue };
        let protocol = names.split(':').next().unwrap_or_default();
        for (name, figure) in names.split_whitespace().zip(figures.split_whitespace()).skip(1) {
            found.push((format!("{protocol}{name}"), figure.parse().unwrap_or(u64::MAX)));
        }
    }
    Ok(found)
}
