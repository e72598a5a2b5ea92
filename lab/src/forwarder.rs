//! The forwarder in the middle: the kernel's own forwarding, TAYGA with or without masquerade, or Sixway; each in a network of its own, so
//! that they can be measured in turn.

use crate::failure::{Failure, Result};
use crate::gateway::run_sixway;
use crate::interrupt;
use crate::namespace::command;
use crate::probe::ping;
use crate::programs;
use crate::sixway::sixway;
use crate::topology::{Network, client_gateway_server, client_router_server};
use std::time::Duration;

/// The device that forwards packets between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarder {
    /// The kernel forwards IPv6; nothing is translated.
    Kernel,
    /// Debian's TAYGA, stateless: an IPv4 address for each client.
    Tayga,
    /// TAYGA, and the kernel's masquerade behind it so that many clients share one address.
    SharingTayga,
    /// Sixway's stateful NAT64.
    Nat64,
    /// Sixway's stateless translation.
    Siit,
}

/// A network with its forwarder at work.
pub struct Running {
    /// What forwards.
    pub forwarder: Forwarder,
    /// Its hosts.
    pub network: Network,
    /// The forwarding process, if it is not the kernel.
    pub process: Option<u32>,
    /// The server's address as the client writes it.
    pub target: &'static str,
    /// The address at which the server listens.
    pub listens: &'static str,
}

/// Sixway's configuration for NAT64 in [`client_gateway_server`]. 203.0.113.0/24 is not a global network, so the well-known prefix
/// wants `translate_non_global` (RFC 6052 §3.1).
pub const NAT64: &str = r#"[tun]
name = "sixway0"
mtu = 1500

[[pool]]
name = "main"
addresses = ["192.0.2.0/28"]
ports = "1024-65535"

[nat64]
prefix = "64:ff9b::/96"
pool = "main"
translate_non_global = true

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

/// Sixway's configuration for SIIT in [`client_gateway_server`]: the client is 192.0.2.2 for the server.
pub const SIIT: &str = r#"[tun]
name = "sixway0"
mtu = 1500

[siit]
prefix = "2001:db8:64::/96"
eam = [{ ipv4 = "192.0.2.2/32", ipv6 = "2001:db8:1::2/128" }]

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const TAYGA: &str = "tun-device nat64
ipv4-addr 192.168.255.1
ipv6-addr 2001:db8::fd
prefix 2001:db8:64::/96
dynamic-pool 192.168.255.0/24
";

const MASQUERADE: &str = "table ip sixway_lab {
  chain leaving {
    type nat hook postrouting priority srcnat
    oifname \"out0\" masquerade
  }
}
";

const SOURCE_POOL: &str = "table ip sixway_lab {
  chain leaving {
    type nat hook postrouting priority srcnat
    oifname \"out0\" snat to 198.18.0.1-198.18.0.62
  }
}
";

impl Forwarder {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel IPv6",
            Self::Tayga => "tayga",
            Self::SharingTayga => "tayga + masquerade",
            Self::Nat64 => "sixway nat64",
            Self::Siit => "sixway siit",
        }
    }

    /// Why it cannot run here, if it cannot.
    pub fn cannot_run(self) -> Option<Failure> {
        match self {
            Self::Kernel => None,
            Self::Tayga => programs::require("tayga").err(),
            Self::SharingTayga => programs::require("tayga").and(programs::require("nft")).err(),
            Self::Nat64 | Self::Siit => sixway().err(),
        }
    }

    /// Builds its network and starts it, Sixway as it is by default.
    pub fn start(self) -> Result<Running> {
        self.start_with("")
    }

    /// The same, with more sections in Sixway's configuration.
    pub fn start_beside(self, sections: &str) -> Result<Running> {
        match self {
            Self::Nat64 => start_sixway(self, &format!("{NAT64}{sections}"), "", "64:ff9b::203.0.113.2"),
            Self::Siit => start_sixway(self, &format!("{SIIT}{sections}"), "", "2001:db8:64::203.0.113.2"),
            Self::Kernel | Self::Tayga | Self::SharingTayga => self.start(),
        }
    }

    /// The same, Sixway with one worker: one core's work.
    pub fn start_on_one_core(self) -> Result<Running> {
        self.start_with("workers = 1\n")
    }

    /// Builds its network and starts it, with more keys in Sixway's section `[gateway]`.
    fn start_with(self, keys: &str) -> Result<Running> {
        match self {
            Self::Kernel => {
                let network = client_router_server()?;
                let target = "2001:db8:2::2";
                Ok(Running { forwarder: self, network, process: None, target, listens: target })
            }
            Self::Tayga => start_tayga(self, run_tayga),
            Self::SharingTayga => start_tayga(self, run_sharing_tayga),
            Self::Nat64 => start_sixway(self, NAT64, keys, "64:ff9b::203.0.113.2"),
            Self::Siit => start_sixway(self, SIIT, keys, "2001:db8:64::203.0.113.2"),
        }
    }
}

fn start_tayga(forwarder: Forwarder, run: fn(&Network) -> Result<u32>) -> Result<Running> {
    let network = client_gateway_server()?;
    let process = Some(run(&network)?);
    let target = TAYGAS_SERVER;
    Ok(Running { forwarder, network, process, target, listens: "203.0.113.2" })
}

/// The server 203.0.113.2 as hosts behind [`run_tayga`] write it.
pub const TAYGAS_SERVER: &str = "2001:db8:64::203.0.113.2";

/// The same as [`run_tayga`], and masquerade behind it.
pub fn run_sharing_tayga(network: &Network) -> Result<u32> {
    masquerade(network)?;
    run_tayga(network)
}

/// Starts TAYGA on the host "gateway" and waits until the host "client" has an answer from 203.0.113.2.
pub fn run_tayga(network: &Network) -> Result<u32> {
    let gateway = network.host("gateway")?;
    let configuration =
        network.file("tayga.conf", &format!("{TAYGA}data-dir {}\n", network.folder().display()))?;
    let mut make = command("tayga")?;
    make.arg("--mktun").arg("-c").arg(&configuration);
    gateway.run(make, Duration::from_secs(5))?.succeeded()?;
    gateway.ip("link set nat64 up")?;
    gateway.ip("route add 192.168.255.0/24 dev nat64")?;
    gateway.ip("route add 2001:db8:64::/96 dev nat64")?;
    let mut tayga = command("tayga")?;
    tayga.arg("--nodetach").arg("-c").arg(&configuration);
    let process = network.start("gateway", tayga)?;
    interrupt::wait_until(Duration::from_secs(5), "tayga's first answer", || {
        Ok(ping(network.host("client")?, TAYGAS_SERVER, 1, 56, Duration::ZERO)?.answered == 1)
    })?;
    Ok(process)
}

/// Lets the host "gateway" hide what leaves by out0 behind its own address.
pub fn masquerade(network: &Network) -> Result<()> {
    rules(network, MASQUERADE)
}

/// The same behind the addresses of a pool.
pub fn source_pool(network: &Network) -> Result<()> {
    rules(network, SOURCE_POOL)
}

fn rules(network: &Network, text: &str) -> Result<()> {
    let rules = network.file("leaving.nft", text)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(rules);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded().map(drop)
}

fn start_sixway(
    forwarder: Forwarder,
    configuration: &str,
    keys: &str,
    target: &'static str,
) -> Result<Running> {
    let network = client_gateway_server()?;
    let configuration = configuration.replace("[gateway]\n", &format!("[gateway]\n{keys}"));
    let process = Some(run_sixway(&network, &configuration)?);
    Ok(Running { forwarder, network, process, target, listens: "203.0.113.2" })
}
