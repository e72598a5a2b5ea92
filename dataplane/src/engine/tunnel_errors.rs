//! ICMP errors from the IPv4 paths of tunnels: what they tell of a path is learnt, and the sender of the packet is told (RFC 4213
//! §3.4).

use super::Engine;
use super::ends::{Ends, TunnelAt};
use crate::drop_reason::DropReason;
use crate::frame::{Frame, Offload};
use crate::instant::Instant;
use crate::mechanism::table::Mechanisms;
use crate::parse::{self, Addresses, IPV6_HEADER, Packet, Transport};
use crate::tunnel::path_mtu::Learnt;
use crate::tunnel::relayed_error::{Says, TunnelError};
use crate::verdict::Verdict;

/// What an error that was believed did here.
struct Heeded {
    /// What the tunnel carries from now on, in octets of inner packet.
    mtu: u16,
    learnt: Option<Learnt>,
}

impl Engine {
    /// The way of an ICMP error that came to an end of tunnels: it becomes the ICMPv6 error that goes to the sender of the packet in
    /// the packet that it quotes.
    #[cold]
    pub(super) fn error_from_inside(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        endpoint: u8,
        now: Instant,
    ) -> Result<Verdict, DropReason> {
        let error = TunnelError::read(message_of(frame.bytes(), packet)?)?;
        let Heeded { mtu, learnt } = self.heed(&error, endpoint)?;
        match learnt {
            Some(Learnt::Mtu(_)) => self.path.effects.counters.path_mtus_learnt += 1,
            Some(Learnt::Refused) => self.path.effects.counters.path_mtus_refused += 1,
            None => {}
        }
        let inner = error.inner.ok_or(DropReason::ErrorForTunnelAlone)?;
        let relayed = inner.relayed(error.says, mtu)?;
        let (to, quote) = (inner.source, inner.quote);
        let told = self.path.errors.relay(relayed, to, quote, now, &mut self.path.effects.counters);
        let told = told.ok_or(DropReason::ErrorForTunnelAlone)?;
        if frame.space().len() < told.len() {
            return Err(DropReason::ErrorForTunnelAlone);
        }
        frame.fill(&told, Offload { transport: IPV6_HEADER as u16, ..Offload::default() });
        self.path.effects.counters.tunnel_errors_relayed += 1;
        Ok(Verdict::Answered)
    }

    /// An ICMPv4 error, whole, that another worker's engine has got as a frame: what it tells of a path is learnt here too, and nobody
    /// is told. Whatever cannot be believed is ignored.
    pub fn learn_path_error(&mut self, octets: &[u8], now: Instant) {
        if let Some((error, endpoint)) = self.ends.error_in(octets) {
            self.path.rewriter.set_time(now);
            let _unbelieved = self.heed(&error, endpoint);
        }
    }

    /// Learns from an error, if it is to be believed.
    fn heed(&mut self, error: &TunnelError<'_>, endpoint: u8) -> Result<Heeded, DropReason> {
        let through = self.ends.sent_what_is_quoted(error, endpoint, &self.mechanisms);
        let policy = through.ok_or(DropReason::ErrorAboutNothingSent)?.policy;
        let remote = error.outer_destination;
        let learnt = match error.says {
            Says::TooBig(told) => self.path.rewriter.learn_path_mtu(policy, remote, told, error.outer_length),
            Says::Unreachable | Says::Else => None,
        };
        let mtu = self.path.rewriter.tunnel_mtu(policy, remote).ok_or(DropReason::NoTunnel)?;
        Ok(Heeded { mtu, learnt })
    }
}

impl Ends {
    /// The error that an ICMPv4 packet is, and the endpoint that it came to.
    pub(super) fn error_in<'a>(&self, octets: &'a [u8]) -> Option<(TunnelError<'a>, u8)> {
        let packet = parse::parse(octets).ok()?;
        let Addresses::V4 { destination, .. } = packet.addresses else { return None };
        let is_whole_error =
            matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        let endpoint = self.at(destination).filter(|_| is_whole_error)?;
        Some((message_of(octets, &packet).and_then(TunnelError::read).ok()?, endpoint))
    }

    /// The tunnel of an endpoint that an error is about. Believed is what quotes a packet that one of them sends: the quoted outer source
    /// is the endpoint, and the inner destination leads where the outer one is. Where the inner header is not quoted, the outer
    /// destination must be the other end of a tunnel that has but one.
    pub(super) fn sent_what_is_quoted(
        &self,
        error: &TunnelError<'_>,
        endpoint: u8,
        mechanisms: &Mechanisms,
    ) -> Option<TunnelAt> {
        if self.at(error.outer_source) != Some(endpoint) {
            return None;
        }
        match &error.inner {
            Some(inner) => {
                let addresses = (inner.source, inner.destination);
                self.went_through(endpoint, addresses, error.outer_destination, mechanisms)
            }
            None => self.only_to(endpoint, error.outer_destination),
        }
    }
}

/// An ICMP message, from its type on.
fn message_of<'a>(octets: &'a [u8], packet: &Packet) -> Result<&'a [u8], DropReason> {
    octets.get(usize::from(packet.transport_at)..packet.length as usize).ok_or(DropReason::Truncated)
}
