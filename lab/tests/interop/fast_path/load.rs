//! The load of the tests with faults: 1,000 flows of numbered packets through NAT64, or NAT44.

use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, sent_by_engine, shown, wait_until_moved};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::{run_on_fast_path, run_ready_for, take_over};
use sixway_lab::interrupt;
use sixway_lab::probe::numbered::{Numbered, Plan, StreamReport};
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::SocketAddr;
use std::time::Duration;

/// What every fault meets.
pub const FLOWS: u16 = 1_000;
/// Packets in a second, and as many answers: little, so that what is lost is lost by the fault and not by a busy machine.
pub const PER_SECOND: u32 = 5_000;

/// Sixway's configuration for NAT44 in [`Translator::network`].
pub const NAT44: &str = r#"[tun]
name = "sixway0"
mtu = 1500

[[pool]]
name = "main"
addresses = ["192.0.2.0/28"]
ports = "1024-65535"

[nat44]
inside = ["192.168.0.0/16"]
pool = "main"

[gateway]
ipv4_address = "192.0.2.254"
"#;

/// What is between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translator {
    Nat64,
    Nat44,
}

impl Translator {
    /// Its usual configuration.
    pub const fn configuration(self) -> &'static str {
        match self {
            Self::Nat64 => NAT64,
            Self::Nat44 => NAT44,
        }
    }

    /// The client's address.
    pub const fn client(self) -> &'static str {
        match self {
            Self::Nat64 => "2001:db8:1::2",
            Self::Nat44 => "192.168.1.2",
        }
    }

    /// The server as the client writes it.
    pub const fn server(self) -> &'static str {
        match self {
            Self::Nat64 => "64:ff9b::203.0.113.2",
            Self::Nat44 => "203.0.113.2",
        }
    }

    /// The lab's usual one; the client has an IPv4 address, too, which the server has no route to.
    pub fn network(self) -> Result<Network> {
        let network = client_gateway_server()?;
        if self == Self::Nat44 {
            network.address("client", "up0", "192.168.1.2/24")?;
            network.address("gateway", "in0", "192.168.1.1/24")?;
            network.route("client", "default via 192.168.1.1")?;
            network.host("server")?.ip("route del default")?;
            network.route("server", "192.0.2.0/24 via 203.0.113.1")?;
        }
        Ok(network)
    }
}

/// Client, gateway and server, the gateway with the fast path at this hook.
pub struct Gateway {
    pub network: Network,
    pub process: u32,
    pub hook: Hook,
    pub translator: Translator,
}

impl Gateway {
    /// NAT64 with the lab's usual configuration.
    pub fn start(hook: Hook) -> Result<Self> {
        Self::start_with(Translator::Nat64, hook)
    }

    /// Either translator with its usual configuration.
    pub fn start_with(translator: Translator, hook: Hook) -> Result<Self> {
        let gateway = Self::start_in(translator.network()?, hook, translator.configuration())?;
        Ok(Self { translator, ..gateway })
    }

    pub fn start_in(network: Network, hook: Hook, configuration: &str) -> Result<Self> {
        let process = run_on_fast_path(&network, hook, configuration)?;
        Ok(Self { network, process, hook, translator: Translator::Nat64 })
    }

    /// The same with room for this many flows.
    pub fn start_with_room(network: Network, hook: Hook, configuration: &str, flows: u32) -> Result<Self> {
        let configuration = format!("{configuration}{}", hook.section_with_room(flows));
        let process = run_ready_for(&network, hook, &configuration)?;
        Ok(Self { network, process, hook, translator: Translator::Nat64 })
    }

    /// Starts the gateway again, as it was or with another configuration.
    pub fn start_again(&mut self, configuration: &str) -> Result<()> {
        self.process = run_on_fast_path(&self.network, self.hook, configuration)?;
        Ok(())
    }

    /// A new gateway takes the running one's place.
    pub fn take_over(&mut self, configuration: &str) -> Result<()> {
        self.process = take_over(&self.network, &format!("{configuration}{}", self.hook.section()))?;
        Ok(())
    }

    /// Runs `ip` on the host "gateway".
    pub fn ip(&self, words: &str) -> Result<()> {
        self.network.host("gateway")?.ip(words).map(drop)
    }

    /// The usual load: from the client's first address, begun and with all flows moved to the fast path.
    pub fn load(&self) -> Result<Numbered> {
        let stream = self.stream(self.translator.client(), 53, FLOWS, PER_SECOND, 64)?;
        wait_until_moved(&self.network)?;
        Ok(stream)
    }

    /// Flows of the client's address to a port of the server; just begun.
    pub fn stream(
        &self,
        source: &str,
        port: u16,
        flows: u16,
        per_second: u32,
        octets: usize,
    ) -> Result<Numbered> {
        Numbered::start(&Plan {
            client: self.network.host("client")?,
            source: endpoint(source, 20_000)?,
            server: self.network.host("server")?,
            target: endpoint(self.translator.server(), port)?,
            listens: endpoint("203.0.113.2", port)?,
            flows,
            per_second,
            octets,
        })
    }

    /// What `show fastpath` says, for messages.
    pub fn said(&self) -> String {
        shown(&self.network).map_or_else(|failure| failure.to_string(), |said| said.to_string())
    }

    /// How many packets the engine sends while `work` is done.
    pub fn engine_sends(&self, work: impl FnOnce() -> Result<()>) -> Result<u64> {
        let before = sent_by_engine(&self.network)?;
        work()?;
        Ok(sent_by_engine(&self.network)? - before)
    }
}

pub fn endpoint(address: &str, port: u16) -> Result<SocketAddr> {
    let address = address.parse().map_err(|_| Failure::Unexpected(format!("{address} is not an address")))?;
    Ok(SocketAddr::new(address, port))
}

/// Lets some time pass.
pub fn pause(milliseconds: u64) -> Result<()> {
    interrupt::pause(Duration::from_millis(milliseconds))
}

/// Nothing was lost, nothing came out of its order, and every flow has kept its outside endpoint.
pub fn all_is_well(account: &StreamReport, at_least: usize) -> Result<()> {
    let (lost, reordered) = (account.lost(), account.reordered());
    let moved = account.up.flows_that_moved();
    if lost == [0, 0] && reordered == [0, 0] && moved == 0 && account.sent()[0] >= at_least {
        return Ok(());
    }
    Err(Failure::Unexpected(format!(
        "of {:?} packets up and down {lost:?} were lost within {:?} from {:?}, {reordered:?} came out of order, {moved} flows got another endpoint",
        account.sent(),
        [account.up.outage(), account.down.outage()],
        account.up.missing().first().or(account.down.missing().first()).map(|packet| packet.sent),
    )))
}
