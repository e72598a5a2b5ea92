//! The host's machine: what it does and when.

use super::action::{DefaultRoute, HostAction, HostSettings, PotentialRouter};
use super::addresses::Addresses;
use super::host_address::HostAddress;
use super::reachability::Step;
use super::routers::{Router, Routers};
use crate::neighbour_answer::AnswerLimit;
use crate::neighbour_discovery::{
    ALL_ROUTERS, Message, NeighbourSolicitation, RouterSolicitation, Transmission,
};
use crate::random::Random;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_dataplane::tunnel::address::isatap;
use std::collections::VecDeque;

/// RFC 4861 §10: REACHABLE_TIME, 30 s.
const REACHABLE_TIME: Duration = Duration::from_secs(30);
/// RFC 4861 §10: RETRANS_TIMER, 1 s.
const RETRANS_TIMER: Duration = Duration::from_secs(1);
/// RFC 4861 §6.3.4: the random reachable time is drawn again at least every few hours.
const REDRAW: Duration = Duration::from_secs(7_200);

/// An ISATAP interface of a host.
#[derive(Clone, Debug)]
pub struct IsatapHost {
    pub(super) settings: HostSettings,
    pub(super) random: Random,
    pub(super) routers: Routers,
    pub(super) addresses: Addresses,
    /// When the potential router list is to be looked up.
    pub(super) refresh: Option<Instant>,
    pub(super) base_reachable: Duration,
    pub(super) reachable: Duration,
    pub(super) redraw: Instant,
    pub(super) retrans: Duration,
    pub(super) limit: AnswerLimit,
    pub(super) actions: VecDeque<HostAction>,
}

impl IsatapHost {
    /// Begins; the first action is to look the potential routers up. `seed` spreads the delays.
    pub fn new(settings: HostSettings, seed: u64, now: Instant) -> Self {
        Self {
            settings,
            random: Random::new(seed),
            routers: Routers::default(),
            addresses: Addresses::default(),
            refresh: Some(now),
            base_reachable: REACHABLE_TIME,
            reachable: REACHABLE_TIME,
            redraw: now,
            retrans: RETRANS_TIMER,
            limit: AnswerLimit::default(),
            actions: VecDeque::new(),
        }
    }

    /// The potential router list (RFC 5214 §8.3.2), in the order of preference among equals, 16 at most; with the least TTL if it comes
    /// from the DNS. The list is looked up again after PrlRefreshInterval, or that TTL if it is shorter; a TTL of zero counts as
    /// MinRouterSolicitInterval, so that the list is new for each event of solicitation.
    pub fn set_potential_routers(&mut self, now: Instant, routers: &[Ipv4Addr], ttl: Option<Duration>) {
        let local = self.settings.local;
        let usable = |router: &&Ipv4Addr| {
            !router.is_unspecified() && !router.is_multicast() && !router.is_broadcast() && **router != local
        };
        let routers: Vec<_> = routers.iter().filter(usable).copied().collect();
        self.routers.replace(now, &routers, &mut self.random);
        let ttl = ttl.map(|ttl| ttl.max(self.settings.min_solicit_interval));
        let after = [self.settings.refresh_interval, ttl].into_iter().flatten().min();
        self.refresh = after.map(|after| now + after);
        self.choose(now, None);
    }

    /// The host's IPv4 address changed: removes addresses and routes, and starts again with the same potential routers.
    pub fn set_local(&mut self, now: Instant, local: Ipv4Addr) {
        let routers: Vec<_> = self.routers.list().iter().map(|router| router.address).collect();
        let refresh = self.refresh;
        self.shut_down();
        self.refresh = refresh;
        self.settings.local = local;
        self.routers.replace(now, &routers, &mut self.random);
    }

    /// Takes its addresses and its route away. What follows are the actions that do it.
    pub fn shut_down(&mut self) {
        self.refresh = None;
        self.actions.retain(|action| !matches!(action, HostAction::Transmit(_)));
        if core::mem::take(&mut self.routers).chosen().is_some() {
            self.actions.push_back(HostAction::RemoveDefaultRoute);
        }
        self.addresses.clear(&mut self.actions);
    }

    /// Packets went through the default router: if nothing is known of it, it is probed (RFC 4861 §7.3.3). Without this nothing is ever
    /// probed but a router that has just been found.
    pub fn note_traffic(&mut self, now: Instant) {
        if let Some(router) = self.routers.chosen_mut() {
            router.detection.used(now);
        }
    }

    /// ICMPv4 errors came from the path to this router (RFC 5214 §7.2). They may be forged, so that they do not end its use: it is probed
    /// immediately.
    pub fn report_path_error(&mut self, now: Instant, router: Ipv4Addr) {
        let retrans = self.retrans;
        if let Some(router) = self.routers.find(router).filter(|router| router.link_local.is_some()) {
            router.detection.probe(now, retrans);
        }
    }

    /// RFC 4861 §6.3.2: between half and one and a half of what is advertised.
    pub(super) fn reachable_time(&mut self, now: Instant) -> Duration {
        if self.redraw <= now {
            self.reachable = self.random.between(self.base_reachable / 2, self.base_reachable * 3 / 2);
            self.redraw = now + REDRAW;
        }
        self.reachable
    }

    /// Chooses the default router again; whether it is another.
    pub(super) fn choose(&mut self, now: Instant, given_up: Option<Ipv4Addr>) -> bool {
        let changed = self.routers.choose(now, given_up);
        if changed && self.routers.chosen().is_some() {
            self.set_route();
        } else if changed {
            self.actions.push_back(HostAction::RemoveDefaultRoute);
        }
        changed
    }

    pub(super) fn set_route(&mut self) {
        let route = self.routers.chosen().and_then(|router| {
            let Router { address: router, mtu, hop_limit, link_local, .. } = *router;
            link_local.map(|gateway| DefaultRoute { gateway, router, mtu, hop_limit })
        });
        self.actions.extend(route.map(HostAction::SetDefaultRoute));
    }

    /// The next thing to do; call it until it returns `None`.
    pub fn poll_action(&mut self, now: Instant) -> Option<HostAction> {
        if self.actions.is_empty() {
            self.tick(now);
        }
        self.actions.pop_front()
    }

    /// When [`IsatapHost::poll_action`] is to be called next; `None` if nothing is planned.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.actions.is_empty() {
            return Some(Instant::default());
        }
        [self.refresh, self.routers.due(), self.addresses.due()].into_iter().flatten().min()
    }

    /// Does what is due.
    fn tick(&mut self, now: Instant) {
        if self.refresh.is_some_and(|refresh| refresh <= now) {
            self.refresh = self.settings.refresh_interval.map(|interval| now + interval);
            self.actions.push_back(HostAction::LookUpRouters);
        }
        self.addresses.expire(now, &mut self.actions);
        let (source, least, retrans) = (self.link_local(), self.settings.min_solicit_interval, self.retrans);
        let in_use = self.routers.chosen().map(|router| router.address);
        let mut given_up = None;
        for router in self.routers.list_mut() {
            if router.solicitation.due() <= now {
                let destination = asked_at(router);
                router.solicitation.sent(now, least, &mut self.random);
                let message = Message::RouterSolicitation(RouterSolicitation::default());
                self.actions.push_back(transmit(source, destination, router.address, &message));
            }
            match (router.detection.step(now, retrans), router.link_local) {
                (Step::SendProbe, Some(target)) => {
                    let message =
                        Message::NeighbourSolicitation(NeighbourSolicitation { target, options: Vec::new() });
                    self.actions.push_back(transmit(source, target, router.address, &message));
                }
                (Step::GiveUp, _) => {
                    router.failed = true;
                    given_up = given_up.or(in_use.filter(|address| *address == router.address));
                }
                (Step::SendProbe, None) | (Step::Nothing, _) => {}
            }
        }
        self.choose(now, given_up);
    }

    /// The host's link-local address on the interface.
    pub fn link_local(&self) -> Ipv6Addr {
        isatap::link_local(self.settings.local)
    }

    /// Its addresses.
    pub fn addresses(&self) -> &[HostAddress] {
        self.addresses.all()
    }

    /// Its potential routers, in their order.
    pub fn routers(&self, now: Instant) -> impl Iterator<Item = PotentialRouter> {
        let in_use = self.routers.chosen().map(|router| router.address);
        self.routers.list().iter().map(move |router| PotentialRouter {
            address: router.address,
            lifetime: router.until.filter(|until| *until > now).map(|until| until - now),
            reachability: router.detection.state(now),
            failed: router.failed,
            in_use: in_use == Some(router.address),
        })
    }
}

/// Where a router is asked. Senders disagree on the u bit of its address (RFC 5214 §6.1), so that the three solicitations of an event go to
/// one form, to the other, and to all routers.
fn asked_at(router: &Router) -> Ipv6Addr {
    let usual = isatap::link_local(router.address);
    match router.solicitation.sent_so_far() {
        0 => router.link_local.unwrap_or(usual),
        1 => Ipv6Addr::from_bits(usual.to_bits() ^ 0x0200_0000_0000_0000),
        _ => ALL_ROUTERS,
    }
}

fn transmit(source: Ipv6Addr, destination: Ipv6Addr, router: Ipv4Addr, message: &Message) -> HostAction {
    let message = message.to_octets(source, destination);
    HostAction::Transmit(Transmission { source, destination, outer_destination: Some(router), message })
}
