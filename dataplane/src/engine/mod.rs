//! The path of a packet: parse, classify, decide, execute, and again if the result is ours.
//!
//! The way of one packet is in `walk`, that of fragments in `whole`; `owner` says whose a packet is.
//!
//! Packets go through in strides, so that the cache misses of one stride's look-ups overlap.

mod fast_path;
mod narrow_path;
mod original;
mod owner;
mod stride;
mod tunnel_errors;
mod tunnels;
mod walk;
mod whole;

use crate::classify::{Owner, Steering};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::{FragmentLimits, Joining, Reassembly};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::mechanism::nat64::{Due, Nat64, Nat64Config, Probe};
use crate::mechanism::siit::dynamic_pool::DynamicPoolFault;
use crate::mechanism::siit::{Siit, SiitConfig};
use crate::parse::{self, Addresses, Packet};
use crate::rewrite::icmp_error::{IcmpDetail, IcmpErrors};
use crate::rewrite::{IPV6_MIN_MTU, Rewriter};
use crate::tunnel::identification::Identifications;
use crate::verdict::{Outbox, PolicyId, Verdict, WorkerId};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use original::Original;
use tunnels::Tunnels;

pub use fast_path::PACKETS_BEFORE_OFFLOAD;
pub use narrow_path::PathErrorJudge;
pub use tunnels::TunnelConfig;

/// A packet passes at most so many mechanisms (hairpins included).
pub const MAX_PASSES: usize = 3;
/// Entries of a table that one tick ends or moves at most.
const EXPIRED_AT_ONCE: usize = 64;
/// Packets whose look-ups are overlapped, and that may be joined; a bit of a word for each.
const STRIDE: usize = 64;

/// What an engine is built from.
#[derive(Clone)]
pub struct EngineConfig {
    /// The gateway's own IPv4 address: answers echo requests, and is the source of ICMP errors.
    pub own4: Option<Ipv4Addr>,
    /// The gateway's own IPv6 address.
    pub own6: Option<Ipv6Addr>,
    /// MTUs of the next links.
    pub limits: Limits,
    /// Stateful translators.
    pub nat64: Vec<Nat64Config>,
    /// Stateless translators.
    pub siit: Vec<SiitConfig>,
    /// Tunnels of IPv6 in IPv4.
    pub tunnels: Vec<TunnelConfig>,
    /// This host's IPv4 addresses: no tunnel's packets go there or come from there.
    pub host4: Vec<Ipv4Addr>,
    /// This host's IPv6 addresses: what it sends from them into a tunnel runs in no circle.
    pub host6: Vec<Ipv6Addr>,
    /// Whether TCP segments and UDP datagrams that come out of tunnels are joined to super-frames.
    pub join: bool,
    /// ICMP errors made in a second, at most; 0: none.
    pub icmp_errors_per_second: u32,
    /// Bounds on fragments that wait for the rest of their packet; those of tunnel packets, and of all others, have each as much.
    pub fragments: FragmentLimits,
    /// Which worker this engine belongs to.
    pub worker: WorkerId,
    /// How many workers there are.
    pub workers: u8,
    /// Secret randomness: ports, hashes and identifications follow from it.
    pub seed: [u64; 2],
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            own4: None,
            own6: None,
            limits: Limits::default(),
            nat64: Vec::new(),
            siit: Vec::new(),
            tunnels: Vec::new(),
            host4: Vec::new(),
            host6: Vec::new(),
            join: true,
            icmp_errors_per_second: 1_000,
            fragments: FragmentLimits::default(),
            worker: WorkerId(0),
            workers: 1,
            seed: [0, 0],
        }
    }
}

/// One worker's engine.
pub struct Engine {
    steering: Steering,
    nat64: Vec<Nat64>,
    siit: Vec<Siit>,
    /// The stateless translator that takes IPv4 destinations that nobody names.
    default_siit: Option<u8>,
    tunnels: Tunnels,
    rewriter: Rewriter,
    icmp_errors: IcmpErrors,
    reassembly: Reassembly,
    /// Fragments of what comes through tunnels.
    outer_reassembly: Reassembly,
    joining: Joining,
    join: bool,
    counters: Counters,
    slots: Vec<Slot>,
    original: Original,
    worker: WorkerId,
    workers: u8,
    seed: u64,
}

/// A packet of the stride between the steps.
#[derive(Clone, Copy)]
struct Slot {
    packet: Packet,
    owner: Owner,
    probe: Probe,
    /// Position in the stride.
    frame: u32,
}

impl Slot {
    const EMPTY: Self = Self { packet: Packet::EMPTY, owner: Owner::Gateway, probe: Probe::EMPTY, frame: 0 };
}

impl Engine {
    /// An engine with empty tables.
    ///
    /// Fails where a dynamic pool cannot be what it is configured to be.
    pub fn new(config: &EngineConfig) -> Result<Self, DynamicPoolFault> {
        let mut policies = Vec::new();
        let mut prefixes = Vec::new();
        let mut nat64 = Vec::new();
        for (index, one) in config.nat64.iter().enumerate() {
            prefixes.push((one.prefix.prefix(), Owner::Nat64(index as u8)));
            let policy = PolicyId(policies.len() as u16);
            policies.push(one.policy);
            let mut made = Nat64::new(one, policy, config.worker, config.workers, config.seed);
            let others = config.nat64.iter().enumerate().filter(|(other, _)| *other != index);
            made.refuse_sources(others.map(|(_, other)| other.prefix.prefix()));
            nat64.push(made);
        }
        let mut siit = Vec::new();
        let mut default_siit = None;
        for (index, one) in config.siit.iter().enumerate() {
            if let Some(prefix) = &one.prefix {
                prefixes.push((prefix.prefix(), Owner::Siit(index as u8)));
                default_siit = default_siit.or(Some(index as u8));
            }
            let policy = PolicyId(policies.len() as u16);
            policies.push(one.policy);
            siit.push(Siit::new(one, policy, config)?);
        }
        prefixes.extend(tunnels::steered(&config.tunnels));
        let tunnel_policies = config.tunnels.iter().map(TunnelConfig::policy).collect();
        // An address that the host shares with a pool: what comes to the gateway of it is the pool's.
        let is_shared = |own: &Ipv4Addr| nat64.iter().any(|nat64| nat64.owns_outside(*own));
        Ok(Self {
            steering: Steering::new(config.own4.filter(|own| !is_shared(own)), config.own6, prefixes),
            nat64,
            siit,
            default_siit,
            tunnels: Tunnels::new(&config.tunnels, &config.host4, &config.host6, config.own6, config.seed[1]),
            rewriter: Rewriter::new(
                config.limits,
                policies,
                tunnel_policies,
                Identifications::new(config.worker, config.workers, config.seed[0]),
                config.seed[1],
            ),
            icmp_errors: IcmpErrors::new(
                config.icmp_errors_per_second,
                config.own4,
                config.own6,
                config.seed[1],
            ),
            reassembly: Reassembly::new(config.fragments, config.seed[0] ^ config.seed[1].rotate_left(32)),
            outer_reassembly: Reassembly::new(
                config.fragments,
                config.seed[0].rotate_left(16) ^ config.seed[1],
            ),
            joining: Joining::default(),
            join: config.join,
            counters: Counters::default(),
            slots: vec![Slot::EMPTY; STRIDE],
            original: Original::default(),
            worker: config.worker,
            workers: config.workers.max(1),
            seed: config.seed[1],
        })
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The stateful translators, in the order of the configuration.
    pub fn nat64(&mut self) -> &mut [Nat64] {
        &mut self.nat64
    }

    /// The stateful translators, and the counters that an operator's changes to them move.
    pub fn nat64_and_counters(&mut self) -> (&mut [Nat64], &mut Counters) {
        (&mut self.nat64, &mut self.counters)
    }

    /// The stateless translators, in the order of the configuration.
    pub fn siit(&mut self) -> &mut [Siit] {
        &mut self.siit
    }

    /// Gives every frame that came from a link its verdict. The caller sends in the order of the frames: those that leave, and at
    /// the place of each the frames of `out` up to the end of its [`Frame::pieces`]; then what else is in `out`.
    pub fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.counters.received += frames.len() as u64;
        self.go(frames, now, out);
    }

    /// The same for frames that another worker's engine handed over.
    pub fn take_over(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.counters.taken_over += frames.len() as u64;
        self.go(frames, now, out);
    }

    /// A frame that was to be handed over found the ring full: it is dropped after all.
    pub fn refused_handover(&mut self, frame: &mut Frame) {
        frame.verdict = Verdict::Dropped(DropReason::HandoverFull);
        self.counters.handed_over -= 1;
        self.counters.dropped[DropReason::HandoverFull as usize] += 1;
    }

    fn go(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        self.rewriter.set_time(now);
        if let [frame] = frames {
            return self.one(frame, now, out);
        }
        let mut slots = core::mem::take(&mut self.slots);
        for stride in frames.chunks_mut(STRIDE) {
            let count = self.read(stride, &mut slots, now, out);
            self.look_up(&mut slots[..count]);
            self.translate(stride, &slots[..count], now, out);
            if self.join && !self.tunnels.is_empty() {
                self.join_decapsulated(stride, &slots[..count]);
            }
        }
        self.slots = slots;
    }

    /// Time passes: what has expired ends, a bounded amount of it. Call it after each batch and when nothing comes.
    pub fn tick(&mut self, now: Instant, out: &mut Outbox) {
        for siit in &mut self.siit {
            siit.expire(now, EXPIRED_AT_ONCE);
        }
        for nat64 in &mut self.nat64 {
            let (counters, errors) = (&mut self.counters, &mut self.icmp_errors);
            let mut dues = Vec::new();
            nat64.expire(now, EXPIRED_AT_ONCE, counters, |due| dues.push(due));
            for due in dues {
                match due {
                    Due::UnansweredSyn(octets) => {
                        answer_later(
                            errors,
                            DropReason::InboundSyn,
                            &as_long_as_it_says(octets),
                            now,
                            out,
                            counters,
                        );
                    }
                    // A probe that finds no room in the outbox is lost; the session then ends as if it was not answered.
                    Due::Probe(probed) => {
                        if let Ok(frame) = out.push(probed.packet.len()) {
                            frame.bytes_mut().copy_from_slice(&probed.packet);
                            counters.tcp_probes_made += 1;
                        }
                    }
                }
            }
        }
        let (counters, errors) = (&mut self.counters, &mut self.icmp_errors);
        self.reassembly.expire(now, EXPIRED_AT_ONCE, |expired| {
            counters.held -= u64::from(expired.fragments);
            counters.dropped[DropReason::FragmentTimeout as usize] += u64::from(expired.fragments);
            if let Some(first) = &expired.first {
                answer_later(errors, DropReason::FragmentTimeout, first, now, out, counters);
            }
        });
        // Nobody is told: the outer source may be anyone's, and what it sent lies behind the error's quote.
        self.outer_reassembly.expire(now, EXPIRED_AT_ONCE, |expired| {
            counters.held -= u64::from(expired.fragments);
            counters.dropped[DropReason::FragmentTimeout as usize] += u64::from(expired.fragments);
        });
    }

    /// A packet by itself, from its octets to its verdict.
    #[inline(always)]
    fn one(&mut self, frame: &mut Frame, now: Instant, out: &mut Outbox) {
        let mut packet = Packet::EMPTY;
        if let Err(reason) = parse::parse_into(frame.bytes(), &mut packet) {
            return self.refuse(reason, frame, None, now, out);
        }
        let verdict = match self.classify(&packet, frame.passes) {
            Ok(Some(owner)) => {
                if self.workers > 1
                    && let Some(worker) = self.elsewhere(frame, &packet, owner)
                {
                    return self.conclude(Verdict::HandOver(worker), frame);
                }
                let mut probe = Probe::EMPTY;
                if let Owner::Nat64(index) = owner {
                    let nat64 = &self.nat64[usize::from(index)];
                    nat64.probe(&packet, &mut probe);
                    nat64.warm(&mut probe);
                }
                self.walk(frame, &packet, owner, &probe, now, out)
            }
            Ok(None) => Ok(Verdict::Punted),
            Err(reason) => Err(reason),
        };
        match verdict {
            Ok(verdict) => self.conclude(verdict, frame),
            Err(reason) => self.refuse(reason, frame, Some(&packet), now, out),
        }
    }

    /// Parses and classifies a stride into the first slots, and says how many. What fails here is dropped here.
    fn read(&mut self, stride: &mut [Frame], slots: &mut [Slot], now: Instant, out: &mut Outbox) -> usize {
        let mut count = 0;
        for (index, frame) in stride.iter_mut().enumerate() {
            let Some(slot) = slots.get_mut(count) else { return count };
            if let Err(reason) = parse::parse_into(frame.bytes(), &mut slot.packet) {
                self.refuse(reason, frame, None, now, out);
                continue;
            }
            match self.classify(&slot.packet, frame.passes) {
                Ok(Some(owner)) => {
                    if self.workers > 1
                        && let Some(worker) = self.elsewhere(frame, &slot.packet, owner)
                    {
                        self.conclude(Verdict::HandOver(worker), frame);
                        continue;
                    }
                    slot.owner = owner;
                    slot.frame = index as u32;
                    count += 1;
                }
                Ok(None) => self.conclude(Verdict::Punted, frame),
                Err(reason) => self.refuse(reason, frame, Some(&slot.packet), now, out),
            }
        }
        count
    }

    /// Starts the look-ups of a stride, so that their cache misses overlap: first the index slots, then the sessions.
    fn look_up(&self, slots: &mut [Slot]) {
        if self.nat64.is_empty() {
            return;
        }
        for slot in slots.iter_mut() {
            if let Owner::Nat64(index) = slot.owner {
                self.nat64[usize::from(index)].probe(&slot.packet, &mut slot.probe);
            }
        }
        for slot in slots {
            if let Owner::Nat64(index) = slot.owner {
                self.nat64[usize::from(index)].warm(&mut slot.probe);
            }
        }
    }

    #[inline(always)]
    fn translate(&mut self, stride: &mut [Frame], slots: &[Slot], now: Instant, out: &mut Outbox) {
        let mut rest = slots;
        while let [slot, behind @ ..] = rest {
            if slot.owner.is_tunnel() {
                rest = self.through_tunnels(stride, rest, now, out);
                continue;
            }
            rest = behind;
            let frame = &mut stride[slot.frame as usize];
            match self.walk(frame, &slot.packet, slot.owner, &slot.probe, now, out) {
                Ok(verdict) => self.conclude(verdict, frame),
                Err(reason) => self.refuse(reason, frame, Some(&slot.packet), now, out),
            }
        }
    }

    /// Counts a frame that was not dropped.
    #[inline(always)]
    fn conclude(&mut self, verdict: Verdict, frame: &mut Frame) {
        frame.verdict = verdict;
        match verdict {
            Verdict::Forward => {
                self.counters.forwarded += 1;
                self.counters.octets += frame.len() as u64;
                let at = usize::from(frame.offload.transport);
                self.counters.packets += u64::from(frame.segment_count(at, frame.len().saturating_sub(at)));
            }
            Verdict::InPieces => self.counters.forwarded += 1,
            Verdict::Answered => self.counters.answered += 1,
            Verdict::Punted => self.counters.punted += 1,
            Verdict::Control => self.counters.to_control += 1,
            Verdict::Held => self.counters.held += 1,
            Verdict::HandOver(_) => self.counters.handed_over += 1,
            // Counted where the packet's other fragments are.
            Verdict::Merged | Verdict::Pending | Verdict::Dropped(_) => {}
        }
    }

    /// Counts a drop, and tells the sender where the reason has an answer.
    #[cold]
    fn refuse(
        &mut self,
        reason: DropReason,
        frame: &mut Frame,
        packet: Option<&Packet>,
        now: Instant,
        out: &mut Outbox,
    ) {
        frame.verdict = Verdict::Dropped(reason);
        self.counters.dropped[reason as usize] += 1;
        let original = self.original.packet.take();
        let tunnel = self.rewriter.tunnel_too_small();
        let mtu = |packet| match tunnel {
            Some(mtu) => mtu.into(),
            None => sender_mtu(packet, self.rewriter.limits(), original.is_some()),
        };
        let (frame, packet) = match &original {
            Some(_) => (&self.original.frame, original.as_ref()),
            None => (&*frame, packet),
        };
        let detail = match packet {
            Some(packet) if reason == DropReason::PacketTooBig => IcmpDetail::Mtu(mtu(packet)),
            Some(_) | None => IcmpDetail::None,
        };
        self.icmp_errors.answer(reason, frame, packet, detail, now, out, &mut self.counters);
    }
}

/// An IPv4 packet of which only the start was kept, with zeros for the rest: what an error quotes is its start.
fn as_long_as_it_says(octets: Box<[u8]>) -> Frame {
    let mut octets = octets.into_vec();
    if let Some(&[high, low]) = octets.get(2..4) {
        octets.resize(octets.len().max(u16::from_be_bytes([high, low]).into()), 0);
    }
    Frame::holding(&octets)
}

/// Tells the sender of a packet that was held and is dropped.
fn answer_later(
    errors: &mut IcmpErrors,
    reason: DropReason,
    frame: &Frame,
    now: Instant,
    out: &mut Outbox,
    counters: &mut Counters,
) {
    if let Ok(packet) = parse::parse(frame.bytes()) {
        errors.answer(reason, frame, Some(&packet), IcmpDetail::None, now, out, counters);
    }
}

/// The largest packet of the sender's family that the next link carries, translated there (RFC 7915 §4.1, §5.1) or, as a
/// hairpin, translated twice.
fn sender_mtu(packet: &Packet, limits: &Limits, hairpinned: bool) -> u32 {
    let (mtu4, mtu6) = (u32::from(limits.mtu4), u32::from(limits.mtu6));
    match (packet.addresses, hairpinned) {
        // A fragment gets a Fragment header.
        (Addresses::V4 { .. }, false) if packet.fragment.is_some() => mtu6.saturating_sub(28),
        (Addresses::V4 { .. }, false) => mtu6.saturating_sub(20),
        (Addresses::V4 { .. }, true) => mtu4,
        (Addresses::V6 { .. }, false) => (mtu4 + 20).max(IPV6_MIN_MTU as u32),
        (Addresses::V6 { .. }, true) => mtu6,
    }
}
