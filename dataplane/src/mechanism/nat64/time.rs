//! What time brings: sessions end, stored SYNs are answered, silent connections are probed (RFC 6146 §3.5.2.2).

use super::Nat64;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::instant::Instant;
use crate::nat::{Fired, SilentSession};
use crate::parse::ACK;
use sixway_wire::checksum::pseudo6;
use sixway_wire::protocol::TCP;

/// What is to be sent because time has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// A SYN was stored and nobody inside asked for it: its sender gets [`DropReason::InboundSyn`]'s answer, ICMPv4 port
    /// unreachable, about this packet. It is counted already.
    UnansweredSyn(Box<[u8]>),
    /// An established connection has been silent: this IPv6 packet asks its inside end whether it lives. Whoever lives
    /// answers with an ACK, which makes the session established again.
    Probe(Probed),
}

/// Octets of a probe: an IPv6 header and a TCP header.
const PROBE_OCTETS: usize = 60;

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The session.
    pub session: SilentSession,
    /// The packet.
    pub packet: [u8; PROBE_OCTETS],
}

impl Nat64 {
    /// Ends what is due, looking at no more than `budget` sessions, and hands out what is to be sent. Whatever is left
    /// waits for the next call; a packet of a session that is due but not ended finds it ended all the same.
    pub fn expire(
        &mut self,
        now: Instant,
        budget: usize,
        counters: &mut Counters,
        mut send: impl FnMut(Due),
    ) {
        let prefix = self.own.prefix;
        self.nat.expire(now, budget, counters, |fired| match fired {
            Fired::Unanswered(packet) => send(Due::UnansweredSyn(packet)),
            Fired::Silent(session) => {
                if let Ok(packet) = probe_packet(&session, |address| prefix.embed(address)) {
                    send(Due::Probe(Probed { session, packet }));
                }
            }
        });
    }
}

/// RFC 6146 §3.5.2.2: no data, sequence and acknowledgment number zero, all flags but ACK zero.
fn probe_packet(
    session: &SilentSession,
    embed: impl Fn(core::net::Ipv4Addr) -> Result<core::net::Ipv6Addr, DropReason>,
) -> Result<[u8; PROBE_OCTETS], DropReason> {
    let (source, destination) = (embed(session.remote.address)?, session.inside.0.address);
    let mut packet = [0; PROBE_OCTETS];
    packet[0] = 0x60;
    packet[5] = 20;
    packet[6] = TCP;
    packet[7] = 64;
    packet[8..24].copy_from_slice(&source.octets());
    packet[24..40].copy_from_slice(&destination.octets());
    packet[40..42].copy_from_slice(&session.remote.port.to_be_bytes());
    packet[42..44].copy_from_slice(&session.inside.0.port.to_be_bytes());
    packet[52] = 5 << 4;
    packet[53] = ACK;
    let checksum = pseudo6(source, destination, TCP, 20).bytes(&packet[40..]).checksum();
    packet[56..58].copy_from_slice(&checksum.to_be_bytes());
    Ok(packet)
}
