//! Events of a NAT, for a log: what begins and ends.
//!
//! Only beginnings and ends are events. A session of another process that is restored, and its binding, began there: who keeps a log asks
//! for the bindings once after the restoration ([`crate::stateful::Stateful::bindings`]).

use super::protocol::NatProtocol;
use super::sides::{Inside, Outside};
use crate::instant::Instant;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6};

/// Takes note of events. Its methods are called between packets and must not block.
pub trait EventSink: Send {
    /// Whether sessions are to be recorded.
    fn wants_sessions(&self) -> bool;

    /// Whether bindings are to be recorded although each has a port of its subscriber's block. Others always are.
    fn wants_bindings_in_blocks(&self) -> bool {
        false
    }

    /// This happened at this time: at the present packet, or when the end was noticed.
    fn record(&mut self, at: Instant, event: NatEvent);
}

/// An event. An inside endpoint of IPv4 goes by its IPv4-mapped address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatEvent {
    /// A binding was made.
    BindingCreated(BindingEvent),
    /// A binding has ended.
    BindingDeleted(BindingEvent),
    /// A subscriber got a port block.
    BlockAllocated(BlockEvent),
    /// A subscriber has returned a port block.
    BlockReleased(BlockEvent),
    /// A session was made.
    SessionCreated(SessionEvent),
    /// A session has ended.
    SessionDeleted(SessionEvent),
    /// A session of a protocol without ports was made: always recorded, since no binding tells whose it is.
    PortlessCreated(PortlessEvent),
    /// A session of a protocol without ports has ended.
    PortlessDeleted(PortlessEvent),
}

/// The binding of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingEvent {
    /// Protocol.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that the inside endpoint is behind.
    pub softwire: Option<Ipv6Addr>,
    /// Inside endpoint.
    pub inside: Inside<Endpoint6>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Whether the administrator made it.
    pub is_static: bool,
}

/// The port block of an event. All of its ports are of all protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// The subscriber's prefix.
    pub subscriber: Inside<Ipv6Addr>,
    /// Its length, in bits of the address that the subscriber has.
    pub bits: u8,
    /// The outside address.
    pub address: Outside<Ipv4Addr>,
    /// The first port.
    pub first: u16,
    /// The number of ports.
    pub size: u16,
}

/// The session of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEvent {
    /// Protocol.
    pub protocol: NatProtocol,
    /// The remote end of the softwire that the inside endpoint is behind.
    pub softwire: Option<Ipv6Addr>,
    /// Inside endpoint.
    pub inside: Inside<Endpoint6>,
    /// Outside endpoint.
    pub outside: Outside<Endpoint4>,
    /// Remote endpoint; the port is 0 for ICMP.
    pub remote: Endpoint4,
}

/// The session of an event of a protocol without ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortlessEvent {
    /// Protocol number.
    pub protocol: u8,
    /// Inside host.
    pub inside: Inside<Ipv4Addr>,
    /// Outside address.
    pub outside: Outside<Ipv4Addr>,
    /// Remote host.
    pub remote: Ipv4Addr,
    /// What the host's first packet has in place of ports: the SPI of ESP, the key of GRE, the call ID of PPTP.
    pub id: Option<u32>,
}
