//! The packets that the engine sends in addition to the received frames.

use crate::drop_reason::DropReason;
use crate::frame::{Frame, Ingress};
use crate::verdict::Verdict;
use core::ops::Range;

/// Packets that leave in addition to the frames: fragments, ICMP errors, probes. Bounded; buffers are reused.
pub struct Outbox {
    frames: Vec<Frame>,
    used: usize,
    capacity: usize,
}

impl Outbox {
    /// An outbox for at most `capacity` frames at a time; never more than 65,535, so that [`Frame::pieces`] can number them.
    pub fn new(capacity: usize) -> Self {
        Self { frames: Vec::new(), used: 0, capacity: capacity.min(u16::MAX.into()) }
    }

    /// A fresh frame at the end with room for a packet of `length` octets, or [`DropReason::OutboxFull`].
    pub fn push(&mut self, length: usize) -> Result<&mut Frame, DropReason> {
        if self.used == self.capacity {
            return Err(DropReason::OutboxFull);
        }
        if self.used == self.frames.len() {
            self.frames.push(Frame::with_capacity(length.max(2_048)));
        }
        let frame = &mut self.frames[self.used];
        if frame.space().len() < length {
            *frame = Frame::with_capacity(length);
        }
        frame.received(length, Default::default());
        (frame.verdict, frame.ingress) = (Verdict::Forward, Ingress::default());
        self.used += 1;
        Ok(&mut self.frames[self.used - 1])
    }

    /// How many more frames fit.
    pub fn room(&self) -> usize {
        self.capacity - self.used
    }

    /// Removes the frames pushed since the outbox held `length` of them: the packet that they belong to was refused.
    pub fn shorten(&mut self, length: usize) {
        self.used = self.used.min(length);
    }

    /// The numbers of the frames pushed since the outbox held `length` of them: what becomes a frame's [`Frame::pieces`].
    pub fn since(&self, length: usize) -> Range<u16> {
        length as u16..self.used as u16
    }

    /// The frames to send, in order.
    pub fn frames(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.used]
    }

    /// The frames pushed since the outbox held `length` of them leave by the device of this one.
    pub fn follow(&mut self, leader: &Frame, length: usize) {
        self.frames.iter_mut().take(self.used).skip(length).for_each(|one| one.ingress = leader.ingress);
    }

    /// How many frames wait.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets the frames; their buffers are kept for reuse.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}
