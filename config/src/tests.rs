//! Tests of the configuration.

mod advertisements;
mod divided_pools;
mod dns64;
mod dns64_faults;
mod dns64_pref64;
mod ds_lite;
mod event_log;
mod excluded;
mod fast_path;
mod faults;
mod four_over_six;
mod good;
mod inside;
mod ip_in_ip;
mod nat44;
mod nat46;
mod npt66;
mod pools;
mod port_blocks;
mod realms;
mod remarks;
mod schema;
mod shared_pools;
mod teredo_client;
mod teredo_relay;
mod teredo_server;
mod tunnel_ends;
mod tunnels;

use std::io;
use std::path::Path;

use super::*;

/// A host with one interface.
fn host() -> HostFacts {
    let own = |interface: &str, address: &str| HostAddress {
        interface: interface.to_owned(),
        address: address.parse().unwrap(),
        length: if address.contains(':') { 64 } else { 24 },
    };
    HostFacts {
        addresses: vec![
            own("eth0", "203.0.113.7"),
            own("eth0", "2001:db8:ffff::7"),
            own("sixway0", "192.0.2.254"),
        ],
        interfaces: ["eth0", "sixway0", "port0"].map(str::to_owned).into(),
        local_ports: Some(32_768..=60_999),
        cpus: 2,
        ..HostFacts::default()
    }
}

fn no_files(path: &Path) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display())))
}

/// Without the warning that anyone may use a NAT64, which most samples would have.
fn parse(text: &str) -> Result<(Config, Vec<Warning>), Faults> {
    let (config, mut warnings) = parse_with_all_warnings(text)?;
    warnings.retain(|warning| !warning.to_string().contains(".inside  is not set: "));
    Ok((config, warnings))
}

fn parse_with_all_warnings(text: &str) -> Result<(Config, Vec<Warning>), Faults> {
    Config::parse("sixway.toml", text, &host(), &mut no_files)
}

/// The valid part of a configuration, so that a snippet need only have the fault.
const OWN: &str = "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n";

fn lines(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

/// The faults of a snippet; its first line is line 1.
#[track_caller]
fn faults(text: &str, expected: &[&str]) {
    let found = parse(text).map(|_| ()).map_err(|faults| lines(faults.remarks()));
    assert_eq!(found, Err(expected.iter().map(|line| (*line).to_owned()).collect()), "in:\n{text}");
}

/// The warnings of a snippet that has no faults.
#[track_caller]
fn warnings(text: &str, expected: &[&str]) {
    let found = parse(text).map(|(_, warnings)| lines(&warnings)).map_err(|faults| faults.to_string());
    assert_eq!(found, Ok(expected.iter().map(|line| (*line).to_owned()).collect()), "in:\n{text}");
}

const POOL: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n";

/// The only fault of a snippet, in a configuration that is otherwise valid.
#[track_caller]
fn fault_in(before: &str, line: &str, expected: &str) {
    let text = format!("{OWN}{POOL}{before}{line}\n");
    let number = text.lines().count();
    faults(&text, &[&format!("sixway.toml:{number}  {expected}")]);
}

const NAT64: &str = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";
