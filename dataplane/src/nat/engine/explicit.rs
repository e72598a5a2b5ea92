//! Explicit bindings made and released, and sessions that are opened by request (RFC 6887 §11.3, §12.3).

use super::{Engine, Mechanism};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::binding_kind::BindingKind;
use crate::nat::companion_ports::Found;
use crate::nat::explicit_binding::{BoundEndpoint, ExplicitBinding, NotBound, WantedOutside};
use crate::nat::inside_key::InsideKey;
use crate::nat::protocol::NatProtocol;
use crate::nat::session_state::SessionState;
use crate::nat::sides::{Inside, Outside};
use sixway_wire::Endpoint4;

impl<I: InsideKey> Engine<I> {
    /// Keeps the binding of an inside endpoint until it is released; makes one if it has no binding.
    ///
    /// # Errors
    /// Why the requested binding cannot be made; then nothing has changed.
    pub fn keep_explicit(
        &mut self,
        binding: &ExplicitBinding<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        self.keep((binding, true), now, counters)
    }

    /// The same for one whose endpoint only the remote hosts know that its filters admit: when it ends its port needs no quarantine (RFC 6888 REQ-8 B).
    ///
    /// # Errors
    /// Why the requested binding cannot be made; then nothing has changed.
    pub(crate) fn keep_expected(
        &mut self,
        binding: &ExplicitBinding<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        self.keep((binding, false), now, counters)
    }

    fn keep(
        &mut self,
        (binding, is_published): (&ExplicitBinding<I>, bool),
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        self.clock.set(now);
        let ExplicitBinding { protocol, inside, wanted, .. } = *binding;
        let slot = match self.tables.bindings.find_inside(protocol, inside) {
            Some(slot) => {
                let outside = self.tables.bindings.get(slot).outside.0;
                let is_other = wanted.port != 0 && wanted.port != outside.port
                    || wanted.address.is_some_and(|address| address != outside.address);
                if wanted.exactly && is_other {
                    return Err(NotBound::OutsideInUse);
                }
                slot
            }
            None => self.bind_as_wanted(protocol, inside, wanted, counters)?,
        };
        self.tables.keep_explicit(slot, &binding.filters, is_published);
        let bound = self.bound(slot);
        self.tables.bindings.release_companion(protocol, bound.outside);
        Ok(bound)
    }

    /// The same, and keeps the port of the same number of the other protocol for the host (RFC 6886 §3.3), as long as the binding is kept so. A
    /// new binding has a port whose companion no other host has.
    ///
    /// # Errors
    /// As for [`Engine::keep_explicit`].
    pub fn keep_with_companion(
        &mut self,
        binding: &ExplicitBinding<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound> {
        let ExplicitBinding { protocol, inside, mut wanted, .. } = *binding;
        let exactly = wanted.exactly;
        if self.tables.bindings.find_inside(protocol, inside).is_none() {
            let outside = self.wanted_endpoint(inside, wanted);
            let outside = outside.filter(|outside| !self.ownership.is_static(protocol, *outside));
            match self.tables.bindings.endpoint_with_companion(protocol, inside, (outside, exactly)) {
                Found::Both(Outside(Endpoint4 { address, port })) => {
                    wanted = WantedOutside { address: Some(address), port, exactly: true };
                }
                Found::NoCompanion if exactly => return Err(NotBound::OutsideInUse),
                Found::NoCompanion => return Err(NotBound::Full),
                // One in quarantine may be given early.
                Found::NoPort => {}
            }
        }
        let bound = self.keep_explicit(&ExplicitBinding { wanted, ..binding.clone() }, now, counters);
        let bound = bound.map_err(|reason| match reason {
            NotBound::OutsideInUse if !exactly => NotBound::Full,
            reason => reason,
        })?;
        if let Some(slot) = self.tables.bindings.find_inside(protocol, inside) {
            self.tables.bindings.keep_companion(slot);
        }
        Ok(bound)
    }

    /// Whether the administrator made a binding of a host.
    pub(crate) fn has_static(&self, protocol: NatProtocol, host: I::Host) -> bool {
        self.ownership.statics(protocol).any(|outside| {
            let slot = self.tables.bindings.find_outside(protocol, outside);
            slot.is_some_and(|slot| self.tables.bindings.get(slot).inside.0.host() == host)
        })
    }

    /// Makes a dynamic binding: with the requested outside endpoint if it is free, else with another one if that is allowed.
    fn bind_as_wanted(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        wanted: WantedOutside,
        counters: &mut Counters,
    ) -> Result<u32, NotBound> {
        let outside = self.wanted_endpoint(inside, wanted);
        let outside = outside.filter(|outside| !self.ownership.is_static(protocol, *outside));
        if outside.is_none() && wanted.exactly {
            return Err(NotBound::OutsideInUse);
        }
        let bound =
            self.tables.bind_by_request(protocol, inside, (outside, wanted.exactly), self.clock, counters);
        bound.map_err(|reason| match reason {
            DropReason::SubscriberLimit | DropReason::SubscriberShare => NotBound::SubscriberLimit,
            _ if wanted.exactly => NotBound::OutsideInUse,
            _ => NotBound::Full,
        })
    }

    /// The outside endpoint that is wanted, where it is one that the host may have: all its bindings have one address (RFC 4787 REQ-2).
    fn wanted_endpoint(&self, inside: Inside<I>, wanted: WantedOutside) -> Option<Outside<Endpoint4>> {
        let pool = self.tables.bindings.pool();
        let paired = self.paired_address(inside.0.host()).or_else(|| pool.only_address());
        let address = match (paired, wanted.address) {
            (Some(paired), None) => paired,
            (Some(paired), Some(address)) if address != paired => return None,
            (_, address) => address?,
        };
        let is_given = wanted.port != 0 && pool.contains(address);
        is_given.then_some(Outside(Endpoint4::new(address, wanted.port)))
    }

    /// The outside address that the bindings of a host have, or the only one that they can have.
    pub fn outside_address(&self, host: I::Host) -> Option<core::net::Ipv4Addr> {
        self.paired_address(host).or_else(|| self.tables.bindings.pool().only_address())
    }

    /// Releases the explicit binding of an inside endpoint; sessions keep it as they keep any other. Seconds for which they do if no packet comes;
    /// `None`: there is no such binding.
    pub fn release_explicit(
        &mut self,
        protocol: NatProtocol,
        inside: Inside<I>,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32> {
        self.clock.set(now);
        let slot = self.tables.bindings.find_inside(protocol, inside)?;
        if !self.tables.bindings.get(slot).is_explicit() {
            return None;
        }
        let used_for = self.tables.used_for(slot, self.clock);
        self.tables.release_explicit(slot, self.clock, counters);
        Some(used_for)
    }

    /// The binding of an inside endpoint.
    pub fn bound_endpoint(&self, protocol: NatProtocol, inside: Inside<I>) -> Option<BoundEndpoint> {
        self.tables.bindings.find_inside(protocol, inside).map(|slot| self.bound(slot))
    }

    fn bound(&self, slot: u32) -> BoundEndpoint {
        let binding = self.tables.bindings.get(slot);
        BoundEndpoint {
            outside: binding.outside,
            is_static: binding.kind() == BindingKind::Static,
            is_explicit: binding.is_explicit(),
            used_for: self.tables.used_for(slot, self.clock),
        }
    }

    /// Opens a session as a packet from inside would, or finds the one that there is. Its outside endpoint, and for how many seconds it lives if no
    /// packet comes. A binding that exists keeps its outside endpoint; else a wanted one is given or none.
    ///
    /// # Errors
    /// Why the session cannot be made; then nothing has changed.
    pub fn open_by_request<M: Mechanism<I>>(
        &mut self,
        (protocol, inside, remote): (NatProtocol, Inside<I>, Endpoint4),
        wanted: WantedOutside,
        mechanism: &M,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(Outside<Endpoint4>, u32), NotBound> {
        self.clock.set(now);
        if let Some(slot) = self.tables.sessions.find_inside(inside, remote, protocol)
            && self.tables.settle(slot, self.clock, counters)
        {
            return Ok(self.session_lives(slot));
        }
        mechanism.may_go_out(inside, remote.address).map_err(|_| NotBound::RemoteRefused)?;
        let is_wanted = wanted.port != 0 || wanted.address.is_some();
        let is_new = is_wanted && self.tables.bindings.find_inside(protocol, inside).is_none();
        if is_new {
            let slot =
                self.bind_as_wanted(protocol, inside, WantedOutside { exactly: true, ..wanted }, counters)?;
            // Until the session keeps it.
            self.tables.keep_explicit(slot, &[], true);
        }
        let state = match protocol {
            NatProtocol::Tcp => SessionState::InsideInit,
            NatProtocol::Udp => SessionState::Udp,
            NatProtocol::Icmp => SessionState::Icmp,
        };
        let opened = self.tables.open_from_inside(protocol, inside, (remote, state), self.clock, counters);
        if is_new && let Some(slot) = self.tables.bindings.find_inside(protocol, inside) {
            self.tables.release_explicit(slot, self.clock, counters);
        }
        match opened {
            Ok(slot) => Ok(self.session_lives(slot)),
            Err(DropReason::SubscriberLimit | DropReason::SubscriberShare) => Err(NotBound::SubscriberLimit),
            Err(_) => Err(NotBound::Full),
        }
    }

    fn session_lives(&self, slot: u32) -> (Outside<Endpoint4>, u32) {
        let session = self.tables.present(slot).session;
        (session.outside, self.tables.sessions.closes(&session).saturating_sub(self.clock.floor))
    }
}
