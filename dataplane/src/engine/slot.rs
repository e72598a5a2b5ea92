//! A packet of a stride between the steps.

use super::path::Subject;
use crate::classify::Owner;
use crate::parse::Packet;
use crate::verdict::MechanismId;

/// A packet of the stride between the steps.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) packet: Packet,
    /// The packet inside, of one that came through a tunnel.
    pub(super) inner: Option<Packet>,
    pub(super) owner: Owner,
    /// It is processed alone: an ICMP error, a fragment, a further pass, or a packet for the gateway.
    pub(super) alone: bool,
    /// Position in the stride.
    pub(super) frame: u32,
}

impl Slot {
    pub(super) const EMPTY: Self =
        Self { packet: Packet::EMPTY, inner: None, owner: Owner::Gateway, alone: true, frame: 0 };

    /// The packet, and the state of its lookup.
    #[inline(always)]
    pub(super) fn subject<'a, P>(&'a self, probe: &'a P) -> Subject<'a, P> {
        Subject { packet: &self.packet, inner: self.inner.as_ref(), probe }
    }

    /// Whether the slot goes on with the run of a mechanism.
    #[inline(always)]
    pub(super) fn is_of(&self, id: MechanismId) -> bool {
        !self.alone && self.owner == Owner::Mechanism(id)
    }
}
