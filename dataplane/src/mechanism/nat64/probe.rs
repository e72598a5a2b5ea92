//! The look-up of a packet's session in steps, so that a batch's cache misses overlap: all packets are probed, then all
//! warmed, then decided. Each step's load is independent of the other packets'.

use super::Nat64;
use crate::drop_reason::DropReason;
use crate::nat::{Inside, NatProtocol, Outside};
use crate::parse::{Addresses, Packet, Transport};
use core::net::Ipv4Addr;
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use sixway_wire::{Endpoint4, Endpoint6};

const NO_SLOT: u32 = u32::MAX;

/// ICMPv4 echo reply and echo request (RFC 792).
const ECHO_V4: [u8; 2] = [0, 8];
/// ICMPv6 echo request and echo reply (RFC 4443 §4).
const ECHO_V6: [u8; 2] = [128, 129];

/// Where a packet's NAT side is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// It came from this inside endpoint.
    Inside(Inside<Endpoint6>),
    /// It goes to this outside endpoint.
    Outside(Outside<Endpoint4>),
    /// It has no session of its own: an ICMP error, or nothing that is translated.
    Neither,
}

/// A packet's five-tuple, and how far the look-up of its session is.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub(super) side: Side,
    /// The other end; its port is 0 for ICMP.
    pub(super) remote: Endpoint4,
    pub(super) protocol: NatProtocol,
    /// TCP's flags, else 0.
    pub(super) flags: u8,
    tag: u32,
    /// The slot that was found, to be confirmed: packets before this one in the batch may have ended its session.
    pub(super) slot: u32,
    /// What stood in the index at the tag's home.
    touched: u64,
}

impl Probe {
    /// A place for a probe.
    pub const EMPTY: Self = Self {
        side: Side::Neither,
        remote: Endpoint4::new(Ipv4Addr::UNSPECIFIED, 0),
        protocol: NatProtocol::Udp,
        flags: 0,
        tag: 0,
        slot: NO_SLOT,
        touched: 0,
    };
}

impl Nat64 {
    /// Step one: the five-tuple, its tag, and the index entry at the tag's home. The probe is written in place: copying
    /// what was just written piece by piece would stall.
    #[inline]
    pub fn probe(&self, packet: &Packet, probe: &mut Probe) {
        probe.side = Side::Neither;
        probe.slot = NO_SLOT;
        let (protocol, [from, to], flags) = match packet.transport {
            Transport::Ports { source, destination, tcp_flags } => match packet.protocol {
                TCP => (NatProtocol::Tcp, [source, destination], tcp_flags),
                UDP => (NatProtocol::Udp, [source, destination], 0),
                _ => return,
            },
            Transport::IcmpQuery { identifier, .. } if is_echo(packet) => {
                let ports = if packet.protocol == ICMPV6 { [identifier, 0] } else { [0, identifier] };
                (NatProtocol::Icmp, ports, 0)
            }
            Transport::IcmpQuery { .. } | Transport::IcmpError { .. } | Transport::Opaque => return,
        };
        (probe.protocol, probe.flags) = (protocol, flags);
        match packet.addresses {
            Addresses::V6 { source, destination } => {
                let Ok(remote) = self.prefix.extract_any(destination) else { return };
                let inside = Inside(Endpoint6::new(source, from));
                probe.side = Side::Inside(inside);
                probe.remote = Endpoint4::new(remote, to);
                probe.tag = self.tables.sessions.tag_inside(inside, probe.remote, protocol);
                probe.touched = self.tables.sessions.touch_inside(probe.tag);
            }
            Addresses::V4 { source, destination } => {
                let outside = Outside(Endpoint4::new(destination, to));
                probe.side = Side::Outside(outside);
                probe.remote = Endpoint4::new(source, from);
                probe.tag = self.tables.sessions.tag_outside(outside, probe.remote, protocol);
                probe.touched = self.tables.sessions.touch_outside(probe.tag);
            }
        }
    }

    /// Step two: the session's line; of a packet without session, what its binding is looked up by.
    #[inline]
    pub fn warm(&self, probe: &mut Probe) {
        let sessions = &self.tables.sessions;
        match probe.side {
            Side::Inside(inside) => {
                let Some(slot) = sessions.candidate_inside(probe.tag, probe.touched) else {
                    return self.tables.bindings.touch_inside(probe.protocol, inside);
                };
                let is_it = sessions.is_inside(slot, inside, probe.remote, probe.protocol);
                probe.slot = if is_it { slot } else { NO_SLOT };
            }
            Side::Outside(outside) => {
                let Some(slot) = sessions.candidate_outside(probe.tag, probe.touched) else {
                    core::hint::black_box(self.tables.bindings.touch_outside(probe.protocol, outside));
                    return;
                };
                let is_it = sessions.is_outside(slot, outside, probe.remote, probe.protocol);
                probe.slot = if is_it { slot } else { NO_SLOT };
            }
            Side::Neither => {}
        }
    }

    /// Why a packet without five-tuple is refused.
    pub(super) fn refusal(&self, packet: &Packet) -> DropReason {
        let (icmp, destination) = match packet.addresses {
            Addresses::V6 { destination, .. } => (ICMPV6, Some(destination)),
            Addresses::V4 { .. } => (ICMPV4, None),
        };
        if ![TCP, UDP, icmp].contains(&packet.protocol) {
            return DropReason::ProtocolUnsupported;
        }
        match packet.transport {
            Transport::Opaque => DropReason::BadFragment,
            Transport::Ports { .. } | Transport::IcmpQuery { .. } | Transport::IcmpError { .. } => {
                let unreachable = destination.and_then(|address| self.prefix.extract(address).err());
                unreachable.unwrap_or(DropReason::IcmpUntranslatable)
            }
        }
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
