//! The part of a session that packets of an established flow do not need: half a cache line.

use super::offload::FlowHandle;
use super::slab::NONE;

/// A session's place in lists, and what is kept of it elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLinks {
    /// Its binding's slot, or [`NONE`]: an inbound SYN to an endpoint that no binding uses.
    pub(super) binding: u32,
    /// Neighbours in its binding's list.
    pub(super) next: u32,
    pub(super) previous: u32,
    /// Slot of its stored SYN, or its entry's number in the fast path.
    elsewhere: u32,
    kept: Kept,
    /// Whether a packet from outside created it, and none from inside has answered it.
    pub(super) from_outside: bool,
    /// Whether its destination is exempt from its subscriber's limits.
    pub(super) is_exempt: bool,
    /// Packets out and in that the session's own counts lack: their carries, and those that went by elsewhere. 48 bits each, of which these are the
    /// lower 32 and the upper 16.
    packets_low: [u32; 2],
    packets_high: [u16; 2],
}

const _: () = assert!(size_of::<SessionLinks>() == 32);

/// What is kept elsewhere. A session whose SYN is stored is not open, so it is not in the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Nothing,
    StoredSyn,
    Flow,
}

impl SessionLinks {
    /// Of a session without a binding.
    pub(super) const fn new(from_outside: bool) -> Self {
        Self {
            binding: NONE,
            next: NONE,
            previous: NONE,
            elsewhere: NONE,
            kept: Kept::Nothing,
            from_outside,
            is_exempt: false,
            packets_low: [0; 2],
            packets_high: [0; 2],
        }
    }

    /// Slot of its stored SYN.
    #[inline]
    pub(super) fn stored(&self) -> Option<u32> {
        (self.kept == Kept::StoredSyn).then_some(self.elsewhere)
    }

    /// Has this stored SYN from now on, or none.
    pub(super) fn set_stored(&mut self, stored: Option<u32>) {
        self.keep(Kept::StoredSyn, stored);
    }

    /// Its entry in the fast path.
    #[inline]
    pub(super) fn flow(&self) -> Option<FlowHandle> {
        (self.kept == Kept::Flow).then_some(FlowHandle(self.elsewhere))
    }

    /// Has this entry from now on, or none.
    pub(super) fn set_flow(&mut self, flow: Option<FlowHandle>) {
        self.keep(Kept::Flow, flow.map(|handle| handle.0));
    }

    fn keep(&mut self, what: Kept, number: Option<u32>) {
        match number {
            Some(number) => (self.kept, self.elsewhere) = (what, number),
            None if self.kept == what => self.kept = Kept::Nothing,
            None => {}
        }
    }

    /// Packets out and in that the session's own counts lack.
    pub(super) fn packets(&self) -> [u64; 2] {
        [0, 1].map(|way| u64::from(self.packets_high[way]) << 32 | u64::from(self.packets_low[way]))
    }

    /// Adds to them in one direction.
    pub(super) fn add_packets(&mut self, way: usize, packets: u64) {
        let sum = self.packets()[way].wrapping_add(packets);
        (self.packets_low[way], self.packets_high[way]) = (sum as u32, (sum >> 32) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_in_48_bits_for_each_direction() {
        let mut links = SessionLinks::new(false);
        links.add_packets(0, u64::from(u32::MAX));
        links.add_packets(0, 1);
        links.add_packets(1, 7);
        assert_eq!(links.packets(), [1 << 32, 7]);
        links.add_packets(1, (1 << 48) - 1);
        assert_eq!(links.packets(), [1 << 32, 6]);
    }

    #[test]
    fn a_stored_syn_and_an_entry_are_told_apart() {
        let mut links = SessionLinks::new(true);
        assert_eq!((links.stored(), links.flow()), (None, None));
        links.set_stored(Some(3));
        assert_eq!((links.stored(), links.flow()), (Some(3), None));
        links.set_flow(None);
        assert_eq!(links.stored(), Some(3));
        links.set_stored(None);
        links.set_flow(Some(FlowHandle(4)));
        assert_eq!((links.stored(), links.flow()), (None, Some(FlowHandle(4))));
        links.set_stored(None);
        assert_eq!(links.flow(), Some(FlowHandle(4)));
        links.set_flow(None);
        assert_eq!((links.stored(), links.flow()), (None, None));
    }
}
