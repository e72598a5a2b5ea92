//! The engine's interface to both ends.

use super::binding_table::{Binding, BindingFault, BindingProbe, BindingTable};
use super::concentrator::{Concentrator, ConcentratorConfig};
use super::host_end::{HostEnd, HostEndConfig};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{self, Arrival, Build, BuildContext, Claims, Mechanism};
use crate::parse::Packet;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::{self, TunnelEnds};
use crate::verdict::{Decision, PolicyId};
use alloc::vec;
use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// Which end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The concentrator.
    Concentrator(ConcentratorConfig),
    /// A host's.
    Host(HostEndConfig),
}

/// Configuration of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FourOverSixConfig {
    /// Which end.
    pub role: Role,
    /// Options of the tunnel.
    pub policy: TunnelPolicy,
}

enum State {
    Concentrator(Box<Concentrator>),
    Host(HostEnd),
}

/// One end.
pub struct FourOverSix {
    state: State,
}

impl FourOverSix {
    /// The bindings of a concentrator; `None` at a host's end.
    pub const fn bindings(&self) -> Option<&BindingTable> {
        match &self.state {
            State::Concentrator(concentrator) => Some(&concentrator.bindings),
            State::Host(_) => None,
        }
    }

    /// Makes a binding of a concentrator.
    ///
    /// # Errors
    /// Another host has the address, or the table is full; a host's end has no table.
    pub fn bind(&mut self, binding: Binding) -> Result<(), BindingFault> {
        match &mut self.state {
            State::Concentrator(concentrator) => concentrator.bindings.insert(binding),
            State::Host(_) => Err(BindingFault::Full),
        }
    }

    /// Ends a binding of a concentrator. Returns whether there was one.
    pub fn unbind(&mut self, ipv4: Prefix4) -> bool {
        match &mut self.state {
            State::Concentrator(concentrator) => concentrator.bindings.remove(ipv4).is_some(),
            State::Host(_) => false,
        }
    }
}

impl contract::Configured for FourOverSixConfig {
    fn claims(&self) -> Claims {
        let destinations4 = match &self.role {
            Role::Concentrator(concentrator) => concentrator.lent.clone(),
            Role::Host(host) => host.prefixes.clone(),
        };
        Claims { destinations4, ..Claims::default() }
    }

    fn tunnel_policy(&self) -> TunnelPolicy {
        self.policy
    }

    fn ends(&self) -> Option<TunnelEnds> {
        match &self.role {
            Role::Concentrator(_) => None,
            Role::Host(host) => Some(TunnelEnds {
                local: IpAddr::V6(host.local),
                remote: Some(IpAddr::V6(host.concentrator)),
                takes_v4: true,
                takes_v6: false,
            }),
        }
    }

    fn concentrator(&self) -> Option<ends::Concentrator> {
        match &self.role {
            Role::Concentrator(config) => Some(ends::Concentrator {
                locals: config.addresses.clone(),
                // Anyone may have a binding, by a static lease or by Kea's.
                clients: vec![Prefix6::holding(Ipv6Addr::UNSPECIFIED, 0)],
                most: config.max_bindings,
                subscriber_bits: config.client_bits,
            }),
            Role::Host(_) => None,
        }
    }
}

impl Build for FourOverSixConfig {
    type State = FourOverSix;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<FourOverSix, Infallible> {
        let state = match &self.role {
            Role::Concentrator(config) => {
                let seed = context.seed[0] ^ context.seed[1];
                State::Concentrator(Box::new(Concentrator::new(config, policy, seed)))
            }
            Role::Host(config) => State::Host(HostEnd::new(config, policy)),
        };
        Ok(FourOverSix { state })
    }
}

impl Mechanism for FourOverSix {
    const KIND: Kind = Kind::FourOverSix;
    const COUNTS_HOP: bool = false;
    const STAGES: usize = 1;
    type Probe = BindingProbe;
    const NO_PROBE: BindingProbe = BindingProbe::NONE;

    #[inline(always)]
    fn prepare(&self, packet: &Packet, inner: Option<&Packet>, probe: &mut BindingProbe) {
        if let State::Concentrator(concentrator) = &self.state {
            *probe = concentrator.begin(packet, inner);
        }
    }

    #[inline(always)]
    fn warm(&self, _stage: usize, probe: &mut BindingProbe) {
        if let State::Concentrator(concentrator) = &self.state {
            concentrator.bindings.advance(probe);
        }
    }

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &BindingProbe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match (&mut self.state, arrival.inner) {
            (State::Concentrator(concentrator), None) => concentrator.enter(arrival.packet, probe, effects),
            (State::Concentrator(concentrator), Some(inner)) => {
                concentrator.leave(arrival.packet, inner, probe)
            }
            (State::Host(host), None) => host.enter(arrival.packet, now, effects),
            (State::Host(host), Some(inner)) => host.leave(arrival.packet, inner, now),
        }
    }

    fn carries_to(&self, destination: IpAddr) -> bool {
        match (&self.state, destination) {
            (State::Host(host), IpAddr::V4(destination)) => host.carries_to(destination),
            (State::Concentrator(_), _) | (State::Host(_), IpAddr::V6(_)) => false,
        }
    }

    fn sends_to(&self, destination: Ipv4Addr, client: Ipv6Addr) -> bool {
        match &self.state {
            State::Concentrator(concentrator) => concentrator.sends(destination, client),
            State::Host(_) => false,
        }
    }

    fn may_hold(&self, packet: &Packet) -> Result<(), DropReason> {
        match &self.state {
            State::Concentrator(concentrator) => concentrator.may_hold(packet),
            State::Host(_) => Ok(()),
        }
    }
}
