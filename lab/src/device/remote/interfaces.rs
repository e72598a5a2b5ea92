//! Interfaces of this machine that are moved into a network, and moved back at the end.

use crate::failure::{Failure, Result};
use crate::namespace::command;
use crate::topology::Network;

/// An interface of this machine, or of one of its namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    namespace: Option<String>,
    name: String,
}

/// An interface within a network, in place of a link of a host. It comes back when this is dropped.
pub struct Lent {
    interface: Interface,
    host: String,
    addresses: Vec<String>,
}

impl Interface {
    /// `eth1`, or `NAMESPACE/eth1`.
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => Self { namespace: Some(namespace.to_owned()), name: name.to_owned() },
            None => Self { namespace: None, name: text.to_owned() },
        }
    }

    /// Its name where it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is such an interface.
    pub fn exists(&self) -> bool {
        ip(self.namespace.as_deref(), &format!("link show {}", self.name)).is_ok()
    }

    /// Moves it to a host of a network, where it takes the place of links: all are ports of a bridge.
    ///
    /// # Errors
    /// It cannot be moved.
    pub fn lend(&self, network: &Network, host: &str, links: &[&str]) -> Result<Lent> {
        let target = network.host(host)?;
        let said = ip(self.namespace.as_deref(), &format!("-o address show dev {}", self.name))?;
        let addresses = said.lines().filter(|line| line.contains("scope global"));
        let addresses = addresses.filter_map(|line| line.split_whitespace().nth(3)).map(str::to_owned);
        let lent =
            Lent { interface: self.clone(), host: target.name().to_owned(), addresses: addresses.collect() };
        ip(self.namespace.as_deref(), &format!("link set {} netns {}", self.name, lent.host))?;
        target.sysctl("ipv6/conf/all/disable_ipv6", "1")?;
        target.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
        let bridge = format!("bridge-{}", links.first().copied().unwrap_or_default());
        target.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        for port in links.iter().copied().chain([self.name.as_str()]) {
            target.ip(&format!("address flush dev {port}"))?;
            target.ip(&format!("link set {port} master {bridge} up"))?;
        }
        target.ip(&format!("link set {bridge} up"))?;
        Ok(lent)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Interface { namespace, name } = &self.interface;
        let back = namespace.clone().unwrap_or_else(|| std::process::id().to_string());
        let moved = ip(Some(&self.host), &format!("link set {name} nomaster"))
            .and_then(|_| ip(Some(&self.host), &format!("link set {name} netns {back}")));
        if let Err(failure) = moved {
            eprintln!("could not give back the interface {name}: {failure}");
            return;
        }
        let here = namespace.as_deref();
        ip(here, &format!("link set {name} up")).ok();
        for address in &self.addresses {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            ip(here, &format!("address add {address} dev {name}{nodad}")).ok();
        }
    }
}

/// `ip` in a namespace, or in this process' own.
fn ip(namespace: Option<&str>, words: &str) -> Result<String> {
    let mut ip = command("ip")?;
    if let Some(namespace) = namespace {
        ip.args(["-n", namespace]);
    }
    let what = format!("ip {words}");
    let output = ip.args(words.split_whitespace()).output();
    let output = output.map_err(|error| Failure::Io(what.clone(), error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Failure::Program(what, String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
