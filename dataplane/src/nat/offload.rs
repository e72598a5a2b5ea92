//! Flows that the kernel forwards without the engine: the interface between the engine and a fast path.
//!
//! The engine decides; the fast path repeats the decision. An entry is a session of a stateful translator, with one half for each direction.
//! An entry is armed first: its packets still come to the engine, and each leaves a [`mark`]. When the last packet that the engine has sent is
//! the last that left its mark, no packet is in flight, and the half becomes active. So the packets of a flow are never reordered.
//!
//! A TCP session whose SYN came from inside may have a half-open entry before, which forwards the SYN/ACK alone.

use crate::direction::Direction;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::{Inside, NatProtocol, Outside};
use sixway_wire::{Endpoint4, Endpoint6};

/// The session of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadedFlow {
    /// The stateful translator.
    pub mechanism: Identity,
    /// Of ICMP echo messages, inside and outside have the identifier as their port, and the remote endpoint has none.
    pub protocol: NatProtocol,
    /// Inside endpoint.
    pub inside: Inside<Endpoint6>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// The remote endpoint.
    pub remote: Endpoint4,
}

/// Identifies an entry until it is removed; below `u32::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowHandle(pub u32);

/// The traffic of an entry's half since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfUsage {
    /// Packets forwarded by the fast path, a GSO packet's segments each.
    pub packets: u64,
    /// Octets of IP packets as they came.
    pub octets: u64,
    /// When the last one passed. Some fast paths also report here when the entry was created, or the time of the last
    /// [`FastPath::touch`]. `None`: no packet.
    pub last: Option<Instant>,
}

/// Both halves: [`Direction::Out`] first.
pub type Usage = [HalfUsage; 2];

/// A fast path, as a worker's engine sees it. Its methods are called between packets and must not block.
pub trait FastPath: Send {
    /// Another handle of the same worker to the same fast path: each translator has one of its own.
    fn handle(&self) -> Box<dyn FastPath>;

    /// Creates an armed entry, both halves. `None`: the fast path is full or off.
    fn arm(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle>;

    /// Creates a half-open entry of a TCP session: it forwards SYN/ACKs from outside, and every other packet comes to the engine. `None`: the
    /// fast path is full or off, or it has its share of such entries.
    fn half_open(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle>;

    /// Whether an entry is half-open.
    fn is_half_open(&self, handle: FlowHandle) -> bool;

    /// Makes a half active if the last packet that went by it left this mark. Whether it is active now.
    fn activate(&mut self, handle: FlowHandle, direction: Direction, mark: u32) -> bool;

    /// Forgets the mark of a half that is not active: whether a packet goes by it from now on is then seen by [`Self::activate`] with mark 0.
    fn rearm(&mut self, handle: FlowHandle, direction: Direction);

    /// Makes both halves active whatever is under way. Whether one was not.
    fn force(&mut self, handle: FlowHandle) -> bool;

    /// Removes an entry and returns its usage. At the latest one millisecond later it forwards no packet.
    fn remove(&mut self, handle: FlowHandle) -> Usage;

    /// The flow had packets elsewhere, the last at this time: no half is taken for one that was idle for longer.
    fn touch(&mut self, handle: FlowHandle, last: Instant);

    /// The usage of an entry.
    fn usage(&self, handle: FlowHandle) -> Usage;
}

/// What a packet leaves behind at an armed entry, 24 bits: `octets` starts at its TCP, UDP or ICMP header. Equal for the last of several
/// segments and for what they were merged into. The programs compute the same.
pub fn mark(protocol: NatProtocol, octets: &[u8]) -> u32 {
    let word = |at: usize| octets.get(at..at + 4).map_or(0, |o| u32::from_be_bytes([o[0], o[1], o[2], o[3]]));
    let mixed = match protocol {
        NatProtocol::Tcp => {
            let header = octets.get(12).map_or(0, |octet| u32::from(octet >> 4) * 4);
            let end = word(4).wrapping_add(octets.len() as u32).wrapping_sub(header);
            end.wrapping_mul(0x9e37_79b1) ^ word(8).wrapping_mul(0x85eb_ca6b)
        }
        NatProtocol::Udp | NatProtocol::Icmp => {
            let payload = word(8).wrapping_mul(0x85eb_ca6b) ^ word(12).wrapping_mul(0xc2b2_ae35);
            word(4).wrapping_mul(0x9e37_79b1) ^ payload
        }
    };
    mixed >> 8
}
