//! What is measured, and what it is about.

use super::control::idle_time;
use super::farther::Farther;
use super::findings::findings;
use super::ipsec::{self, Ipsec};
use super::narrow::NARROW;
use super::overhead::Form;
use super::published::{HEADLINES, PUBLISHED};
use super::stage::{Headers, Kind, Mechanism};
use crate::analyse::{About, Column, Drawing, Figure, Finding, Headline, Kind as Shape, Table};
use crate::device::{Needs, Realm, TaskKind, find};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part, times_as_long};
use crate::experiment::series::series;
use crate::experiment::three_routers::{BadPath, DRAWING, DRAWN, Terrain, Way};
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Mechanisms2006;

const COLUMNS: &[Column] = &[
    Column { value: "response", title: "response" },
    Column { value: "native-response", title: "native response" },
    Column { value: "throughput", title: "throughput" },
    Column { value: "native-throughput", title: "native throughput" },
    Column { value: "transactions", title: "transactions" },
    Column { value: "native-transactions", title: "native transactions" },
    Column { value: "cpu", title: "CPU of both ends" },
    Column { value: "native-cpu", title: "native CPU" },
    Column { value: "cpu-increase", title: "CPU increase" },
    Column { value: "cpu-increase-kib", title: "CPU increase a KiB" },
    Column { value: "memory", title: "memory of both" },
];

const PACKETS: Column = Column { value: "packets", title: "packets" };
const SOLICITATIONS: Column = Column { value: "solicitations", title: "solicitations" };
const ADVERTISEMENTS: Column = Column { value: "advertisements", title: "advertisements" };
const BUBBLES: Column = Column { value: "bubbles", title: "bubbles" };
const LEASES: Column = Column { value: "leases", title: "leases" };
const OCTETS: Column = Column { value: "octets", title: "captured octets" };

const COLUMNS_OF_IPSEC: &[Column] = &[
    Column { value: "response", title: "response" },
    Column { value: "native-response", title: "native response" },
    Column { value: "throughput", title: "throughput" },
    Column { value: "native-throughput", title: "native throughput" },
    Column { value: "cpu", title: "CPU of both ends" },
    Column { value: "memory", title: "memory of both" },
];

const fn table(title: &'static str, way: Way) -> Table {
    Table { title, series: way.name(), axes: &["load", "octets"], columns: COLUMNS }
}

const ABOUT: About = About {
    name: "mechanisms-2006",
    question: "What do seven mechanisms cost against native IPv4 and IPv6 by the same routers?",
    source: "M. Shin, H. Kim, D. Santay, D. Montgomery: An empirical analysis of IPv6 transition mechanisms, 2006",
    topology: DRAWING,
    notes: &[
        "Forms of headers: 1 IPv4, 2 IPv6, 3 IPv6 in IPv4, 4 IPv4 in IPv6, 5 IPv6 in UDP in IPv4. They are computed from packets that our encoders write, in a frame of 1,514 octets, as a share of the data; the paper truncates, and its 4.25 % is a misprint of 4.22 %.",
        "Loads: 1 echo requests, 2 TCP, 3 UDP, 4 transactions over UDP, 5 over a TCP connection, 6 over a TCP connection each, 7 TCP with a segment for each write, 8 TCP with segments of that size at most. Transactions have 16 octets each way.",
        "Native is the client's own version of IP by the same routers, measured right after the mechanism in each cell. The verdict is that of the load through the mechanism; the native load's is in brackets where it is another one, and a ratio takes both.",
        "Native TCP with small writes is limited by the tester: the faster acknowledgments return, the fewer writes are gathered in a packet, and each packet costs the tester's core as much as a large one. A slower way gathers more, and may carry more.",
        "Devices in guests are compared with the native way by the same guests, which is in their rows, and with no device of this host. Of ISATAP and DS-Lite some devices know one end: Sixway is the host of the former and the AFTR of the latter then, and its CPU time is counted with theirs.",
        "Configured tunnels and 6to4 are between routers a and c, ISATAP between the client and router c, NAT64 stands for NAT-PT, DS-Lite for DSTM: both translate or tunnel what the papers' did, with a state of another kind.",
        "Teredo has a network of its own: a client behind a NAT, a server and a relay, all by the device. Its native way is IPv4 through the NAT.",
        "NAT46 has no echo requests of more than 1,452 octets, or of 1,352 over the narrower link if they may be split: it keeps no state for fragments, and those of ICMP cannot be translated without (RFC 7915 §1.2).",
        "Tunnels over IPv4 have an MTU of 1,480 octets; Teredo has 1,280.",
        "Mechanisms: 1 configured tunnel, 2 6to4, 3 ISATAP, 4 NAT64, 5 NAT46, 6 DS-Lite, 7 Teredo, 8 4over6, of which only the control plane is measured. Hops are routers between a and c; the background is 50 Mbit/s of packets of 1,400 octets, half of the paper's links.",
        "The narrower link is the one in front of router c, with an MTU of 1,400 octets. DF 0 lets packets of ping and UDP be split, by routers with IPv4 and by the sender for the path's MTU with IPv6, DF 1 does not. The first requests find the path's MTU: requests are sent until one is answered, and those after it are counted. Of UDP those that arrive at the server are counted.",
        "The control plane is all traffic that passes router b, or the NAT's link: while the mechanism is idle, or from a start of both ends to the first answer through it. Solicitations and advertisements are those of routers, leases are messages of DHCPv4 in DHCPv6. Echoes are the test's own, and those by which a Teredo client looks for a relay.",
        "An idle mechanism has short timers, so that it sends while it is watched: ISATAP routers have a lifetime of 8 s (30 min by default), Teredo's refresh interval is 5 s (30 s), and leases of 4over6 last 1 min (1 h). The table has the longest interval between two messages: three fifths of the lifetime, the refresh interval, half of the lease. Messages and octets an hour with the default timers are scaled by the two intervals. The other mechanisms have no messages of their own, and the timers of miredo and of Linux' ISATAP router are not set. Routers of ISATAP advertise only to hosts that solicit.",
        "IPsec is ESP in tunnel mode with AES-GCM and fixed keys, between routers a and c, around the packets of the mechanism and around native IPv6 (ESP 1; 0 is without). It takes a kernel with ESP, so that it is measured in guests only; a quick run has it with --set series=ipsec.",
        "The CPU increase is the CPU time of the device with the load through the mechanism, less that with the native load, which a program on a TUN device does not see. A KiB is one of data that arrived: both loads are as fast as they go, and the faster one takes more CPU time. The published increases are those on the paper's routers: averages over its sizes, shown at 1,400 octets, and those below 128 octets, shown at 64.",
    ],
    tables: &[
        Table {
            title: "Headers in a frame of 1,514 octets",
            series: "overhead",
            axes: &["form"],
            columns: &[
                Column { value: "data-tcp", title: "data with TCP" },
                Column { value: "overhead-tcp", title: "overhead with TCP" },
                Column { value: "data-udp", title: "data with UDP" },
                Column { value: "overhead-udp", title: "overhead with UDP" },
            ],
        },
        table("Configured tunnel", Way::Configured),
        table("6to4", Way::SixToFour),
        table("ISATAP", Way::Isatap),
        table("NAT64", Way::Nat64),
        table("NAT46", Way::Nat46),
        table("DS-Lite", Way::DsLite),
        table("Teredo", Way::Teredo),
        Table {
            title: "Over hops, with background and without",
            series: "hops",
            axes: &["way", "hops", "load", "background"],
            columns: &[
                Column { value: "response", title: "response" },
                Column { value: "native-response", title: "native response" },
                Column { value: "throughput", title: "throughput" },
                Column { value: "native-throughput", title: "native throughput" },
                Column { value: "transactions", title: "transactions" },
                Column { value: "native-transactions", title: "native transactions" },
                Column { value: "cpu", title: "CPU of both ends" },
                Column { value: "loss", title: "loss" },
            ],
        },
        Table {
            title: "Pings (load 1) and UDP (3) over a narrower second link",
            series: "narrow",
            axes: &["way", "load", "octets", "df"],
            columns: &[
                Column { value: "lost-before", title: "lost before the first answer" },
                Column { value: "sent", title: "sent after it" },
                Column { value: "answered", title: "answered" },
                Column { value: "answered-natively", title: "answered natively" },
            ],
        },
        Table {
            title: "With IPsec, and without",
            series: "ipsec",
            axes: &["way", "esp", "load", "octets"],
            columns: COLUMNS_OF_IPSEC,
        },
        Table {
            title: "Control plane of an idle mechanism",
            series: "control",
            axes: &["way"],
            columns: &[
                Column { value: "idle", title: "time" },
                Column { value: "interval", title: "longest interval" },
                PACKETS,
                SOLICITATIONS,
                ADVERTISEMENTS,
                BUBBLES,
                LEASES,
                OCTETS,
                Column { value: "usual-interval", title: "default interval" },
                Column { value: "packets-an-hour", title: "messages an hour, default timers" },
                Column { value: "octets-an-hour", title: "octets an hour, default timers" },
                Column { value: "cpu", title: "CPU of all ends" },
            ],
        },
        Table {
            title: "Control plane from the start to the first answer",
            series: "start",
            axes: &["way"],
            columns: &[
                Column { value: "first-answer", title: "first answer after" },
                PACKETS,
                SOLICITATIONS,
                ADVERTISEMENTS,
                BUBBLES,
                LEASES,
                Column { value: "echoes", title: "echoes" },
                OCTETS,
                Column { value: "cpu-time", title: "CPU time of all ends" },
            ],
        },
    ],
    published: PUBLISHED,
};

const USUAL: &[&str] = &["sixway"];
const TUNNELS: &[&str] = &["sixway", "sixway-tc", "sixway-xdp", "linux-sit"];
const WITH_GUEST: &[&str] = &["sixway", "sixway-tc", "sixway-xdp", "linux-sit", IN_GUEST];
/// Takes part with IPsec only, which needs a kernel of its own, unless it is named.
const IN_GUEST: &str = "sixway-in-guest";
const LINEUP: &[Entry] = &[
    Entry { task: TaskKind::Configured, usual: WITH_GUEST },
    Entry { task: TaskKind::Router6to4, usual: WITH_GUEST },
    Entry { task: TaskKind::IsatapRouter, usual: TUNNELS },
    Entry { task: TaskKind::IsatapHost, usual: USUAL },
    Entry {
        task: TaskKind::Nat64,
        usual: &["sixway", "sixway-tc", "sixway-xdp", "tayga-masquerade", "jool"],
    },
    Entry { task: TaskKind::Nat46, usual: USUAL },
    Entry { task: TaskKind::Aftr, usual: USUAL },
    Entry { task: TaskKind::B4, usual: &["sixway", "linux-ip6tnl"] },
    Entry { task: TaskKind::TeredoRelay, usual: &["sixway", "miredo"] },
    Entry { task: TaskKind::Concentrator, usual: USUAL },
];

/// Devices that Sixway is compared with.
const PEERS: &[&str] =
    &["sixway-tc", "sixway-xdp", "linux-sit", IN_GUEST, "linux-ip6tnl", "tayga-masquerade", "jool", "miredo"];
/// Loads and sizes at which they are in a quick run, and the one that has no other part in it.
const BRIEF: [(Kind, &[f64]); 3] =
    [(Kind::Ping, &[1_400.0]), (Kind::Tcp, &[64.0, 1_400.0]), (Kind::TcpRr, &[])];

/// Whether a device takes part in more than IPsec.
fn is_usual(device: &str, asked: &Asked) -> bool {
    device != IN_GUEST || !asked.devices.is_empty()
}

/// Whether a device has this load in a run.
fn is_in(device: &str, kind: Kind, octets: Option<f64>, asked: &Asked) -> bool {
    if !is_usual(device, asked) {
        return false;
    }
    match part(device, PEERS, asked) {
        Part::Whole => true,
        Part::Nothing => false,
        // Both hooks are compared at other places.
        Part::Brief if device == "sixway-tc" => false,
        Part::Brief => {
            BRIEF.iter().any(|(of, sizes)| *of == kind && octets.is_none_or(|octets| sizes.contains(&octets)))
        }
    }
}

/// A value with its title, and the place on other axes.
type Drawn = (&'static str, &'static str, &'static [(&'static str, f64)]);
/// Values that are drawn by size: pings, TCP and UDP.
const BY_OCTETS: [Drawn; 5] = [
    ("response", "response time", &[("load", 1.0)]),
    ("throughput", "throughput of TCP", &[("load", 2.0)]),
    ("throughput", "throughput of UDP", &[("load", 3.0)]),
    ("cpu-increase", "CPU increase with TCP", &[("load", 2.0)]),
    ("cpu-increase", "CPU increase with UDP", &[("load", 3.0)]),
];

/// From the smallest to the greatest of the paper.
const SIZES: [f64; 8] = [64.0, 128.0, 256.0, 512.0, 1_024.0, 1_400.0, 2_048.0, 3_072.0];
/// Two of small data and two of the MTU's size and more: a statement over sizes takes two.
const QUICK: [f64; 4] = [64.0, 256.0, 1_400.0, 3_072.0];

fn cell(series: &str, device: &str, point: &[(&str, f64)]) -> Cell {
    let point = point.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect::<BTreeMap<_, _>>();
    Cell {
        experiment: ABOUT.name.to_owned(),
        series: series.to_owned(),
        device: device.to_owned(),
        point,
        repeat: 0,
    }
}

/// Whether a device can be both ends of a mechanism, or that end which a partner does not do.
fn plays(device: &str, way: Way) -> bool {
    find(device).is_some_and(|device| way.is_known_to(device))
}

/// What may be chosen by `--set series`.
const SERIES: [&str; 7] = ["overhead", "loads", "hops", "narrow", "control", "start", "ipsec"];

/// Whether a device has IPsec: guests have a kernel for it.
fn has_ipsec(device: &str) -> bool {
    find(device).is_some_and(|device| matches!(device.card().realm, Realm::Guest(_)))
}

/// Places with IPsec and without; all without come first, for then nothing is built again.
fn ipsec_points(way: Way, quick: bool) -> Vec<Vec<(&'static str, f64)>> {
    let way = ("way", f64::from(way as u8) + 1.0);
    let sizes = if quick { &ipsec::SIZES[2..] } else { &ipsec::SIZES[..] };
    let mut all = Vec::new();
    for esp in [0.0, 1.0] {
        for load in ipsec::LOADS {
            let load = ("load", f64::from(load as u8));
            all.extend(sizes.iter().map(|octets| vec![way, ("esp", esp), load, ("octets", *octets)]));
        }
    }
    all
}

/// Loads over hops; a quick run has the first two.
const FAR_LOADS: [Kind; 6] = [Kind::Ping, Kind::Tcp, Kind::Udp, Kind::UdpRr, Kind::TcpRr, Kind::TcpCrr];
/// Octets of data over a narrower link; a quick run has 1,500.
const NARROW_SIZES: [f64; 7] = [64.0, 512.0, 1_300.0, 1_360.0, 1_440.0, 1_500.0, 3_072.0];

/// Places of a mechanism over hops, over the narrower link, and idle. Its own network has no hops to add.
#[allow(clippy::type_complexity, reason = "it is taken apart where it is called, and only there")]
fn far_points(
    way: Way,
    asked: &Asked,
) -> std::result::Result<Vec<(&'static str, Vec<(&'static str, f64)>)>, String> {
    let number = ("way", f64::from(way as u8) + 1.0);
    let mut all = Vec::new();
    if !matches!(way, Way::Teredo | Way::FourOverSix) {
        let hops = asked.numbers("hops", if asked.quick { &[8.0] } else { &[1.0, 4.0, 8.0] })?;
        let background = asked.numbers("background", if asked.quick { &[0.0] } else { &[0.0, 50.0] })?;
        for hops in hops {
            for background in &background {
                for load in if asked.quick { &FAR_LOADS[..2] } else { &FAR_LOADS } {
                    let load = ("load", f64::from(*load as u8));
                    all.push(("hops", vec![number, ("hops", hops), load, ("background", *background)]));
                }
            }
        }
        for octets in if asked.quick { &NARROW_SIZES[5..6] } else { &NARROW_SIZES } {
            for kind in [Kind::Ping, Kind::Udp] {
                let load = ("load", f64::from(kind as u8));
                // What must not be split is refused where it is too long, and leaves no fragments.
                for (df, mtu) in [(0.0, NARROW), (1.0, Terrain::DRAWN.mtu)] {
                    if carries(way, kind, *octets, mtu) {
                        all.push(("narrow", vec![number, load, ("octets", *octets), ("df", df)]));
                    }
                }
            }
        }
    }
    // A lease is renewed after half a minute at least: a quick run has it if the series is named.
    if way != Way::FourOverSix || !asked.quick || asked.set.contains_key("series") {
        all.push(("control", vec![number]));
    }
    // The others start without a message.
    let has_messages = matches!(way, Way::Isatap | Way::Teredo | Way::FourOverSix);
    if has_messages || !asked.quick {
        all.push(("start", vec![number]));
    }
    Ok(all)
}

/// Octets of headers of an echo request behind NAT46.
const ECHO_HEADERS: f64 = 48.0;

/// Whether a mechanism carries the load over links of this MTU: NAT46 has no state for fragments, and a fragment of ICMP cannot be translated without
/// (RFC 7915 §1.2).
fn carries(way: Way, kind: Kind, octets: f64, mtu: u32) -> bool {
    way != Way::Nat46 || !matches!(kind, Kind::Ping) || octets + ECHO_HEADERS <= f64::from(mtu)
}

impl Experiment for Mechanisms2006 {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs::NAMESPACE
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn settings(&self) -> &'static [&'static str] {
        &["background", "delay", "hops", "loads", "loss", "rate", "series", "sizes", "ways"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let sizes = asked.numbers("sizes", if asked.quick { &QUICK } else { &SIZES })?;
        let every: Vec<f64> = Kind::ALL.iter().map(|kind| f64::from(*kind as u8)).collect();
        let loads = asked.numbers("loads", &every)?;
        if let Some(wrong) = sizes.iter().find(|size| !(16.0..=60_000.0).contains(*size)) {
            return Err(format!("--set sizes: {wrong} is not a size from 16 to 60000"));
        }
        let every_way: Vec<f64> = (1..=Way::EVERY.len()).map(|number| number as f64).collect();
        let ways = asked.numbers("ways", &every_way)?;
        let is_wanted = |way: Way| ways.contains(&(f64::from(way as u8) + 1.0));
        BadPath::of(asked)?;
        let wanted = series(asked, &SERIES, &[])?;
        let has = |series: &str| wanted.contains(&series);
        // Headers are the same whoever sends them.
        let mut cells: Vec<Cell> = devices
            .first()
            .filter(|_| has("overhead"))
            .into_iter()
            .flat_map(|device| {
                (1..=Form::ALL.len()).map(|form| cell("overhead", device, &[("form", form as f64)]))
            })
            .collect();
        for way in Way::ALL.into_iter().filter(|way| has("loads") && is_wanted(*way)) {
            for device in devices.iter().filter(|device| plays(device, way)) {
                for kind in Kind::ALL.into_iter().filter(|kind| loads.contains(&f64::from(*kind as u8))) {
                    let load = ("load", f64::from(kind as u8));
                    if kind.transaction().is_some() && is_in(device, kind, None, asked) {
                        cells.push(cell(way.name(), device, &[load]));
                    }
                    let sizes = sizes.iter().filter(|size| {
                        kind.has(**size)
                            && carries(way, kind, **size, Terrain::DRAWN.mtu)
                            && is_in(device, kind, Some(**size), asked)
                    });
                    cells.extend(sizes.map(|size| cell(way.name(), device, &[load, ("octets", *size)])));
                }
            }
        }
        let is_whole = |device: &str| is_usual(device, asked) && part(device, PEERS, asked) == Part::Whole;
        // A quick run has it if every series was asked for.
        let has_ipsec_series = has("ipsec") && (!asked.quick || asked.set.contains_key("series"));
        for way in Way::EVERY.into_iter().filter(|way| is_wanted(*way)) {
            for device in devices.iter().filter(|device| plays(device, way) && is_whole(device)) {
                for (series, point) in far_points(way, asked)?.into_iter().filter(|(series, _)| has(series)) {
                    cells.push(cell(series, device, &point));
                }
            }
        }
        for way in Way::ALL.into_iter().filter(|way| has_ipsec_series && is_wanted(*way)) {
            let is_protected = |device: &&&str| plays(device, way) && has_ipsec(device);
            for device in devices.iter().filter(|_| way.protection().is_some()).filter(is_protected) {
                let points = ipsec_points(way, asked.quick);
                cells.extend(points.iter().map(|point| cell("ipsec", device, point)));
            }
        }
        Ok(cells)
    }

    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        let times = times_as_long(&cell.device);
        match (cell.series.as_str(), cell.at("load")) {
            ("overhead", _) => 0.05,
            ("narrow", 3.0) => 0.2,
            ("narrow", _) => 0.6,
            // A router's advertisement, and a lease, take some time.
            ("start", _) if [3.0, 8.0].contains(&cell.at("way")) => 2.5,
            ("start", _) => 1.0,
            // Guests boot for the first ones.
            ("ipsec", 1.0) => 6.0 + 5.0 * asked.scale,
            ("ipsec", _) => 6.0 + 2.0 * f64::max(0.1, 60.0 * asked.scale),
            ("control", _) => {
                // A router's advertisement, and a lease, take some time.
                let build = if [3.0, 8.0].contains(&cell.at("way")) { 2.7 } else { 0.7 };
                let way = Way::EVERY.get((cell.at("way") as usize).wrapping_sub(1)).copied();
                build + way.map_or(0.0, |way| idle_time(way, asked.scale).as_secs_f64())
            }
            (_, 1.0) => times * (0.5 + 5.0 * asked.scale),
            _ => times * 0.5 + 2.0 * f64::max(0.1, 60.0 * asked.scale),
        }
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        match Way::ALL.into_iter().find(|way| way.name() == cell.series) {
            Some(way) => Ok(Box::new(Mechanism::build(way, line)?)),
            None if cell.series == "overhead" => Ok(Box::new(Headers)),
            None if cell.series == "ipsec" => Ok(Box::new(Ipsec::new(line)?)),
            None => Ok(Box::new(Farther::new(line)?)),
        }
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn figures(&self) -> Vec<Figure> {
        let titles = ["Configured tunnel", "6to4", "ISATAP", "NAT64", "NAT46", "DS-Lite", "Teredo"];
        let of_way = |(way, group): (Way, &'static str)| {
            let by_octets = |(value, title, at): Drawn| Figure {
                group,
                title,
                series: way.name(),
                axis: "octets",
                axis_title: "octets",
                value,
                kind: Shape::Lines,
                at,
                logarithmic: false,
                lines: &[],
                devices: &[],
            };
            let transactions = Figure {
                axis: "load",
                axis_title: "4 UDP, 5 TCP, 6 a connection each",
                kind: Shape::Bars,
                ..by_octets(("transactions", "transactions", &[]))
            };
            BY_OCTETS.map(by_octets).into_iter().chain([transactions]).collect::<Vec<_>>()
        };
        Way::ALL.into_iter().zip(titles).flat_map(of_way).collect()
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nat46_has_no_echo_requests_that_it_cannot_carry() {
        let cells = Mechanisms2006.cells(&Asked { quick: true, ..Asked::default() }, &["sixway"]).unwrap();
        let sizes = |series: &str, load: f64| -> Vec<f64> {
            let all =
                cells.iter().filter(|cell| cell.series == series && cell.point.get("load") == Some(&load));
            all.filter_map(|cell| cell.point.get("octets").copied()).collect()
        };
        assert_eq!(sizes("nat64", 1.0), QUICK);
        assert_eq!(sizes("nat46", 3.0), QUICK);
        assert_eq!(sizes("nat46", 1.0), [64.0, 256.0, 1_400.0]);
    }

    #[test]
    fn nat46_has_no_pings_over_the_narrower_link_that_it_cannot_carry() {
        let sizes = |quick, way: f64, load: f64, df: f64| -> Vec<f64> {
            let set = [("series".to_owned(), "narrow".to_owned())].into();
            let asked = Asked { quick, set, ..Asked::default() };
            let cells = Mechanisms2006.cells(&asked, &["sixway"]).unwrap();
            let is_meant = |cell: &&Cell| {
                cell.at("way") == way && cell.at("load") == load && cell.point.get("df") == Some(&df)
            };
            cells.iter().filter(is_meant).map(|cell| cell.at("octets")).collect()
        };
        for df in [0.0, 1.0] {
            assert_eq!(sizes(true, 5.0, 1.0, df), [0.0; 0]);
            assert_eq!(sizes(true, 5.0, 3.0, df), [1_500.0]);
            assert_eq!(sizes(true, 4.0, 1.0, df), [1_500.0]);
            assert_eq!(sizes(false, 4.0, 1.0, df), NARROW_SIZES);
        }
        assert_eq!(sizes(false, 5.0, 1.0, 0.0), [64.0, 512.0, 1_300.0]);
        assert_eq!(sizes(false, 5.0, 1.0, 1.0), [64.0, 512.0, 1_300.0, 1_360.0, 1_440.0]);
    }

    #[test]
    fn udp_transactions_and_small_data_go_far_too() {
        let asked =
            Asked { set: [("series".to_owned(), "hops,narrow".to_owned())].into(), ..Asked::default() };
        let cells = Mechanisms2006.cells(&asked, &["sixway"]).unwrap();
        let is_there = |series: &str, point: &[(&str, f64)]| {
            let mut of = cells.iter().filter(|cell| cell.series == series);
            of.any(|cell| point.iter().all(|(axis, at)| cell.point.get(*axis) == Some(at)))
        };
        for load in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] {
            for hops in [1.0, 4.0, 8.0] {
                let at = [("way", 4.0), ("load", load), ("hops", hops), ("background", 50.0)];
                assert!(is_there("hops", &at), "load {load}, {hops} hops");
            }
        }
        for load in [1.0, 3.0] {
            let at = |octets, df| [("way", 1.0), ("load", load), ("octets", octets), ("df", df)];
            assert!(is_there("narrow", &at(64.0, 0.0)) && is_there("narrow", &at(3_072.0, 1.0)));
        }
    }

    #[test]
    fn a_quick_run_waits_for_the_renewal_of_a_lease_only_if_it_is_named() {
        let ways = |set: &[(&str, &str)], quick| -> Vec<f64> {
            let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let asked = Asked { set, quick, ..Asked::default() };
            let cells = Mechanisms2006.cells(&asked, &["sixway"]).unwrap();
            cells.iter().filter(|cell| cell.series == "control").map(|cell| cell.at("way")).collect()
        };
        let every: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(ways(&[], true), every[..7]);
        assert_eq!((ways(&[("series", "control")], true), ways(&[], false)), (every.clone(), every));
    }

    #[test]
    fn a_quick_run_has_two_sizes_for_each_statement_over_sizes() {
        let cells = Mechanisms2006.cells(&Asked { quick: true, ..Asked::default() }, &["sixway"]).unwrap();
        let sizes = |series: &str, load: f64, is_meant: fn(f64) -> bool| {
            let of = cells.iter().filter(|cell| cell.series == series && cell.at("load") == load);
            of.filter(|cell| is_meant(cell.at("octets"))).count()
        };
        for series in ["configured", "6to4", "isatap", "nat64", "ds-lite"] {
            assert_eq!(sizes(series, 2.0, |at| (1.0..=256.0).contains(&at)), 2, "{series}");
            assert_eq!(sizes(series, 2.0, |at| at >= 1_400.0), 2, "{series}");
            assert_eq!(sizes(series, 8.0, |_| true), 1, "{series}: segments of small data");
        }
    }

    #[test]
    fn what_the_paper_drew_is_drawn() {
        let figures = Mechanisms2006.figures();
        for (value, load) in
            [("response", 1.0), ("throughput", 2.0), ("throughput", 3.0), ("cpu-increase", 2.0)]
        {
            let of = |it: &&Figure| it.series == "6to4" && it.value == value && it.at == [("load", load)];
            assert_eq!(figures.iter().filter(of).count(), 1, "{value} of load {load}");
        }
        assert!(figures.iter().any(|it| it.value == "transactions"));
    }

    #[test]
    fn others_are_measured_without_being_named_and_a_quick_run_compares_at_a_few_places() {
        let usual: Vec<&str> = LINEUP.iter().flat_map(|entry| entry.usual).copied().collect();
        assert!(PEERS.iter().all(|peer| usual.contains(peer)));
        let all = [&["sixway"], PEERS].concat();
        let cells = |quick, repeats| {
            Mechanisms2006.cells(&Asked { quick, repeats, ..Asked::default() }, &all).unwrap()
        };
        let of = |cells: &[Cell], series: &str, device: &str| {
            cells.iter().filter(|cell| cell.series == series && cell.device == device).count()
        };
        let full = cells(false, 3);
        for (series, device) in [
            ("configured", "linux-sit"),
            ("isatap", "linux-sit"),
            ("isatap", "sixway-xdp"),
            ("nat64", "jool"),
            ("ds-lite", "linux-ip6tnl"),
            ("teredo", "miredo"),
        ] {
            assert_eq!(of(&full, series, device), of(&full, series, "sixway"), "{series} {device}");
            assert_eq!(of(&cells(true, 3), series, device), 4, "{series} {device}");
            assert_eq!(of(&cells(true, 1), series, device), 0, "{series} {device}");
        }
        assert_eq!(of(&cells(true, 3), "hops", "linux-sit"), 0);
    }
}
