//! The control planes of mechanisms: their messages while they are idle, and from their start to the first answer.

use crate::device::Device;
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Interval, Renewal, Timers, Way};
use crate::failure::Result;
use crate::measure::{Capture, Captured};
use crate::results::Unit;
use sixway_wire::teredo::Prologue;
use sixway_wire::{IcmpHeader, Ipv4Header, Ipv6Header, UDP_HEADER, UdpHeader, icmpv6, protocol};
use std::time::{Duration, Instant};

/// Ports of DHCPv6, and the messages that carry DHCPv4 (RFC 7341 §6.1, §6.2: DHCPV4-QUERY and DHCPV4-RESPONSE).
const DHCPV6: [u16; 2] = [546, 547];
const DHCPV4_IN_DHCPV6: [u8; 2] = [20, 21];
/// A mechanism without messages of its own is idle for this time at least.
const LEAST: Duration = Duration::from_secs(1);
/// One renewal of a lease takes this time with short timers.
const LEASE: Duration = Duration::from_secs(30);
/// What a message and its answer take.
const ANSWER: Duration = Duration::from_millis(200);
const HOUR: Duration = Duration::from_secs(3_600);
/// Kinds of messages in ICMPv4.
const ECHO4: [u8; 2] = [8, 0];

/// What a packet is, under all tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// A router solicitation.
    Solicitation,
    /// A router advertisement.
    Advertisement,
    /// Neighbour discovery of other kinds.
    Neighbour,
    /// A bubble of Teredo.
    Bubble,
    /// DHCPv4 in DHCPv6.
    Lease,
    /// An echo request or a reply: the test's own, or one by which a Teredo client looks for a relay.
    Echo,
    /// Anything else.
    Other,
}

impl Message {
    /// All of them with the name of their count.
    const ALL: [(Self, &str); 7] = [
        (Self::Solicitation, "solicitations"),
        (Self::Advertisement, "advertisements"),
        (Self::Neighbour, "neighbours"),
        (Self::Bubble, "bubbles"),
        (Self::Lease, "leases"),
        (Self::Echo, "echoes"),
        (Self::Other, "others"),
    ];

    /// That of a packet, which may be cut short.
    fn of(packet: &[u8]) -> Self {
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => Ipv4Header::split_quoted(packet)
                .map_or(Self::Other, |(header, payload)| Self::under(header.protocol, payload)),
            Some(6) => Ipv6Header::split_quoted(packet)
                .map_or(Self::Other, |(header, payload)| Self::under(header.next_header, payload)),
            _ => Self::Other,
        }
    }

    /// Whether it is one that an idle mechanism sends at intervals, and not because of traffic before.
    const fn is_periodic(self) -> bool {
        match self {
            Self::Solicitation | Self::Advertisement | Self::Bubble | Self::Lease => true,
            Self::Neighbour | Self::Echo | Self::Other => false,
        }
    }

    fn under(next: u8, payload: &[u8]) -> Self {
        match next {
            protocol::IPV4 | protocol::IPV6 => Self::of(payload),
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS => match payload {
                [next, eights, ..] => payload
                    .get((usize::from(*eights) + 1) * 8..)
                    .map_or(Self::Other, |behind| Self::under(*next, behind)),
                _ => Self::Other,
            },
            protocol::NO_NEXT_HEADER => Self::Bubble,
            protocol::ICMPV4 if payload.first().is_some_and(|kind| ECHO4.contains(kind)) => Self::Echo,
            protocol::ICMPV6 => IcmpHeader::read(payload).map_or(Self::Other, |header| match header.kind {
                icmpv6::ROUTER_SOLICITATION => Self::Solicitation,
                icmpv6::ROUTER_ADVERTISEMENT => Self::Advertisement,
                icmpv6::NEIGHBOUR_SOLICITATION | icmpv6::NEIGHBOUR_ADVERTISEMENT => Self::Neighbour,
                icmpv6::ECHO_REQUEST | icmpv6::ECHO_REPLY => Self::Echo,
                _ => Self::Other,
            }),
            protocol::UDP => Self::in_udp(payload),
            _ => Self::Other,
        }
    }

    /// Of a datagram: DHCPv6, or Teredo, if an IPv6 packet is in it.
    fn in_udp(datagram: &[u8]) -> Self {
        let (Ok(header), Some(data)) = (UdpHeader::read(datagram), datagram.get(UDP_HEADER..)) else {
            return Self::Other;
        };
        if DHCPV6.contains(&header.destination) {
            let is_lease = data.first().is_some_and(|kind| DHCPV4_IN_DHCPV6.contains(kind));
            return if is_lease { Self::Lease } else { Self::Other };
        }
        match Prologue::split(data) {
            Ok((_, packet)) if packet.first().is_some_and(|octet| octet >> 4 == 6) => Self::of(packet),
            _ => Self::Other,
        }
    }
}

/// A link that all ends of the mechanism meet at: its host and its name.
const fn place(way: Way) -> (&'static str, &'static str) {
    match way {
        Way::Teredo => ("middle", "down0"),
        Way::Configured
        | Way::SixToFour
        | Way::Isatap
        | Way::Nat64
        | Way::Nat46
        | Way::DsLite
        | Way::FourOverSix => ("b", "in0"),
    }
}

/// Neighbour discovery of the links themselves is not counted, and neither are their reports of multicast listeners, which begin with hop-by-hop options.
const FILTER: &str = "ip or (ip6 and not icmp6 and ip6[6] != 0)";

/// What was captured, in all and by kind.
fn count(packets: &[Captured], sheet: &mut Sheet) {
    sheet.value("packets", packets.len() as f64, Unit::Count);
    let octets: usize = packets.iter().map(|seen| seen.packet.len()).sum();
    sheet.value("octets", octets as f64, Unit::Octets);
    for (message, name) in Message::ALL {
        let number = packets.iter().filter(|seen| Message::of(&seen.packet) == message).count();
        sheet.value(name, number as f64, Unit::Count);
    }
}

/// How long a mechanism is idle: a minute at scale 1, and at least one to three of its short intervals, those of leases one.
pub fn idle_time(way: Way, scale: f64) -> Duration {
    let least = way.interval().map_or(LEAST, |interval| {
        let some = interval.short.mul_f64((300.0 * scale).clamp(1.0, 3.0));
        some.min(interval.short.max(LEASE)) + ANSWER
    });
    Duration::from_secs_f64((60.0 * scale).clamp(0.0, 60.0)).max(least)
}

/// What is counted of messages at intervals becomes that of an hour by this factor with the default timers; an error is the reason why there is
/// none.
fn an_hour(interval: Option<Interval>, has_timers: bool, took: Duration) -> std::result::Result<f64, String> {
    let factor = HOUR.as_secs_f64() / took.as_secs_f64().max(1e-9);
    match interval {
        None => Ok(factor),
        Some(Interval { usual, short }) if has_timers => Ok(factor * short.div_duration_f64(usual)),
        Some(Interval { usual, .. }) if took >= 2 * usual => Ok(factor),
        Some(Interval { usual, .. }) => {
            let (took, usual) = (took.as_secs_f64(), usual.as_secs());
            Err(format!(
                "its timers are not set, and {took:.0} s are less than twice its interval of {usual} s"
            ))
        }
    }
}

/// The intervals between messages, and how many messages and octets an hour follow for the default ones.
fn note_hour(packets: &[Captured], (way, has_timers): (Way, bool), took: Duration, sheet: &mut Sheet) {
    if let Some(Interval { usual, short }) = way.interval() {
        let used = if has_timers { short } else { usual };
        sheet.value("interval", used.as_secs_f64() * 1e3, Unit::Milliseconds);
        sheet.value("usual-interval", usual.as_secs_f64() * 1e3, Unit::Milliseconds);
    }
    let periodic = || packets.iter().filter(|seen| Message::of(&seen.packet).is_periodic());
    let octets: usize = periodic().map(|seen| seen.packet.len()).sum();
    let counts =
        [("packets-an-hour", periodic().count(), Unit::Count), ("octets-an-hour", octets, Unit::Octets)];
    match an_hour(way.interval(), has_timers, took) {
        Ok(factor) => {
            counts.iter().for_each(|(name, count, unit)| sheet.value(name, *count as f64 * factor, *unit))
        }
        Err(why) => counts.iter().for_each(|(name, ..)| sheet.not_measurable(name, why.clone())),
    }
}

/// Messages and CPU time of an idle mechanism.
pub fn idle(at_work: &AtWork, device: &dyn Device, time: Duration, sheet: &mut Sheet) -> Result<()> {
    let (host, link) = place(at_work.way());
    let (_, cost, _) = at_work.metered(|| at_work.echo(at_work.way().target(), 56, 2))?;
    sheet.tester(cost);
    let capture = Capture::start(at_work.network(), host, link, FILTER)?;
    let (start, before) = (Instant::now(), at_work.spent()?);
    crate::interrupt::pause(time)?;
    let spent = at_work.spent()?.saturating_sub(before);
    let took = start.elapsed();
    sheet.value("idle", took.as_secs_f64() * 1e3, Unit::Milliseconds);
    sheet.value("cpu", spent.as_secs_f64() / took.as_secs_f64().max(1e-9), Unit::Cores);
    let packets = capture.end()?;
    count(&packets, sheet);
    let has_timers = at_work.timers() == Timers::Short && device.has_timers();
    note_hour(&packets, (at_work.way(), has_timers), took, sheet);
    Ok(())
}

/// What a mechanism sends from its start to the first answer through it, how long that takes, and the CPU time of both ends.
pub fn start(at_work: &mut AtWork, device: &dyn Device, sheet: &mut Sheet) -> Result<()> {
    let (host, link) = place(at_work.way());
    let (_, cost, _) = at_work.metered(|| at_work.echo(at_work.way().target(), 56, 2))?;
    sheet.tester(cost);
    let network = at_work.shared_network();
    let capture = Capture::start(&network, host, link, FILTER)?;
    let renewal = at_work.renew(device)?;
    let packets = capture.end()?;
    note_start(renewal, at_work.spent()?, sheet);
    count(&packets, sheet);
    Ok(())
}

/// The time to the first answer, and the CPU time until then.
fn note_start(renewal: Renewal, spent: Duration, sheet: &mut Sheet) {
    sheet.value("first-answer", renewal.creation.as_secs_f64() * 1e3, Unit::Milliseconds);
    sheet.value("cpu-time", spent.as_secs_f64() * 1e3, Unit::CpuMilliseconds);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{echo_request, ipv6, udp};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const HOSTS: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x5efe, 0xc000, 0x201),
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
    ];

    fn over4(next: u8, payload: &[u8]) -> Vec<u8> {
        let header = Ipv4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, next, payload.len());
        [&header.octets()[..], payload].concat()
    }

    fn teredo(prologue: &[u8], packet: &[u8]) -> Vec<u8> {
        let data = [prologue, packet].concat();
        let header = UdpHeader::new(3_544, 40_000, data.len());
        over4(protocol::UDP, &[&header.octets()[..], &data].concat())
    }

    #[test]
    fn the_first_answer_is_awaited_from_the_beginning() {
        let mut sheet = Sheet::new(std::path::PathBuf::new());
        let [deletion, creation, spent] = [1, 20, 300].map(Duration::from_millis);
        note_start(Renewal { deletion, creation }, spent, &mut sheet);
        assert_eq!(["first-answer", "cpu-time"].map(|name| sheet.values()[name].value), [20.0, 300.0]);
    }

    #[test]
    fn packets_are_counted_in_all_and_by_kind() {
        let [source, destination] = HOSTS;
        let bubble = teredo(&[], &ipv6(source, destination, protocol::NO_NEXT_HEADER, &[]));
        let ping = over4(protocol::IPV6, &echo_request(source, destination, [1, 1], 16));
        let all =
            [&bubble, &ping, &bubble].map(|packet| Captured { time: Duration::ZERO, packet: packet.clone() });
        let mut sheet = Sheet::new(std::path::PathBuf::new());
        count(&all, &mut sheet);
        let value = |name: &str| sheet.values()[name].value;
        assert_eq!([value("packets"), value("octets")], [3.0, (2 * bubble.len() + ping.len()) as f64]);
        assert_eq!([value("bubbles"), value("echoes"), value("others")], [2.0, 1.0, 0.0]);
    }

    #[test]
    fn an_idle_mechanism_with_messages_is_watched_for_some_of_its_intervals() {
        let seconds = |way: Way, scale| idle_time(way, scale).as_secs_f64();
        assert_eq!([0.001, 0.02, 1.0].map(|scale| seconds(Way::SixToFour, scale)), [1.0, 1.2, 60.0]);
        assert_eq!([0.001, 0.02, 1.0].map(|scale| seconds(Way::Teredo, scale)), [5.2, 15.2, 60.0]);
        assert_eq!([0.001, 0.02, 1.0].map(|scale| seconds(Way::FourOverSix, scale)), [30.2, 30.2, 60.0]);
        for way in Way::EVERY {
            let Some(interval) = way.interval() else { continue };
            assert!(interval.short < interval.usual && idle_time(way, 0.0) > interval.short, "{way:?}");
        }
    }

    #[test]
    fn messages_an_hour_follow_for_the_default_timers() {
        let [source, destination] = HOSTS;
        let bubble = teredo(&[], &ipv6(source, destination, protocol::NO_NEXT_HEADER, &[]));
        let ping = over4(protocol::IPV6, &echo_request(source, destination, [1, 1], 16));
        let all = [&bubble, &ping].map(|packet| Captured { time: Duration::ZERO, packet: packet.clone() });
        let of = |way, has_timers, seconds| {
            let mut sheet = Sheet::new(std::path::PathBuf::new());
            note_hour(&all, (way, has_timers), Duration::from_secs(seconds), &mut sheet);
            ["packets-an-hour", "octets-an-hour", "interval", "usual-interval"]
                .map(|name| sheet.values().get(name).map(|it| it.value))
        };
        // One bubble in 5 s at intervals of 5 s is 720 an hour, and 120 at intervals of 30 s; the echo request comes of traffic.
        let octets = 120.0 * bubble.len() as f64;
        assert_eq!(of(Way::Teredo, true, 5), [Some(120.0), Some(octets), Some(5e3), Some(3e4)]);
        assert_eq!(of(Way::Teredo, false, 60)[..3], [Some(60.0), Some(octets / 2.0), Some(3e4)]);
        assert_eq!(of(Way::Teredo, false, 59)[..3], [None, None, Some(3e4)], "less than two intervals");
        assert_eq!(of(Way::SixToFour, true, 60), [Some(60.0), Some(octets / 2.0), None, None]);
    }

    #[test]
    fn messages_are_known_under_their_tunnels() {
        let [source, destination] = HOSTS;
        let icmp = |kind| ipv6(source, destination, protocol::ICMPV6, &[kind, 0, 0, 0, 0, 0, 0, 0]);
        let bubble = ipv6(source, destination, protocol::NO_NEXT_HEADER, &[]);
        let origin = [0, 0, 1, 2, 3, 4, 5, 6];
        let query = |kind| udp((source, 546), (destination, 547), &[kind, 0, 0, 0]);
        let ping = echo_request(source, destination, [1, 1], 16);
        // A tunnel encapsulation limit (RFC 2473 §4.1.1) in front of an IPv4 packet.
        let limit = [&[protocol::IPV4, 0, 4, 1, 4, 1, 0, 0], &over4(protocol::ICMPV4, &[0; 8])[..]].concat();
        let limited = ipv6(source, destination, protocol::DESTINATION_OPTIONS, &limit);
        for (packet, message) in [
            (over4(protocol::IPV6, &icmp(icmpv6::ROUTER_SOLICITATION)), Message::Solicitation),
            (over4(protocol::IPV6, &icmp(icmpv6::ROUTER_ADVERTISEMENT)), Message::Advertisement),
            (over4(protocol::IPV6, &icmp(icmpv6::NEIGHBOUR_SOLICITATION)), Message::Neighbour),
            (over4(protocol::IPV6, &ping), Message::Echo),
            (over4(protocol::ICMPV4, &[8, 0, 0, 0, 0, 0, 0, 0]), Message::Echo),
            (over4(protocol::ICMPV4, &[3, 1, 0, 0, 0, 0, 0, 0]), Message::Other),
            (teredo(&[], &bubble), Message::Bubble),
            (teredo(&origin, &icmp(icmpv6::ROUTER_ADVERTISEMENT)), Message::Advertisement),
            (teredo(&[], b"a datagram of somebody else's"), Message::Other),
            (query(20), Message::Lease),
            (query(1), Message::Other),
            (ipv6(source, destination, protocol::IPV4, &over4(protocol::ICMPV4, &[0; 8])), Message::Echo),
            (limited, Message::Echo),
            (vec![0x45], Message::Other),
            (Vec::new(), Message::Other),
        ] {
            assert_eq!(Message::of(&packet), message, "{packet:?}");
        }
    }
}
