//! Hosts of a LAN that are only plugged in: IPv4 by DHCP, IPv6 by router advertisements.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::programs;
use crate::topology::Network;
use std::time::Duration;

/// A lease takes dnsmasq three seconds, because it first checks whether a host answers at the address.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks.
const STEP: Duration = Duration::from_millis(50);

/// Which protocols a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Both.
    Both,
}

impl Kind {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4 only",
            Self::Ipv6 => "IPv6 only",
            Self::Both => "dual stack",
        }
    }

    /// Whether it has IPv4.
    pub const fn has_ipv4(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Both)
    }

    /// Whether it has IPv6.
    pub const fn has_ipv6(self) -> bool {
        matches!(self, Self::Ipv6 | Self::Both)
    }
}

/// A host of the LAN.
#[derive(Debug, PartialEq, Eq)]
pub struct LanHost {
    /// Its role in the network.
    pub role: &'static str,
    /// Which protocols it has.
    pub kind: Kind,
    link_layer: &'static str,
}

/// One of each kind.
pub const HOSTS: [LanHost; 3] = [
    LanHost { role: "four", kind: Kind::Ipv4, link_layer: "02:00:00:00:00:04" },
    LanHost { role: "six", kind: Kind::Ipv6, link_layer: "02:00:00:00:00:06" },
    LanHost { role: "dual", kind: Kind::Both, link_layer: "02:00:00:00:00:46" },
];

/// What busybox's client runs: it sets what the lease says.
const LEASE: &str = r#"#!/bin/sh
case $1 in
bound|renew)
    ip address replace $ip/$mask dev $interface && ip route replace default via $router && echo "$ip $dns" >LEASE ;;
esac
exit 0
"#;

impl LanHost {
    pub(super) fn prepare(&self, network: &Network) -> Result<()> {
        let host = network.host(self.role)?;
        host.ip(&format!("link set up0 address {}", self.link_layer))?;
        if !self.kind.has_ipv6() {
            return host.sysctl("ipv6/conf/up0/disable_ipv6", "1");
        }
        for (setting, value) in
            [("accept_ra", "1"), ("router_solicitations", "4"), ("router_solicitation_delay", "0")]
        {
            host.sysctl(&format!("ipv6/conf/up0/{setting}"), value)?;
        }
        Ok(())
    }

    /// Its global addresses.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn addresses(&self, network: &Network) -> Result<Vec<String>> {
        let said = network.host(self.role)?.ip("-brief address show dev up0 scope global")?;
        let words = said.split_whitespace().skip(2);
        Ok(words.filter_map(|word| word.split_once('/')).map(|(address, _)| address.to_owned()).collect())
    }

    /// Its address of IPv4, or of IPv6.
    ///
    /// # Errors
    /// It has none.
    pub fn address(&self, network: &Network, of_ipv6: bool) -> Result<String> {
        let found = self.addresses(network)?.into_iter().find(|address| address.contains(':') == of_ipv6);
        let family = if of_ipv6 { "IPv6" } else { "IPv4" };
        found.ok_or_else(|| Failure::Unexpected(format!("the host {} has no {family} address", self.role)))
    }

    fn has_joined(&self, network: &Network) -> Result<bool> {
        let (addresses, host) = (self.addresses(network)?, network.host(self.role)?);
        let has = |of_ipv6, family: &str| -> Result<bool> {
            let routes = host.ip(&format!("{family} route show default"))?;
            Ok(addresses.iter().any(|address| address.contains(':') == of_ipv6) && !routes.trim().is_empty())
        };
        Ok((!self.kind.has_ipv4() || has(false, "-4")?) && (!self.kind.has_ipv6() || has(true, "-6")?))
    }
}

/// Plugs all hosts in, and waits until they have their addresses and routes.
///
/// # Errors
/// One of them gets none.
pub fn join(network: &Network) -> Result<()> {
    for host in HOSTS.iter().filter(|host| host.kind.has_ipv6()) {
        // A link that comes up asks for routers.
        network.host(host.role)?.ip("link set up0 down")?;
        network.host(host.role)?.ip("link set up0 up")?;
    }
    // One after the other: dnsmasq does nothing else while it checks whether a host answers at an address.
    for host in HOSTS.iter().filter(|host| host.kind.has_ipv4()) {
        let told = network.folder().join(format!("lease-{}", host.role));
        let text = LEASE.replace("LEASE", &told.display().to_string());
        let script = network.file(&format!("lease-{}.sh", host.role), &text)?;
        programs::make_executable(&script)?;
        let mut client = command("busybox")?;
        client.args(["udhcpc", "-f", "-q", "-n", "-t", "4", "-T", "4", "-i", "up0", "-s"]).arg(script);
        network.host(host.role)?.run(client, PATIENCE)?.succeeded()?;
    }
    for host in &HOSTS {
        let what = format!("an address of the {} host", host.kind.name());
        interrupt::wait_until(PATIENCE, &what, || {
            let has_joined = host.has_joined(network)?;
            interrupt::pause(if has_joined { Duration::ZERO } else { STEP })?;
            Ok(has_joined)
        })?;
    }
    Ok(())
}
