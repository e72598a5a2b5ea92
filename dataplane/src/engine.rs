//! The path of a packet: parse, classify, decide, execute, and again if the result is ours.
//!
//! Packets go through in strides, so that the cache misses of one stride's look-ups overlap.

mod original;

use crate::classify::source_check;
use crate::classify::{Owner, Steering};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::{Admission, FragmentLimits, Reassembly};
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::mechanism::nat64::{Arrival, Due, Nat64, Nat64Config, Outcome, Probe};
use crate::mechanism::siit::dynamic_pool::DynamicPoolFault;
use crate::mechanism::siit::{Siit, SiitConfig};
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::rewrite::icmp_error::{IcmpDetail, IcmpErrors};
use crate::rewrite::{Executed, IPV6_MIN_MTU, Pass, Rewriter, echo};
use crate::verdict::{Decision, Next, Outbox, PolicyId, Verdict, WorkerId};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use original::Original;

/// A packet passes at most so many mechanisms (hairpins included).
pub const MAX_PASSES: usize = 3;
/// Entries of a table that one tick ends or moves at most.
const EXPIRED_AT_ONCE: usize = 64;
/// Packets whose look-ups are overlapped.
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
    /// ICMP errors made in a second, at most; 0: none.
    pub icmp_errors_per_second: u32,
    /// Bounds on fragments that wait for the rest of their packet.
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
    rewriter: Rewriter,
    icmp_errors: IcmpErrors,
    reassembly: Reassembly,
    counters: Counters,
    slots: Vec<Slot>,
    original: Original,
    worker: WorkerId,
    workers: u8,
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
            let policy = PolicyId(policies.len() as u8);
            policies.push(one.policy);
            nat64.push(Nat64::new(one, policy, config.worker, config.workers, config.seed));
        }
        let mut siit = Vec::new();
        let mut default_siit = None;
        for (index, one) in config.siit.iter().enumerate() {
            if let Some(prefix) = &one.prefix {
                prefixes.push((prefix.prefix(), Owner::Siit(index as u8)));
                default_siit = default_siit.or(Some(index as u8));
            }
            let policy = PolicyId(policies.len() as u8);
            policies.push(one.policy);
            siit.push(Siit::new(one, policy, config)?);
        }
        Ok(Self {
            steering: Steering::new(config.own4, config.own6, prefixes),
            nat64,
            siit,
            default_siit,
            rewriter: Rewriter::new(config.limits, policies, config.seed[0]),
            icmp_errors: IcmpErrors::new(
                config.icmp_errors_per_second,
                config.own4,
                config.own6,
                config.seed[1],
            ),
            reassembly: Reassembly::new(config.fragments, config.seed[0] ^ config.seed[1].rotate_left(32)),
            counters: Counters::default(),
            slots: vec![Slot::EMPTY; STRIDE],
            original: Original::default(),
            worker: config.worker,
            workers: config.workers.max(1),
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

    /// Gives every frame that came from a link its verdict. The caller sends those that leave, then what is in `out`.
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
        let mut slots = core::mem::take(&mut self.slots);
        for stride in frames.chunks_mut(STRIDE) {
            let count = self.read(stride, &mut slots, now, out);
            self.look_up(&mut slots[..count]);
            self.translate(stride, &slots[..count], now, out);
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
                            &Frame::holding(&octets),
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

    fn translate(&mut self, stride: &mut [Frame], slots: &[Slot], now: Instant, out: &mut Outbox) {
        for slot in slots {
            let frame = &mut stride[slot.frame as usize];
            match self.walk(frame, &slot.packet, slot.owner, &slot.probe, now, out) {
                Ok(verdict) => self.conclude(verdict, frame),
                Err(reason) => self.refuse(reason, frame, Some(&slot.packet), now, out),
            }
        }
    }

    /// One packet's way through the gateway. `?` leaves it with a named reason; the caller counts it, once.
    #[inline(always)]
    fn walk(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        if is_error || packet.fragment.is_some() || frame.passes > 0 {
            return self.walk_seldom(frame, packet, owner, probe, now, out);
        }
        let decision = match owner {
            Owner::Siit(index) => {
                let decision = self.siit[usize::from(index)].decide(packet, None, false, now)?;
                self.count_siit(packet);
                decision
            }
            Owner::Nat64(index) => {
                let at = usize::from(packet.transport_at);
                let segments = frame.segment_count(at, packet.length as usize - at);
                let arrival = Arrival { packet, quoted: None, octets: frame.bytes(), segments };
                match self.nat64[usize::from(index)].decide(&arrival, probe, now, &mut self.counters)? {
                    Outcome::Translate(decision) => {
                        self.count_nat64(packet);
                        decision
                    }
                    Outcome::Stored => return Ok(Verdict::Held),
                }
            }
            Owner::Gateway => {
                let limits = self.rewriter.limits();
                return match echo::reply(frame, packet, limits, out, &mut self.counters)? {
                    Executed::InPlace => Ok(Verdict::Answered),
                    Executed::InPieces => Ok(Verdict::InPieces),
                };
            }
        };
        let pass = Pass { decrement: true, reassembled: false };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, decision, pass, now, out);
        }
        match self.rewriter.execute(&decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The way of ICMP errors, fragments, and what another worker handed over.
    #[cold]
    #[inline(never)]
    fn walk_seldom(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        if matches!(owner, Owner::Nat64(_)) && packet.fragment.is_some() {
            return self.reassemble(frame, packet, now, out);
        }
        let hairpinned = frame.passes > 0;
        let decision = match self.decide(frame, packet, owner, probe, hairpinned, now)? {
            Outcome::Translate(decision) => decision,
            Outcome::Stored => return Ok(Verdict::Held),
        };
        let pass = Pass { decrement: !hairpinned, reassembled: false };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, decision, pass, now, out);
        }
        match self.rewriter.execute(&decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    #[inline(always)]
    const fn count_siit(&mut self, packet: &Packet) {
        match packet.addresses {
            Addresses::V4 { .. } => self.counters.siit_v4_to_v6 += 1,
            Addresses::V6 { .. } => self.counters.siit_v6_to_v4 += 1,
        }
    }

    #[inline(always)]
    const fn count_nat64(&mut self, packet: &Packet) {
        match packet.addresses {
            Addresses::V4 { .. } => self.counters.nat64_v4_to_v6 += 1,
            Addresses::V6 { .. } => self.counters.nat64_v6_to_v4 += 1,
        }
    }

    /// The rest of the way of a packet whose result is ours again.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "the state of a packet between two passes")]
    fn walk_again(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        mut owner: Owner,
        mut decision: Decision,
        mut pass: Pass,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        self.original.keep(frame, packet)?;
        let mut current = *packet;
        while usize::from(frame.passes) < MAX_PASSES {
            let executed =
                self.rewriter.execute(&decision, frame, &current, pass, out, &mut self.counters)?;
            frame.passes += 1;
            pass.decrement = false;
            if decision.next == Next::Leave || executed == Executed::InPieces {
                self.original.packet = None;
                return Ok(if executed == Executed::InPlace { Verdict::Forward } else { Verdict::InPieces });
            }
            current = parse::parse(frame.bytes())?;
            owner = self.owner_again(&current, owner)?;
            if let Some(worker) = self.elsewhere(frame, &current, owner) {
                self.original.packet = None;
                return Ok(Verdict::HandOver(worker));
            }
            decision = match self.decide_later(frame, &current, owner, now)? {
                Outcome::Translate(decision) => decision,
                Outcome::Stored => {
                    self.original.packet = None;
                    return Ok(Verdict::Held);
                }
            };
        }
        Err(DropReason::NestingLimit)
    }

    /// Asks the mechanism, off the batch's path.
    #[cold]
    fn decide_later(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        now: Instant,
    ) -> Result<Outcome, DropReason> {
        let mut probe = Probe::EMPTY;
        if let Owner::Nat64(index) = owner {
            self.nat64[usize::from(index)].probe(packet, &mut probe);
            self.nat64[usize::from(index)].warm(&mut probe);
        }
        self.decide(frame, packet, owner, &probe, true, now)
    }

    /// Asks the mechanism about any packet.
    fn decide(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        probe: &Probe,
        hairpinned: bool,
        now: Instant,
    ) -> Result<Outcome, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        match owner {
            Owner::Siit(index) => {
                let quoted = if is_error { Some(quoted_stateless(frame, packet)?) } else { None };
                let siit = &mut self.siit[usize::from(index)];
                let decision = siit.decide(packet, quoted.as_ref(), hairpinned, now)?;
                self.count_siit(packet);
                Ok(Outcome::Translate(decision))
            }
            Owner::Nat64(index) => {
                let quoted = if is_error { Some(quoted_stateful(frame, packet)?) } else { None };
                let at = usize::from(packet.transport_at);
                let segments = frame.segment_count(at, packet.length as usize - at);
                let arrival = Arrival { packet, quoted, octets: frame.bytes(), segments };
                let nat64 = &mut self.nat64[usize::from(index)];
                let outcome = nat64.decide(&arrival, probe, now, &mut self.counters)?;
                if let Outcome::Translate(_) = outcome {
                    self.count_nat64(packet);
                }
                Ok(outcome)
            }
            Owner::Gateway => Err(DropReason::ToGateway),
        }
    }

    /// Holds a fragment on its way to a stateful translator until its packet is complete, and then walks the whole
    /// packet (RFC 6146 §3.4), which leaves through the outbox.
    #[cold]
    fn reassemble(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        if frame.offload.segments.is_some() {
            return Err(DropReason::BadSuperFrame);
        }
        let mut whole = match self.reassembly.admit(frame, packet, now) {
            Ok(Admission::Held) => return Ok(Verdict::Held),
            Ok(Admission::Whole(whole)) => whole,
            Err(refused) => {
                self.counters.held -= u64::from(refused.released);
                self.counters.dropped[refused.reason as usize] += u64::from(refused.released);
                return Err(refused.reason);
            }
        };
        // All fragments but the one at hand were held; from here on they share the fate of their packet.
        let held = u64::from(whole.fragments) - 1;
        self.counters.held -= held;
        self.counters.reassembled += 1;
        whole.frame.passes = frame.passes;
        let parsed = parse::parse(whole.frame.bytes());
        let walked = match &parsed {
            Ok(packet) => self.walk_whole(&mut whole.frame, packet, now, out),
            Err(reason) => Err(*reason),
        };
        match walked {
            Ok(Verdict::Forward) => {
                let length = whole.frame.len();
                match out.push(length) {
                    Ok(leaving) => {
                        leaving.bytes_mut().copy_from_slice(whole.frame.bytes());
                        leaving.offload = whole.frame.offload;
                        self.conclude(Verdict::Forward, leaving);
                        self.counters.forwarded += held;
                    }
                    Err(reason) => self.counters.dropped[reason as usize] += held + 1,
                }
            }
            Ok(verdict) => {
                // Its own frame is spent; what a hand-over needs of it is the whole packet.
                if let Verdict::HandOver(_) = verdict {
                    frame.adopt(whole.frame);
                    self.counters.merged += held;
                    return Ok(verdict);
                }
                self.conclude(verdict, &mut whole.frame);
                self.counters.merged += held;
            }
            Err(reason) => {
                self.refuse(reason, &mut whole.frame, parsed.as_ref().ok(), now, out);
                self.counters.dropped[reason as usize] += held;
            }
        }
        Ok(Verdict::Merged)
    }

    /// A reassembled packet's way. It may be cut again whatever its size.
    fn walk_whole(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let Some(owner) = self.classify(packet, frame.passes)? else { return Ok(Verdict::Punted) };
        if let Some(worker) = self.elsewhere(frame, packet, owner) {
            return Ok(Verdict::HandOver(worker));
        }
        let pass = Pass { decrement: frame.passes == 0, reassembled: true };
        let decision = match self.decide_later(frame, packet, owner, now)? {
            Outcome::Translate(decision) => decision,
            Outcome::Stored => return Ok(Verdict::Held),
        };
        if decision.next == Next::Again {
            return self.walk_again(frame, packet, owner, decision, pass, now, out);
        }
        match self.rewriter.execute(&decision, frame, packet, pass, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The other worker that owns the packet's state, if it is another's.
    fn elsewhere(&self, frame: &Frame, packet: &Packet, owner: Owner) -> Option<WorkerId> {
        if self.workers == 1 {
            return None;
        }
        let is_error = matches!(packet.transport, Transport::IcmpError { .. });
        let worker = match owner {
            Owner::Gateway => return None,
            Owner::Nat64(index) => {
                let quoted = is_error.then(|| quoted_stateful(frame, packet).ok()).flatten();
                let ownership = self.nat64[usize::from(index)].ownership();
                crate::classify::ownership::worker_of(ownership, packet, quoted.as_ref(), self.workers)
            }
            Owner::Siit(index) => {
                let quoted = is_error.then(|| quoted_stateless(frame, packet).ok()).flatten();
                self.siit[usize::from(index)].worker_of(packet, quoted.as_ref())?
            }
        };
        (worker != self.worker).then_some(worker)
    }

    /// The owner of a packet that came from a link. `None`: it is the host's own business.
    #[inline(always)]
    fn classify(&self, packet: &Packet, passes: u8) -> Result<Option<Owner>, DropReason> {
        if let Err(reason) = source_check::check(packet) {
            return if source_check::is_host_control(packet) { Ok(None) } else { Err(reason) };
        }
        let owner = match packet.addresses {
            Addresses::V6 { destination, .. } => {
                self.steering.owner6(destination).or_else(|| self.named6(destination))
            }
            Addresses::V4 { destination, .. } if self.steering.is_own4(destination) => Some(Owner::Gateway),
            Addresses::V4 { destination, .. } => {
                self.named4(destination).or(self.default_siit.map(Owner::Siit))
            }
        };
        if owner == Some(Owner::Gateway) {
            return Ok(owner);
        }
        if passes == 0 && packet.hops <= 1 {
            return Err(DropReason::HopLimitExceeded);
        }
        if packet.source_route {
            return Err(DropReason::SourceRoute);
        }
        if packet.segments_left_at != 0 {
            return Err(DropReason::RoutingHeader);
        }
        if packet.extension_after_fragment {
            return Err(DropReason::ExtensionAfterFragment);
        }
        match owner {
            Some(owner) => Ok(Some(owner)),
            None => Err(DropReason::NoMechanism),
        }
    }

    /// The owner of a pass's result. Only what names the destination owns it: a prefix that maps every IPv4 address
    /// does not.
    fn owner_again(&self, packet: &Packet, before: Owner) -> Result<Owner, DropReason> {
        source_check::check(packet)?;
        let owner = match (packet.addresses, before) {
            // RFC 7757 §4.2.2: the translator itself turns the packet around.
            (Addresses::V4 { .. }, Owner::Siit(_)) => Some(before),
            (Addresses::V4 { destination, .. }, _) => self.named4(destination),
            (Addresses::V6 { destination, .. }, _) => {
                self.steering.owner6(destination).filter(|owner| *owner != before)
            }
        };
        owner.ok_or(DropReason::NoMechanism)
    }

    /// The mechanism that names an IPv4 address: a pool, a table, an assignment.
    #[inline]
    fn named4(&self, address: Ipv4Addr) -> Option<Owner> {
        if let Some(index) = self.nat64.iter().position(|nat64| nat64.owns_outside(address)) {
            return Some(Owner::Nat64(index as u8));
        }
        if self.siit.len() == 1 {
            // It is asked in any case, and says itself what it does not map.
            return Some(Owner::Siit(0));
        }
        self.siit.iter().position(|siit| siit.maps4(address)).map(|index| Owner::Siit(index as u8))
    }

    /// The translator whose table names an IPv6 address.
    fn named6(&self, address: Ipv6Addr) -> Option<Owner> {
        self.siit.iter().position(|siit| siit.maps6(address)).map(|index| Owner::Siit(index as u8))
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
        let mtu = |packet| sender_mtu(packet, self.rewriter.limits(), original.is_some());
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
        (Addresses::V4 { .. }, false) => mtu6.saturating_sub(20),
        (Addresses::V4 { .. }, true) => mtu4,
        (Addresses::V6 { .. }, false) => (mtu4 + 20).max(IPV6_MIN_MTU as u32),
        (Addresses::V6 { .. }, true) => mtu6,
    }
}

/// The five-tuple that an ICMP error quotes, for a translator that asks for addresses alone.
fn quoted_stateless(frame: &Frame, packet: &Packet) -> Result<QuotedTuple, DropReason> {
    parse::quoted::quoted_stateless(
        quote_of(frame, packet)?,
        matches!(packet.addresses, Addresses::V4 { .. }),
    )
}

/// The five-tuple that an ICMP error quotes, ports included.
fn quoted_stateful(frame: &Frame, packet: &Packet) -> Result<QuotedTuple, DropReason> {
    parse::quoted::quoted(quote_of(frame, packet)?, matches!(packet.addresses, Addresses::V4 { .. }))
}

fn quote_of<'a>(frame: &'a Frame, packet: &Packet) -> Result<&'a [u8], DropReason> {
    if frame.offload.segments.is_some() {
        return Err(DropReason::BadSuperFrame);
    }
    let from = usize::from(packet.transport_at) + parse::ICMP_HEADER;
    frame.bytes().get(from..packet.length as usize).ok_or(DropReason::QuoteUnusable)
}
