//! Whole lives of an ISATAP host in fake time, against advertising routers of our own and against messages made by hand (RFC 5214 §8).

mod addresses;
mod finding;
mod neighbours;
mod reachability;

use core::time::Duration;
use sixway_control::isatap_host::{DefaultRoute, HostAction, HostHeard, HostSettings, IsatapHost};
use sixway_control::neighbour_discovery::{
    Message, NdOption, NeighbourAdvertisement, PrefixInformation, Received, RouterAdvertisement, Transmission,
};
use sixway_control::{Instant, isatap};
use sixway_wire::Prefix6;
use std::net::{Ipv4Addr, Ipv6Addr};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const R1: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const R2: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn prefix(text: &str) -> Prefix6 {
    text.parse().unwrap()
}

/// A host, the time, and everything that it wanted done.
struct Site {
    host: IsatapHost,
    now: Instant,
    done: Vec<(Instant, HostAction)>,
}

impl Site {
    /// A host whose potential routers are these.
    fn new(routers: &[Ipv4Addr]) -> Self {
        let now = Instant::from_secs(1_000);
        let mut host = IsatapHost::new(HostSettings::new(LOCAL), 1, now);
        assert_eq!(host.poll_action(now), Some(HostAction::LookUpRouters));
        host.set_potential_routers(now, routers, None);
        Self { host, now, done: Vec::new() }
    }

    fn drain(&mut self) {
        while let Some(action) = self.host.poll_action(self.now) {
            self.done.push((self.now, action));
        }
    }

    /// Lets time pass, waking the host exactly when it wants to be woken.
    fn pass(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            self.drain();
            match self.host.poll_timeout().filter(|due| *due <= end) {
                Some(due) => {
                    assert!(due > self.now, "it asks to be woken and has nothing to do");
                    self.now = due;
                }
                None => break,
            }
        }
        self.now = end;
    }

    /// As `pass`, with traffic through the default router every second.
    fn pass_with_traffic(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.host.note_traffic(self.now);
            self.pass(1);
        }
    }

    fn hear(&mut self, outer: Ipv4Addr, source: Ipv6Addr, message: &Message) -> HostHeard {
        let destination = self.host.link_local();
        let octets = message.to_octets(source, destination);
        let outer_source = Some(outer);
        let received = Received { source, destination, hop_limit: 255, outer_source, message: &octets };
        let heard = self.host.handle_message(self.now, &received).unwrap();
        self.drain();
        heard
    }

    fn advertise(&mut self, router: Ipv4Addr, said: RouterAdvertisement) -> HostHeard {
        self.hear(router, isatap::link_local(router), &Message::RouterAdvertisement(said))
    }

    /// A router answers a probe.
    fn confirm(&mut self, router: Ipv4Addr, is_router: bool) -> HostHeard {
        let target = isatap::link_local(router);
        let (router_flag, solicited, overrides, options) = (is_router, true, false, vec![]);
        let said = NeighbourAdvertisement { router: router_flag, solicited, overrides, target, options };
        self.hear(router, target, &Message::NeighbourAdvertisement(said))
    }

    /// What was sent, and when.
    fn sent(&self) -> Vec<(Instant, Transmission, Message)> {
        let sent = self.done.iter().filter_map(|(at, action)| match action {
            HostAction::Transmit(sent) => Some((*at, sent.clone())),
            _ => None,
        });
        let read = |(at, sent): (Instant, Transmission)| {
            let packet = sent.packet();
            let message = Message::parse(&Received::from_packet(&packet).unwrap()).unwrap();
            (at, sent, message)
        };
        sent.map(read).collect()
    }

    /// When router solicitations went to a router.
    fn solicitations(&self, router: Ipv4Addr) -> Vec<Instant> {
        let to = |sent: &Transmission| sent.outer_destination == Some(router);
        let sent = self.sent().into_iter();
        let solicitations =
            sent.filter(|(_, sent, message)| to(sent) && matches!(message, Message::RouterSolicitation(_)));
        solicitations.map(|(at, _, _)| at).collect()
    }

    /// When probes went to a router.
    fn probes(&self, router: Ipv4Addr) -> Vec<Instant> {
        let is_probe = |(_, sent, message): &(Instant, Transmission, Message)| {
            let Message::NeighbourSolicitation(asked) = message else { return false };
            assert_eq!(asked.target, sent.destination);
            sent.outer_destination == Some(router)
        };
        self.sent().iter().filter(|sent| is_probe(sent)).map(|(at, _, _)| *at).collect()
    }

    /// The default router after all that was done.
    fn default_router(&self) -> Option<Ipv4Addr> {
        self.route().map(|route| route.router)
    }

    fn route(&self) -> Option<DefaultRoute> {
        let mut route = None;
        for (_, action) in &self.done {
            match action {
                HostAction::SetDefaultRoute(set) => route = Some(*set),
                HostAction::RemoveDefaultRoute => route = None,
                _ => {}
            }
        }
        route
    }
}

/// A router for half an hour, with this prefix.
fn router(lifetime: u16) -> RouterAdvertisement {
    RouterAdvertisement { router_lifetime: lifetime, ..RouterAdvertisement::default() }
}

fn prefix_option(text: &str, valid: u32, preferred: u32) -> NdOption {
    let (prefix, on_link, autonomous) = (prefix(text), true, true);
    NdOption::Prefix(PrefixInformation { prefix, on_link, autonomous, valid, preferred })
}

fn with_prefix(valid: u32, preferred: u32) -> RouterAdvertisement {
    RouterAdvertisement { options: vec![prefix_option("2001:db8:1::/64", valid, preferred)], ..router(1_800) }
}

fn gaps(times: &[Instant]) -> Vec<u64> {
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
}
