//! Softwires of an AFTR (RFC 6333): what they need in addition to the softwires of mechanisms that do not translate.
//!
//! ```text
//!     ICMP errors about what came out of one     go back into it, from 192.0.0.1         refuse_inside
//!     echo requests to 192.0.0.1                 are answered there                      reply_inside
//!     fragments inside one                       wait for their packet                   reassemble_inner
//!     ICMP errors about what went into one       go to the remote host, through the NAT  softwire_error
//! ```

use super::Engine;
use super::path::{Batch, Path};
use super::softwire_ends::Back;
use super::tunnel_addresses::TunnelAt;
use crate::drop_reason::DropReason;
use crate::fragment::Admission;
use crate::frame::{Frame, Offload};
use crate::kind::Kind;
use crate::mechanism::contract::Mechanism as _;
use crate::mechanism::ds_lite::AFTR_ADDRESS;
use crate::mechanism::table::with_row_ref;
use crate::nat::NatProtocol;
use crate::outbox::Outbox;
use crate::parse::{self, Addresses, IPV4_HEADER, IPV6_HEADER, Packet, QuotedTuple, Transport};
use crate::rewrite::icmp_error::{DroppedPacket, IcmpDetail};
use crate::rewrite::{Editing, Executed, Pass, Work, echo};
use crate::translate::header::Ipv6Header;
use crate::tunnel::ecn;
use crate::tunnel::ends::Pair;
use crate::tunnel::ip_in_ip_error::{IpInIpError, RelayedEither};
use crate::tunnel::path_mtu::Learnt;
use crate::tunnel::relayed_error::Says;
use crate::verdict::{Decision, Edit, Encap, Next, PolicyId, Quoted, Verdict, WorkerId};
use core::net::IpAddr;
use sixway_wire::protocol::{ICMPV4, ICMPV6, IPV4, TCP, UDP};
use sixway_wire::{Endpoint4, icmpv4};

/// How much of a packet an error inside a softwire may quote: the whole error has 576 octets at most (RFC 1812 §4.3.2.3).
const QUOTABLE: usize = 576;

impl Path {
    /// An error about a packet that came out of a softwire: its sender is inside. Whether it was one.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_inside(
        &mut self,
        reason: DropReason,
        (quote, outer, inner): (&[u8], &Packet, &Packet),
        mtu: Option<u16>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let Some(Back { outer, policy, subscriber }) = self.softwires.back(outer) else { return false };
        let mut frame = Frame::with_capacity(QUOTABLE);
        frame.fill(quote, Offload::default());
        let detail = match reason {
            DropReason::PacketTooBig => IcmpDetail::Mtu(mtu.unwrap_or(self.rewriter.limits().mtu4).into()),
            _ => IcmpDetail::None,
        };
        let dropped = DroppedPacket { reason, frame: &frame, packet: Some(inner), detail };
        let before = batch.out.len();
        let counters = &mut self.effects.counters;
        self.errors.answer_as((AFTR_ADDRESS, subscriber), dropped, batch.now, batch.out, counters);
        let encap = Encap { outer: self.effects.outer(outer), policy };
        let (rewriter, effects) = (&mut self.rewriter, &mut self.effects);
        let sent = batch.out.frames()[before..].iter_mut().try_for_each(|error| {
            let packet = parse::parse(error.bytes())?;
            rewriter.encap(encap, &packet, error, &mut Outbox::new(0), effects).map(|_| ())
        });
        if sent.is_err() {
            batch.out.shorten(before);
        }
        true
    }
}

impl Engine {
    /// An echo request to the AFTR itself: its reply goes back into the softwire (RFC 6333 §5.7).
    pub(super) fn reply_inside(
        &mut self,
        (packet, inner): (&Packet, &Packet),
        decision: &Decision,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let is_request = matches!(inner.transport, Transport::IcmpQuery { kind: icmpv4::ECHO_REQUEST, .. });
        if !is_request || inner.protocol != ICMPV4 {
            let is_known = matches!(inner.protocol, TCP | UDP | ICMPV4);
            return Err(if is_known { DropReason::ToGateway } else { DropReason::ProtocolUnknown });
        }
        let (Some(policy), Some(encap)) = (decision.action.decap, decision.action.encap) else {
            return Err(DropReason::NoTunnel);
        };
        let Path { rewriter, effects, .. } = &mut self.path;
        let _in_place = rewriter.decap(frame, (packet, inner), policy, &mut effects.counters)?;
        let limits = crate::limits::Limits { mtu4: u16::MAX, ..*rewriter.limits() };
        let _in_place = echo::reply(frame, inner, &limits, batch.out, &mut effects.counters)?;
        // The reply is as long as the request was: it may be fragmented on its way.
        let reply = Packet { dont_fragment: false, ..parse::parse(frame.bytes())? };
        match rewriter.encap(encap, &reply, frame, batch.out, effects)? {
            Executed::InPlace => Ok(Verdict::Answered),
            Executed::InPieces => Ok(Verdict::InPieces),
        }
    }

    /// A fragment inside a softwire waits for the rest of its packet. The whole gets the outer header again: it is then a packet like any other from
    /// this softwire.
    #[cold]
    pub(super) fn reassemble_inner(
        &mut self,
        (packet, inner): (&Packet, &Packet),
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let Addresses::V6 { source, destination } = packet.addresses else {
            return Err(DropReason::NoTunnel);
        };
        let sharing = self.path.softwires.sharing(packet.addresses, true).ok_or(DropReason::NoTunnel)?;
        let counters = &mut self.path.effects.counters;
        let traffic_class = ecn::decap(inner.traffic_class, packet.traffic_class, counters)?;
        let octets = frame.bytes().get(usize::from(packet.transport_at)..).ok_or(DropReason::Truncated)?;
        let piece = Frame::holding(octets.get(..inner.length as usize).ok_or(DropReason::Truncated)?);
        let inner = Packet { traffic_class, ..*inner };
        let admitted = self.inner_reassembly.admit_shared(sharing, &piece, &inner, batch.now);
        let admitted = match admitted {
            Ok(Admission::Whole(mut whole)) => {
                let length = whole.frame.len();
                let [_, tos, ..] = whole.frame.bytes() else { return Err(DropReason::Truncated) };
                let header = Ipv6Header {
                    traffic_class: packet.traffic_class & !ecn::ECN | tos & ecn::ECN,
                    hop_limit: packet.hops,
                    ..Ipv6Header::new(source, destination, IPV4, length)
                };
                whole.frame.resize_front(0, IPV6_HEADER)?;
                whole.frame.bytes_mut()[..IPV6_HEADER].copy_from_slice(&header.octets());
                Ok(Admission::Whole(whole))
            }
            other => other,
        };
        self.go_on_with(admitted, frame, batch)
    }

    /// The worker of the softwire that an ICMPv6 error is about: the error comes from any router on the way.
    pub(super) fn worker_of_softwire_error(&self, frame: &Frame, packet: &Packet) -> Option<WorkerId> {
        if self.path.softwires.is_empty() || packet.protocol != ICMPV6 {
            return None;
        }
        let message = frame.bytes().get(usize::from(packet.transport_at)..packet.length as usize)?;
        let error = IpInIpError::read(message, packet.addresses).ok()?;
        let id = self.path.softwires.went_through(error.outer)?.id;
        let Pair { source: IpAddr::V6(local), destination: IpAddr::V6(client) } = error.outer else {
            return None;
        };
        let from_client = Packet {
            addresses: Addresses::V6 { source: client, destination: local },
            transport: Transport::Opaque,
            ..*packet
        };
        with_row_ref!(self.mechanisms, id.kind, row => row.all[usize::from(id.index)].worker_of(&from_client, None))
    }

    /// The AFTR whose softwire an ICMPv6 error is about, if it is about one.
    pub(super) fn softwire_of(&self, error: &IpInIpError<'_>, packet: &Packet) -> Option<TunnelAt> {
        let is_ours = error.is_v4 && error.outer.source == Pair::of(packet.addresses).destination;
        let tunnel = self.path.softwires.went_through(error.outer)?;
        let is_ours = is_ours && tunnel.id.kind == Kind::DsLite;
        (is_ours && self.pair_ends.went_through(error.outer, true).is_none()).then_some(tunnel)
    }

    /// An ICMPv6 error about a packet that was sent into a softwire (RFC 2473 §8). It is accepted if the packet belongs to a session: a
    /// sender who does not see the packets can neither narrow the path nor reach the remote host. That gets an ICMPv4 error about its
    /// packet as it sent it.
    #[cold]
    pub(super) fn softwire_error(
        &mut self,
        (error, tunnel): (&IpInIpError<'_>, TunnelAt),
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let (TunnelAt { id, policy }, IpAddr::V6(b4)) = (tunnel, error.outer.destination) else {
            return Err(DropReason::ErrorNotForTunnel);
        };
        let QuotedTuple::V4 { source: remote, destination: inside, protocol } =
            parse::quoted(error.quote, true)?
        else {
            return Err(DropReason::QuoteUnusable);
        };
        let none = DropReason::NoSessionForError;
        let protocol = NatProtocol::of(protocol).filter(|_| id.kind == Kind::DsLite).ok_or(none)?;
        let aftr = self.mechanisms.ds_lite.all.get(usize::from(id.index)).ok_or(none)?;
        let outside = aftr.outside_of(b4, inside, remote, protocol)?.0;
        let rewriter = &mut self.path.rewriter;
        let learnt = match error.says {
            Says::TooBig(told) => Some(rewriter.learn_path_mtu_ip_in_ip(b4.into(), told, error.outer_length)),
            Says::Unreachable | Says::Else => None,
        };
        let outer = error.outer.header().ok_or(DropReason::QuoteUnusable)?;
        let mtu = rewriter.tunnel_mtu_ip_in_ip(policy, &outer, true).ok_or(DropReason::NoTunnel)?;
        let counters = &mut self.path.effects.counters;
        match learnt {
            Some(Learnt::Mtu(_)) => counters.path_mtus_learned += 1,
            Some(Learnt::Refused) => counters.path_mtus_refused += 1,
            None => {}
        }
        let RelayedEither::V4(relayed, to) = error.relayed(mtu)? else {
            return Err(DropReason::ErrorNotRelayable);
        };
        let told = self.path.errors.relay4(relayed, to, error.quote, batch.now, counters);
        let told = told.filter(|told| told.len() <= frame.space().len());
        let told = told.ok_or(DropReason::ErrorNotRelayable)?;
        frame.fill(&told, Offload { transport: IPV4_HEADER as u16, ..Offload::default() });
        self.quote_as_sent((remote, outside, protocol), policy, frame, batch)?;
        self.path.effects.counters.tunnel_errors_relayed += 1;
        Ok(Verdict::Answered)
    }

    /// What an error to a remote host quotes gets the destination that the host knows.
    fn quote_as_sent(
        &mut self,
        (remote, outside, protocol): (Endpoint4, Endpoint4, NatProtocol),
        policy: PolicyId,
        frame: &mut Frame,
        batch: &mut Batch<'_>,
    ) -> Result<Executed, DropReason> {
        let packet = parse::parse(frame.bytes())?;
        let Addresses::V4 { source, destination } = packet.addresses else {
            return Err(DropReason::ErrorNotRelayable);
        };
        let [source, destination] = [source, destination].map(|address| Endpoint4::new(address, 0));
        let port = if protocol == NatProtocol::Icmp { outside.port } else { remote.port };
        let remote = Endpoint4::new(remote.address, port);
        let quoted = Quoted::V4 { source: remote, destination: outside, keep_ports: false };
        let edit = Edit::Renumber4 { source, destination, keep_ports: true };
        let Path { rewriter, effects, .. } = &mut self.path;
        let quoted = Some(effects.quoted(quoted));
        let decision = Decision { quoted, ..Decision::edit(edit, policy, Next::Leave) };
        let pass = Pass { decrement: false, reassembled: false };
        let work = Work { decision: &decision, packet: &packet, inner: None, pass };
        rewriter.execute::<Editing>(&work, frame, batch.out, effects)
    }
}
