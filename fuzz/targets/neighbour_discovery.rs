//! Any octets are a neighbour discovery message or none; whatever arrives, in any order and at any time, routers and hosts send nothing
//! but good messages that fit their link, to all nodes every three seconds at most, and keep their tables bounded.
//!
//! The input is a row of arrivals: whose it is (an octet), how much time passed before (an octet, eighths of a second or of a minute), its
//! length (two octets), and the ICMPv6 message. Its checksum is made right, since no fuzzer would find it.

use sixway_control::isatap_host::{HostAction, HostSettings, IsatapHost, MAX_ADDRESSES};
use sixway_control::neighbour_discovery::{ALL_NODES, Message, Received, Transmission};
use sixway_control::router_advert::{
    AdvertisedPref64, AdvertisedPrefix, Link, MIN_DELAY_BETWEEN_RAS, RouterAdvert, Settings, Solicited,
};
use sixway_control::{Instant, isatap};
use sixway_wire::checksum;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const MTU: u16 = 1_280;

pub fn run(octets: &[u8]) {
    read_as_packets(octets);
    let mut nodes = Nodes::new();
    let mut rest = octets;
    while let Some(([whose, pause, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, behind) = behind.split_at(length);
        nodes.pass(*pause);
        nodes.hear(*whose, message);
        rest = behind;
    }
    nodes.pass(0xff);
}

/// Headers in front of the message lie too.
fn read_as_packets(octets: &[u8]) {
    for received in [Received::from_packet(octets), Received::from_tunnel(octets)].into_iter().flatten() {
        assert!(received.message.len() + 40 <= octets.len(), "the message is longer than its packet");
        if let Ok(message) = Message::parse(&received) {
            read_again(&message, received.source, received.destination);
        }
    }
}

/// What was read is written, and read again as the same.
fn read_again(message: &Message, source: Ipv6Addr, destination: Ipv6Addr) {
    let octets = message.to_octets(source, destination);
    let received = Received { source, destination, hop_limit: 255, outer_source: None, message: &octets };
    assert_eq!(Message::parse(&received).as_ref(), Ok(message));
}

struct Nodes {
    now: Instant,
    lan: RouterAdvert,
    tunnel: RouterAdvert,
    host: IsatapHost,
    last_multicast: Option<Instant>,
}

impl Nodes {
    fn new() -> Self {
        let now = Instant::from_secs(1_000);
        let prefix = "2001:db8:1::/64".parse().unwrap();
        let settings = Settings {
            mtu: Some(MTU),
            prefixes: vec![AdvertisedPrefix::changing(prefix)],
            pref64: vec![AdvertisedPref64 { prefix: "64:ff9b::/96".parse().unwrap(), lifetime: None }],
            ..Settings::default()
        };
        let lan = Link::Multicast { address: isatap::link_local(ROUTER), link_layer: None, mtu: MTU };
        let tunnel = Link::Isatap { local: ROUTER, mtu: MTU };
        let by_unicast = Settings { solicited: Solicited::Unicast, ..settings.clone() };
        let mut host = IsatapHost::new(HostSettings::new(HOST), 3, now);
        host.set_potential_routers(now, &[ROUTER, OTHER], None);
        Self {
            now,
            lan: RouterAdvert::new(lan, by_unicast, 1, now).unwrap(),
            tunnel: RouterAdvert::new(tunnel, settings, 2, now).unwrap(),
            host,
            last_multicast: None,
        }
    }

    fn hear(&mut self, whose: u8, octets: &[u8]) {
        let outer = [ROUTER, OTHER, HOST, Ipv4Addr::new(10, 0, 0, 8)][usize::from(whose & 3)];
        let source = match whose >> 2 & 3 {
            0 | 1 => isatap::link_local(outer),
            2 => isatap::address("2001:db8:1::/64".parse().unwrap(), outer),
            _ => Ipv6Addr::UNSPECIFIED,
        };
        let destination = if whose & 16 == 0 { isatap::link_local(HOST) } else { ALL_NODES };
        let mut message = octets.to_vec();
        if let Some(field) = message.get_mut(2..4) {
            field.fill(0);
            let sum = checksum::pseudo6(source, destination, 58, octets.len() as u32).bytes(&message);
            message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        let received =
            Received { source, destination, hop_limit: 255, outer_source: Some(outer), message: &message };
        if let Ok(message) = Message::parse(&received) {
            read_again(&message, source, destination);
        }
        let outcomes = [
            self.lan.handle_message(self.now, &received).err(),
            self.tunnel.handle_message(self.now, &received).err(),
            self.host.handle_message(self.now, &received).err(),
        ];
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "three judges of one message");
        if whose & 32 != 0 {
            self.host.note_traffic(self.now);
        }
        if whose & 64 != 0 {
            self.host.report_path_error(self.now, outer);
        }
        self.poll();
    }

    fn pass(&mut self, pause: u8) {
        let unit = if pause & 0x80 == 0 { Duration::from_millis(125) } else { Duration::from_millis(7_500) };
        let end = self.now + unit * u32::from(pause & 0x7f);
        for _ in 0..100_000 {
            self.poll();
            let due = [self.lan.poll_timeout(), self.tunnel.poll_timeout(), self.host.poll_timeout()];
            match due.into_iter().flatten().min().filter(|due| *due <= end) {
                Some(due) => {
                    assert!(due > self.now, "woken for nothing");
                    self.now = due;
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("it never sleeps");
    }

    fn poll(&mut self) {
        while let Some(sent) = self.lan.poll_transmit(self.now) {
            judge(&sent);
            if sent.destination == ALL_NODES {
                let last = self.last_multicast.replace(self.now);
                assert!(last.is_none_or(|last| self.now - last >= MIN_DELAY_BETWEEN_RAS), "too soon");
            }
        }
        while let Some(sent) = self.tunnel.poll_transmit(self.now) {
            judge(&sent);
            assert!(sent.outer_destination.is_some() && !sent.destination.is_multicast());
        }
        while let Some(action) = self.host.poll_action(self.now) {
            match action {
                HostAction::Transmit(sent) => {
                    judge(&sent);
                    assert!(sent.outer_destination.is_some());
                }
                HostAction::SetDefaultRoute(route) => assert!([ROUTER, OTHER].contains(&route.router)),
                HostAction::SetAddress(address) => {
                    assert!(address.preferred(self.now) <= address.valid(self.now));
                }
                HostAction::LookUpRouters | HostAction::RemoveAddress(_) | HostAction::RemoveDefaultRoute => {
                }
            }
        }
        assert!(self.host.addresses().len() <= MAX_ADDRESSES);
    }
}

fn judge(sent: &Transmission) {
    let packet = sent.packet();
    assert!(packet.len() <= usize::from(MTU), "larger than the link");
    let received = Received::from_packet(&packet).unwrap();
    assert!(Message::parse(&received).is_ok(), "we send what we would not take");
}
