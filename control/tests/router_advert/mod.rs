//! Whole lives of an advertising router in fake time: when it speaks, to whom, and what it says (RFC 4861 §6.2).

mod consistency;
mod contents;
mod isatap;
mod life;
mod prefixes;
mod radvd;
mod settings;
mod solicited;
mod timing;

use core::time::Duration;
use sixway_control::Instant;
use sixway_control::neighbour_discovery::{
    ALL_NODES, ALL_ROUTERS, Malformed, Message, NdOption, PrefixInformation, Received, RouterAdvertisement,
    RouterSolicitation, Transmission,
};
use sixway_control::router_advert::{Heard, Link, RouterAdvert, Settings};
use sixway_wire::Prefix6;
use std::net::{Ipv4Addr, Ipv6Addr};

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

fn prefix(text: &str) -> Prefix6 {
    text.parse().unwrap()
}

/// The `number`-th host's link-local address.
fn host(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn lan() -> Link {
    Link::Multicast { address: ROUTER, link_layer: Some([2, 0, 0, 0, 0, 1]), mtu: 1_500 }
}

/// A router on its link, and all that it has sent.
struct Site {
    router: RouterAdvert,
    now: Instant,
    sent: Vec<(Instant, Transmission)>,
}

impl Site {
    fn with_seed(link: Link, settings: Settings, seed: u64) -> Self {
        let now = Instant::from_secs(1_000);
        Self { router: RouterAdvert::new(link, settings, seed, now).unwrap(), now, sent: Vec::new() }
    }

    fn lan(settings: Settings) -> Self {
        Self::with_seed(lan(), settings, 1)
    }

    /// Lets time pass, waking the router exactly when it wants to be woken.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            while let Some(transmission) = self.router.poll_transmit(self.now) {
                self.sent.push((self.now, transmission));
            }
            match self.router.poll_timeout().filter(|due| *due <= end) {
                Some(due) => {
                    assert!(due > self.now, "it asks to be woken and has nothing to say");
                    self.now = due;
                }
                None => break,
            }
        }
        self.now = end;
    }

    fn hear(
        &mut self,
        source: Ipv6Addr,
        outer_source: Option<Ipv4Addr>,
        message: &Message,
    ) -> Result<Heard, Malformed> {
        let destination = ALL_ROUTERS;
        let octets = message.to_octets(source, destination);
        let received = Received { source, destination, hop_limit: 255, outer_source, message: &octets };
        self.router.handle_message(self.now, &received)
    }

    fn solicit(&mut self, source: Ipv6Addr) -> Heard {
        self.hear(source, None, &Message::RouterSolicitation(RouterSolicitation::default())).unwrap()
    }

    /// Times of the packets to all nodes.
    fn multicasts(&self) -> Vec<Instant> {
        self.sent.iter().filter(|(_, sent)| sent.destination == ALL_NODES).map(|(at, _)| *at).collect()
    }

    fn last(&self) -> RouterAdvertisement {
        advertisement(&self.sent.last().unwrap().1)
    }
}

/// Reads a transmission as a host would.
fn advertisement(sent: &Transmission) -> RouterAdvertisement {
    let packet = sent.packet();
    match Message::parse(&Received::from_packet(&packet).unwrap()).unwrap() {
        Message::RouterAdvertisement(advertisement) => advertisement,
        other => panic!("{other:?}"),
    }
}

fn prefixes_in(advertisement: &RouterAdvertisement) -> Vec<PrefixInformation> {
    let prefix = |option: &NdOption| match option {
        NdOption::Prefix(prefix) => Some(*prefix),
        _ => None,
    };
    advertisement.options.iter().filter_map(prefix).collect()
}

/// The times between neighbours of a list.
fn gaps(times: &[Instant]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}
