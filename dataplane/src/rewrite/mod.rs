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
use crate::limits::Limits;
use crate::parse::Packet;
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::verdict::{Decision, Edit, Next, Outbox};

/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const IPV6_MIN_MTU: usize = 1_280;

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
    /// The next Identification of IPv4 packets made with DF clear (RFC 7915 §5.1).
    identification: u16,
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
    /// A rewriter for packets of `policies`, and of tunnels with these others; `seed` makes the first identification unpredictable.
    pub fn new(limits: Limits, policies: Vec<Policy>, tunnels: Vec<TunnelPolicy>, seed: u64) -> Self {
        let bench = Bench { limits, identification: seed as u16, segment: None, too_big_for: None };
        Self { policies, tunnels, bench }
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
            Edit::Encap4 { source, destination } => {
                let policy = self.tunnels.get(policy).ok_or(DropReason::NoMechanism)?;
                self.bench.encap_4(source, destination, policy, job)
            }
            Edit::Decap => {
                let mut inside = Packet::EMPTY;
                decap::inner(job.frame, packet, &mut inside)?;
                self.decap(job.frame, packet, &inside, decision.action.policy)
            }
        }
    }
}

impl Bench {
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
