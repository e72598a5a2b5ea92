//! What a host does with the messages that come out of the tunnel.

use super::action::{HostAction, HostHeard};
use super::host::IsatapHost;
use crate::neighbour_answer::answer;
use crate::neighbour_discovery::{
    Malformed, Message, NdOption, NeighbourAdvertisement, NeighbourSolicitation, Received,
    RouterAdvertisement, link_local_locator_of,
};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_dataplane::tunnel::address::isatap;

/// RFC 4861 §6.2.1: no router may advertise a longer reachable time; nor is a longer retrans timer taken.
const MAX_TIME: Duration = Duration::from_secs(3_600);
/// No shorter retrans timer is taken, whatever is advertised.
const MIN_RETRANS: Duration = Duration::from_millis(100);
/// RFC 8200 §5.
const MIN_MTU: u32 = 1_280;

impl IsatapHost {
    /// Takes a message that came out of the tunnel.
    ///
    /// # Errors
    /// Which check the message failed; it is silently discarded.
    pub fn handle_message(&mut self, now: Instant, received: &Received<'_>) -> Result<HostHeard, Malformed> {
        Ok(match Message::parse(received)? {
            Message::RouterAdvertisement(said) => self.advertised(now, received, &said),
            Message::NeighbourAdvertisement(said) => self.neighbour(now, received, &said),
            Message::NeighbourSolicitation(asked) => self.solicited(now, received, &asked),
            // RFC 4861 §6.2.6: a host discards router solicitations.
            Message::RouterSolicitation(_) => HostHeard::NotForUs,
        })
    }

    /// RFC 5214 §8.3.3, RFC 4861 §6.3.4.
    fn advertised(&mut self, now: Instant, received: &Received<'_>, said: &RouterAdvertisement) -> HostHeard {
        let locator =
            link_local_locator_of(received.source).filter(|address| Some(*address) == received.outer_source);
        let Some(router) = locator.and_then(|address| self.routers.find(address)) else {
            return HostHeard::Stranger;
        };
        let lifetime = Duration::from_secs(u64::from(said.router_lifetime));
        let is_new = router.link_local.is_none() || router.failed;
        router.link_local = Some(received.source);
        router.until = (said.router_lifetime > 0).then(|| now + lifetime);
        router.preference = said.preference;
        router.hop_limit = Some(said.hop_limit).filter(|limit| *limit > 0).or(router.hop_limit);
        let mtu = said.options.iter().find_map(|option| match option {
            NdOption::Mtu(mtu) if *mtu >= MIN_MTU => Some(*mtu),
            _ => None,
        });
        let told = (router.mtu, mtu.or(router.mtu));
        router.mtu = told.1;
        if is_new {
            // RFC 5214 §8.4: a first confirmation.
            router.detection.probe(now, self.retrans);
        }
        let address = router.address;
        self.take_times(now, said);
        let shortest = self
            .take_prefixes(now, said)
            .into_iter()
            .chain((said.router_lifetime > 0).then_some(lifetime))
            .min();
        let least = self.settings.min_solicit_interval;
        if let Some(shortest) = shortest
            && let Some(router) = self.routers.find(address)
        {
            router.solicitation.answered(now, shortest, least, &mut self.random);
        }
        if !self.choose(now, None)
            && told.0 != told.1
            && self.routers.chosen().is_some_and(|in_use| in_use.address == address)
        {
            self.set_route();
        }
        HostHeard::Advertisement
    }

    /// Reachable time and retrans timer; zero leaves what is in use.
    fn take_times(&mut self, now: Instant, said: &RouterAdvertisement) {
        let reachable = Duration::from_millis(u64::from(said.reachable_time)).min(MAX_TIME);
        if !reachable.is_zero() && reachable != self.base_reachable {
            self.base_reachable = reachable;
            self.redraw = now;
        }
        if said.retrans_timer > 0 {
            self.retrans = Duration::from_millis(u64::from(said.retrans_timer)).clamp(MIN_RETRANS, MAX_TIME);
        }
    }

    /// The shortest of the lifetimes that are to be refreshed.
    fn take_prefixes(&mut self, now: Instant, said: &RouterAdvertisement) -> Option<Duration> {
        let mut shortest = None;
        for option in &said.options {
            let NdOption::Prefix(prefix) = option else { continue };
            if self.addresses.learn(now, self.settings.local, prefix, &mut self.actions) {
                let lifetimes = [prefix.preferred, prefix.valid].into_iter().filter(|lifetime| *lifetime > 0);
                let lifetimes = lifetimes.map(|seconds| Duration::from_secs(u64::from(seconds)));
                shortest = lifetimes.chain(shortest).min();
            }
        }
        shortest
    }

    /// RFC 4861 §7.2.5 for a router: there is no link-layer address to learn.
    fn neighbour(
        &mut self,
        now: Instant,
        received: &Received<'_>,
        said: &NeighbourAdvertisement,
    ) -> HostHeard {
        let until = now + self.reachable_time(now);
        let Some(router) = received.outer_source.and_then(|address| self.routers.find(address)) else {
            return HostHeard::NotForUs;
        };
        if router.link_local != Some(said.target) {
            return HostHeard::NotForUs;
        }
        if said.solicited {
            router.detection.confirmed(until);
            router.failed = false;
        }
        if !said.router {
            // It has become a host.
            router.until = None;
        }
        self.choose(now, None);
        HostHeard::Neighbour
    }

    fn solicited(
        &mut self,
        now: Instant,
        received: &Received<'_>,
        asked: &NeighbourSolicitation,
    ) -> HostHeard {
        let sender = isatap::locator_of(received.source);
        if sender.is_none() || sender != received.outer_source {
            return HostHeard::NotForUs;
        }
        let link_local = self.link_local();
        let own = |address| {
            address == link_local || self.addresses.all().iter().any(|known| known.address == address)
        };
        let Some(answer) = answer(received, asked, own, false) else { return HostHeard::NotForUs };
        if !self.limit.admit(now) {
            return HostHeard::TooMany;
        }
        self.actions.push_back(HostAction::Transmit(answer));
        HostHeard::Solicitation
    }
}
