//! A datagram that arrived: its encapsulations, the packet, and its trailers.

use super::trailers::BubbleTrailers;
use crate::drop_reason::DropReason;
use crate::mechanism::contract::Arrival;
use crate::parse::{Addresses, Packet, Transport};
use crate::tunnel::decision::routed;
use core::net::Ipv6Addr;
use sixway_wire::protocol::{ICMPV6, NO_NEXT_HEADER};
use sixway_wire::{Endpoint4, UDP_HEADER};

/// RFC 4861 §4.2.
const ROUTER_ADVERTISEMENT: u8 = 134;

/// A datagram that arrived.
#[derive(Clone, Copy)]
pub(super) struct Datagram<'a> {
    /// The endpoint that it came from.
    pub(super) from: Endpoint4,
    /// The port of this host that it came to.
    pub(super) to_port: u16,
    /// Source and destination of the packet.
    pub(super) source: Ipv6Addr,
    pub(super) destination: Ipv6Addr,
    pub(super) packet: &'a Packet,
    /// The datagram with its headers.
    whole: &'a [u8],
    /// Where the packet begins.
    at: usize,
}

impl<'a> Datagram<'a> {
    /// Reads a packet that came through the tunnel.
    #[inline(always)]
    pub(super) fn of(arrival: &Arrival<'a>, inner: &'a Packet) -> Result<Self, DropReason> {
        let (Addresses::V4 { source: from, .. }, Transport::Ports { source: port, destination: to_port, .. }) =
            (arrival.packet.addresses, arrival.packet.transport)
        else {
            return Err(DropReason::NoTunnel);
        };
        let (source, destination) = routed(inner)?;
        let whole = arrival.octets().get(..arrival.packet.length as usize).unwrap_or_default();
        let (from, at) = (Endpoint4::new(from, port), usize::from(arrival.packet.transport_at));
        Ok(Self { from, to_port, source, destination, packet: inner, whole, at })
    }

    /// Where the data of UDP begin.
    #[inline(always)]
    fn data_at(&self) -> usize {
        self.whole.first().map_or(0, |first| usize::from(first & 0xf) * 4) + UDP_HEADER
    }

    /// Whether there are encapsulations (authentication, origin indication) in front of the packet.
    #[inline(always)]
    pub(super) fn has_prologue(&self) -> bool {
        self.data_at() != self.at
    }

    /// The encapsulations in front of the packet.
    pub(super) fn prologue(&self) -> &'a [u8] {
        self.whole.get(self.data_at()..self.at).unwrap_or_default()
    }

    /// The packet from its transport header on.
    pub(super) fn message(&self) -> &'a [u8] {
        let end = self.at + self.packet.length as usize;
        self.whole.get(self.at + usize::from(self.packet.transport_at)..end).unwrap_or_default()
    }

    /// Whether the packet is a bubble.
    #[inline(always)]
    pub(super) fn is_bubble(&self) -> bool {
        self.packet.protocol == NO_NEXT_HEADER && self.packet.fragment.is_none()
    }

    /// Whether the packet is a router advertisement.
    pub(super) fn is_advertisement(&self) -> bool {
        self.packet.protocol == ICMPV6 && self.message().first() == Some(&ROUTER_ADVERTISEMENT)
    }

    /// The trailers of a bubble; other packets have none.
    pub(super) fn trailers(&self) -> Result<BubbleTrailers<'a>, DropReason> {
        if !self.is_bubble() {
            return Ok(BubbleTrailers::default());
        }
        let end = self.at + self.packet.length as usize;
        BubbleTrailers::read(self.whole.get(end..).ok_or(DropReason::Truncated)?)
    }
}
