//! A datagram that arrived, with what is in front of the packet and behind it.

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
    /// What is in front of the packet.
    pub(super) prologue: &'a [u8],
    /// Source and destination of the packet.
    pub(super) source: Ipv6Addr,
    pub(super) destination: Ipv6Addr,
    pub(super) packet: &'a Packet,
    /// The packet's octets.
    pub(super) octets: &'a [u8],
    /// What is behind it.
    pub(super) trailers: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Of a packet that came through the tunnel.
    #[inline(always)]
    pub(super) fn of(arrival: &Arrival<'a>, inner: &'a Packet) -> Result<Self, DropReason> {
        let (Addresses::V4 { source: from, .. }, Transport::Ports { source: port, .. }) =
            (arrival.packet.addresses, arrival.packet.transport)
        else {
            return Err(DropReason::NoTunnel);
        };
        let (source, destination) = routed(inner)?;
        let octets = arrival.octets();
        let at = usize::from(arrival.packet.transport_at);
        let header = octets.first().map_or(0, |first| usize::from(first & 0xf) * 4);
        let prologue = octets.get(header + UDP_HEADER..at).unwrap_or_default();
        let behind = octets.get(at..arrival.packet.length as usize).unwrap_or_default();
        let (octets, trailers) =
            behind.split_at_checked(inner.length as usize).ok_or(DropReason::Truncated)?;
        let from = Endpoint4::new(from, port);
        Ok(Self { from, prologue, source, destination, packet: inner, octets, trailers })
    }

    /// Whether the packet is a bubble.
    pub(super) fn is_bubble(&self) -> bool {
        self.packet.protocol == NO_NEXT_HEADER && self.packet.fragment.is_none()
    }

    /// Whether the packet is a router advertisement.
    pub(super) fn is_advertisement(&self) -> bool {
        let message = self.octets.get(usize::from(self.packet.transport_at)..).unwrap_or_default();
        self.packet.protocol == ICMPV6 && message.first() == Some(&ROUTER_ADVERTISEMENT)
    }

    /// What is behind a bubble; nothing is looked for behind other packets.
    pub(super) fn trailers(&self) -> Result<BubbleTrailers<'a>, DropReason> {
        if self.is_bubble() { BubbleTrailers::read(self.trailers) } else { Ok(BubbleTrailers::default()) }
    }
}
