//! The outer IPv4 header of an IPv6 packet goes (RFC 4213 §3.6). The hop limit stays: who routes the result counts it down.

use super::{Executed, Rewriter};
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::parse::{self, Packet};
use crate::verdict::PolicyId;

impl Rewriter {
    /// Takes the outer header off: `outer` is the frame's packet, `inner` what is in it, as [`inner`] parses it.
    #[inline(always)]
    pub fn decap(
        &mut self,
        frame: &mut Frame,
        outer: &Packet,
        inner: &Packet,
        _policy: PolicyId,
    ) -> Result<Executed, DropReason> {
        frame.truncate(usize::from(outer.transport_at) + inner.length as usize);
        frame.resize_front(outer.transport_at.into(), 0)?;
        frame.offload.transport = inner.transport_at;
        Ok(Executed::InPlace)
    }
}

/// The IPv6 packet in an IPv4 packet of protocol 41. Octets behind its own length are padding.
///
/// Fails with [`DropReason::InnerNotIpv6`] where there is none, and as [`parse::parse`] does.
#[inline(always)]
pub fn inner(frame: &Frame, outer: &Packet, inner: &mut Packet) -> Result<(), DropReason> {
    let octets = frame.bytes().get(usize::from(outer.transport_at)..outer.length as usize);
    let octets = octets.ok_or(DropReason::Truncated)?;
    if octets.first().is_none_or(|first| first >> 4 != 6) {
        return Err(DropReason::InnerNotIpv6);
    }
    parse::parse_into(octets, inner)
}
