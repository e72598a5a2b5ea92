//! The host's side of ISATAP's neighbour discovery (RFC 5214 §8.3, §8.4): it finds its routers through the tunnel, makes addresses of what
//! they advertise, and leaves a router that no longer answers.
//!
//! An [`IsatapHost`] is one ISATAP interface. It is driven like a [`RouterAdvert`](crate::router_advert::RouterAdvert):
//!
//! - [`IsatapHost::handle_message`] with every neighbour discovery message that comes out of the tunnel;
//! - [`IsatapHost::note_traffic`] while packets go through the default router, every second or so;
//! - [`IsatapHost::poll_action`] after each call of anything, and when the time of [`IsatapHost::poll_timeout`] has come, until it returns
//!   `None`. What it returns is to be done at once, in that order.
//!
//! ```
//! use sixway_control::Instant;
//! use sixway_control::isatap_host::{HostAction, HostSettings, IsatapHost};
//!
//! let mut now = Instant::from_secs(1);
//! let mut host = IsatapHost::new(HostSettings::new("192.0.2.7".parse()?), 42, now);
//! for _ in 0..4 {
//!     while let Some(action) = host.poll_action(now) {
//!         match action {
//!             // A name was given in the configuration: look it up, and say what it means and for how long.
//!             HostAction::LookUpRouters => host.set_potential_routers(now, &["192.0.2.1".parse()?], None),
//!             // Through a raw socket of protocol 41: the kernel puts the IPv4 header in front.
//!             HostAction::Transmit(sent) => println!("{:?}: {:02x?}", sent.outer_destination, sent.packet()),
//!             HostAction::SetAddress(address) => println!(
//!                 "ip -6 address replace {}/64 preferred_lft {} valid_lft {}",
//!                 address.address, address.preferred(now), address.valid(now),
//!             ),
//!             HostAction::RemoveAddress(address) => println!("ip -6 address del {address}/64"),
//!             HostAction::SetDefaultRoute(route) => println!("default by {} at {}", route.gateway, route.router),
//!             HostAction::RemoveDefaultRoute => println!("no default route"),
//!         }
//!     }
//!     // Wait until then, or until a message comes: host.handle_message(now, &Received::from_tunnel(packet)?)
//!     now = host.poll_timeout().unwrap_or(now);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
mod reachability;
mod routers;
mod solicitation;

pub use addresses::{HostAddress, MAX_ADDRESSES, TWO_HOURS};
pub use reachability::{DELAY_FIRST_PROBE_TIME, MAX_UNICAST_SOLICIT, Reachability};
pub use routers::MAX_ROUTERS;
pub use solicitation::{
    MAX_RTR_SOLICITATION_DELAY, MAX_RTR_SOLICITATIONS, MAX_SOLICIT_INTERVAL, RTR_SOLICITATION_INTERVAL,
};

use crate::neighbour_answer::{AnswerLimit, answer};
use crate::neighbour_discovery::{
    ALL_ROUTERS, Malformed, Message, NdOption, NeighbourAdvertisement, NeighbourSolicitation, Received,
    RouterAdvertisement, RouterSolicitation, Transmission, link_local_locator_of,
};
use crate::random::Random;
use addresses::Addresses;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use reachability::Step;
use routers::{Router, Routers};
use sixway_dataplane::Instant;
use sixway_dataplane::tunnel::address::isatap;
use std::collections::VecDeque;

/// RFC 4861 §10: REACHABLE_TIME, 30 s.
const REACHABLE_TIME: Duration = Duration::from_secs(30);
/// RFC 4861 §10: RETRANS_TIMER, 1 s.
const RETRANS_TIMER: Duration = Duration::from_secs(1);
/// RFC 4861 §6.2.1: no router may advertise a longer reachable time; nor is a longer retrans timer taken.
const MAX_TIME: Duration = Duration::from_secs(3_600);
/// No shorter retrans timer is taken, whatever is advertised.
const MIN_RETRANS: Duration = Duration::from_millis(100);
/// RFC 4861 §6.3.4: the random reachable time is drawn again at least every few hours.
const REDRAW: Duration = Duration::from_secs(7_200);
/// RFC 8200 §5.
const MIN_MTU: u32 = 1_280;

/// What the operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// The interface's locator: its own IPv4 address.
    pub local: Ipv4Addr,
    /// MinRouterSolicitInterval: the least time between two events of solicitation of one router; 2 min.
    pub min_solicit_interval: Duration,
    /// PrlRefreshInterval: when the potential router list is looked up again; 1 h. `None`: never.
    pub refresh_interval: Option<Duration>,
}

impl HostSettings {
    /// The RFC's defaults.
    pub const fn new(local: Ipv4Addr) -> Self {
        let refresh_interval = Some(Duration::from_secs(3_600));
        Self { local, min_solicit_interval: Duration::from_secs(120), refresh_interval }
    }
}

/// The route to the IPv6 world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRoute {
    /// The router's link-local address, the next hop.
    pub gateway: Ipv6Addr,
    /// The router's IPv4 address, where packets are sent through the tunnel.
    pub router: Ipv4Addr,
    /// The MTU that it advertises, if it does.
    pub mtu: Option<u32>,
    /// The hop limit that it advertises, if it does.
    pub hop_limit: Option<u8>,
}

/// What the daemon is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Send this through the tunnel to its `outer_destination`, which is always there.
    Transmit(Transmission),
    /// Look the potential routers up and give them to [`IsatapHost::set_potential_routers`]; if that fails, leave it: it is asked again.
    LookUpRouters,
    /// Add this address, or give it these lifetimes.
    SetAddress(HostAddress),
    /// Remove this address.
    RemoveAddress(Ipv6Addr),
    /// Set the default route, in the place of the one before.
    SetDefaultRoute(DefaultRoute),
    /// Remove the default route: there is no router.
    RemoveDefaultRoute,
}

/// What became of a message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeard {
    /// An advertisement of a potential router, which was taken.
    Advertisement,
    /// An advertisement of somebody who is not on the potential router list (RFC 5214 §8.3.3): ignored.
    Stranger,
    /// A neighbour advertisement of one of the routers.
    Neighbour,
    /// A neighbour solicitation, which is answered.
    Solicitation,
    /// More solicitations than are answered in a second.
    TooMany,
    /// A good message that concerns nobody here.
    NotForUs,
}

/// A potential router, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PotentialRouter {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// How long it is still a default router; `None` if it is none.
    pub lifetime: Option<Duration>,
    /// What is known of the way to it.
    pub reachability: Reachability,
    /// Whether its last probes were not answered.
    pub failed: bool,
    /// Whether it is the default router in use.
    pub in_use: bool,
}

/// An ISATAP interface of a host.
#[derive(Clone, Debug)]
pub struct IsatapHost {
    settings: HostSettings,
    random: Random,
    routers: Routers,
    addresses: Addresses,
    /// When the potential router list is to be looked up.
    refresh: Option<Instant>,
    base_reachable: Duration,
    reachable: Duration,
    redraw: Instant,
    retrans: Duration,
    limit: AnswerLimit,
    actions: VecDeque<HostAction>,
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

    /// The host has another IPv4 address: its addresses and routes go, and it begins anew with the same potential routers.
    pub fn set_local(&mut self, now: Instant, local: Ipv4Addr) {
        let routers: Vec<_> = self.routers.list().iter().map(|router| router.address).collect();
        self.shut_down();
        self.settings.local = local;
        self.routers.replace(now, &routers, &mut self.random);
    }

    /// Takes its addresses and its route away. What follows are the actions that do it.
    pub fn shut_down(&mut self) {
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

    /// An upper layer says that packets come through this router (RFC 4861 §7.3.1): forward progress, not merely that something arrived.
    pub fn confirm_reachability(&mut self, now: Instant, router: Ipv4Addr) {
        let until = now + self.reachable_time(now);
        if let Some(router) = self.routers.find(router) {
            router.detection.confirmed(until);
            router.failed = false;
        }
        self.choose(now, None);
    }

    /// ICMPv4 errors came from the path to this router (RFC 5214 §7.2). They may be forged, so that they do not end its use: it is probed
    /// at once.
    pub fn report_path_error(&mut self, now: Instant, router: Ipv4Addr) {
        let retrans = self.retrans;
        if let Some(router) = self.routers.find(router).filter(|router| router.link_local.is_some()) {
            router.detection.probe(now, retrans);
        }
    }

    /// Takes a message that came out of the tunnel.
    ///
    /// # Errors
    /// Which check the message failed; it is discarded in silence.
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

    /// RFC 4861 §6.3.2: between half and one and a half of what is advertised.
    fn reachable_time(&mut self, now: Instant) -> Duration {
        if self.redraw <= now {
            self.reachable = self.random.between(self.base_reachable / 2, self.base_reachable * 3 / 2);
            self.redraw = now + REDRAW;
        }
        self.reachable
    }

    /// Chooses the default router again; whether it is another.
    fn choose(&mut self, now: Instant, given_up: Option<Ipv4Addr>) -> bool {
        let changed = self.routers.choose(now, given_up);
        if changed && self.routers.chosen().is_some() {
            self.set_route();
        } else if changed {
            self.actions.push_back(HostAction::RemoveDefaultRoute);
        }
        changed
    }

    fn set_route(&mut self) {
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
