//! The contract between deciding and executing: a mechanism answers a packet with a [`Decision`], `rewrite` executes
//! its [`Action`] in place, and the frame leaves the engine with a [`Verdict`].

use crate::drop_reason::DropReason;
use crate::kind::Kind;
use arrayvec::ArrayVec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6};

/// What to do with a packet's headers, in this order. One fixed shape, executed in one pass by `rewrite` in Rust (and by a kernel fast path).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Remove the outer header, by the policy of this tunnel.
    pub decap: Option<PolicyId>,
    /// Translate or renumber the header.
    pub edit: Option<Edit>,
    /// The policy that the edit follows.
    pub policy: PolicyId,
    /// An outer header is put in front.
    pub encap: Option<Encap>,
}

/// Index of a policy: the number of the mechanism whose [`crate::translate::Policy`] or [`crate::tunnel::TunnelPolicy`] it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyId(pub u16);

/// One change of addresses, and of ports or ICMP identifier where the packet has them: the port of an endpoint is
/// ignored where the packet has none (fragments, ICMP errors, protocols without ports).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// IPv4 becomes IPv6 (RFC 7915 §4). `keep_ports`: stateless, the transport header stays as it is.
    Translate4To6 {
        /// New source.
        source: Endpoint6,
        /// New destination.
        destination: Endpoint6,
        /// The endpoints' ports are not to be written.
        keep_ports: bool,
    },
    /// IPv6 becomes IPv4 (RFC 7915 §5).
    Translate6To4 {
        /// New source.
        source: Endpoint4,
        /// New destination.
        destination: Endpoint4,
        /// The endpoints' ports are not to be written.
        keep_ports: bool,
    },
    /// IPv4 stays IPv4, with other addresses and ports (RFC 3022). Of an ICMP query both ports are the identifier.
    Renumber4 {
        /// New source.
        source: Endpoint4,
        /// New destination.
        destination: Endpoint4,
        /// The endpoints' ports are not to be written.
        keep_ports: bool,
    },
    /// IPv6 stays IPv6, with other addresses (RFC 6296).
    Renumber6 {
        /// New source.
        source: Ipv6Addr,
        /// New destination.
        destination: Ipv6Addr,
        /// The new addresses have the same sum as the old ones, and so have those of a quoted packet: no checksum changes.
        neutral: bool,
    },
}

/// An outer header to be put in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encap {
    /// The outer header, in the batch's scratch.
    pub outer: OuterIndex,
    /// The policy of the tunnel.
    pub policy: PolicyId,
}

/// Index of an outer header in [`crate::effects::Effects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterIndex(pub(crate) u8);

/// Index of the endpoints of a quoted packet in [`crate::effects::Effects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedIndex(pub(crate) u8);

/// An outer header, as far as a mechanism decides on it; the rest is the tunnel's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outer {
    /// IPv4 (RFC 2003, RFC 4213).
    V4 {
        /// Source.
        source: Ipv4Addr,
        /// Destination.
        destination: Ipv4Addr,
    },
    /// IPv6 (RFC 2473).
    V6 {
        /// Source.
        source: Ipv6Addr,
        /// Destination.
        destination: Ipv6Addr,
    },
    /// UDP in IPv4, DF clear (RFC 4380 §5.1.2).
    Udp4 {
        /// Source.
        source: Endpoint4,
        /// Destination.
        destination: Endpoint4,
    },
}

/// The endpoints that the packet quoted inside an ICMP error gets. It is the translated image of a packet that
/// went the other way, so its source is an image of the error's destination side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// The quoted packet becomes this IPv4 one.
    V4 {
        /// New source of the quoted packet.
        source: Endpoint4,
        /// New destination of the quoted packet.
        destination: Endpoint4,
        /// The endpoints' ports are not to be written.
        keep_ports: bool,
    },
    /// The quoted packet becomes this IPv6 one.
    V6 {
        /// New source of the quoted packet.
        source: Endpoint6,
        /// New destination of the quoted packet.
        destination: Endpoint6,
        /// The endpoints' ports are not to be written.
        keep_ports: bool,
    },
}

/// A mechanism of an engine: its kind, and its index among those of its kind.
// `kind` first: in a `Result` the drop reason then shares no octet with `index`, which is written in one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct MechanismId {
    /// Its kind.
    pub kind: Kind,
    /// Its index among them.
    pub index: u16,
}

/// Where the result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the link.
    Leave,
    /// Back to classification, because its destination is ours: a hairpin (RFC 6146 §3.8, RFC 7757 §4.2.2). Size limits
    /// hold for the last result only.
    Again,
    /// To the mechanism that the configuration joins to this one; the two are one hop.
    To(MechanismId),
    /// Back through its tunnel, if it is an echo request: the gateway itself is its destination.
    Reply,
    /// To the other fragments of the packet that is inside it.
    Whole,
    /// Into the tunnel of ours that ends at its new destination.
    IntoTunnel,
    /// To the link, after its TCP segment was rewritten as the effects say ([`TcpRewrite`]).
    Rewritten,
    /// Nowhere: the mechanism has stored it.
    Held,
    /// Nowhere: it was for the mechanism itself.
    Absorb,
    /// To control, as it came.
    Control,
}

/// What changes in a TCP segment before its headers are edited: the sequence of octets has lost or won some, and so have those that it
/// acknowledges. A few control connections need that, so it is not part of [`Action`]: it waits in [`crate::effects::Effects`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpRewrite {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Edges of selective acknowledgments (RFC 2018): where each is, in octets from the start of the TCP header, and its value.
    pub edges: ArrayVec<(u8, u32), 8>,
    /// The new payload; `None`: it stays.
    pub payload: Option<Box<[u8]>>,
}

/// A mechanism's answer.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// For an ICMP error: the endpoints of the packet that it quotes.
    pub quoted: Option<QuotedIndex>,
    /// Where the result goes.
    pub next: Next,
}

const _: () = assert!(size_of::<Decision>() <= 64);

impl Decision {
    /// The header is translated or renumbered.
    #[inline(always)]
    pub const fn edit(edit: Edit, policy: PolicyId, next: Next) -> Self {
        Self { action: Action { decap: None, edit: Some(edit), policy, encap: None }, quoted: None, next }
    }

    /// An outer header is put in front.
    #[inline(always)]
    pub const fn encap(outer: OuterIndex, policy: PolicyId) -> Self {
        let encap = Some(Encap { outer, policy });
        Self { action: Action { decap: None, edit: None, policy, encap }, quoted: None, next: Next::Leave }
    }

    /// The outer header goes.
    #[inline(always)]
    pub const fn decap(policy: PolicyId) -> Self {
        let action = Action { decap: Some(policy), edit: None, policy, encap: None };
        Self { action, quoted: None, next: Next::Leave }
    }

    /// The packet is not changed: it was stored, or goes to control.
    pub const fn keep(next: Next) -> Self {
        let action = Action { decap: None, edit: None, policy: PolicyId(0), encap: None };
        Self { action, quoted: None, next }
    }
}

/// The outcome of a frame. Every received frame has exactly one at the end, so that frames are conserved
/// ([`crate::counters::CONSERVATION`]). Fragments share the verdict of their packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine has not seen it.
    Pending,
    /// It is to be sent; its buffer holds the result.
    Forward,
    /// It was addressed to the gateway and became its answer; its buffer holds the answer, to be sent.
    Answered,
    /// It is for the gateway's own control protocols (neighbour discovery over ISATAP); its buffer is what was received.
    Control,
    /// It is for the host (its own MLD or router solicitation on our device): leave it to the kernel.
    Punted,
    /// It was forwarded as fragments or segments, or became an answer that is sent as fragments. They are in the outbox; its
    /// own buffer is spent.
    InPieces,
    /// It was the last fragment of a packet that is complete; the packet is in the outbox, or was dropped and counted. Or it was
    /// joined to a GSO packet in another frame of the batch.
    Merged,
    /// It belongs to another worker. Its buffer holds what this worker has made of it.
    HandOver(WorkerId),
    /// It was dropped and counted.
    Dropped(DropReason),
    /// The engine keeps its octets: a fragment that waits for others, a stored SYN, or a packet that waits for a peer of Teredo to answer.
    Held,
    /// It was for the mechanism itself, and contained nothing to forward: a bubble of Teredo.
    Absorbed,
}

impl Verdict {
    /// Whether the frame's buffer is to be sent.
    pub const fn leaves(self) -> bool {
        matches!(self, Self::Forward | Self::Answered)
    }
}

/// Number of a worker, from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u8);
