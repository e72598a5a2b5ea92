//! The path of a packet: parse, classify, prepare, decide, execute, and again if the result is ours.
//!
//! ```text
//!     batch    strides, cut into runs of packets of one mechanism      path   one packet: decided, executed, counted
//!     walk     packets by themselves: ICMP errors, fragments, further passes, what another worker handed over
//!     whole    fragments that wait for their packet                    owner  whose a packet is
//!     ends     IPv6-in-IPv4 tunnels by local address                   pair_ends  other tunnels by both ends
//!     tunnel_errors  ICMP errors from tunnel paths                     path_news  those that other workers learn
//!     fast_path      sessions for the fast path                        beside     what leaves next to packets
//! ```

mod batch;
mod beside;
mod config;
mod ends;
mod fast_path;
mod inheritance;
mod narrow_path;
mod original;
mod owner;
mod pair_ends;
mod path;
mod path_news;
mod tunnel_errors;
mod walk;
mod whole;

use crate::classify::{Destinations4, Steering};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::fragment::{Joining, Reassembly};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::mechanism::contract::{InsideClaim, Mechanism, Share};
use crate::mechanism::nat64::Nat64;
use crate::mechanism::siit::Siit;
use crate::mechanism::siit::dynamic_pool::DynamicPoolFault;
use crate::mechanism::table::{Kind, Mechanisms, with_row, with_row_ref};
use crate::rewrite::Rewriter;
use crate::rewrite::icmp_error::IcmpErrors;
use crate::tunnel::identification::Identifications;
use crate::verdict::{MechanismId, Outbox, PolicyId, Verdict};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use batch::Slot;
use core::net::{Ipv4Addr, Ipv6Addr};
use ends::{Ends, Hosts, TunnelAt, own_addresses};
use original::Original;
use pair_ends::PairEnds;
use path::{Batch, Path};
use path_news::PathNews;
use sixway_wire::{Prefix4, Prefix6};

pub use config::{EngineConfig, TunnelConfig};
pub use fast_path::PACKETS_BEFORE_OFFLOAD;
pub use inheritance::Ends as SessionEnds;
pub use narrow_path::PathErrorJudge;

/// A packet passes at most so many mechanisms (hairpins included).
pub const MAX_PASSES: usize = 3;
/// Entries of a table that one tick ends or moves at most.
const EXPIRED_AT_ONCE: usize = 64;
/// Packets whose look-ups are overlapped, and that may be joined; a bit of a word for each.
const STRIDE: usize = 64;

/// One worker's engine.
pub struct Engine {
    steering: Steering,
    mechanisms: Mechanisms,
    /// Who names IPv4 addresses, in the order in which they are asked.
    names4: Vec<MechanismId>,
    /// The one that is asked about all others in any case.
    sure4: Option<MechanismId>,
    /// The one that is asked about all, where nobody else names any.
    all4: Option<MechanismId>,
    /// Who names IPv6 addresses by a table.
    names6: Vec<MechanismId>,
    /// What mechanisms claim by where it comes from: the longest prefixes first.
    inside6: Vec<(InsideClaim, MechanismId)>,
    /// The mechanism that takes IPv4 destinations that nobody names.
    rest4: Option<MechanismId>,
    ends: Ends,
    pair_ends: PairEnds,
    own6: Option<Ipv6Addr>,
    path_news: PathNews,
    path: Path,
    reassembly: Reassembly,
    /// Fragments of what comes through tunnels, from anyone.
    outer_reassembly: Reassembly,
    /// The same from the other ends of tunnels that have but one: a table that strangers cannot fill.
    peer_reassembly: Reassembly,
    joining: Joining,
    join: bool,
    slots: Vec<Slot>,
    /// What it was made from, and may be made from again.
    config: EngineConfig,
    workers: u8,
}

impl Engine {
    /// An engine with empty tables.
    ///
    /// Fails where a dynamic pool cannot be what it is configured to be.
    pub fn new(config: &EngineConfig) -> Result<Self, DynamicPoolFault> {
        let seed = config.seed;
        let identifications = Identifications::new(config.worker, config.workers, seed[0]);
        let rewriter = Rewriter::new(config.limits, identifications, seed[1]);
        let errors = IcmpErrors::new(config.icmp_errors_per_second, config.own4, config.own6, seed[1]);
        let mut engine = Self {
            steering: Steering::default(),
            mechanisms: Mechanisms::default(),
            names4: Vec::new(),
            sure4: None,
            all4: None,
            names6: Vec::new(),
            inside6: Vec::new(),
            rest4: None,
            ends: Ends::default(),
            pair_ends: PairEnds::default(),
            own6: config.own6,
            path_news: PathNews::default(),
            path: Path {
                rewriter,
                errors,
                effects: Effects::default(),
                original: Original::default(),
                hosts: Hosts::default(),
                aside: None,
            },
            reassembly: Reassembly::new(config.fragments, seed[0] ^ seed[1].rotate_left(32)),
            outer_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(16) ^ seed[1]),
            peer_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(48) ^ seed[1]),
            joining: Joining::default(),
            join: config.join,
            slots: vec![Slot::EMPTY; STRIDE],
            config: config.clone(),
            workers: config.workers.max(1),
        };
        engine.build(0)?;
        Ok(engine)
    }

    /// Makes the mechanisms from this place of the configuration on.
    fn build(&mut self, first: usize) -> Result<(), DynamicPoolFault> {
        let share = share(&self.config, self.own6);
        let (mut policies, mut tunnel_policies) = (Vec::new(), Vec::new());
        let (mut destinations, mut tunnels): (Vec<(Prefix6, MechanismId)>, Vec<_>) = (Vec::new(), Vec::new());
        let (mut destinations4, mut pair_ends) = (Vec::new(), Vec::new());
        let mut known = [0_u16; Kind::COUNT];
        for (number, config) in self.config.all().enumerate() {
            let (policy, claims) = (PolicyId(number as u16), config.claims());
            policies.push(config.policy());
            tunnel_policies.push(config.tunnel_policy());
            let index = &mut known[config.kind() as usize];
            let id = MechanismId { kind: config.kind(), index: *index };
            *index += 1;
            if number >= first {
                self.mechanisms.add(&config, policy, &share)?;
                if claims.names {
                    self.names4.push(id);
                    self.names6.push(id);
                }
                self.rest4 = self.rest4.or(claims.rest4.then_some(id));
                self.inside6.extend(claims.inside6.into_iter().map(|claim| (claim, id)));
            }
            destinations.extend(claims.destinations6.into_iter().map(|prefix| (prefix, id)));
            destinations4.extend(claims.destinations4.into_iter().map(|prefix| (prefix, id)));
            tunnels.extend(config.local().map(|local| (TunnelAt { id, policy }, local)));
            pair_ends.extend(config.ends().map(|ends| (ends, TunnelAt { id, policy })));
        }
        self.inside6.sort_by_key(|(claim, _)| core::cmp::Reverse(claim.sources.length()));
        // The mechanism that takes the rest is asked about every other destination. If tunnels have IPv4 prefixes, those are asked first, after
        // tables.
        self.names4.extend(self.sure4.take());
        if destinations4.iter().all(|(_, id): &(Prefix4, MechanismId)| id.kind.is_routed()) {
            self.sure4 =
                self.names4.pop_if(|id| with_row_ref!(self.mechanisms, id.kind, row => row.takes_rest()));
        }
        self.ends = Ends::new(tunnels.into_iter(), &self.mechanisms, self.config.seed[1]);
        self.pair_ends = PairEnds::new(&pair_ends, self.config.seed[1]);
        self.pair_ends.locals4().iter().for_each(|address| self.ends.add_address(*address));
        self.path.hosts = Hosts::new(&self.config, self.own6);
        self.path.rewriter.set_policies(policies, tunnel_policies);
        let destinations4 = Destinations4::new(destinations4);
        self.all4 = self.sure4.filter(|_| self.names4.is_empty() && destinations4.is_empty());
        // An address that the host shares with a pool: what comes to the gateway of it is the pool's. It is behind no tunnel.
        let is_shared = |own: &Ipv4Addr| destinations4.owner(*own).is_some_and(|id| id.kind.is_routed());
        let own4 = self.config.own4.filter(|own| !is_shared(own));
        self.steering = Steering::new(own4, self.own6, destinations, destinations4);
        self.steering.set_ends6(self.pair_ends.locals6());
        Ok(())
    }

    /// Another address of the gateway's own from now on: one that follows a tunnel's. The tunnels learn of it when they are set.
    pub fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.own6 = own6;
        self.steering.set_own6(own6);
        self.path.errors.set_own6(own6);
    }

    /// Other tunnels from now on, and other addresses of this host: an address has changed. What is known of the paths stays.
    pub fn set_tunnels(&mut self, configs: &[TunnelConfig], host4: &[Ipv4Addr], host6: &[Ipv6Addr]) {
        for config in &self.config.tunnels {
            self.mechanisms.clear(config.kind());
        }
        self.config.tunnels = configs.to_vec();
        (self.config.host4, self.config.host6) = (host4.to_vec(), host6.to_vec());
        // Only a dynamic pool can fail, and those stay as they are.
        let _built = self.build(self.config.fixed());
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &Counters {
        &self.path.effects.counters
    }

    /// The stateful translators, in the order of the configuration.
    pub fn nat64(&mut self) -> &mut [Nat64] {
        &mut self.mechanisms.nat64.all
    }

    /// The stateful translators, and the counters that an operator's changes to them move.
    pub fn nat64_and_counters(&mut self) -> (&mut [Nat64], &mut Counters) {
        (&mut self.mechanisms.nat64.all, &mut self.path.effects.counters)
    }

    /// The stateless translators, in the order of the configuration.
    pub fn siit(&mut self) -> &mut [Siit] {
        &mut self.mechanisms.siit.all
    }

    /// Gives every frame that came from a link its verdict. The caller sends in the order of the frames: those that leave, and at
    /// the place of each the frames of `out` up to the end of its [`Frame::pieces`]; then what else is in `out`.
    pub fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.path.effects.counters.received += frames.len() as u64;
        self.go(frames, Batch { now, out });
    }

    /// The same for frames that another worker's engine handed over.
    pub fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.path.effects.counters.taken_over += frames.len() as u64;
        self.go(frames, Batch { now, out });
    }

    /// A frame that was to be handed over found the ring full: it is dropped after all.
    pub fn refused_handover(&mut self, frame: &mut Frame) {
        frame.verdict = Verdict::Dropped(DropReason::HandoverFull);
        let counters = &mut self.path.effects.counters;
        counters.handed_over -= 1;
        counters.dropped[DropReason::HandoverFull as usize] += 1;
    }

    /// Time passes: what has expired ends, a bounded amount of it. Call it after each batch and when nothing comes.
    pub fn tick(&mut self, now: Instant, out: &mut Outbox) {
        for kind in Kind::ALL {
            with_row!(self.mechanisms, kind, row => {
                for mechanism in &mut row.all {
                    Mechanism::expire(mechanism, now, EXPIRED_AT_ONCE, &mut self.path.effects);
                }
            });
        }
        let mut batch = Batch { now, out };
        self.path.send_beside(&mut batch);
        if self.fragment_tables().iter().any(|table| !table.is_empty()) {
            self.expire_fragments(&mut batch);
        }
    }
}

/// A worker's share, as its mechanisms are made for it.
fn share(config: &EngineConfig, own6: Option<Ipv6Addr>) -> Share {
    Share {
        worker: config.worker,
        workers: config.workers,
        seed: config.seed,
        worker_key: config.worker_key,
        own4: config.own4,
        own6: config.own6,
        translation_prefixes: config.nat64.iter().map(|nat64| nat64.prefix.prefix()).collect(),
        own_addresses: Arc::new(own_addresses(config, own6)),
    }
}

/// The tunnels alone, each with where it ends; their policies are numbered from zero.
fn tunnel_states(config: &EngineConfig) -> (Mechanisms, Vec<(TunnelAt, Ipv4Addr)>) {
    let (share, mut mechanisms, mut tunnels) =
        (share(config, config.own6), Mechanisms::default(), Vec::new());
    for (number, one) in config.tunnels.iter().enumerate() {
        let policy = PolicyId(number as u16);
        if let (Ok(id), Some(local)) = (mechanisms.add(one, policy, &share), one.local()) {
            tunnels.push((TunnelAt { id, policy }, local));
        }
    }
    (mechanisms, tunnels)
}
