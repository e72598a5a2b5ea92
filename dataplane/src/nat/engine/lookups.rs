//! The lookups of an application-level gateway in a NAT.

use super::{Engine, Probe};
use crate::nat::inside_key::{InsideKey, Subscriber};
use crate::nat::protocol::NatProtocol;
use crate::nat::sides::{Inside, Outside};
use sixway_wire::Endpoint4;

impl<I> Probe<I> {
    /// The port of the remote endpoint; 0 for ICMP, and any for a packet without five-tuple.
    #[inline(always)]
    pub(crate) const fn remote_port(&self) -> u16 {
        self.remote.port
    }
}

impl<I: InsideKey> Engine<I> {
    /// The inside endpoint of a binding.
    pub(crate) fn inside_of(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> Option<Inside<I>> {
        let slot = self.tables.bindings.find_outside(protocol, outside)?;
        Some(self.tables.bindings.get(slot).inside)
    }

    /// The subscriber of a host.
    pub(crate) fn subscriber_of(&self, host: I::Host) -> Subscriber {
        let bindings = &self.tables.bindings;
        bindings.subscribers.subscriber_of(I::site(host, &bindings.names))
    }

    /// Whether there is a session, be its lifetime over or not.
    pub(crate) fn has_session(
        &self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
    ) -> bool {
        self.tables.sessions.find_outside(outside, remote, protocol).is_some()
    }

    /// TCP sessions with this remote port stay out of the fast path.
    pub(crate) const fn keep_here(&mut self, remote_port: u16) {
        self.tables.kept_here = Some(remote_port);
    }
}
