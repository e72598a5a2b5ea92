//! The interface of a NAT to packets and to its mechanism.

use crate::drop_reason::DropReason;
use crate::nat::sides::{Inside, Outside};
use crate::parse::Packet;
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;

/// A packet as a NAT decides on it.
pub trait Arriving {
    /// The packet, reassembled if it came in fragments.
    fn packet(&self) -> &Packet;

    /// Its octets, from the IP header on: an inbound SYN may have to be stored.
    fn octets(&self) -> &[u8];

    /// Packets on the wire: more than one for a GSO packet.
    fn segments(&self) -> u32;

    /// The mark of an earlier pass, if it was translated already: a hairpin on its way back left that mark at this pass's
    /// session too.
    fn earlier_mark(&self) -> Option<u32>;
}

/// The mechanism that an engine works for: its answers, and which addresses it admits.
///
/// Its answer is requested where the session is found, so that nothing is copied in between. Ports are those that the packet has
/// when it leaves; of an ICMP query both are the identifier.
pub trait Mechanism<I> {
    /// What the mechanism answers a packet with.
    type Outcome;

    /// A packet goes out: `outside` is its new source, `remote` its destination. A hairpin's destination is one of the pool's
    /// addresses, so that it comes back (RFC 6146 §3.8, RFC 4787 REQ-9).
    fn outward(&self, outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Self::Outcome;

    /// A packet comes in: `inside` is its new destination, `remote` its source.
    fn inward(&self, inside: Inside<I>, remote: Endpoint4) -> Self::Outcome;

    /// An inbound SYN was stored (RFC 6146 §3.5.2.2). The frame counts as held; when its time is up, [`Engine::expire`] takes it off
    /// that count, counts it as dropped, and hands it out to be answered.
    fn held(&self) -> Self::Outcome;

    /// Whether the inside endpoint may open a session to the remote address. Asked of packets that belong to no session.
    ///
    /// # Errors
    /// Why not.
    fn may_go_out(&self, inside: Inside<I>, remote: Ipv4Addr) -> Result<(), DropReason>;

    /// Whether the remote address may open a session from outside. Asked of packets that belong to no session.
    ///
    /// # Errors
    /// Why not.
    fn may_come_in(&self, remote: Ipv4Addr) -> Result<(), DropReason>;

    /// Whether a session between these two may be restored from another process.
    fn may_go_on(&self, inside: Inside<I>, remote: Ipv4Addr) -> bool;
}
