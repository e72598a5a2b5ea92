//! The network of the small packets, and the forwarder in its middle.
//!
//! ```text
//! client ─────────────────────── gateway ─────────────────────── server
//! up0 2001:db8:1::2               in0 2001:db8:1::1   out0 2001:db8:2::1     up0 2001:db8:2::2
//!     192.0.2.8                       192.0.2.1            203.0.113.1           203.0.113.2
//! 2001:db8:c::/64 and 10.0.0.0/16 are behind the client.
//! ```
//!
//! The pairs of devices have one queue each. Both ends count what arrives, and take it away.

use crate::failure::{Failure, Result};
use crate::forwarder::{masquerade, run_sharing_tayga, run_tayga, source_pool};
use crate::gateway::run_sixway;
use crate::load::{Redirector, Sink, compile};
use crate::namespace::command;
use crate::programs;
use crate::sixway::sixway;
use crate::topology::Network;
use std::path::PathBuf;
use std::time::Duration;

/// What is in the middle.
#[derive(Clone, Debug)]
pub enum MiddleHost {
    /// Nothing: what the client sends is counted where it enters the gateway.
    Nothing,
    /// A program in the driver that only sends on.
    Redirector,
    /// The kernel's forwarding.
    Kernel,
    /// The same, what leaves hidden behind the gateway's IPv4 address.
    Masquerade,
    /// The same, hidden behind the addresses of a pool.
    SourcePool,
    /// TAYGA.
    Tayga,
    /// TAYGA, and masquerade behind it.
    SharingTayga,
    /// Sixway with this configuration.
    Sixway(String),
    /// The same, with another way for the client's packets to get to the TUN device than routing rules by source.
    Entered(String, Entry),
}

/// How packets of a host get to the TUN device.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// A routing rule by the device that they come from.
    ByDevice,
    /// A program at tc ingress of that device, which redirects them.
    Redirect,
}

/// A network at work.
pub struct Scene {
    /// Its hosts.
    pub network: Network,
    /// The forwarding process, if it is not the kernel.
    pub process: Option<u32>,
    /// The compiled senders.
    pub object: PathBuf,
    /// Counts what arrives at the client.
    pub client: Sink,
    /// Counts what arrives at the server, or at what is there instead.
    pub server: Sink,
    _onward: Option<Redirector>,
    /// Octets of the gateway's device before the client, and of that before the server.
    doors: [[u8; 6]; 2],
}

impl MiddleHost {
    /// Why it cannot be there, if it cannot.
    pub fn cannot_run(&self) -> Option<Failure> {
        let needs = match self {
            Self::Nothing | Self::Redirector | Self::Kernel => Ok(PathBuf::new()),
            Self::Masquerade | Self::SourcePool => programs::require("nft"),
            Self::Tayga => programs::require("tayga"),
            Self::SharingTayga => programs::require("tayga").and(programs::require("nft")),
            Self::Sixway(_) | Self::Entered(..) => sixway(),
        };
        needs.and(programs::require("clang")).err()
    }

    /// Builds the network and starts it.
    pub fn start(&self) -> Result<Scene> {
        let network = network()?;
        let process = match self {
            Self::Nothing | Self::Redirector | Self::Kernel => None,
            Self::Masquerade => {
                masquerade(&network)?;
                None
            }
            Self::SourcePool => {
                source_pool(&network)?;
                None
            }
            Self::Tayga => Some(run_tayga(&network)?),
            Self::SharingTayga => Some(run_sharing_tayga(&network)?),
            Self::Sixway(configuration) => Some(run_sixway(&network, configuration)?),
            Self::Entered(configuration, entry) => {
                let process = run_sixway(&network, configuration)?;
                entry.arrange(&network)?;
                Some(process)
            }
        };
        let object = compile(network.folder())?;
        let (far, device) =
            if matches!(self, Self::Nothing) { ("gateway", "in0") } else { ("server", "up0") };
        let server = Sink::attach(&object, network.host(far)?, device)?;
        let client = Sink::attach(&object, network.host("client")?, "up0")?;
        let onward = match self {
            Self::Redirector => Some(Redirector::attach(&object, network.host("gateway")?, "in0", "out0")?),
            Self::Nothing
            | Self::Kernel
            | Self::Masquerade
            | Self::SourcePool
            | Self::Tayga
            | Self::SharingTayga
            | Self::Sixway(_)
            | Self::Entered(..) => None,
        };
        let doors = [mac(&network, "in0")?, mac(&network, "out0")?];
        Ok(Scene { network, process, object, client, server, _onward: onward, doors })
    }
}

impl Entry {
    /// In place of the routing rules by source.
    fn arrange(self, network: &Network) -> Result<()> {
        let gateway = network.host("gateway")?;
        let rules = gateway.ip("rule show")?;
        let ours = rules
            .lines()
            .filter_map(|line| line.split_once(":\tfrom "))
            .filter(|(_, rule)| !rule.starts_with("all"));
        let mut table = None;
        for (priority, rule) in ours {
            table = rule.split_whitespace().skip_while(|word| *word != "lookup").nth(1);
            gateway.ip(&format!("rule del priority {priority} from {rule}"))?;
        }
        let table = table.ok_or_else(|| Failure::Unexpected(format!("no rule by source: {rules}")))?;
        match self {
            Self::ByDevice => gateway.ip(&format!("rule add iif in0 lookup {table}")).map(drop),
            Self::Redirect => {
                for words in [
                    "qdisc add dev in0 clsact",
                    "filter add dev in0 ingress protocol ip u32 match ip src 192.0.2.8 match ip dst 203.0.113.2 action mirred egress redirect dev sixway0",
                ] {
                    let mut tc = command("tc")?;
                    tc.args(words.split(' '));
                    gateway.run(tc, Duration::from_secs(5))?.succeeded()?;
                }
                Ok(())
            }
        }
    }
}

impl Scene {
    /// The link-layer address of the gateway as `from` sees it.
    pub fn door(&self, from: &str) -> [u8; 6] {
        self.doors[usize::from(from != "client")]
    }
}

fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    for ((a, here), (b, there)) in
        [(("client", "up0"), ("gateway", "in0")), (("gateway", "out0"), ("server", "up0"))]
    {
        let peer = network.host(b)?.name();
        let one = "numtxqueues 1 numrxqueues 1";
        network
            .host(a)?
            .ip(&format!("link add {here} {one} type veth peer name {there} {one} netns {peer}"))?;
        network.host(a)?.ip(&format!("link set {here} up"))?;
        network.host(b)?.ip(&format!("link set {there} up"))?;
    }
    for (host, device, address) in [
        ("client", "up0", "2001:db8:1::2/64"),
        ("client", "up0", "192.0.2.8/24"),
        ("gateway", "in0", "2001:db8:1::1/64"),
        ("gateway", "in0", "192.0.2.1/24"),
        ("gateway", "out0", "2001:db8:2::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("server", "up0", "2001:db8:2::2/64"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("client", "default via 2001:db8:1::1"),
        ("client", "default via 192.0.2.1"),
        ("server", "default via 2001:db8:2::1"),
        ("server", "default via 203.0.113.1"),
        ("gateway", "2001:db8:c::/64 via 2001:db8:1::2"),
        ("gateway", "10.0.0.0/16 via 192.0.2.8"),
    ] {
        network.route(host, route)?;
    }
    network.forwards("gateway")?;
    takes_frames(&network, "in0")?;
    takes_frames(&network, "out0")?;
    Ok(network)
}

/// A veth device takes frames from a driver only if it has a program or joins packets (GRO), which cards do by default.
fn takes_frames(network: &Network, device: &str) -> Result<()> {
    let mut ethtool = command("ethtool")?;
    ethtool.args(["-K", device, "gro", "on"]);
    network.host("gateway")?.run(ethtool, Duration::from_secs(5))?.succeeded().map(drop)
}

fn mac(network: &Network, device: &str) -> Result<[u8; 6]> {
    let said = network.host("gateway")?.ip(&format!("-o link show {device}"))?;
    let strange = || Failure::Unexpected(format!("ip shows no link-layer address of {device}: {said}"));
    let text = said.split("link/ether ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let octets: Option<Vec<u8>> =
        text.map(|text| text.split(':').filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect());
    octets.and_then(|octets| octets.try_into().ok()).ok_or_else(strange)
}
