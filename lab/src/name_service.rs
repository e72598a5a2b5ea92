//! Names in a network: a zone and its authority, a DNS64 on the gateway, and hosts whose programs ask it by the system's own resolver.
//!
//! A program finds its resolver in `/etc/resolv.conf`, which namespaces share with the machine. So what is started here sees another file in
//! that place, in a mount namespace of its own: nothing on the machine changes, and nothing is left when the program ends.

use crate::dns64::{self, Asker, Flags, Tree};
use crate::failure::Result;
use crate::interrupt;
use crate::namespace::{Namespace, command};
use crate::process::{Finished, RunsCommands};
use crate::programs;
use crate::topology::Network;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Sixway's configuration for a DNS64 next to [`NAT64`](crate::forwarder::NAT64): it listens at the client's side, and asks the server's.
pub const DNS64: &str = r#"
[dns64]
listen = ["2001:db8:1::1"]
special_names = "upstream"

[[dns64.upstream]]
address = "203.0.113.2"
"#;

/// Where [`DNS64`] listens.
pub const RESOLVER: &str = "2001:db8:1::1";

/// The programs that it takes.
pub const PROGRAMS: [&str; 3] = ["nsd", "taskset", "unshare"];

/// A zone `example` with these records, as in a zone file.
pub fn zone(records: &str) -> Tree {
    let head = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 203.0.113.2\n";
    let zones = vec![("example".to_owned(), format!("{head}{records}"))];
    Tree { zones, samples: Vec::new(), anchor: String::new() }
}

/// Serves that zone on the host "server", and waits until it does.
pub fn serve(network: &Network, records: &str) -> Result<()> {
    dns64::start_authority(network, &zone(records))?;
    let authority = SocketAddr::new(Ipv4Addr::new(203, 0, 113, 2).to_ipv6_mapped().into(), 53);
    let asker = Asker::open(network.host("gateway")?, authority)?;
    interrupt::wait_until(Duration::from_secs(10), "the authority's first answer", || {
        let reply = asker.ask_within("ns.example", "A", Flags::NONE, Duration::from_millis(100));
        Ok(reply.is_ok_and(|reply| reply.rcode == "NOERROR"))
    })
}

/// A host whose programs ask one resolver.
pub struct Resolving<'n> {
    host: &'n Namespace,
    script: PathBuf,
}

impl<'n> Resolving<'n> {
    /// Programs on a host of this role ask the server at this address.
    pub fn by(network: &'n Network, role: &str, resolver: &str) -> Result<Self> {
        Self::with(network, role, &format!("nameserver {resolver}\noptions timeout:2 attempts:2\n"))
    }

    /// Programs on a host of this role see this text as `/etc/resolv.conf`.
    pub fn with(network: &'n Network, role: &str, resolv_conf: &str) -> Result<Self> {
        let unshare = programs::require("unshare")?;
        let resolv = network.file(&format!("resolv-{role}.conf"), resolv_conf)?;
        let switch = network.file(&format!("nsswitch-{role}.conf"), "hosts: files dns\n")?;
        let text = SCRIPT
            .replace("UNSHARE", &unshare.display().to_string())
            .replace("RESOLV", &resolv.display().to_string())
            .replace("SWITCH", &switch.display().to_string());
        let script = network.file(&format!("by-name-{role}"), &text)?;
        programs::make_executable(&script)?;
        Ok(Self { host: network.host(role)?, script })
    }

    /// The script before a command that asks this resolver.
    pub fn script(&self) -> &PathBuf {
        &self.script
    }
}

/// A cache of names on the machine (nscd) would answer for another network: its socket is hidden.
const SCRIPT: &str = r#"#!/bin/sh
# Runs a command that finds names by the resolver of its network.
exec UNSHARE --mount --propagation private sh -c '
  mount --bind RESOLV /etc/resolv.conf &&
  mount --bind SWITCH /etc/nsswitch.conf &&
  { [ ! -d /run/nscd ] || mount -t tmpfs none /run/nscd; } && exec "$@"' by-name "$@"
"#;

impl RunsCommands for Resolving<'_> {
    fn run(&self, command: Command, limit: Duration) -> Result<Finished> {
        let mut by_name = Command::new(&self.script);
        by_name.arg(command.get_program()).args(command.get_args());
        self.host.run(by_name, limit)
    }
}

/// Addresses of a name, as the system's resolver (`getaddrinfo`) gives them to programs of this host, sorted.
pub fn addresses(host: &impl RunsCommands, name: &str) -> Result<Vec<String>> {
    let mut getent = command("getent")?;
    getent.args(["ahosts", name]);
    let said = host.run(getent, Duration::from_secs(30))?.succeeded()?.stdout;
    let mut found: Vec<_> =
        said.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
