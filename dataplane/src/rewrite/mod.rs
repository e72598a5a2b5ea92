//! Executes what a mechanism decided, in place: headers, ports, checksums, hop limit, MSS; and cuts what is too large
//! and may be cut.

pub mod decap;
pub mod echo;
mod encap;
pub mod icmp_error;
mod mss;
mod segments;
mod transport;
mod v4_to_v6;
mod v6_to_v4;

use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fragment::SuperFrame;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::parse::Packet;
use crate::translate::Policy;
use crate::tunnel::identification::Identifications;
use crate::tunnel::path_mtu::{Learnt, PathMtus, TunnelRoom};
use crate::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::{Decision, Edit, Next, Outbox, PolicyId};
use core::net::Ipv4Addr;

/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const IPV6_MIN_MTU: usize = 1_280;

/// Destinations of tunnels of whose paths something may be known, 64 KiB of it.
const KNOWN_PATHS: usize = 4_096;

/// Where a packet is after its action was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// In the frame.
    InPlace,
    /// In the outbox, as segments or fragments.
    InPieces,
}

/// Circumstances of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The hop limit is counted down; not on a second pass, for the gateway is one hop.
    pub decrement: bool,
    /// The packet was put together from fragments, so it may be cut again whatever its size.
    pub reassembled: bool,
}

/// Executes actions.
#[derive(Debug)]
pub struct Rewriter {
    policies: Vec<Policy>,
    tunnels: Vec<TunnelPolicy>,
    bench: Bench,
}

/// What headers need beside the packet and its policy.
#[derive(Debug)]
struct Bench {
    limits: Limits,
    identifications: Identifications,
    /// What is known of the paths of tunnels.
    paths: PathMtus,
    /// The time of the batch.
    now: Instant,
    /// Where segments are made that are then cut into fragments.
    segment: Option<Frame>,
    /// What the tunnel carries that the last packet was too big for.
    too_big_for: Option<u16>,
}

/// One packet on its way through an edit.
struct Job<'a> {
    frame: &'a mut Frame,
    packet: &'a Packet,
    decision: &'a Decision,
    hops: u8,
    /// The result leaves: its size matters.
    last: bool,
    reassembled: bool,
    out: &'a mut Outbox,
    counters: &'a mut Counters,
}

impl Rewriter {
    /// A rewriter for packets of `policies`, and of tunnels with these others. `seed` makes what is known of paths and the first
    /// identifications unpredictable.
    pub fn new(
        limits: Limits,
        policies: Vec<Policy>,
        tunnels: Vec<TunnelPolicy>,
        identifications: Identifications,
        seed: u64,
    ) -> Self {
        let bench = Bench {
            limits,
            identifications,
            paths: PathMtus::new(KNOWN_PATHS, seed),
            now: Instant::default(),
            segment: None,
            too_big_for: None,
        };
        Self { policies, tunnels, bench }
    }

    /// The time of the packets that come next.
    #[inline]
    pub const fn set_time(&mut self, now: Instant) {
        self.bench.now = now;
    }

    /// What an error says of the path that a tunnel of this policy takes to `remote`: a packet of `length` octets did not fit a link
    /// of `told` octets. `None`: the tunnel's packets fit any link, for they may be fragmented.
    pub fn learn_path_mtu(
        &mut self,
        policy: PolicyId,
        remote: Ipv4Addr,
        told: u16,
        length: u16,
    ) -> Option<Learnt> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        let Bench { limits, paths, now, .. } = &mut self.bench;
        policy.learns().then(|| paths.learn(remote, told, length, limits.mtu4, *now))
    }

    /// The largest packet that a tunnel of this policy carries to `remote`, in octets.
    pub fn tunnel_mtu(&self, policy: PolicyId, remote: Ipv4Addr) -> Option<u16> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        Some(self.bench.tunnel_room(policy, remote).mtu)
    }

    /// Other policies of tunnels from now on.
    pub fn set_tunnels(&mut self, tunnels: Vec<TunnelPolicy>) {
        self.tunnels = tunnels;
    }

    /// The MTU of the tunnel for which the last packet was too big, once.
    pub const fn tunnel_too_small(&mut self) -> Option<u16> {
        self.bench.too_big_for.take()
    }

    /// The MTUs that results are judged by.
    pub const fn limits(&self) -> &Limits {
        &self.bench.limits
    }

    /// Executes `decision` on the frame, whose parsed form is `packet`. What is refused for its size or type is refused
    /// before an octet is changed, so that it can be quoted in an ICMP error.
    #[inline(always)]
    pub fn execute(
        &mut self,
        decision: &Decision,
        frame: &mut Frame,
        packet: &Packet,
        pass: Pass,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let policy = usize::from(decision.action.policy.0);
        frame.truncate(packet.length as usize);
        let hops = packet.hops.saturating_sub(u8::from(pass.decrement));
        let last = decision.next == Next::Leave;
        let job = Job { frame, packet, decision, hops, last, reassembled: pass.reassembled, out, counters };
        match decision.action.edit {
            Edit::Translate6To4 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                let policy = self.policies.get(policy).ok_or(DropReason::NoMechanism)?;
                self.bench.translate_6_to_4(source.address, destination.address, ports, policy, job)
            }
            Edit::Translate4To6 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                let policy = self.policies.get(policy).ok_or(DropReason::NoMechanism)?;
                self.bench.translate_4_to_6(source.address, destination.address, ports, policy, job)
            }
            Edit::Encap4 { .. } | Edit::Decap => {
                let Job { frame, packet, out, counters, .. } = job;
                self.execute_elsewhere(decision, frame, packet, out, counters)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn execute_elsewhere(
        &mut self,
        decision: &Decision,
        frame: &mut Frame,
        packet: &Packet,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        self.execute_tunnel(decision, frame, packet, out, counters)
    }

    /// As [`Rewriter::execute`], for the edits of tunnels; those of translation are refused with [`DropReason::NoMechanism`]. The hop
    /// limit stays: who routes packets into tunnels and out of them counts it down.
    #[inline(always)]
    pub fn execute_tunnel(
        &mut self,
        decision: &Decision,
        frame: &mut Frame,
        packet: &Packet,
        out: &mut Outbox,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        frame.truncate(packet.length as usize);
        match decision.action.edit {
            Edit::Encap4 { source, destination } => {
                let policy = usize::from(decision.action.policy.0);
                let policy = self.tunnels.get(policy).ok_or(DropReason::NoMechanism)?;
                self.bench.encap_4((source, destination), policy, frame, packet, out, counters)
            }
            Edit::Decap => {
                let mut inside = Packet::EMPTY;
                decap::inner(frame, packet, &mut inside)?;
                self.decap(frame, packet, &inside, decision.action.policy, counters)
            }
            Edit::Translate6To4 { .. } | Edit::Translate4To6 { .. } => Err(DropReason::NoMechanism),
        }
    }
}

impl Bench {
    /// What a tunnel of this policy carries to `remote`, and whether the outer DF is set: not where outer packets may be fragmented,
    /// as with a static MTU they may unless that is forbidden (RFC 4213 §3.2).
    #[inline]
    fn tunnel_room(&self, policy: &TunnelPolicy, remote: Ipv4Addr) -> TunnelRoom {
        let known = || self.paths.room(remote, self.limits.mtu4, self.now);
        match (policy.mtu, policy.outer_fragments) {
            (TunnelMtu::Static(mtu), OuterFragments::Allowed) => TunnelRoom { mtu, dont_fragment: false },
            (TunnelMtu::Static(mtu), OuterFragments::Never) => {
                TunnelRoom { mtu: mtu.min(known().mtu), dont_fragment: true }
            }
            (TunnelMtu::Dynamic, OuterFragments::Allowed) => known(),
            (TunnelMtu::Dynamic, OuterFragments::Never) => TunnelRoom { dont_fragment: true, ..known() },
        }
    }

    /// The MSS that fits a translated path (both sides' headers without options).
    const fn mss_limit(&self) -> u16 {
        let (v4, v6) = (self.limits.mtu4.saturating_sub(40), self.limits.mtu6.saturating_sub(60));
        if v4 < v6 { v4 } else { v6 }
    }
}

/// Octets of one packet on the wire behind the IP headers: those of the whole packet, or of a super-frame's first segment.
#[inline(always)]
fn segment_payload(frame: &Frame, packet: &Packet, payload: usize) -> Result<usize, DropReason> {
    match frame.offload.segments {
        None => Ok(payload),
        Some(segments) => {
            let first = SuperFrame::of(frame.bytes(), packet, segments)?;
            Ok(first.length(0) - first.transport_at())
        }
    }
}
