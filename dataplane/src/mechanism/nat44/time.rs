//! Expiry: sessions end, stored SYNs are answered (RFC 5382 REQ-4), silent connections are probed before they end (RFC 5382 §5).

use super::Nat44;
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::instant::Instant;
use crate::nat::{Fired, SilentSession};
use crate::parse::ACK;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sixway_wire::protocol::TCP;
use sixway_wire::{Endpoint4, IPV4_HEADER, Ipv4Header, TCP_HEADER, TcpHeader};

/// Octets of a probe: an IPv4 header and a TCP header.
const PROBE_OCTETS: usize = IPV4_HEADER + TCP_HEADER;

impl Nat44 {
    /// Ends what is due, examining at most `budget` sessions, and hands out what is to be sent. Whatever is left
    /// waits for the next call; a packet of a session that is due but not ended finds it ended all the same.
    pub fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        let (realm, mut generated) = (self.rules.realm, Vec::new());
        self.nat.expire(now, budget, &mut effects.counters, |fired| match fired {
            // Its sender gets an ICMP port unreachable about it.
            Fired::Unanswered(packet) => generated.push(Generated::Answer(DropReason::InboundSyn, packet)),
            // A live host answers with an ACK, which makes the session established again.
            Fired::Silent(session) => {
                generated.push(Generated::Probe(realm, Box::new(probe_packet(&session))));
            }
        });
        if !self.without_ports.is_idle() {
            self.without_ports.expire(now, budget, &mut effects.counters);
            self.record_portless(now);
        }
        if self.assistance.connections.is_on() {
            self.expire_assistance(now, budget, &mut effects.counters);
        }
        generated.into_iter().for_each(|one| effects.send(one));
    }
}

/// No data, sequence and acknowledgment number zero, all flags but ACK zero.
fn probe_packet(session: &SilentSession<Endpoint4>) -> [u8; PROBE_OCTETS] {
    let (source, destination) = (session.remote, session.inside.0);
    let header = Ipv4Header::new(source.address, destination.address, TCP, TCP_HEADER);
    let tcp = TcpHeader::new(source.port, destination.port, ACK);
    let tcp = tcp.with_checksum4(source.address, destination.address, &[]);
    let mut packet = [0; PROBE_OCTETS];
    packet[..IPV4_HEADER].copy_from_slice(&header.octets());
    packet[IPV4_HEADER..].copy_from_slice(&tcp.octets());
    packet
}
