//! The executor of actions.

use super::job::Job;
use super::work::{Edits, Executed, Work};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::{Addresses, Packet};
use crate::translate::Policy;
use crate::tunnel::identification::Identifications;
use crate::tunnel::path_mtu::{Learnt, PathMtus, TunnelRoom};
use crate::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use crate::verdict::{Action, Edit, Encap, Next, Outer, PolicyId};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Tunnel destinations whose path MTU can be known: 64 KiB of memory.
const KNOWN_PATHS: usize = 4_096;
/// The same for tunnels over IPv6, which are configured one by one.
const KNOWN_PATHS6: usize = 256;

/// Of this many softwires the path of one can be known: most have one that carries what the next link does.
const SOFTWIRES_FOR_PATH: usize = 4;

/// Executes actions.
#[derive(Debug)]
pub struct Rewriter {
    pub(super) policies: Vec<Policy>,
    pub(super) tunnels: Vec<TunnelPolicy>,
    pub(super) writer: HeaderWriter,
}

/// Writes headers: what they need in addition to the packet and its policy.
#[derive(Debug)]
pub(super) struct HeaderWriter {
    pub(super) limits: Limits,
    pub(super) identifications: Identifications,
    /// The path MTUs of tunnels.
    pub(super) paths: PathMtus<Ipv4Addr>,
    pub(super) paths6: PathMtus<Ipv6Addr>,
    /// The time of the batch.
    pub(super) now: Instant,
    /// Where segments are made that are then cut into fragments.
    pub(super) segment: Option<Frame>,
    /// The MTU of the tunnel or link for which the last packet was too big, if it does not follow from the packet's family.
    pub(super) too_big_for: Option<u16>,
    /// Where the last packet that may not enter another tunnel has its encapsulation limit.
    pub(super) limit_at: Option<u32>,
}

impl Rewriter {
    /// A rewriter without policies. `seed` makes the table of path MTUs and the first identifications unpredictable.
    pub fn new(limits: Limits, identifications: Identifications, seed: u64) -> Self {
        let writer = HeaderWriter {
            limits,
            identifications,
            paths: PathMtus::new(KNOWN_PATHS, seed),
            paths6: PathMtus::new(KNOWN_PATHS6, seed),
            now: Instant::default(),
            segment: None,
            too_big_for: None,
            limit_at: None,
        };
        Self { policies: Vec::new(), tunnels: Vec::new(), writer }
    }

    /// In addition to those of configured tunnels, there are paths to this number of softwires. `seed` is as in [`Rewriter::new`].
    pub fn expect_softwires(&mut self, softwires: u32, seed: u64) {
        let most = KNOWN_PATHS6.max(softwires as usize / SOFTWIRES_FOR_PATH);
        self.writer.paths6 = PathMtus::new(most, seed);
        if most > KNOWN_PATHS6 {
            self.writer.paths6.reserve();
        }
    }

    /// The time of the packets that come next.
    #[inline]
    pub const fn set_time(&mut self, now: Instant) {
        self.writer.now = now;
    }

    /// Learns the path MTU of a tunnel of this policy to `remote` from an error: a packet of `length` octets did not fit a link
    /// of `told` octets. `None`: the tunnel's packets fit any link, because they may be fragmented.
    pub fn learn_path_mtu(
        &mut self,
        policy: PolicyId,
        remote: Ipv4Addr,
        told: u16,
        length: u16,
    ) -> Option<Learnt> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        let HeaderWriter { limits, paths, now, .. } = &mut self.writer;
        policy.learns().then(|| paths.learn(remote, told, length, limits.mtu4, *now))
    }

    /// As [`Rewriter::learn_path_mtu`], of a tunnel that carries IPv4, or that has an outer IPv6 header: its path always matters.
    pub fn learn_path_mtu_ip_in_ip(&mut self, remote: IpAddr, told: u16, length: u16) -> Learnt {
        let HeaderWriter { limits, paths, paths6, now, .. } = &mut self.writer;
        match remote {
            IpAddr::V4(remote) => paths.learn(remote, told, length, limits.mtu4, *now),
            IpAddr::V6(remote) => paths6.learn(remote, told, length, limits.mtu6, *now),
        }
    }

    /// The largest packet that a tunnel of this policy carries behind an outer header, in octets, if it is IPv4 (with DF), or if it is IPv6.
    pub fn tunnel_mtu_ip_in_ip(&self, policy: PolicyId, outer: &Outer, is_v4: bool) -> Option<u16> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        Some(self.writer.room_ip_in_ip(policy, outer, is_v4).most)
    }

    /// The largest packet that a tunnel of this policy carries to `remote`, in octets.
    pub fn tunnel_mtu(&self, policy: PolicyId, remote: Ipv4Addr) -> Option<u16> {
        let policy = self.tunnels.get(usize::from(policy.0))?;
        Some(self.writer.tunnel_room(policy, remote).mtu)
    }

    /// Sets the policies of translations and of tunnels, each by [`PolicyId`].
    pub fn set_policies(&mut self, policies: Vec<Policy>, tunnels: Vec<TunnelPolicy>) {
        (self.policies, self.tunnels) = (policies, tunnels);
    }

    /// The MTU of the tunnel for which the last packet was too big, once.
    pub const fn tunnel_too_small(&mut self) -> Option<u16> {
        self.writer.too_big_for.take()
    }

    /// Where the last packet that was refused for its encapsulation limit has it, in octets from its start, once.
    pub const fn limit_at(&mut self) -> Option<u32> {
        self.writer.limit_at.take()
    }

    /// The MTUs that results must fit.
    pub const fn limits(&self) -> &Limits {
        &self.writer.limits
    }

    /// Executes a decision on the frame, in one pass: the outer header goes, the header is edited, an outer header is put in front. What is
    /// refused for its size or type is refused before an octet is changed, so that it can be quoted in an ICMP error.
    #[inline(always)]
    pub fn execute<E: Edits>(
        &mut self,
        work: &Work<'_>,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        if E::TUNNELS {
            return self.execute_in_tunnels(work, frame, out, effects);
        }
        match work.decision.action {
            Action { decap: None, edit: Some(edit), policy, encap: None } => {
                self.edit::<E>((edit, policy), work, self.writer.limits, frame, (out, effects))
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
                // A copy: a decision whose address escapes would have to be in memory on every path.
                let decision = *work.decision;
                self.execute_composed(&Work { decision: &decision, ..*work }, frame, out, effects)
            }
        }
    }

    /// Translates a header.
    #[inline(always)]
    pub(super) fn edit<E: Edits>(
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
        if !E::TRANSLATE {
            return self.writer.renumber(edit, policy, job);
        }
        match edit {
            Edit::Translate6To4 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                self.writer.translate_6_to_4(source.address, destination.address, ports, policy, job)
            }
            Edit::Translate4To6 { source, destination, keep_ports } => {
                let ports = (!keep_ports).then_some((source.port, destination.port));
                self.writer.translate_4_to_6(source.address, destination.address, ports, policy, job)
            }
            Edit::Renumber4 { .. } | Edit::Renumber6 { .. } if E::RENUMBER => {
                self.writer.renumber(edit, policy, job)
            }
            Edit::Renumber4 { .. } | Edit::Renumber6 { .. } => Err(DropReason::NoMechanism),
        }
    }

    /// Puts an outer header in front. The hop limit does not change: the kernel decremented it.
    #[inline(always)]
    pub fn encap(
        &mut self,
        encap: Encap,
        packet: &Packet,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        frame.truncate(packet.length as usize);
        let policy = self.tunnels.get(usize::from(encap.policy.0)).ok_or(DropReason::NoMechanism)?;
        // By reference: a copy would read as words what was just written in pieces, which stalls the CPU.
        match (effects.outer_at(encap.outer).ok_or(DropReason::NoMechanism)?, packet.addresses) {
            (&Outer::V4 { source, destination }, Addresses::V6 { .. }) => self.writer.encap_4(
                (source, destination),
                (policy, packet),
                frame,
                out,
                &mut effects.counters,
            ),
            (&Outer::V6 { source, destination }, Addresses::V4 { .. }) => self.writer.encap_4_in_6(
                (source, destination),
                (policy, packet),
                frame,
                out,
                &mut effects.counters,
            ),
            (&Outer::Udp4 { source, destination }, Addresses::V6 { .. })
                if self.writer.takes_plain_udp(policy, (packet, frame)) =>
            {
                self.writer.encap_plain_udp((source, destination), (policy, packet), frame)
            }
            (outer, _) => {
                let outer = *outer;
                self.writer.encap_ip_in_ip(&outer, policy, frame, packet, (out, &mut effects.counters))
            }
        }
    }
}

impl HeaderWriter {
    /// Renumbers a header.
    #[inline(always)]
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
    pub(super) fn tunnel_room(&self, policy: &TunnelPolicy, remote: Ipv4Addr) -> TunnelRoom {
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
