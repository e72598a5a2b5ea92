//! Answers to neighbour solicitations through tunnels (RFC 4861 §7.2.3, §7.2.4): the kernel has no neighbour entries there.
//!
//! Link-layer addresses are computed from IPv6 addresses (RFC 5214 §7.1), so that the Target Link-Layer Address option is left out and the
//! Override flag is 0. There is no multicast (§6.3): a solicitation from the unspecified address could not be answered and is not.

use crate::neighbour_discovery::{
    Message, NeighbourAdvertisement, NeighbourSolicitation, Received, Transmission,
};
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;

/// How many solicitations are answered in a second.
pub(crate) const MAX_ANSWERS_PER_SECOND: u16 = 256;

/// Counts answers in windows of a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerLimit {
    since: Instant,
    given: u16,
}

impl AnswerLimit {
    /// Whether one more may be given.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.since, self.given) = (now, 0);
        }
        let admitted = self.given < MAX_ANSWERS_PER_SECOND;
        self.given += u16::from(admitted);
        admitted
    }
}

/// The advertisement that answers a valid solicitation for one of our own addresses; `None` for others, and for those without a sender.
pub(crate) fn answer(
    received: &Received<'_>,
    solicitation: &NeighbourSolicitation,
    is_own: impl Fn(Ipv6Addr) -> bool,
    router: bool,
) -> Option<Transmission> {
    if received.source.is_unspecified() || !is_own(solicitation.target) {
        return None;
    }
    let (source, destination) = (solicitation.target, received.source);
    let (target, options) = (solicitation.target, Vec::new());
    let advertisement = NeighbourAdvertisement { router, solicited: true, overrides: false, target, options };
    let message = Message::NeighbourAdvertisement(advertisement).to_octets(source, destination);
    Some(Transmission { source, destination, outer_destination: received.outer_source, message })
}
