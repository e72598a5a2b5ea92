//! The plan of measurements, and the description.

use super::findings::findings;
use super::hosts::{self, BetweenHosts};
use super::published::{PUBLISHED, SIZES};
use super::stage::{Tunnel, packets};
use crate::analyse::{
    About, Column, Drawing, Figure, Finding, Headline, Kind, Place, Table, Today, figures_of,
};
use crate::device::{Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part, times_as_long};
use crate::experiment::series::series;
use crate::experiment::three_routers::{BadPath, DRAWING, DRAWN};
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Tunnel2012;

const RATES: &[Column] = &[
    Column { value: "tunnel", title: "tunnel" },
    Column { value: "ipv6", title: "native IPv6" },
    Column { value: "ipv4", title: "native IPv4" },
    Column { value: "cpu", title: "CPU of both routers" },
    Column { value: "memory", title: "memory of both" },
];

const FILES: &[Column] = &[
    Column { value: "tunnel", title: "tunnel" },
    Column { value: "ipv6", title: "native IPv6" },
    Column { value: "ipv4", title: "native IPv4" },
    Column { value: "file", title: "file" },
];

const ABOUT: About = About {
    name: "tunnel-2012",
    question: "What does a 6to4 tunnel between two routers cost against native IPv6 and IPv4 by the same routers?",
    source: "N. Bahaman, E. Hamid, A. S. Prabuwono: Network performance evaluation of 6to4 tunneling, 2012",
    topology: DRAWING,
    notes: &[
        "All three environments are in one network: the native ones are measured right after the tunnel in each cell, and forwarded by the kernel of the same routers.",
        "The verdict of a row is that of the load through the tunnel.",
        "The paper ran each test twenty times: --repeats 20 does so, and each row has the mean of its rounds. A run of fewer rounds has wider intervals.",
        "Linux' sit and Sixway in guests are compared with each other, and with the native ways by the same guests, which are in their rows; with no device of this host.",
        "The overhead is the tunnel's response time less that of native IPv6. The paper printed that of UDP the other way round; here it has the same sign as that of TCP.",
        "Response times are those of our own echo requests, one at a time. Those of ping are smoothed as in the paper: a · old + (1 − a) · new.",
        "The paper's times are of D-ITG over TCP and UDP at a rate that it does not tell, so that queues are in them; they are next to ours by D-ITG, which are raw, and smoothed in a table of their own.",
        "The breakdown is of a round trip: what the routers' programs spend on it, what remains of the overhead (waiting for these programs, and for their TUN devices), and what background adds. Encapsulation and decapsulation are CPU time of one router each, with a thousand packets a second in one direction; the kernel's work on received packets is not told apart by routers. Crossing is the overhead less the CPU time of both routers. A program's work off the path of a packet is in that time, and with tc and in guests the kernel's is not: so crossing is an estimate, and may be negative. A tunnel's creation is from the start of both ends to the first answer; refresh is a restart of both.",
        "FTP is vsftpd and curl, over the time of the whole session. D-ITG's times are its own (rttm), at the rate that is printed.",
        "Packets above the tunnel's MTU of 1,480 octets are fragmented by the sender.",
    ],
    tables: &[
        Table {
            title: "Response time",
            series: "rtt",
            axes: &["octets"],
            columns: &[
                Column { value: "tunnel", title: "tunnel" },
                Column { value: "ipv6", title: "native IPv6" },
                Column { value: "ipv4", title: "native IPv4" },
                Column { value: "overhead", title: "overhead" },
                Column { value: "by-ping", title: "tunnel, by ping" },
                Column { value: "smoothed-half", title: "smoothed, a = 0.5" },
                Column { value: "smoothed-seven-eighths", title: "smoothed, a = 0.875" },
                Column { value: "loss", title: "loss" },
                Column { value: "cpu", title: "CPU of both routers" },
                Column { value: "memory", title: "memory of both" },
            ],
        },
        Table { title: "TCP, by octets of a write", series: "tcp", axes: &["octets"], columns: RATES },
        Table { title: "UDP, by octets of a datagram", series: "udp", axes: &["octets"], columns: RATES },
        Table {
            title: "Flow: packets of protocol 41 between routers b and c for five requests",
            series: "flow",
            axes: &["octets"],
            columns: &[
                Column { value: "answered", title: "answered through the tunnel" },
                Column { value: "answered-natively", title: "answered natively" },
                Column { value: "there", title: "192.0.2.1 to 198.51.100.1" },
                Column { value: "back", title: "198.51.100.1 to 192.0.2.1" },
            ],
        },
        Table {
            title: "Connectivity: pairs of nodes, each in both directions, and those that reach each other",
            series: "flow",
            axes: &["octets"],
            columns: &[
                Column { value: "pairs-ipv4", title: "IPv4, pairs" },
                Column { value: "reached-ipv4", title: "reached" },
                Column { value: "pairs-ipv6", title: "IPv6, pairs" },
                Column { value: "reached-ipv6", title: "reached" },
                Column { value: "pairs-tunnel", title: "6to4, pairs" },
                Column { value: "reached-tunnel", title: "reached" },
            ],
        },
        Table {
            title: "What the overhead is made of",
            series: "breakdown",
            axes: &["octets"],
            columns: &[
                Column { value: "overhead", title: "overhead" },
                Column { value: "processing", title: "CPU time of both routers" },
                Column { value: "encapsulation", title: "CPU time of a packet's encapsulation" },
                Column { value: "decapsulation", title: "of its decapsulation" },
                Column { value: "crossing", title: "crossing, waiting" },
                Column { value: "queueing", title: "queueing with 20 Mbit/s" },
                Column { value: "queueing-natively", title: "the same natively" },
            ],
        },
        Table {
            title: "The tunnel's life",
            series: "life",
            axes: &[],
            columns: &[
                Column { value: "creation", title: "creation" },
                Column { value: "refresh", title: "refresh" },
                Column { value: "deletion", title: "deletion" },
                Column { value: "idle-packets", title: "packets while idle" },
                Column { value: "idle-cpu", title: "CPU while idle" },
            ],
        },
        Table { title: "A file by FTP", series: "ftp", axes: &[], columns: FILES },
        Table {
            title: "Response time between hosts on other machines, by ping",
            series: "hosts-rtt",
            axes: &["octets"],
            columns: &[
                Column { value: "tunnel", title: "tunnel" },
                Column { value: "ipv6", title: "native IPv6" },
                Column { value: "ipv4", title: "native IPv4" },
                Column { value: "overhead", title: "overhead" },
                Column { value: "smoothed-half", title: "smoothed, a = 0.5" },
                Column { value: "smoothed-seven-eighths", title: "smoothed, a = 0.875" },
                Column { value: "loss", title: "loss" },
                Column { value: "cpu", title: "CPU of both routers" },
            ],
        },
        Table {
            title: "TCP between hosts on other machines, by iperf3 and octets of a write",
            series: "hosts-tcp",
            axes: &["octets"],
            columns: RATES,
        },
        Table {
            title: "UDP between hosts on other machines, by iperf3 and octets of a datagram",
            series: "hosts-udp",
            axes: &["octets"],
            columns: RATES,
        },
        Table {
            title: "Round trips by D-ITG",
            series: "ditg",
            axes: &["octets"],
            columns: &[
                Column { value: "tunnel-udp", title: "tunnel, UDP" },
                Column { value: "ipv6-udp", title: "native IPv6, UDP" },
                Column { value: "ipv4-udp", title: "native IPv4, UDP" },
                Column { value: "overhead-udp", title: "overhead, UDP" },
                Column { value: "tunnel-tcp", title: "tunnel, TCP" },
                Column { value: "ipv6-tcp", title: "native IPv6, TCP" },
                Column { value: "ipv4-tcp", title: "native IPv4, TCP" },
                Column { value: "overhead-tcp", title: "overhead, TCP" },
                Column { value: "tunnel-udp-rate", title: "rate, UDP" },
                Column { value: "tunnel-tcp-rate", title: "rate, TCP" },
            ],
        },
        Table {
            title: "Round trips by D-ITG, smoothed",
            series: "ditg",
            axes: &["octets"],
            columns: &[
                Column { value: "tunnel-udp-smoothed-half", title: "tunnel, UDP, a = 0.5" },
                Column { value: "tunnel-udp-smoothed-seven-eighths", title: "a = 0.875" },
                Column { value: "ipv6-udp-smoothed-half", title: "native IPv6, UDP, a = 0.5" },
                Column { value: "ipv6-udp-smoothed-seven-eighths", title: "a = 0.875" },
                Column { value: "tunnel-tcp-smoothed-half", title: "tunnel, TCP, a = 0.5" },
                Column { value: "tunnel-tcp-smoothed-seven-eighths", title: "a = 0.875" },
                Column { value: "ipv6-tcp-smoothed-half", title: "native IPv6, TCP, a = 0.5" },
                Column { value: "ipv6-tcp-smoothed-seven-eighths", title: "a = 0.875" },
            ],
        },
    ],
    published: PUBLISHED,
};

const fn by_ditg(value: &'static str) -> Place {
    Place { device: "sixway", series: "ditg", point: &[("octets", 64.0)], value }
}

const HEADLINES: &[Headline] = &[
    Headline {
        statement: "Tunnel over native IPv6, round-trip time over TCP at 64 octets, by D-ITG",
        published: 1.88,
        today: Today::Rows { over: by_ditg("tunnel-tcp"), under: by_ditg("ipv6-tcp") },
    },
    Headline {
        statement: "Tunnel over native IPv6, round-trip time over UDP at 64 octets, by D-ITG",
        published: 0.99,
        today: Today::Rows { over: by_ditg("tunnel-udp"), under: by_ditg("ipv6-udp") },
    },
];

const LINEUP: &[Entry] = &[Entry {
    task: TaskKind::Router6to4,
    usual: &["sixway", "sixway-tc", "sixway-xdp", "linux-sit", "sixway-in-guest"],
}];
/// Devices that Sixway is compared with, and what they have of a quick run.
const PEERS: &[&str] = &["sixway-tc", "sixway-xdp", "linux-sit", "sixway-in-guest"];
const BRIEF: [(&str, f64); 3] = [("rtt", 64.0), ("rtt", 1_536.0), ("tcp", 1_536.0)];
/// Those of them that have it.
const BRIEFLY: [&str; 2] = ["sixway-xdp", "linux-sit"];
const SERIES: [&str; 11] = [
    "flow",
    "rtt",
    "tcp",
    "udp",
    "breakdown",
    "life",
    "ftp",
    "ditg",
    hosts::SERIES[0],
    hosts::SERIES[1],
    hosts::SERIES[2],
];
const QUICK: [f64; 4] = [64.0, 512.0, 1_536.0, 3_072.0];

impl Experiment for Tunnel2012 {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs { programs: &["ip", "ping", "tcpdump", "curl"], ..Needs::NAMESPACE }
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn settings(&self) -> &'static [&'static str] {
        &["delay", "loss", "rate", "series", "sizes"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let sizes = asked.numbers("sizes", if asked.quick { &QUICK } else { &SIZES })?;
        if let Some(wrong) = sizes.iter().find(|size| !(16.0..=60_000.0).contains(*size)) {
            return Err(format!("--set sizes: {wrong} is not a size from 16 to 60000"));
        }
        BadPath::of(asked)?;
        let is_there = |series: &&str| !hosts::SERIES.contains(series) || !asked.remote_hosts.is_empty();
        let named = asked.set.get("series").into_iter().flat_map(|text| text.split(','));
        if let Some(lacking) = named.into_iter().find(|name| !is_there(name)) {
            return Err(format!("--set series: {lacking} needs a host on another machine: --remote-host"));
        }
        let mut cells = Vec::new();
        for series in series(asked, &SERIES, &[])?.into_iter().filter(is_there) {
            // Those without sizes are measured once; D-ITG takes long.
            let sizes = match series {
                "flow" | "life" | "ftp" => &sizes[..1],
                "ditg" | "breakdown" => &sizes[..sizes.len().min(if asked.quick { 1 } else { sizes.len() })],
                _ => &sizes[..],
            };
            for size in sizes {
                let takes_part = |device: &&&str| match part(device, PEERS, asked) {
                    Part::Whole => true,
                    Part::Brief => BRIEFLY.contains(*device) && BRIEF.contains(&(series, *size)),
                    Part::Nothing => false,
                };
                cells.extend(devices.iter().filter(takes_part).map(|device| Cell {
                    experiment: ABOUT.name.to_owned(),
                    series: series.to_owned(),
                    device: (*device).to_owned(),
                    point: match series {
                        "life" | "ftp" => BTreeMap::new(),
                        _ => BTreeMap::from([("octets".to_owned(), *size)]),
                    },
                    repeat: 0,
                }));
            }
        }
        Ok(cells)
    }

    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        let times = times_as_long(&cell.device);
        match cell.series.as_str() {
            "flow" => 0.9,
            "life" => 1.0 + (60.0 * asked.scale).clamp(0.5, 60.0),
            "ftp" => 0.6,
            "hosts-tcp" | "hosts-udp" => 2.0 + 3.0 * (0.3 + hosts::time(asked.scale).as_secs_f64()),
            "hosts-rtt" => 2.0 + f64::from(packets(asked.scale)) * 0.006,
            // Six streams, or two, each with a second in which its programs start and end.
            "ditg" => {
                f64::from(if asked.quick { 2 } else { 6 }) * (1.1 + (60.0 * asked.scale).clamp(0.2, 60.0))
            }
            "breakdown" => 0.5 + f64::from(packets(asked.scale)) * 0.005,
            "rtt" => times * 0.7 + f64::from(packets(asked.scale)) * 0.001,
            _ => times * 0.6 + 30.0 * asked.scale.max(0.01),
        }
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        if hosts::SERIES.contains(&cell.series.as_str()) {
            return Ok(Box::new(BetweenHosts::build(line)?));
        }
        Ok(Box::new(Tunnel::build(line)?))
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    /// The paper's: the tunnel and both native ways in one; then each value of all devices.
    fn figures(&self) -> Vec<Figure> {
        let together = |(series, title)| Figure {
            group: "Tunnel and native",
            title,
            series,
            axis: "octets",
            axis_title: "octets",
            value: "tunnel",
            kind: Kind::Lines,
            at: &[],
            logarithmic: false,
            lines: &[("tunnel", "tunnel"), ("ipv6", "native IPv6"), ("ipv4", "native IPv4")],
            devices: &["sixway"],
        };
        let papers = [("rtt", "round-trip time"), ("tcp", "TCP"), ("udp", "UDP")].map(together);
        papers.into_iter().chain(figures_of(ABOUT.tables)).collect()
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
