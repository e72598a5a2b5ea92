//! The work to execute, and the place of the result.

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
}

/// The edits that an execution is compiled for: each path has the registers for its own.
pub trait Edits {
    /// Whether headers are translated to the other family.
    const TRANSLATE: bool;
    /// Whether headers get other addresses of their family.
    const RENUMBER: bool;
    /// Whether what is edited comes out of a tunnel or goes into one.
    const TUNNELS: bool = false;
}

/// Headers are translated.
pub struct Translating;

/// Headers are renumbered.
pub struct Renumbering;

/// Headers are renumbered behind a tunnel, or in front of one.
pub struct Tunnelling;

/// Any edit.
pub struct Editing;

impl Edits for Translating {
    const TRANSLATE: bool = true;
    const RENUMBER: bool = false;
}

impl Edits for Renumbering {
    const TRANSLATE: bool = false;
    const RENUMBER: bool = true;
}

impl Edits for Tunnelling {
    const TRANSLATE: bool = false;
    const RENUMBER: bool = true;
    const TUNNELS: bool = true;
}

impl Edits for Editing {
    const TRANSLATE: bool = true;
    const RENUMBER: bool = true;
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
