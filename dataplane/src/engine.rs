//! The path of a packet: parse, classify, decide, execute, and again if the result is ours.
//!
//! Packets go through in strides, so that the cache misses of one stride's look-ups overlap.

use crate::classify::source_check;
use crate::classify::{Owner, Steering};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::mechanism::siit::dynamic_pool::DynamicPoolFault;
use crate::mechanism::siit::{Siit, SiitConfig};
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::rewrite::icmp_error::{IcmpDetail, IcmpErrors};
use crate::rewrite::{Executed, IPV6_MIN_MTU, Rewriter, echo};
use crate::verdict::{Decision, Next, Outbox, PolicyId, Verdict, WorkerId};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

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
    /// Stateless translators.
    pub siit: Vec<SiitConfig>,
    /// ICMP errors made in a second, at most; 0: none.
    pub icmp_errors_per_second: u32,
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
            siit: Vec::new(),
            icmp_errors_per_second: 1_000,
            worker: WorkerId(0),
            workers: 1,
            seed: [0, 0],
        }
    }
}

/// One worker's engine.
pub struct Engine {
    steering: Steering,
    siit: Vec<Siit>,
    /// The stateless translator that takes IPv4 destinations that nobody names.
    default_siit: Option<u8>,
    rewriter: Rewriter,
    icmp_errors: IcmpErrors,
    counters: Counters,
    slots: Vec<Slot>,
    original: Original,
}

/// A packet of the stride between the steps.
#[derive(Clone, Copy)]
struct Slot {
    packet: Packet,
    owner: Owner,
    /// Position in the stride.
    frame: u32,
}

impl Slot {
    const EMPTY: Self = Self { packet: Packet::EMPTY, owner: Owner::Gateway, frame: 0 };
}

/// What a packet looked like when it came in, kept for a second pass that fails: the error quotes the original.
struct Original {
    frame: Frame,
    packet: Option<Packet>,
}

/// How many octets an ICMP error can quote at most (RFC 4443 §2.4 c).
const QUOTABLE: usize = 1_280;

impl Engine {
    /// An engine with empty tables.
    ///
    /// Fails where a dynamic pool cannot be what it is configured to be.
    pub fn new(config: &EngineConfig) -> Result<Self, DynamicPoolFault> {
        let mut policies = Vec::new();
        let mut prefixes = Vec::new();
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
            siit,
            default_siit,
            rewriter: Rewriter::new(config.limits, policies, config.seed[0]),
            icmp_errors: IcmpErrors::new(
                config.icmp_errors_per_second,
                config.own4,
                config.own6,
                config.seed[1],
            ),
            counters: Counters::default(),
            slots: vec![Slot::EMPTY; STRIDE],
            original: Original { frame: Frame::with_capacity(QUOTABLE), packet: None },
        })
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The stateless translators, in the order of the configuration.
    pub fn siit(&mut self) -> &mut [Siit] {
        &mut self.siit
    }

    /// Gives every frame its verdict. The caller sends those that leave, then what is in `out`.
    pub fn process(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        let mut slots = core::mem::take(&mut self.slots);
        for stride in frames.chunks_mut(STRIDE) {
            self.counters.received += stride.len() as u64;
            let count = self.read(stride, &mut slots, now, out);
            self.translate(stride, &slots[..count], now, out);
        }
        self.slots = slots;
    }

    /// Time passes: what has expired ends, a bounded amount of it. Call it after each batch and when nothing comes.
    pub fn tick(&mut self, now: Instant, out: &mut Outbox) {
        let _ = out;
        for siit in &mut self.siit {
            siit.expire(now, EXPIRED_AT_ONCE);
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
            match self.classify(&slot.packet) {
                Ok(Some(owner)) => {
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

    fn translate(&mut self, stride: &mut [Frame], slots: &[Slot], now: Instant, out: &mut Outbox) {
        for slot in slots {
            let frame = &mut stride[slot.frame as usize];
            match self.walk(frame, &slot.packet, slot.owner, now, out) {
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
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let decision = match owner {
            Owner::Gateway => {
                echo::reply(frame, packet)?;
                return Ok(Verdict::Answered);
            }
            Owner::Siit(_) => self.decide(frame, packet, owner, false, now)?,
        };
        if decision.next == Next::Again {
            let verdict = self.walk_again(frame, packet, owner, decision, now, out)?;
            self.original.packet = None;
            return Ok(verdict);
        }
        match self.rewriter.execute(&decision, frame, packet, true, out, &mut self.counters)? {
            Executed::InPlace => Ok(Verdict::Forward),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// The rest of the way of a packet whose result is ours again.
    #[cold]
    fn walk_again(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        mut owner: Owner,
        mut decision: Decision,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Verdict, DropReason> {
        let quotable = frame.len().min(QUOTABLE);
        self.original.frame.fill(&frame.bytes()[..quotable], frame.offload);
        self.original.packet = Some(*packet);
        let mut current = *packet;
        for pass in 0..MAX_PASSES {
            let executed =
                self.rewriter.execute(&decision, frame, &current, pass == 0, out, &mut self.counters)?;
            if executed == Executed::InPieces {
                return Ok(Verdict::InPieces);
            }
            if decision.next == Next::Leave {
                return Ok(Verdict::Forward);
            }
            current = parse::parse(frame.bytes())?;
            owner = self.owner_again(&current, owner)?;
            decision = self.decide(frame, &current, owner, true, now)?;
        }
        Err(DropReason::NestingLimit)
    }

    /// Asks the mechanism.
    #[inline(always)]
    fn decide(
        &mut self,
        frame: &Frame,
        packet: &Packet,
        owner: Owner,
        hairpinned: bool,
        now: Instant,
    ) -> Result<Decision, DropReason> {
        let from_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        match owner {
            Owner::Siit(index) => {
                let quoted = is_error.then(|| quoted_stateless(frame, packet)).transpose()?;
                let decision =
                    self.siit[usize::from(index)].decide(packet, quoted.as_ref(), hairpinned, now)?;
                let counter =
                    if from_v4 { &mut self.counters.siit_v4_to_v6 } else { &mut self.counters.siit_v6_to_v4 };
                *counter += 1;
                Ok(decision)
            }
            Owner::Gateway => Err(DropReason::ToGateway),
        }
    }

    /// The owner of a packet that came from a link. `None`: it is the host's own business.
    #[inline(always)]
    fn classify(&self, packet: &Packet) -> Result<Option<Owner>, DropReason> {
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
        let owner = owner.ok_or(DropReason::NoMechanism)?;
        if owner == Owner::Gateway {
            return Ok(Some(owner));
        }
        if packet.hops <= 1 {
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
        Ok(Some(owner))
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
                let behind = frame.len().saturating_sub(usize::from(frame.offload.transport));
                self.counters.packets += u64::from(frame.segment_count(behind));
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

fn quote_of<'a>(frame: &'a Frame, packet: &Packet) -> Result<&'a [u8], DropReason> {
    let from = usize::from(packet.transport_at) + parse::ICMP_HEADER;
    frame.bytes().get(from..packet.length as usize).ok_or(DropReason::QuoteUnusable)
}
