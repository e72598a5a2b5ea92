//! Expiry: sessions end, stored SYNs are answered (RFC 5382 REQ-4), silent connections are probed before they end (RFC 5382 §5).

use super::DsLite;
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::frame::Realm;
use crate::instant::Instant;
use crate::nat::{Fired, SilentSession, Softwire};
use crate::parse::ACK;
use crate::translate::header::Ipv6Header;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use sixway_wire::protocol::{IPV4, TCP};
use sixway_wire::{IPV4_HEADER, IPV6_HEADER, Ipv4Header, TCP_HEADER, TcpHeader};

/// Octets of a probe: both IP headers and a TCP header.
const PROBE_OCTETS: usize = IPV6_HEADER + IPV4_HEADER + TCP_HEADER;

impl DsLite {
    /// Ends what is due, examining at most `budget` sessions, and hands out what is to be sent.
    pub fn end_what_is_due(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        let (mut silent, mut generated) = (Vec::new(), Vec::new());
        self.nat.expire(now, budget, &mut effects.counters, |fired| match fired {
            // Its sender gets an ICMP port unreachable about it.
            Fired::Unanswered(packet) => generated.push(Generated::Answer(DropReason::InboundSyn, packet)),
            Fired::Silent(session) => silent.push(session),
        });
        // A live host answers with an ACK, which makes the session established again.
        let probes = silent.iter().filter_map(|session| {
            let ends = self.ends(session.inside.0.id)?;
            Some(Generated::Probe(Realm(0), Box::new(probe_packet(session, ends))))
        });
        generated.into_iter().chain(probes).for_each(|one| effects.send(one));
    }
}

/// No data, sequence and acknowledgment number zero, all flags but ACK zero.
fn probe_packet(session: &SilentSession<Softwire>, (local, b4): (Ipv6Addr, Ipv6Addr)) -> [u8; PROBE_OCTETS] {
    let (source, destination) = (session.remote, session.inside.0.endpoint);
    let outer = Ipv6Header::new(local, b4, IPV4, IPV4_HEADER + TCP_HEADER);
    let header = Ipv4Header::new(source.address, destination.address, TCP, TCP_HEADER);
    let tcp = TcpHeader::new(source.port, destination.port, ACK);
    let tcp = tcp.with_checksum4(source.address, destination.address, &[]);
    let mut packet = [0; PROBE_OCTETS];
    let (front, behind) = packet.split_at_mut(IPV6_HEADER);
    front.copy_from_slice(&outer.octets());
    behind[..IPV4_HEADER].copy_from_slice(&header.octets());
    behind[IPV4_HEADER..].copy_from_slice(&tcp.octets());
    packet
}
