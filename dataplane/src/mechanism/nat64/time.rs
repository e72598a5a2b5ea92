//! Expiry: sessions end, stored SYNs are answered, silent connections are probed (RFC 6146 §3.5.2.2).

use super::Nat64;
use crate::drop_reason::DropReason;
use crate::effects::{Effects, Generated};
use crate::frame::Realm;
use crate::instant::Instant;
use crate::nat::{Fired, SilentSession};
use crate::parse::ACK;
use sixway_wire::protocol::TCP;
use sixway_wire::{IPV6_HEADER, Ipv6Header, TCP_HEADER, TcpHeader};

/// Octets of a probe: an IPv6 header and a TCP header.
const PROBE_OCTETS: usize = IPV6_HEADER + TCP_HEADER;

impl Nat64 {
    /// Ends what is due, examining at most `budget` sessions, and hands out what is to be sent. Whatever is left
    /// waits for the next call; a packet of a session that is due but not ended finds it ended all the same.
    pub fn expire(&mut self, now: Instant, budget: usize, effects: &mut Effects) {
        let (prefix, mut generated) = (self.rules.prefix, Vec::new());
        self.nat.expire(now, budget, &mut effects.counters, |fired| match fired {
            // Its sender gets an ICMPv4 port unreachable about it.
            Fired::Unanswered(packet) => generated.push(Generated::Answer(DropReason::InboundSyn, packet)),
            // A live host answers with an ACK, which makes the session established again.
            Fired::Silent(session) => {
                let packet = probe_packet(&session, |address| prefix.embed(address));
                generated.extend(packet.map(|packet| Generated::Probe(Realm(0), Box::new(packet))));
            }
        });
        if self.assistance.connections.is_on() {
            self.expire_assistance(now, budget, &mut effects.counters);
        }
        generated.into_iter().for_each(|one| effects.send(one));
    }
}

/// RFC 6146 §3.5.2.2: no data, sequence and acknowledgment number zero, all flags but ACK zero.
fn probe_packet(
    session: &SilentSession,
    embed: impl Fn(core::net::Ipv4Addr) -> Result<core::net::Ipv6Addr, DropReason>,
) -> Result<[u8; PROBE_OCTETS], DropReason> {
    let (source, destination) = (embed(session.remote.address)?, session.inside.0.address);
    let header = Ipv6Header::new(source, destination, TCP, TCP_HEADER);
    let tcp = TcpHeader::new(session.remote.port, session.inside.0.port, ACK);
    let tcp = tcp.with_checksum6(source, destination, &[]);
    let mut packet = [0; PROBE_OCTETS];
    packet[..IPV6_HEADER].copy_from_slice(&header.octets());
    packet[IPV6_HEADER..].copy_from_slice(&tcp.octets());
    Ok(packet)
}
