//! A packet of a stride between the steps.

use super::path::Subject;
use crate::classify::Owner;
use crate::parse::Packet;
use crate::verdict::MechanismId;

/// A place for the packet inside another one. Not an option: that would be written twice, once to be some packet.
#[derive(Clone, Copy)]
pub(super) struct Inner {
    packet: Packet,
    is_some: bool,
}

impl Inner {
    pub(super) const NONE: Self = Self { packet: Packet::EMPTY, is_some: false };

    /// It is empty.
    #[inline(always)]
    pub(super) const fn clear(&mut self) {
        self.is_some = false;
    }

    /// There is one, and it is written here.
    #[inline(always)]
    pub(super) const fn place(&mut self) -> &mut Packet {
        self.is_some = true;
        &mut self.packet
    }

    #[inline(always)]
    pub(super) const fn is_none(&self) -> bool {
        !self.is_some
    }

    #[inline(always)]
    pub(super) const fn as_ref(&self) -> Option<&Packet> {
        if self.is_some { Some(&self.packet) } else { None }
    }
}

/// A packet of the stride between the steps.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) packet: Packet,
    /// The packet inside, of one that came through a tunnel.
    pub(super) inner: Inner,
    pub(super) owner: Owner,
    /// It is processed alone: an ICMP error, a fragment, a further pass, a packet for the gateway, or one of a control connection of FTP.
    pub(super) alone: bool,
    /// Position in the stride.
    pub(super) frame: u32,
}

impl Slot {
    pub(super) const EMPTY: Self =
        Self { packet: Packet::EMPTY, inner: Inner::NONE, owner: Owner::Gateway, alone: true, frame: 0 };

    /// The packet, and the state of its lookup.
    #[inline(always)]
    pub(super) fn subject<'a, P>(&'a self, probe: &'a P) -> Subject<'a, P> {
        Subject { packet: &self.packet, inner: self.inner.as_ref(), probe }
    }

    /// Whether the slot continues in the run of a mechanism.
    #[inline(always)]
    pub(super) fn is_of(&self, id: MechanismId) -> bool {
        !self.alone && self.owner == Owner::Mechanism(id)
    }
}
