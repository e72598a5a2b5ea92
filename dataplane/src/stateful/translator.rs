//! A stateful translator: one worker's share of it.

use super::assistance::Assistance;
use super::without_ports::WithoutPorts;
use crate::alg::CONTROL_PORT;
use crate::identity::Identity;
use crate::nat::{self, AddressesInUse, Engine, InsideKey, Mechanism, Occupancy, Ownership};
use crate::tunnel::ends::Ends4;
use crate::verdict::{Next, WorkerId};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The part of a translator in addition to its NAT: the addresses that it admits, and its edits.
pub trait AddressPolicy<I: InsideKey>: Mechanism<I> {
    /// Its identity, for flows and sessions that outlive this process. Translators with one identity have no address of a pool in common.
    fn identity(&self) -> Identity;

    /// Whether the host may have static bindings.
    fn is_host(&self, _host: I::Host) -> bool {
        true
    }

    /// Whether the site is one of the translator's, for static bindings and for sessions of another process.
    fn takes_site(&self, _site: I::Site) -> bool {
        true
    }

    /// The local end of the softwire that an inside endpoint is behind.
    fn local_end(&self, _inside: I, _names: &I::Names) -> Option<Ipv6Addr> {
        None
    }

    /// Packets to an inside endpoint leave from this local end of its softwire, if there is such an end.
    fn set_local_end(&self, _inside: I, _local: Ipv6Addr, _names: &mut I::Names) {}

    /// This host's IPv4 addresses from now on: no new session leads to one, except to those that the configuration allows.
    fn set_host4(&mut self, host4: &[Ipv4Addr]);

    /// The local ends of this gateway's tunnels from now on.
    fn set_tunnel_ends(&mut self, _ends: &Ends4) {}

    /// Its part for protocols without ports.
    type WithoutPorts: WithoutPorts;
}

/// A stateful translator.
pub struct Translator<I: InsideKey, P: AddressPolicy<I>> {
    pub(crate) rules: P,
    pub(crate) nat: Engine<I>,
    pub(crate) without_ports: P::WithoutPorts,
    /// The application-level gateway of a translator that has one.
    pub(crate) assistance: Assistance<I>,
    /// Hosts with static bindings, and how many each has: they may be outside of `inside`.
    pub(super) static_hosts: BTreeMap<I::Host, u32>,
}

impl<I: InsideKey, P: AddressPolicy<I>> Translator<I, P> {
    /// The share of `worker`, of `workers`. Static bindings that cannot be created are left out.
    pub(crate) fn with_rules(
        (rules, without_ports): (P, P::WithoutPorts),
        config: &nat::Config<I>,
        worker: (WorkerId, u8),
        seed: [u64; 2],
        worker_key: [u64; 2],
    ) -> Self {
        let nat = Engine::new(config, worker, seed, worker_key);
        let assistance = Assistance::off();
        let mut translator = Self { rules, nat, without_ports, assistance, static_hosts: BTreeMap::new() };
        config.static_bindings.iter().for_each(|binding| translator.note_static(binding.inside.0.host()));
        translator
    }

    /// Step two of a packet's lookup: the session's line; of a packet without session, what its binding is looked up by.
    #[inline]
    pub fn warm(&self, probe: &mut nat::Probe<I>) {
        self.nat.warm(probe);
    }

    /// Whether a host is one that the translator serves, and this worker's.
    pub(super) fn is_own_host(&self, named: nat::Named) -> Result<(), nat::NotBound> {
        let site = I::site_of(named.site()).filter(|site| self.rules.takes_site(*site));
        let elsewhere = I::of_elsewhere(named).filter(|inside| self.rules.is_host(inside.host()));
        let (Some(site), Some(_)) = (site, elsewhere) else { return Err(nat::NotBound::NotInside) };
        let owner = self.ownership().worker_of_inside(site);
        if self.nat.is_worker(owner) { Ok(()) } else { Err(nat::NotBound::OtherWorker) }
    }

    /// An explicit binding of one of this worker's hosts.
    pub(super) fn wanted(
        &mut self,
        binding: &nat::ExplicitBinding,
    ) -> Result<nat::ExplicitBinding<I>, nat::NotBound> {
        let named = nat::Named { softwire: binding.softwire, inside: binding.inside };
        self.is_own_host(named)?;
        let inside = I::of_named(named, self.nat.names_mut()).ok_or(nat::NotBound::Full)?;
        Ok(nat::ExplicitBinding {
            protocol: binding.protocol,
            softwire: None,
            inside: nat::Inside(inside),
            wanted: binding.wanted,
            filters: binding.filters.clone(),
        })
    }

    /// An explicit binding was made: it is the host's by request from now on, and not a data connection's that is waited for.
    pub(super) fn is_requested(&mut self, binding: &nat::ExplicitBinding<I>) {
        if binding.protocol == nat::NatProtocol::Tcp {
            self.assistance.expected.forget(binding.inside);
        }
    }

    /// Reads the control connections of FTP from now on.
    pub(crate) fn assist_ftp(&mut self, seed: [u64; 2]) {
        self.assistance = Assistance::on(seed[0] ^ seed[1]);
        self.nat.keep_here(CONTROL_PORT);
    }

    /// Shares with the other workers which addresses of the pool have bindings.
    pub(crate) fn set_in_use(&mut self, in_use: &Arc<AddressesInUse>) {
        self.nat.set_in_use(in_use);
    }

    /// A host has one more static binding.
    pub(super) fn note_static(&mut self, host: I::Host) {
        *self.static_hosts.entry(host).or_default() += 1;
    }

    /// Whether a host has static bindings.
    pub(crate) fn has_static(&self, host: I::Host) -> bool {
        self.static_hosts.contains_key(&host)
    }

    /// Whether the address belongs to the pool.
    #[inline]
    pub fn owns_outside(&self, address: Ipv4Addr) -> bool {
        self.nat.owns_outside(address)
    }

    /// Which worker owns what.
    pub const fn ownership(&self) -> &Ownership<I::Site> {
        self.nat.ownership()
    }

    /// How full the tables are.
    pub fn occupancy(&self) -> Occupancy {
        self.nat.occupancy()
    }

    /// Memory in octets, reserved room included.
    pub fn memory(&self) -> usize {
        self.nat.memory()
    }

    /// Its identity.
    pub fn identity(&self) -> Identity {
        self.rules.identity()
    }

    /// Where a packet for this IPv4 address goes: a hairpin comes back (RFC 6146 §3.8, RFC 4787 REQ-9).
    pub(crate) fn next(&self, remote: Ipv4Addr) -> Next {
        if self.owns_outside(remote) { Next::Again } else { Next::Leave }
    }
}

/// A host of this kind, of its address as everything outside of the NAT knows it.
pub(super) fn host<I: InsideKey>(address: core::net::Ipv6Addr) -> Option<I::Host> {
    let endpoint = sixway_wire::Endpoint6::new(address, 0);
    I::of_mapped(nat::Inside(endpoint)).map(InsideKey::host)
}
