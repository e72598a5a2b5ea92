//! The interface of a worker to the engine, or to a simple substitute in a test.

use super::explicit::{ExplicitAnswer, ExplicitRequest};
use super::tunnels::TunnelSet;
use crate::admin::{Edit, Filter};
use sixway_dataplane::fair_share::SenderTable;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat46::MappingCounts;
use sixway_dataplane::mechanism::siit::dynamic_pool::{Changes, Record, Restored, WallClock};
use sixway_dataplane::mechanism::teredo::{PeerRow, TeredoChange, TeredoRow};
use sixway_dataplane::nat::{
    AddressBlocks, BlockCounts, BlockMove, Blocks, DrainingRow, NotBound, SavedSession, SubscriberRow,
};
use sixway_dataplane::{Counters, Frame, Instant, Outbox, WorkerId};
use sixway_link::LinkCounters;
use sixway_wire::{Endpoint4, Endpoint6, Prefix4};
use std::net::Ipv6Addr;
use std::time::Duration;

/// A part of a table to read, between two batches of packets.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'f> {
    /// Where to begin.
    pub from: Position,
    /// The most slots to look at.
    pub budget: usize,
    /// The most rows to add.
    pub room: usize,
    /// Which rows.
    pub filter: &'f Filter,
    /// The time, for the ages of rows.
    pub now: Instant,
}

/// One worker's packet engine.
pub trait Translator: Send + 'static {
    /// Gives every frame its verdict.
    fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox);
    /// Gives every frame its verdict that another worker handed over.
    fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox);
    /// A frame that was to be handed over found no room: it is a drop after all.
    fn refused_handover(&mut self, frame: &mut Frame);
    /// Time passes: a bounded amount of work.
    fn tick(&mut self, now: Instant, out: &mut Outbox);
    /// No link, inlet or other worker had a packet, and what was decided on so far has been sent.
    fn emptied(&mut self, now: Instant);
    /// Every queue was empty in the last turn, after what was taken out of it.
    fn caught_up(&mut self) {}
    /// Whether filters in front of the queues may drop packets: time has to pass although none arrives, or they would drop all.
    fn is_overloaded(&self) -> bool {
        false
    }
    /// Each queue has one of these filters in front of it, for the time of an overload.
    fn set_filters(&mut self, _filters: Vec<Box<dyn SenderTable>>) {}
    /// What was decided on so far has been sent.
    fn settle(&mut self, now: Instant);
    /// Stops offloading sessions, and moves offloaded ones back to the engine.
    fn end_fast_path(&mut self);
    /// The sessions for the next process with their mechanisms, except those in the fast path.
    fn export(&mut self, now: Instant) -> Vec<(Identity, SavedSession)>;
    /// The counters.
    fn counters(&self) -> Counters;
    /// How full each mechanism's tables are, in the order of the configuration.
    fn tables(&mut self) -> Vec<Table>;
    /// Adds the sessions that a scan finds to `rows`. Returns where the next scan begins; `None` at the end.
    fn sessions(&mut self, scan: Scan<'_>, rows: &mut Vec<SessionEntry>) -> Option<Position>;
    /// The same for bindings.
    fn bindings(&mut self, scan: Scan<'_>, rows: &mut Vec<BindingEntry>) -> Option<Position>;
    /// The same for subscribers of stateful mechanisms.
    fn subscribers(&mut self, scan: Scan<'_>, rows: &mut Vec<SubscriberEntry>) -> Option<Position>;
    /// What has changed in a mechanism's dynamic pool since the last call.
    fn pool_changes(&mut self, mechanism: u16, wall: WallClock) -> Changes;
    /// Hosts of a mechanism's dynamic pool, from a place on, and where to continue; `None` at the end.
    fn pool_hosts(&mut self, mechanism: u16, from: u32, wall: WallClock) -> (Vec<Record>, Option<u32>);
    /// The remaining use of addresses that stateful mechanisms drain, each with its mechanism: a part of it from a position on, and where
    /// to continue.
    fn draining(&mut self, _from: Position, _now: Instant) -> (Vec<(u16, DrainingRow)>, Option<Position>) {
        (Vec::new(), None)
    }
    /// The port blocks of addresses of a stateful mechanism from a position on, and where to continue.
    fn address_blocks(&mut self, _from: Position) -> (Vec<(u16, AddressBlocks)>, Option<Position>) {
        (Vec::new(), None)
    }
    /// Changes a stateful mechanism, with a bounded amount of work.
    fn edit(&mut self, mechanism: u16, edit: &Edit) -> Edited;
    /// Does what a PCP server wants of a stateful mechanism.
    fn explicit(&mut self, _mechanism: u16, _request: &ExplicitRequest, _now: Instant) -> ExplicitAnswer {
        ExplicitAnswer::NotBound(NotBound::NotInside)
    }
    /// Replaces the tunnels.
    fn set_tunnels(&mut self, set: &TunnelSet);
    /// Changes bindings of a 4over6 concentrator.
    fn change_leases(&mut self, _index: u16, _changes: &[(Prefix4, Option<Binding>)]) {}
    /// Changes a Teredo relay or client.
    fn change_teredo(&mut self, _index: u16, _change: &TeredoChange, _now: Instant) {}
    /// A Teredo relay or client, some of its peers from a position on, and where to continue.
    fn teredo_peers(&mut self, _index: u16, _from: u32, _now: Instant) -> TeredoPage {
        TeredoPage::default()
    }
    /// Learns what an ICMP error says of a tunnel's path, without answering it: another worker does.
    fn learn_path_error(&mut self, error: &[u8], now: Instant);
    /// ICMP errors about tunnel packets accepted since the last call: the other workers must learn from
    /// them.
    fn take_path_errors(&mut self) -> Vec<Vec<u8>>;
    /// How many port blocks a stateful mechanism has.
    fn blocks(&mut self, mechanism: u16) -> Blocks;
    /// Whether a stateful mechanism ran out of ports, or nearly did, since the last call.
    fn wants_blocks(&mut self, mechanism: u16) -> bool;
    /// Gives port blocks to a worker that has `owned` itself.
    fn give_blocks(&mut self, mechanism: u16, to: WorkerId, owned: u32) -> Vec<BlockMove>;
    /// Gives the block of a port that a host of another worker has asked for.
    fn give_wanted(&mut self, _mechanism: u16, _port: u16, _to: WorkerId) -> Option<BlockMove> {
        None
    }
    /// A port block has another owner; whether that was news.
    fn block_moved(&mut self, mechanism: u16, moved: BlockMove) -> bool;
    /// Whether packets are steered to the workers by this block of a stateful mechanism.
    fn steers_by(&mut self, mechanism: u16, _block: u16) -> bool {
        mechanism == 0
    }
    /// Takes over those of the records that are this worker's, into a fresh pool. How many it took.
    fn restore_pool(&mut self, mechanism: u16, records: &[Record], wall: WallClock) -> Restored;
}

/// The known data about a Teredo relay or client, some of its peers, and where to continue.
pub type TeredoPage = (TeredoRow, Vec<PeerRow>, Option<u32>);

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edited {
    /// Done.
    Done,
    /// Partly done: repeat the command.
    More,
    /// Nothing to change.
    Absent,
    /// It failed: why.
    Refused(String),
}

/// A place in a worker's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The mechanism, by its place in the configuration.
    pub mechanism: u16,
    /// The place in its table.
    pub slot: u32,
}

/// How full a mechanism's tables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Live sessions.
    pub sessions: u64,
    /// Maximum number of sessions.
    pub sessions_capacity: u64,
    /// Live sessions of protocols without ports.
    pub portless_sessions: u64,
    /// Maximum number of them.
    pub portless_capacity: u64,
    /// Live bindings, or addresses in use.
    pub bindings: u64,
    /// Maximum number of bindings.
    pub bindings_capacity: u64,
    /// Of a pool of addresses and ports: how many of these there are for each protocol.
    pub ports: u64,
    /// How many of them are taken, by protocol ([`NatProtocol`]).
    pub ports_used: [u64; 3],
    /// Its port blocks; their size is 0 where subscribers have none.
    pub blocks: BlockCounts,
    /// The mappings of a NAT46.
    pub mappings: MappingCounts,
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// The mechanism, by its place in the configuration.
    pub mechanism: u16,
    /// The protocol number; ICMP is IPv4's.
    pub protocol: u8,
    /// The B4 that the inside endpoint is behind (RFC 6333).
    pub softwire: Option<Ipv6Addr>,
    /// The inside endpoint; `None` while a packet from outside waits for one.
    pub inside: Option<Endpoint6>,
    /// The outside endpoint.
    pub outside: Endpoint4,
    /// The remote endpoint.
    pub remote: Endpoint4,
    /// The state's name.
    pub state: &'static str,
    /// Time since its last packet, if known.
    pub idle: Option<Duration>,
    /// Time until it expires without further packets.
    pub ends_in: Duration,
    /// Packets outwards and inwards, if they are counted.
    pub packets: Option<(u64, u64)>,
    /// Octets outwards and inwards, if they are counted.
    pub octets: Option<(u64, u64)>,
    /// Whether the fast path has an entry for it.
    pub offloaded: bool,
}

impl SessionEntry {
    /// The inside endpoint as a filter may name it: by its own address, and by its B4's.
    pub fn sides(&self) -> impl Iterator<Item = Option<Endpoint6>> {
        sides(self.softwire, self.inside)
    }
}

impl BindingEntry {
    /// The inside endpoint as a filter may name it: by its own address, and by its B4's.
    pub fn sides(&self) -> impl Iterator<Item = Endpoint6> {
        sides(self.softwire, Some(self.inside)).flatten()
    }
}

fn sides(softwire: Option<Ipv6Addr>, inside: Option<Endpoint6>) -> impl Iterator<Item = Option<Endpoint6>> {
    let by_b4 = softwire.zip(inside).map(|(b4, inside)| Some(Endpoint6::new(b4, inside.port)));
    std::iter::once(inside).chain(by_b4)
}

/// A binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingEntry {
    /// The mechanism, by its place in the configuration.
    pub mechanism: u16,
    /// The protocol number; ICMP is IPv4's; `None` for all of them.
    pub protocol: Option<u8>,
    /// The B4 that the inside endpoint is behind (RFC 6333).
    pub softwire: Option<Ipv6Addr>,
    /// The inside endpoint; port 0 for a whole address.
    pub inside: Endpoint6,
    /// The outside endpoint; port 0 for a whole address.
    pub outside: Endpoint4,
    /// How it came about: `static`, `dynamic`.
    pub kind: &'static str,
    /// Sessions that use it.
    pub sessions: u64,
    /// With NAT46, the server that the outside address represents.
    pub server: Option<Ipv6Addr>,
}

/// A subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberEntry {
    /// The mechanism, by its place in the configuration.
    pub mechanism: u16,
    /// Its data.
    pub row: SubscriberRow,
}

/// A worker's report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its engine's counters.
    pub counters: Counters,
    /// Its queues' counters, added up.
    pub link: LinkCounters,
    /// Its mechanisms' tables.
    pub tables: Vec<Table>,
}
