//! The effects of a mechanism in addition to its decision: counters, packets that it generates, and what a
//! decision refers to.

use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::{Frame, Offload, Realm};
use crate::verdict::{Outer, OuterIndex, PolicyId, Quoted, QuotedIndex, TcpRewrite};
use arrayvec::ArrayVec;
use sixway_wire::Endpoint4;

/// Outer headers of a stride, and quoted packets: one for each of its packets.
const SCRATCH: usize = 64;

/// Maximum number of generated packets that wait to be sent; further ones are lost.
const MAX_GENERATED: usize = 256;

/// A packet that the gateway generates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generated {
    /// A probe of a silent connection, for a host behind the device of this realm.
    Probe(Realm, Box<[u8]>),
    /// An ICMP error about a held packet that was dropped for this reason and is counted already. Its octets may be truncated.
    Answer(DropReason, Box<[u8]>),
    /// A datagram of the gateway's own, from the first to the second endpoint: the payload of UDP.
    Datagram(Endpoint4, Endpoint4, Box<[u8]>),
    /// A packet that a tunnel held, which goes behind this outer header now.
    Released(HeldPacket, Outer, PolicyId),
}

/// A packet that a mechanism stored, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPacket {
    /// Its octets.
    pub octets: Box<[u8]>,
    /// Segmentation and checksum state.
    pub offload: Offload,
}

impl HeldPacket {
    /// A copy of a frame's packet.
    pub fn of(frame: &Frame) -> Self {
        Self { octets: frame.bytes().into(), offload: frame.offload }
    }
}

/// The effects of mechanisms.
#[derive(Debug, Default)]
pub struct Effects {
    /// The counters.
    pub counters: Counters,
    outers: ArrayVec<Outer, SCRATCH>,
    quoted: ArrayVec<Quoted, SCRATCH>,
    generated: Vec<Generated>,
    rewrite: Option<TcpRewrite>,
}

impl Effects {
    /// A new stride begins: forgets what earlier decisions refer to.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.outers.clear();
        self.quoted.clear();
    }

    /// Keeps an outer header for a decision. Each packet of a stride has room for one, and so has each pass of a packet that is processed alone;
    /// beyond that the last one is overwritten.
    #[inline(always)]
    pub fn outer(&mut self, outer: Outer) -> OuterIndex {
        if self.outers.is_full() {
            self.outers.clear();
        }
        self.outers.push(outer);
        OuterIndex((self.outers.len() - 1) as u8)
    }

    /// Keeps the endpoints of a quoted packet for a decision.
    pub fn quoted(&mut self, quoted: Quoted) -> QuotedIndex {
        if self.quoted.is_full() {
            self.quoted.clear();
        }
        self.quoted.push(quoted);
        QuotedIndex((self.quoted.len() - 1) as u8)
    }

    /// The outer header of a decision.
    #[inline(always)]
    pub fn outer_at(&self, index: OuterIndex) -> Option<&Outer> {
        self.outers.get(usize::from(index.0))
    }

    /// The same, to write another source.
    pub fn outer_at_mut(&mut self, index: OuterIndex) -> Option<&mut Outer> {
        self.outers.get_mut(usize::from(index.0))
    }

    /// The endpoints of a decision's quoted packet.
    pub fn quoted_at(&self, index: QuotedIndex) -> Option<Quoted> {
        self.quoted.get(usize::from(index.0)).copied()
    }

    /// Keeps what changes in the TCP segment of the packet that is decided on, whose result goes to [`crate::verdict::Next::Rewritten`].
    pub fn rewrite(&mut self, rewrite: TcpRewrite) {
        self.rewrite = Some(rewrite);
    }

    /// What changes in the TCP segment of the packet that was decided on last, once.
    pub const fn take_rewrite(&mut self) -> Option<TcpRewrite> {
        self.rewrite.take()
    }

    /// Queues a generated packet, if there is room.
    #[cold]
    pub fn send(&mut self, generated: Generated) {
        if self.has_room() {
            self.generated.push(generated);
        }
    }

    /// Whether there is room for a generated packet.
    pub const fn has_room(&self) -> bool {
        self.generated.len() < MAX_GENERATED
    }

    /// Whether generated packets wait to be sent.
    #[inline(always)]
    pub fn has_generated(&self) -> bool {
        !self.generated.is_empty()
    }

    /// The generated packets that wait to be sent.
    pub fn take_generated(&mut self) -> Vec<Generated> {
        core::mem::take(&mut self.generated)
    }
}
