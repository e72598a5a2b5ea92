//! One end of a configured tunnel: it answers the remote end's reachability probes (RFC 4213 §3.8).

use crate::neighbour_answer::{AnswerLimit, answer};
use crate::neighbour_discovery::{Malformed, Message, Received, Transmission};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;

/// The link-local address of a tunnel's end: its IPv4 address is the interface identifier (RFC 4213 §3.7).
pub fn link_local(end: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80_u128 << 112 | u128::from(end.to_bits()))
}

/// This end of a configured tunnel.
#[derive(Clone, Debug)]
pub struct TunnelEnd {
    local: Ipv4Addr,
    limit: AnswerLimit,
}

impl TunnelEnd {
    /// The end at this address.
    pub fn new(local: Ipv4Addr) -> Self {
        Self { local, limit: AnswerLimit::default() }
    }

    /// Takes a message that came through the tunnel; the answer to a probe, which goes back to where it came from. Link-layer address
    /// options are not examined (RFC 4213 §3.8).
    ///
    /// # Errors
    /// Which check the message failed; it is silently discarded.
    pub fn handle_message(
        &mut self,
        now: Instant,
        received: &Received<'_>,
    ) -> Result<Option<Transmission>, Malformed> {
        let Message::NeighbourSolicitation(asked) = Message::parse(received)? else { return Ok(None) };
        let own = link_local(self.local);
        let answer = answer(received, &asked, |target| target == own, true);
        Ok(answer.filter(|_| self.limit.admit(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbour_answer::MAX_ANSWERS_PER_SECOND;
    use crate::neighbour_discovery::NeighbourSolicitation;

    const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
    const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

    fn asked(end: &mut TunnelEnd, target: Ipv6Addr, now: Instant) -> Option<Transmission> {
        let (source, destination) = (link_local(REMOTE), link_local(LOCAL));
        let message = Message::NeighbourSolicitation(NeighbourSolicitation { target, options: Vec::new() })
            .to_octets(source, destination);
        let received =
            Received { source, destination, hop_limit: 255, outer_source: Some(REMOTE), message: &message };
        end.handle_message(now, &received).unwrap()
    }

    #[test]
    fn a_probe_from_the_other_end_is_answered_to_where_it_came_from() {
        let mut end = TunnelEnd::new(LOCAL);
        let sent = asked(&mut end, link_local(LOCAL), Instant::from_secs(1)).unwrap();
        assert_eq!((sent.source, sent.destination), ("fe80::c000:209".parse().unwrap(), link_local(REMOTE)));
        assert_eq!((sent.outer_destination, sent.message[0]), (Some(REMOTE), 136));
        assert_eq!(
            asked(&mut end, link_local(REMOTE), Instant::from_secs(1)),
            None,
            "that is the other end's own"
        );
    }

    #[test]
    fn a_flood_of_probes_has_a_bounded_number_of_answers() {
        let mut end = TunnelEnd::new(LOCAL);
        let now = Instant::from_secs(1);
        let answers = (0..1_000).filter(|_| asked(&mut end, link_local(LOCAL), now).is_some()).count();
        assert_eq!(answers, usize::from(MAX_ANSWERS_PER_SECOND));
        assert!(asked(&mut end, link_local(LOCAL), Instant::from_secs(2)).is_some());
    }
}
