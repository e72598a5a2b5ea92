//! A stateful translator of any kind, as used by operators, the fast path and other processes.

use super::without_ports::WithoutPorts;
use crate::counters::Counters;
use crate::identity::Identity;
use crate::instant::Instant;
use crate::nat::offload::{FastPath, FlowHandle, OffloadedFlow, Usage};
use crate::nat::{
    AddressBlocks, BindingRow, BlockCounts, BlockMove, Blocks, BoundEndpoint, DrainingRow, EventSink,
    ExplicitBinding, Named, NatProtocol, NotAdopted, NotBound, Occupancy, Outside, PortLedger, SavedSession,
    Selection, SessionRow, StaticBinding, StaticBindingError, SubscriberRow, WantedOutside,
};
use crate::tunnel::ends::Ends4;
use crate::verdict::WorkerId;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

/// A stateful translator. An inside host with an IPv4 address goes by its IPv4-mapped IPv6 address here (RFC 4291 §2.5.5.2).
pub trait Stateful {
    /// Its identity, for flows and sessions that outlive this process.
    fn identity(&self) -> Identity;

    /// Whether the address belongs to the pool.
    fn owns_outside(&self, address: Ipv4Addr) -> bool;

    /// Whether it is a port that the pool gives. A static binding may have another one.
    fn gives_port(&self, port: u16) -> bool;

    /// How full the tables are.
    fn occupancy(&self) -> Occupancy;

    /// See [`crate::nat::Engine::sessions`].
    fn sessions(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        now: Instant,
        rows: &mut Vec<SessionRow>,
    ) -> Option<u32>;

    /// See [`crate::nat::Engine::bindings`].
    fn bindings(
        &self,
        cursor: u32,
        slots: u32,
        selection: &Selection,
        rows: &mut Vec<BindingRow>,
    ) -> Option<u32>;

    /// See [`crate::nat::Engine::subscribers`].
    fn subscribers(
        &self,
        cursor: u32,
        slots: u32,
        inside: Option<Prefix6>,
        now: Instant,
        rows: &mut Vec<SubscriberRow>,
    ) -> Option<u32>;

    /// Protocols without ports.
    fn without_ports(&self) -> &dyn WithoutPorts;

    /// The same, to end sessions.
    fn without_ports_mut(&mut self) -> &mut dyn WithoutPorts;

    /// See [`crate::nat::Engine::end_session`].
    fn end_session(
        &mut self,
        protocol: NatProtocol,
        named: Named,
        remote: Endpoint4,
        counters: &mut Counters,
    ) -> bool;

    /// See [`crate::nat::Engine::end_binding`].
    fn end_binding(
        &mut self,
        protocol: NatProtocol,
        outside: Outside<Endpoint4>,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool>;

    /// See [`crate::nat::Engine::add_static`].
    ///
    /// # Errors
    /// Why it cannot be made.
    fn add_static(&mut self, binding: &StaticBinding) -> Result<(), StaticBindingError>;

    /// See [`crate::nat::Engine::remove_static`].
    fn remove_static(
        &mut self,
        binding: &StaticBinding,
        budget: usize,
        counters: &mut Counters,
    ) -> Option<bool>;

    /// See [`crate::nat::Engine::keep_explicit`].
    ///
    /// # Errors
    /// Why there is no such binding.
    fn keep_explicit(
        &mut self,
        binding: &ExplicitBinding,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound>;

    /// See [`crate::nat::Engine::keep_with_companion`].
    ///
    /// # Errors
    /// Why there is no such binding.
    fn keep_with_companion(
        &mut self,
        binding: &ExplicitBinding,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<BoundEndpoint, NotBound>;

    /// Whether the administrator made a binding of a host.
    fn has_static_binding(&self, protocol: NatProtocol, host: Ipv6Addr) -> bool;

    /// See [`crate::nat::Engine::release_explicit`].
    fn release_explicit(
        &mut self,
        protocol: NatProtocol,
        named: Named,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32>;

    /// Ends a part of the dynamic bindings of a host, of their sessions and of its sessions of protocols without ports, from a place on. Where
    /// to go on; `None`: it has none any more here.
    fn end_bindings_of(
        &mut self,
        host: Ipv6Addr,
        from: u32,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<u32>;

    /// See [`crate::nat::Engine::bound_endpoint`].
    fn bound_endpoint(&self, protocol: NatProtocol, named: Named) -> Option<BoundEndpoint>;

    /// The outside address of a host: the one that it has, or the only one that there is.
    fn outside_address(&self, host: Ipv6Addr) -> Option<Ipv4Addr>;

    /// See [`crate::nat::Engine::open_by_request`].
    ///
    /// # Errors
    /// Why there is no such session.
    fn open_by_request(
        &mut self,
        ends: (NatProtocol, Named, Endpoint4),
        wanted: WantedOutside,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(Outside<Endpoint4>, u32), NotBound>;

    /// See [`crate::nat::Engine::drain`].
    fn drain(&mut self, prefix: Prefix4, drains: bool);

    /// See [`crate::nat::Engine::draining_rows`]; a part of each call's has empty rows of all prefixes, those behind it only of those with
    /// something left.
    fn draining_rows(&self, from: u32, now: Instant) -> (Vec<DrainingRow>, Option<u32>);

    /// See [`crate::nat::Engine::wants_blocks`].
    fn wants_blocks(&mut self) -> bool;

    /// See [`crate::nat::Engine::blocks`].
    fn blocks(&self) -> Blocks;

    /// See [`crate::nat::Engine::give_blocks`].
    fn give_blocks(&mut self, to: WorkerId, owned: u32) -> Vec<BlockMove>;

    /// See [`crate::nat::Engine::block_moved`].
    fn block_moved(&mut self, moved: BlockMove) -> bool;

    /// Gives this block to another worker, if no port of it is taken; returns the message for all workers.
    fn give_spare(&mut self, port: u16, to: WorkerId) -> Option<BlockMove>;

    /// The same for a port that a host has asked for: this worker keeps half of an even share.
    fn give_wanted(&mut self, port: u16, to: WorkerId) -> Option<BlockMove>;

    /// Whether the block of this port is this worker's and has no port taken.
    fn is_spare(&self, port: u16) -> bool;

    /// Whether the endpoint is one that some worker may give to a host.
    fn gives(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) -> bool;

    /// The worker of an inside host.
    fn worker_of_inside(&self, host: Ipv6Addr) -> WorkerId;

    /// Whether blocks move between workers.
    fn blocks_move(&self) -> bool;

    /// Ports of a block that moves between workers.
    fn ports_per_block(&self) -> u16;

    /// How many port blocks subscribers have here; `None`: they have none.
    fn block_counts(&self) -> Option<BlockCounts>;

    /// The port blocks of addresses that were given to hosts, from a place on, at most `most` addresses, and where to continue.
    fn address_blocks(&self, from: u32, most: u32) -> (Vec<AddressBlocks>, Option<u32>);

    /// The worker of a block, by one of its ports.
    fn worker_of_block(&self, port: u16) -> WorkerId;

    /// Whether a host has bindings here.
    fn has_host(&self, host: Ipv6Addr) -> bool;

    /// Assigns a host to a worker, against its prefix, if the table of exceptions has room.
    fn except(&mut self, host: Ipv6Addr, worker: WorkerId);

    /// Offloads sessions to this fast path from now on, or to none.
    fn set_fast_path(&mut self, fast_path: Option<Box<dyn FastPath>>, packets: u32);

    /// Records the ports that are bound in this ledger from now on.
    fn set_ledger(&mut self, ledger: Box<dyn PortLedger>);

    /// Records what begins and ends from now on.
    fn set_event_sink(&mut self, sink: Box<dyn EventSink>);

    /// See [`crate::engine::Engine::take_back_under_way`].
    fn take_back_under_way(&mut self, counters: &mut Counters);

    /// See [`crate::engine::Engine::emptied`].
    fn emptied(&mut self, now: Instant);

    /// See [`crate::engine::Engine::settle`].
    fn settle_moving(&mut self, now: Instant, counters: &mut Counters);

    /// See [`crate::engine::Engine::adopt`].
    ///
    /// # Errors
    /// Why it is not adopted; nothing is changed.
    fn adopt(
        &mut self,
        flow: &OffloadedFlow,
        handle: FlowHandle,
        usage: &Usage,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted>;

    /// See [`crate::nat::Engine::restore`].
    ///
    /// # Errors
    /// Why it is not restored; nothing is changed.
    fn restore(
        &mut self,
        saved: &SavedSession,
        now: Instant,
        counters: &mut Counters,
    ) -> Result<(), NotAdopted>;

    /// See [`crate::nat::Engine::export`].
    fn export(&mut self, cursor: u32, slots: u32, now: Instant, saved: &mut Vec<SavedSession>)
    -> Option<u32>;

    /// See [`crate::nat::Engine::quarantine`].
    fn quarantine(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>, until: Instant) -> bool;

    /// Endpoints in quarantine.
    fn quarantined(&self) -> usize;

    /// This host's IPv4 addresses from now on: no new session leads to one, except to those that the configuration allows.
    fn set_host4(&mut self, host4: &[Ipv4Addr]);

    /// The local ends of this gateway's tunnels from now on.
    fn set_tunnel_ends(&mut self, ends: &Ends4);
}
