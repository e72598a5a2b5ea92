//! The lookup of a packet's session in steps, so that a batch's cache misses overlap: all packets are probed, then all
//! warmed, then decided. Each step's load is independent of the other packets'.

use super::Engine;
use crate::direction::Direction;
use crate::nat::inside_key::InsideKey;
use crate::nat::protocol::NatProtocol;
use crate::nat::sides::{Inside, Outside};
use crate::parse::{Addresses, Packet, Transport};
use core::net::Ipv4Addr;
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use sixway_wire::{Endpoint4, icmpv4};

const NO_SLOT: u32 = u32::MAX;
/// There was no session: none needs to be looked for, unless one was added since. No slab has such a slot.
const ABSENT: u32 = u32::MAX - 1;

/// ICMPv4 echo reply and echo request (RFC 792).
const ECHO_V4: [u8; 2] = [0, 8];
/// ICMPv6 echo request and echo reply (RFC 4443 §4).
const ECHO_V6: [u8; 2] = [128, 129];

/// Where a packet's NAT side is.
#[derive(Clone, Copy, Debug)]
pub enum Side<I> {
    /// It came from this inside endpoint.
    Inside(Inside<I>),
    /// It goes to this outside endpoint.
    Outside(Outside<Endpoint4>),
    /// It has no session: an ICMP error, or a packet that is not translated.
    Neither,
}

/// A packet's five-tuple, and how far the lookup of its session is.
#[derive(Clone, Copy, Debug)]
pub struct Probe<I> {
    /// Where its NAT side is.
    pub side: Side<I>,
    /// The remote endpoint; its port is 0 for ICMP.
    pub(super) remote: Endpoint4,
    pub(super) protocol: NatProtocol,
    /// TCP's flags, else 0.
    pub(super) flags: u8,
    /// Its tag; or, with [`ABSENT`] and from outside, that of its outside endpoint.
    tag: u32,
    /// The slot that was found, to be confirmed: packets before this one in the batch may have ended its session.
    pub(super) slot: u32,
    /// What was in the index at the tag's home; or, with [`ABSENT`], how many sessions had been added.
    touched: u64,
}

impl<I> Probe<I> {
    /// An empty probe.
    pub const EMPTY: Self = Self {
        side: Side::Neither,
        remote: Endpoint4::new(Ipv4Addr::UNSPECIFIED, 0),
        protocol: NatProtocol::Udp,
        flags: 0,
        tag: 0,
        slot: NO_SLOT,
        touched: 0,
    };

    /// Resets it for a packet without session.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.side = Side::Neither;
        self.slot = NO_SLOT;
    }
}

/// What a packet has for ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Its protocol.
    pub protocol: NatProtocol,
    /// The sender's port. Of an ICMP query the identifier belongs to the inside endpoint, and the remote endpoint has 0.
    pub from: u16,
    /// The receiver's port.
    pub to: u16,
    /// TCP's flags, else 0.
    pub flags: u8,
}

impl Ports {
    /// Those of a packet that crosses the NAT this way. `None`: it has none, and no session of its own.
    #[inline]
    pub fn of(packet: &Packet, direction: Direction) -> Option<Self> {
        Self::with_queries(packet, direction, is_echo)
    }

    /// Those of an IPv4 packet that stays one: every query with an identifier has it (RFC 5508 §3).
    #[inline]
    pub fn of_ipv4(packet: &Packet, direction: Direction) -> Option<Self> {
        Self::with_queries(
            packet,
            direction,
            |packet| matches!(packet.transport, Transport::IcmpQuery { kind, .. } if icmpv4::has_identifier(kind)),
        )
    }

    #[inline(always)]
    fn with_queries(
        packet: &Packet,
        direction: Direction,
        is_query: impl Fn(&Packet) -> bool,
    ) -> Option<Self> {
        let (protocol, [from, to], flags) = match packet.transport {
            Transport::Ports { source, destination, tcp_flags } => match packet.protocol {
                TCP => (NatProtocol::Tcp, [source, destination], tcp_flags),
                UDP => (NatProtocol::Udp, [source, destination], 0),
                _ => return None,
            },
            Transport::IcmpQuery { identifier, .. } if is_query(packet) => match direction {
                Direction::Out => (NatProtocol::Icmp, [identifier, 0], 0),
                Direction::In => (NatProtocol::Icmp, [0, identifier], 0),
            },
            Transport::IcmpQuery { .. } | Transport::IcmpError { .. } | Transport::Opaque => return None,
        };
        Some(Self { protocol, from, to, flags })
    }
}

impl<I: InsideKey> Engine<I> {
    /// Step one for a packet from inside: its tag, and the index entry at the tag's home. The probe is written in place: copying
    /// what was just written piece by piece would stall.
    #[inline(always)]
    pub fn look_inside(&self, host: Inside<I>, remote: Endpoint4, ports: Ports, probe: &mut Probe<I>) {
        (probe.protocol, probe.flags) = (ports.protocol, ports.flags);
        probe.side = Side::Inside(host);
        probe.remote = remote;
        probe.tag = self.tables.sessions.tag_inside(host, remote, ports.protocol);
        probe.touched = self.tables.sessions.touch_inside(probe.tag);
    }

    /// Step one for a packet from outside.
    #[inline(always)]
    pub fn look_outside(
        &self,
        outside: Outside<Endpoint4>,
        remote: Endpoint4,
        ports: Ports,
        probe: &mut Probe<I>,
    ) {
        (probe.protocol, probe.flags) = (ports.protocol, ports.flags);
        probe.side = Side::Outside(outside);
        probe.remote = remote;
        probe.tag = self.tables.sessions.tag_outside(outside, remote, ports.protocol);
        probe.touched = self.tables.sessions.touch_outside(probe.tag);
    }

    /// Step two: the session's line; of a packet without session, what its binding is looked up by.
    #[inline]
    pub fn warm(&self, probe: &mut Probe<I>) {
        let sessions = &self.tables.sessions;
        match probe.side {
            Side::Inside(inside) => {
                let Some(slot) = sessions.candidate_inside(probe.tag, probe.touched) else {
                    (probe.slot, probe.touched) = (ABSENT, sessions.added());
                    return self.tables.bindings.touch_inside(probe.protocol, inside);
                };
                let is_it = sessions.is_inside(slot, inside, probe.remote, probe.protocol);
                probe.slot = if is_it { slot } else { NO_SLOT };
            }
            Side::Outside(outside) => {
                let Some(slot) = sessions.candidate_outside(probe.tag, probe.touched) else {
                    (probe.slot, probe.touched) = (ABSENT, sessions.added());
                    probe.tag = self.tables.bindings.touch_outside(probe.protocol, outside);
                    return;
                };
                let is_it = sessions.is_outside(slot, outside, probe.remote, probe.protocol);
                probe.slot = if is_it { slot } else { NO_SLOT };
            }
            Side::Neither => {}
        }
    }

    /// The inside endpoint of the session that a packet from outside was found to belong to.
    #[inline(always)]
    pub fn found_inside(&self, probe: &Probe<I>) -> Option<Inside<I>> {
        (probe.slot < ABSENT).then(|| self.tables.sessions.get(probe.slot).inside)
    }

    /// The binding of a packet from outside that belongs to no session.
    #[inline]
    pub(super) fn binding_of(&self, outside: Outside<Endpoint4>, probe: &Probe<I>) -> Option<u32> {
        if probe.slot == ABSENT {
            return self.tables.bindings.find_tagged(probe.tag, probe.protocol, outside);
        }
        self.tables.bindings.find_outside(probe.protocol, outside)
    }

    /// Whether a packet has no session, as far as its probe knows.
    #[inline]
    pub(super) fn is_absent(&self, probe: &Probe<I>) -> bool {
        probe.slot == ABSENT && probe.touched == self.tables.sessions.added()
    }
}

/// Whether an ICMP query is an echo request or reply of the packet's own family: the only ones with an identifier in both.
#[inline]
fn is_echo(packet: &Packet) -> bool {
    let Transport::IcmpQuery { kind, .. } = packet.transport else { return false };
    match packet.addresses {
        Addresses::V6 { .. } => packet.protocol == ICMPV6 && ECHO_V6.contains(&kind),
        Addresses::V4 { .. } => packet.protocol == ICMPV4 && ECHO_V4.contains(&kind),
    }
}
