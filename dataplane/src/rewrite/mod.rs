//! Executes what a mechanism decided, in place: headers, ports, checksums, hop limit, MSS; and cuts what is too large
//! and may be cut.

mod composed;
pub mod decap;
pub mod echo;
mod encap;
pub mod icmp_error;
mod ip_in_ip;
mod mss;
mod renumber;
mod renumber4;
mod segments;
mod transport;
mod v4_to_v6;
mod v6_to_v4;

use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::fragment::SuperFrame;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::parse::{Addresses, Packet};
use crate::translate::Policy;
use crate::tunnel::identification::Identifications;
use crate::tunnel::path_mtu::{Learnt, PathMtus, TunnelRoom};
use crate::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::{Action, Decision, Edit, Encap, Next, Outbox, Outer, PolicyId, Quoted};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const IPV6_MIN_MTU: usize = 1_280;

/// Destinations of tunnels of whose paths something may be known, 64 KiB of it.
const KNOWN_PATHS: usize = 4_096;
/// The same of tunnels over IPv6, which are configured one by one.
const KNOWN_PATHS6: usize = 256;

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
    /// The mechanism renumbers; those that translate are compiled without.
    pub may_renumber: bool,
}

/// A decision, and the packet that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The decision.
    pub decision: &'a Decision,
    /// The packet; of one that came through a tunnel the outer one.
    pub packet: &'a Packet,
    /// The packet inside, if it came through a tunnel.
    pub inner: Option<&'a Packet>,
    /// Circumstances.
    pub pass: Pass,
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
    paths: PathMtus<Ipv4Addr>,
    paths6: PathMtus<Ipv6Addr>,
    /// The time of the batch.
    now: Instant,
    /// Where segments are made that are then cut into fragments.
    segment: Option<Frame>,
    /// What the tunnel or the next link carries that the last packet was too big for, if that does not follow from its family.
    too_big_for: Option<u16>,
    /// Where the encapsulation limit of the last packet stands that may enter no further tunnel.
    limit_at: Option<u32>,
}

/// One packet on its way through an edit.
struct Job<'a> {
    frame: &'a mut Frame,
    packet: &'a Packet,
    /// Of an ICMP error: what the packet becomes that it quotes.
    quoted: Option<Quoted>,
    /// The MTUs that the result is judged by.
    limits: Limits,
    hops: u8,
    /// The result leaves: its size matters.
    last: bool,
    reassembled: bool,
    out: &'a mut Outbox,
    counters: &'a mut Counters,
}

impl Rewriter {
    /// A rewriter without policies. `seed` makes what is known of paths and the first identifications unpredictable.
    pub fn new(limits: Limits, identifications: Identifications, seed: u64) -> Self {
        let bench = Bench {
            limits,
            identifications,
            paths: PathMtus::new(KNOWN_PATHS, seed),
            paths6: PathMtus::new(KNOWN_PATHS6, seed),
            now: Instant::default(),
            segment: None,
            too_big_for: None,
            limit_at: None,
        };
        Self { policies: Vec::new(), tunnels: Vec::new(), bench }
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

    /// As [`Rewriter::learn_path_mtu`], of a tunnel that carries IPv4, or that has an outer IPv6 header: its path always matters.
    pub fn learn_path_mtu_ip_in_ip(&mut self, remote: IpAddr, told: u16, length: u16) -> Learnt {
        let Bench { limits, paths, paths6, now, .. } = &mut self.bench;
        match remote {
            IpAddr::V4(remote) => paths.learn(remote, told, length, limits.mtu4, *now),
            IpAddr::V6(remote) => paths6.learn(remote, told, length, limits.mtu6, *now),
        }
    }

    /// The largest packet that a tunnel of this policy carries behind an outer header, in octets, if it is IPv4 (with DF), or if it is IPv6.
    pub fn tunnel_mtu_ip_in_ip(&self, policy: PolicyId, outer: &Outer, is_v4: bool) -> Option<u16> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        Some(self.bench.room_ip_in_ip(policy, outer, is_v4).most)
    }

    /// The largest packet that a tunnel of this policy carries to `remote`, in octets.
    pub fn tunnel_mtu(&self, policy: PolicyId, remote: Ipv4Addr) -> Option<u16> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        Some(self.bench.tunnel_room(policy, remote).mtu)
    }

    /// The policies of the mechanisms' translations and of their tunnels from now on, each by [`PolicyId`].
    pub fn set_policies(&mut self, policies: Vec<Policy>, tunnels: Vec<TunnelPolicy>) {
        (self.policies, self.tunnels) = (policies, tunnels);
    }

    /// The MTU of the tunnel for which the last packet was too big, once.
    pub const fn tunnel_too_small(&mut self) -> Option<u16> {
        self.bench.too_big_for.take()
    }

    /// Where the encapsulation limit of the last packet stands that was refused for it, in octets from its start, once.
    pub const fn limit_at(&mut self) -> Option<u32> {
        self.bench.limit_at.take()
    }

    /// The MTUs that results are judged by.
    pub const fn limits(&self) -> &Limits {
        &self.bench.limits
    }

    /// Executes a decision on the frame, in one pass: the outer header goes, the header is edited, an outer header is put in front. What is
    /// refused for its size or type is refused before an octet is changed, so that it can be quoted in an ICMP error.
    #[inline(always)]
    pub fn execute(
        &mut self,
        work: &Work<'_>,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        match work.decision.action {
            Action { decap: None, edit: Some(edit), policy, encap: None } => {
                self.edit((edit, policy), work, self.bench.limits, frame, (out, effects))
            }
            Action { decap: None, edit: None, encap: Some(encap), .. } => {
                let Work { packet, .. } = *work;
                self.encap(encap, packet, frame, out, effects)
            }
            Action { decap: Some(policy), edit: None, encap: None, .. } => {
                let inner = work.inner.ok_or(DropReason::InnerNotIpv6)?;
                self.decap(frame, (work.packet, inner), policy, &mut effects.counters)
            }
            Action { .. } => {
                // A copy: a decision whose address is given away must be in memory, on every path.
                let decision = *work.decision;
                self.execute_composed(&Work { decision: &decision, ..*work }, frame, out, effects)
            }
        }
    }

    /// Translates a header.
    #[inline(always)]
    fn edit(
        &mut self,
        (edit, policy): (Edit, PolicyId),
        work: &Work<'_>,
        limits: Limits,
        frame: &mut Frame,
        (out, effects): (&mut Outbox, &mut Effects),
    ) -> Result<Executed, DropReason> {
        let Work { decision, packet, pass, .. } = *work;
        frame.truncate(packet.length as usize);
        let hops = packet.hops.saturating_sub(u8::from(pass.decrement));
        let last = decision.next == Next::Leave;
        let quoted = decision.quoted.and_then(|index| effects.quoted_at(index));
        let (reassembled, counters) = (pass.reassembled, &mut effects.counters);
        let job = Job { frame, packet, quoted, limits, hops, last, reassembled, out, counters };
        let policy = self.policies.get(usize::from(policy.0)).ok_or(DropReason::NoMechanism)?;
        match edit {
            Edit::Translate6To4 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                self.bench.translate_6_to_4(source.address, destination.address, ports, policy, job)
            }
            Edit::Translate4To6 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                self.bench.translate_4_to_6(source.address, destination.address, ports, policy, job)
            }
            Edit::Renumber4 { .. } | Edit::Renumber6 { .. } if pass.may_renumber => {
                self.bench.renumber(edit, policy, job)
            }
            Edit::Renumber4 { .. } | Edit::Renumber6 { .. } => Err(DropReason::NoMechanism),
        }
    }

    /// Puts an outer header in front. The hop limit stays: who routes packets into tunnels counts it down.
    #[inline(always)]
    fn encap(
        &mut self,
        encap: Encap,
        packet: &Packet,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        frame.truncate(packet.length as usize);
        let policy = self.tunnels.get(usize::from(encap.policy.0)).ok_or(DropReason::NoMechanism)?;
        // By reference: a copy of the whole would wait for the pieces in which it was just written.
        match (effects.outer_at(encap.outer).ok_or(DropReason::NoMechanism)?, packet.addresses) {
            (&Outer::V4 { source, destination }, Addresses::V6 { .. }) => {
                self.bench.encap_4((source, destination), policy, frame, packet, out, &mut effects.counters)
            }
            (outer, _) => {
                let outer = *outer;
                self.bench.encap_ip_in_ip(outer, policy, frame, packet, (out, &mut effects.counters))
            }
        }
    }
}

impl Bench {
    /// Renumbers a header. A function of its own, so that translation has the registers.
    #[inline(never)]
    fn renumber(&mut self, edit: Edit, policy: &Policy, job: Job<'_>) -> Result<Executed, DropReason> {
        match edit {
            Edit::Renumber4 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                self.renumber_4((source.address, destination.address), ports, policy, job)
            }
            Edit::Renumber6 { source, destination, neutral } => {
                self.renumber_6((source, destination), neutral, job)
            }
            Edit::Translate4To6 { .. } | Edit::Translate6To4 { .. } => {
                Err(DropReason::ProtocolUntranslatable)
            }
        }
    }

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
}

/// The MSS that fits a translated path (both sides' headers without options).
const fn mss_limit(limits: Limits) -> u16 {
    let (v4, v6) = (limits.mtu4.saturating_sub(40), limits.mtu6.saturating_sub(60));
    if v4 < v6 { v4 } else { v6 }
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
