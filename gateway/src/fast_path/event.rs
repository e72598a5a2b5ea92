//! Netlink notifications.

use super::octets::{self, NetlinkMessage, attribute, number16, number32};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A change, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A link came, went or changed; a setting of one did.
    Link,
    /// This host got or lost an address.
    Address,
    /// A route came or went.
    Route {
        /// It leads one way, by the destination alone.
        plain: bool,
    },
    /// A policy rule came or went.
    Rule,
    /// A neighbour came, went or changed.
    Neighbour(Neighbour),
    /// Events were lost, or one cannot be read.
    Lost,
}

/// A neighbour as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub ifindex: u32,
    pub address: IpAddr,
    /// Its Ethernet address; `None`: it is not known, or no longer.
    pub mac: Option<[u8; 6]>,
    /// It is being asked, or need not be.
    pub settled: bool,
}

/// Groups of events, as rtnetlink(7) numbers them: link, neigh, ipv4-ifaddr, ipv4-route, ipv4-rule, ipv6-ifaddr, ipv6-route, ipv6-rule,
/// ipv4-netconf.
pub(super) const GROUPS: u32 =
    group(1) | group(3) | group(5) | group(7) | group(8) | group(9) | group(11) | group(19) | group(24);

const fn group(number: u32) -> u32 {
    1 << (number - 1)
}

/// Types of rtnetlink(7).
pub(super) const RTM_NEWLINK: u16 = 16;
pub(super) const RTM_NEWROUTE: u16 = 24;
pub(super) const RTM_NEWNEIGH: u16 = 28;
pub(super) const RTM_NEWRULE: u16 = 32;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_DELROUTE: u16 = 25;
const RTM_DELNEIGH: u16 = 29;
const RTM_DELRULE: u16 = 33;
const RTM_NEWNETCONF: u16 = 80;
const RTM_DELNETCONF: u16 = 81;
const NLMSG_OVERRUN: u16 = 4;

impl Event {
    /// The contents of a message; `None`: not relevant.
    pub fn of(message: &NetlinkMessage) -> Option<Self> {
        match message.kind {
            RTM_NEWLINK | RTM_DELLINK | RTM_NEWNETCONF | RTM_DELNETCONF => Some(Self::Link),
            RTM_NEWADDR | RTM_DELADDR => Some(Self::Address),
            RTM_NEWROUTE | RTM_DELROUTE => route(message.body),
            RTM_NEWRULE | RTM_DELRULE => Some(Self::Rule),
            RTM_NEWNEIGH | RTM_DELNEIGH => {
                let neighbour = Neighbour::read(message.body);
                let gone = message.kind == RTM_DELNEIGH;
                match neighbour {
                    Some(neighbour) if gone => Some(Self::Neighbour(Neighbour { mac: None, ..neighbour })),
                    Some(neighbour) => Some(Self::Neighbour(neighbour)),
                    None => is_of_ip(message.body).then_some(Self::Lost),
                }
            }
            NLMSG_OVERRUN => Some(Self::Lost),
            _ => None,
        }
    }
}

/// `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
/// The kernel's own memory of a path, no route of the tables.
const RTM_F_CLONED: u32 = 0x200;
const RTA_MULTIPATH: u16 = 9;

fn route(body: &[u8]) -> Option<Event> {
    let Some(flags) = number32(body, 8) else { return Some(Event::Lost) };
    (flags & RTM_F_CLONED == 0).then(|| Event::Route { plain: is_plain_route(body) })
}

/// Whether a route leads one way, by the destination alone.
pub(super) fn is_plain_route(body: &[u8]) -> bool {
    let (Some(source_length), Some(tos)) = (body.get(2), body.get(3)) else { return false };
    let rest = body.get(ROUTE_HEADER..).unwrap_or_default();
    *source_length == 0 && *tos == 0 && attribute(rest, RTA_MULTIPATH).is_none()
}

/// `struct ndmsg`.
pub(super) const NEIGHBOUR_HEADER: usize = 12;
pub(super) const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_REACHABLE: u16 = 0x02;
const NUD_STALE: u16 = 0x04;
const NUD_DELAY: u16 = 0x08;
pub(super) const NUD_PROBE: u16 = 0x10;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
/// In these states the kernel sends to the address that it has.
const VALID: u16 = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT;

fn is_of_ip(body: &[u8]) -> bool {
    let family = body.first().copied().map(i32::from);
    family == Some(nix::libc::AF_INET) || family == Some(nix::libc::AF_INET6)
}

impl Neighbour {
    /// An IPv4 or IPv6 neighbour; bridge entries are ignored.
    pub fn read(body: &[u8]) -> Option<Self> {
        if !is_of_ip(body) {
            return None;
        }
        let (ifindex, state) = (number32(body, 4)?, number16(body, 8)?);
        let rest = body.get(NEIGHBOUR_HEADER..)?;
        let address = ip(attribute(rest, NDA_DST)?)?;
        let mac = attribute(rest, NDA_LLADDR).filter(|_| state & VALID != 0);
        let mac = mac.and_then(|mac| mac.try_into().ok());
        Some(Self { ifindex, address, mac, settled: state & (NUD_PROBE | NUD_NOARP | NUD_PERMANENT) != 0 })
    }
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(Ipv4Addr::from(octets::number32(octets, 0)?.to_ne_bytes()).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fast_path::octets::{message, messages, write_attribute};

    fn seen(kind: u16, body: &[u8]) -> Option<Event> {
        messages(&message(kind, 0, 0, body)).next().and_then(|message| Event::of(&message))
    }

    /// An IPv4 neighbour's message.
    pub fn neighbour(ifindex: u32, last: u8, state: u16, mac: Option<[u8; 6]>) -> Vec<u8> {
        let mut body = vec![nix::libc::AF_INET as u8, 0, 0, 0];
        body.extend(ifindex.to_ne_bytes());
        body.extend(state.to_ne_bytes());
        body.extend([0, 0]);
        write_attribute(NDA_DST, &[192, 0, 2, last], &mut body);
        mac.iter().for_each(|mac| write_attribute(NDA_LLADDR, mac, &mut body));
        body
    }

    #[test]
    fn a_neighbour_is_known_by_its_address_while_the_kernel_would_send_to_it() {
        let mac = [2, 0, 0, 0, 0, 1];
        let of = |mac, settled| {
            Event::Neighbour(Neighbour { ifindex: 7, address: "192.0.2.9".parse().unwrap(), mac, settled })
        };
        for (state, settled) in [(0x02, false), (0x04, false), (0x10, true), (0x80, true)] {
            assert_eq!(seen(RTM_NEWNEIGH, &neighbour(7, 9, state, Some(mac))), Some(of(Some(mac), settled)));
        }
        for state in [0x01, 0x20, 0x00] {
            assert_eq!(seen(RTM_NEWNEIGH, &neighbour(7, 9, state, Some(mac))), Some(of(None, false)));
        }
        assert_eq!(seen(RTM_DELNEIGH, &neighbour(7, 9, 0x02, Some(mac))), Some(of(None, false)));
        // A bridge's table of addresses; and what cannot be read.
        assert_eq!(seen(RTM_NEWNEIGH, &[7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]), None);
        assert_eq!(seen(RTM_NEWNEIGH, &neighbour(7, 9, 2, None)[..10]), Some(Event::Lost));
    }

    #[test]
    fn routes_say_whether_they_lead_one_way_by_the_destination_alone() {
        let route = |source: u8, tos: u8, flags: u32| {
            [&[2, 24, source, tos, 254, 3, 0, 1][..], &flags.to_ne_bytes()].concat()
        };
        assert_eq!(seen(RTM_NEWROUTE, &route(0, 0, 0)), Some(Event::Route { plain: true }));
        assert_eq!(seen(RTM_DELROUTE, &route(64, 0, 0)), Some(Event::Route { plain: false }));
        assert_eq!(seen(RTM_NEWROUTE, &route(0, 16, 0)), Some(Event::Route { plain: false }));
        assert_eq!(seen(RTM_NEWROUTE, &route(0, 0, RTM_F_CLONED)), None);
        let mut several = route(0, 0, 0);
        write_attribute(RTA_MULTIPATH, &[0; 16], &mut several);
        assert_eq!(seen(RTM_NEWROUTE, &several), Some(Event::Route { plain: false }));
        assert_eq!(seen(RTM_NEWROUTE, &[2, 24]), Some(Event::Lost));
    }

    #[test]
    fn the_rest_is_known_by_its_type() {
        let kinds = [RTM_DELLINK, RTM_NEWADDR, RTM_DELRULE, NLMSG_OVERRUN, 3, 60];
        let found = kinds.map(|kind| seen(kind, &[]));
        let expected =
            [Some(Event::Link), Some(Event::Address), Some(Event::Rule), Some(Event::Lost), None, None];
        assert_eq!(found, expected);
    }
}
