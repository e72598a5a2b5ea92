//! The kind, protocol and state of a binding, in four octets: with them a binding fills half a cache line.

use super::binding_kind::BindingKind;
use super::pool::{MOST_OPEN, PoolSlot};
use super::protocol::NatProtocol;

/// ```text
///     | address's slot, 24 bits | 0 | was published | is explicit | is ending | kind, 2 bits | protocol, 2 bits |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BindingMarks([u8; 4]);

const _: () = assert!(MOST_OPEN == 1 << 24);

const ENDING: u8 = 1 << 4;
const EXPLICIT: u8 = 1 << 5;
const WAS_PUBLISHED: u8 = 1 << 6;

impl BindingMarks {
    /// Of a binding that is not ending.
    pub(super) const fn new(protocol: NatProtocol, kind: BindingKind, slot: PoolSlot) -> Self {
        let [a, b, c, _] = slot.0.to_le_bytes();
        Self([a, b, c, (kind as u8) << 2 | protocol as u8])
    }

    /// Its protocol.
    #[inline]
    pub(super) const fn protocol(self) -> NatProtocol {
        match self.0[3] & 3 {
            0 => NatProtocol::Tcp,
            1 => NatProtocol::Udp,
            _ => NatProtocol::Icmp,
        }
    }

    /// Its origin.
    #[inline]
    pub(super) const fn kind(self) -> BindingKind {
        match self.0[3] >> 2 & 3 {
            0 => BindingKind::Free,
            1 => BindingKind::Dynamic,
            _ => BindingKind::Static,
        }
    }

    /// Its slot holds no binding from now on.
    pub(super) const fn set_free(&mut self) {
        self.0[3] &= !(3 << 2);
    }

    /// Number of its outside address.
    #[inline]
    pub(super) const fn pool_slot(self) -> PoolSlot {
        let [a, b, c, _] = self.0;
        PoolSlot(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Sets whether it is ending. Whether it was.
    pub(super) const fn set_ending(&mut self, is_ending: bool) -> bool {
        let was_ending = self.0[3] & ENDING != 0;
        self.0[3] = if is_ending { self.0[3] | ENDING } else { self.0[3] & !ENDING };
        was_ending
    }

    /// Sets whether it is kept by request. Whether it was.
    pub(super) const fn set_explicit(&mut self, is_explicit: bool) -> bool {
        let was_explicit = self.is_explicit();
        self.0[3] = if is_explicit { self.0[3] | EXPLICIT } else { self.0[3] & !EXPLICIT };
        was_explicit
    }

    /// Whether it is kept by request.
    #[inline]
    pub(super) const fn is_explicit(self) -> bool {
        self.0[3] & EXPLICIT != 0
    }

    /// Any remote host may know its outside endpoint.
    pub(super) const fn set_published(&mut self) {
        self.0[3] |= WAS_PUBLISHED;
    }

    /// Whether any remote host may know it.
    pub(super) const fn was_published(self) -> bool {
        self.0[3] & WAS_PUBLISHED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_kept_whatever_the_others_are() {
        for protocol in NatProtocol::ALL {
            for kind in [BindingKind::Free, BindingKind::Dynamic, BindingKind::Static] {
                for slot in [0, 1, 0x0102_0304 & (MOST_OPEN - 1), MOST_OPEN - 1] {
                    let mut marks = BindingMarks::new(protocol, kind, PoolSlot(slot));
                    assert!(!marks.set_ending(true));
                    assert!(marks.set_ending(true));
                    assert_eq!((marks.protocol(), marks.kind()), (protocol, kind));
                    assert_eq!(marks.pool_slot(), PoolSlot(slot));
                    assert!(marks.set_ending(false));
                    assert!(!marks.set_explicit(true) && marks.is_explicit());
                    assert_eq!((marks.protocol(), marks.kind()), (protocol, kind));
                    assert_eq!(marks.pool_slot(), PoolSlot(slot));
                    assert!(marks.set_explicit(false) && !marks.is_explicit() && !marks.was_published());
                    marks.set_published();
                    assert!(marks.was_published() && !marks.is_explicit());
                    assert_eq!((marks.protocol(), marks.kind()), (protocol, kind));
                    assert_eq!(marks.pool_slot(), PoolSlot(slot));
                    marks = BindingMarks::new(protocol, kind, PoolSlot(slot));
                    assert_eq!(marks, BindingMarks::new(protocol, kind, PoolSlot(slot)));
                    marks.set_free();
                    assert_eq!((marks.protocol(), marks.kind()), (protocol, BindingKind::Free));
                    assert_eq!(marks.pool_slot(), PoolSlot(slot));
                }
            }
        }
    }
}
