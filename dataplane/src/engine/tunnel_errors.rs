//! ICMP errors from inside tunnels: the path MTU is learned, and the error is relayed to the sender of the inner packet (RFC 4213
//! §3.4).

use super::Engine;
use super::path::Batch;
use super::tunnel_addresses::{TunnelAddresses, TunnelAt};
use crate::classify::TunnelAddress;
use crate::drop_reason::DropReason;
use crate::frame::{Frame, Offload};
use crate::instant::Instant;
use crate::mechanism::contract::Mechanism as _;
use crate::mechanism::table::{Mechanisms, with_row_ref};
use crate::parse::{self, Addresses, IPV4_HEADER, IPV6_HEADER, Packet, Transport};
use crate::tunnel::ends::Pair;
use crate::tunnel::ip_in_ip_error::{IpInIpError, RelayedEither};
use crate::tunnel::path_mtu::Learnt;
use crate::tunnel::relayed_error::{Says, TunnelError};
use crate::verdict::Verdict;
use alloc::vec::Vec;
use core::net::IpAddr;
use sixway_wire::protocol::IPV4;

/// The effect of a plausible error.
struct Accepted {
    /// The tunnel MTU from now on, in octets of inner packet.
    mtu: u16,
    learnt: Option<Learnt>,
}

impl Engine {
    /// An ICMP error that came to a tunnel address: it becomes the ICMP error for the sender of the inner packet that it quotes.
    #[cold]
    pub(super) fn error_from_inside(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        address: TunnelAddress,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let now = batch.now;
        if matches!(packet.addresses, Addresses::V6 { .. }) || quotes_ipv4(frame.bytes(), packet) {
            return self.ip_in_ip_error(frame, packet, batch);
        }
        let error = TunnelError::read(message_of(frame.bytes(), packet)?)?;
        let Accepted { mtu, learnt } = self.learn_from(&error, address.0)?;
        self.count(learnt);
        let inner = error.inner.ok_or(DropReason::ErrorNotRelayable)?;
        let relayed = inner.relayed(error.says, mtu)?;
        let (to, quote) = (inner.source, inner.quote);
        let told = self.path.errors.relay(relayed, to, quote, now, &mut self.path.effects.counters);
        self.tell(told.as_deref(), IPV6_HEADER, frame)
    }

    /// The same of an error about a packet of a tunnel that is not of IPv6 in IPv4 (RFC 2473 §8, RFC 2003 §4).
    fn ip_in_ip_error(
        &mut self,
        frame: &mut Frame,
        packet: &Packet,
        batch: &mut Batch<'_>,
    ) -> Result<Verdict, DropReason> {
        let now = batch.now;
        let error = IpInIpError::read(message_of(frame.bytes(), packet)?, packet.addresses)?;
        if let Some(tunnel) = self.softwire_of(&error, packet) {
            // The error is read where it is, and its frame gets the answer.
            let received = frame.bytes().to_vec();
            let message = message_of(&received, packet)?;
            let error = IpInIpError::read(message, packet.addresses)?;
            return self.softwire_error((&error, tunnel), frame, batch);
        }
        let Accepted { mtu, learnt } = self.learn_from_ip_in_ip(&error, packet)?;
        self.count(learnt);
        if self.workers > 1 && matches!(learnt, Some(Learnt::Mtu(_))) {
            self.path_news.keep(frame.bytes());
        }
        let (errors, counters) = (&mut self.path.errors, &mut self.path.effects.counters);
        let (told, front) = match error.relayed(mtu)? {
            RelayedEither::V6(relayed, to) => {
                (errors.relay(relayed, to, error.quote, now, counters), IPV6_HEADER)
            }
            RelayedEither::V4(relayed, to) => {
                (errors.relay4(relayed, to, error.quote, now, counters), IPV4_HEADER)
            }
        };
        self.tell(told.as_deref(), front, frame)
    }

    /// Replaces the received error by the one for the sender.
    fn tell(&mut self, told: Option<&[u8]>, front: usize, frame: &mut Frame) -> Result<Verdict, DropReason> {
        let told = told.filter(|told| told.len() <= frame.space().len());
        let told = told.ok_or(DropReason::ErrorNotRelayable)?;
        frame.fill(told, Offload { transport: front as u16, ..Offload::default() });
        self.path.effects.counters.tunnel_errors_relayed += 1;
        Ok(Verdict::Answered)
    }

    const fn count(&mut self, learnt: Option<Learnt>) {
        match learnt {
            Some(Learnt::Mtu(_)) => self.path.effects.counters.path_mtus_learned += 1,
            Some(Learnt::Refused) => self.path.effects.counters.path_mtus_refused += 1,
            None => {}
        }
    }

    /// The errors that this engine has accepted since the last call, for the engines of the other workers.
    pub fn take_path_errors(&mut self) -> Vec<Vec<u8>> {
        self.path_news.take()
    }

    /// Learns the path MTU from a whole ICMP error that another worker received. No one
    /// is notified. An error that is not plausible is ignored.
    pub fn learn_path_error(&mut self, octets: &[u8], now: Instant) {
        if let Ok(packet) = parse::parse(octets)
            && let Ok(message) = message_of(octets, &packet)
            && matches!(packet.transport, Transport::IcmpError { .. })
            && let Ok(error) = IpInIpError::read(message, packet.addresses)
        {
            self.path.rewriter.set_time(now);
            let _unbelieved = self.learn_from_ip_in_ip(&error, &packet);
        }
        if let Some((error, number)) = self.tunnel_addresses.error_in(octets) {
            self.path.rewriter.set_time(now);
            let _unbelieved = self.learn_from(&error, number);
        }
    }

    /// Learns from an error, if it is plausible.
    fn learn_from(&mut self, error: &TunnelError<'_>, number: u8) -> Result<Accepted, DropReason> {
        let through = self.tunnel_addresses.sent_what_is_quoted(error, number, &self.mechanisms);
        let policy = through.ok_or(DropReason::ErrorNotForTunnel)?.policy;
        let remote = error.outer_destination;
        let learnt = match error.says {
            Says::TooBig(told) => self.path.rewriter.learn_path_mtu(policy, remote, told, error.outer_length),
            Says::Unreachable | Says::Else => None,
        };
        let mtu = self.path.rewriter.tunnel_mtu(policy, remote).ok_or(DropReason::NoTunnel)?;
        Ok(Accepted { mtu, learnt })
    }

    /// The same for the other tunnels. An error is plausible if it quotes a packet that one of them sends from the address to which the error came.
    fn learn_from_ip_in_ip(
        &mut self,
        error: &IpInIpError<'_>,
        packet: &Packet,
    ) -> Result<Accepted, DropReason> {
        let nothing_sent = DropReason::ErrorNotForTunnel;
        if error.outer.source != Pair::of(packet.addresses).destination {
            return Err(nothing_sent);
        }
        let pair = self.pair_ends.went_through(error.outer, error.is_v4);
        let tunnel = pair.or_else(|| self.softwire_that_sent(error));
        let TunnelAt { id, policy } = tunnel.ok_or(nothing_sent)?;
        if let (Some(inner), Some(_)) = (error.inner(), pair) {
            let is_sent = with_row_ref!(self.mechanisms, id.kind, row => {
                let mechanism = &row.all[usize::from(id.index)];
                mechanism.carries_to(inner.destination) && mechanism.carries_from(inner.source)
            });
            is_sent.then_some(()).ok_or(nothing_sent)?;
        }
        let remote = error.outer.destination;
        let learnt = match error.says {
            Says::TooBig(told) => {
                Some(self.path.rewriter.learn_path_mtu_ip_in_ip(remote, told, error.outer_length))
            }
            Says::Unreachable | Says::Else => None,
        };
        let outer = error.outer.header().ok_or(DropReason::QuoteUnusable)?;
        let mtu = self.path.rewriter.tunnel_mtu_ip_in_ip(policy, &outer, error.is_v4);
        Ok(Accepted { mtu: mtu.ok_or(DropReason::NoTunnel)?, learnt })
    }
}

impl Engine {
    /// The mechanism that sends the quoted packet into the softwire of the quoted outer destination. The inner header must be quoted.
    fn softwire_that_sent(&self, error: &IpInIpError<'_>) -> Option<TunnelAt> {
        let tunnel = self.path.softwires.went_through(error.outer).filter(|_| error.is_v4)?;
        let (IpAddr::V4(destination), IpAddr::V6(client)) =
            (error.inner()?.destination, error.outer.destination)
        else {
            return None;
        };
        let sends = with_row_ref!(self.mechanisms, tunnel.id.kind,
            row => row.all[usize::from(tunnel.id.index)].sends_to(destination, client));
        sends.then_some(tunnel)
    }
}

impl TunnelAddresses {
    /// The error that an ICMPv4 packet is, and the number of the local address that it came to.
    pub(super) fn error_in<'a>(&self, octets: &'a [u8]) -> Option<(TunnelError<'a>, u8)> {
        let packet = parse::parse(octets).ok()?;
        let Addresses::V4 { destination, .. } = packet.addresses else { return None };
        let is_whole_error =
            matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        let number = self.at(destination).filter(|_| is_whole_error)?;
        Some((message_of(octets, &packet).and_then(TunnelError::read).ok()?, number))
    }

    /// The tunnel of a local address that an error is about. An error is plausible if it quotes a packet that one of them sends: the quoted outer source
    /// is that address, and the inner destination is reached by the outer one. Where the inner header is not quoted, the outer
    /// destination must be the only remote end of a tunnel.
    pub(super) fn sent_what_is_quoted(
        &self,
        error: &TunnelError<'_>,
        number: u8,
        mechanisms: &Mechanisms,
    ) -> Option<TunnelAt> {
        if self.at(error.outer_source) != Some(number) {
            return None;
        }
        match &error.inner {
            Some(inner) => {
                let addresses = (inner.source, inner.destination);
                self.went_through(number, addresses, error.outer_destination, mechanisms)
            }
            None => self.only_to(number, error.outer_destination),
        }
    }
}

/// Whether an ICMPv4 error quotes a packet of IPv4 in IPv4.
fn quotes_ipv4(octets: &[u8], packet: &Packet) -> bool {
    let quote = message_of(octets, packet).ok().and_then(|message| message.get(parse::ICMP_HEADER..));
    quote.and_then(|quote| quote.get(9)).is_some_and(|protocol| *protocol == IPV4)
}

/// An ICMP message, from its type on.
fn message_of<'a>(octets: &'a [u8], packet: &Packet) -> Result<&'a [u8], DropReason> {
    octets.get(usize::from(packet.transport_at)..packet.length as usize).ok_or(DropReason::Truncated)
}
