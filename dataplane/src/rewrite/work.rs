//! What is executed, and where the result is.

use crate::parse::Packet;
use crate::verdict::Decision;

/// Where a packet is after its action was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// In the frame.
    InPlace,
    /// In the outbox, as segments or fragments.
    InPieces,
}

/// Circumstances of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The hop limit is decremented; not on a second pass, because the gateway is one hop.
    pub decrement: bool,
    /// The packet was reassembled, so it may be fragmented again whatever its size.
    pub reassembled: bool,
    /// The mechanism renumbers; those that translate are compiled without.
    pub may_renumber: bool,
}

/// A decision, and the packet that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The decision.
    pub decision: &'a Decision,
    /// The packet; of one that came through a tunnel the outer one.
    pub packet: &'a Packet,
    /// The packet inside, if it came through a tunnel.
    pub inner: Option<&'a Packet>,
    /// Circumstances.
    pub pass: Pass,
}
