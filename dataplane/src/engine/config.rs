//! The configuration of an engine.

use crate::fragment::FragmentLimits;
use crate::limits::Limits;
use crate::mechanism::MechanismConfig;
use crate::mechanism::nat44::Nat44Config;
use crate::mechanism::nat64::Nat64Config;
use crate::mechanism::siit::SiitConfig;
use crate::verdict::WorkerId;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Configuration of a tunnel.
pub type TunnelConfig = MechanismConfig;

/// The configuration of an engine.
#[derive(Clone)]
pub struct EngineConfig {
    /// The gateway's own IPv4 address: answers echo requests, and is the source of ICMP errors.
    pub own4: Option<Ipv4Addr>,
    /// The gateway's own IPv6 address.
    pub own6: Option<Ipv6Addr>,
    /// MTUs of the next links.
    pub limits: Limits,
    /// NAT64s.
    pub nat64: Vec<Nat64Config>,
    /// NAT44s. Their pools have no address in common.
    pub nat44: Vec<Nat44Config>,
    /// Stateless translators.
    pub siit: Vec<SiitConfig>,
    /// Mechanisms that need only their row of the table.
    pub others: Vec<MechanismConfig>,
    /// Tunnels: they may change while the engine runs.
    pub tunnels: Vec<TunnelConfig>,
    /// This host's IPv4 addresses: no tunnel's packets go there or come from there, nor do new sessions of NAT64s.
    pub host4: Vec<Ipv4Addr>,
    /// This host's IPv6 addresses: packets from them into a tunnel do not loop.
    pub host6: Vec<Ipv6Addr>,
    /// Whether decapsulated TCP segments and UDP datagrams are joined into GSO packets.
    pub join: bool,
    /// Maximum ICMP errors per second; 0 disables them.
    pub icmp_errors_per_second: u32,
    /// Bounds on held fragments. They apply to tunnel packets, to known remote ends, and to other packets of each family separately.
    pub fragments: FragmentLimits,
    /// Bits of the IPv6 prefix of a sender, if senders have fair shares of an overloaded engine ([`crate::fair_share`]); `None`: they have none, and
    /// [`super::Engine::emptied`] need not be called.
    pub fair_shares: Option<u8>,
    /// Which worker this engine belongs to.
    pub worker: WorkerId,
    /// Number of workers.
    pub workers: u8,
    /// Secret randomness: ports, hashes and identifications follow from it.
    pub seed: [u64; 2],
    /// The secret by which subscribers are spread over the workers. The steering programs and the next process that restores
    /// the sessions use the same.
    pub worker_key: [u64; 2],
}

impl EngineConfig {
    /// All mechanisms, in the order of their policies: those that may change while the engine runs come last.
    pub fn all(&self) -> impl Iterator<Item = MechanismConfig> {
        let nat64 = self.nat64.iter().cloned().map(MechanismConfig::Nat64);
        let siit = self.siit.iter().cloned().map(MechanismConfig::Siit);
        let nat44 = self.nat44.iter().cloned().map(MechanismConfig::Nat44);
        nat64.chain(nat44).chain(siit).chain(self.others.iter().cloned()).chain(self.tunnels.iter().cloned())
    }

    /// The number of mechanisms that do not change.
    pub(super) fn fixed(&self) -> usize {
        self.nat64.len() + self.nat44.len() + self.siit.len() + self.others.len()
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            own4: None,
            own6: None,
            limits: Limits::default(),
            nat64: Vec::new(),
            nat44: Vec::new(),
            siit: Vec::new(),
            others: Vec::new(),
            tunnels: Vec::new(),
            host4: Vec::new(),
            host6: Vec::new(),
            join: true,
            icmp_errors_per_second: 1_000,
            fragments: FragmentLimits::default(),
            fair_shares: None,
            worker: WorkerId(0),
            workers: 1,
            seed: [0, 0],
            worker_key: [0, 0],
        }
    }
}
