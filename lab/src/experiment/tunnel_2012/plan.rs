//! The plan of measurements, and the description.

use super::findings::findings;
use super::published::{PUBLISHED, SIZES};
use super::stage::{Tunnel, packets};
use crate::analyse::{About, Column, Drawing, Finding, Headline, Table, Today};
use crate::device::{Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
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
        "The overhead is the tunnel's response time less that of native IPv6. The paper printed that of UDP the other way round; here it has the same sign as that of TCP.",
        "Response times are those of our own echo requests, one at a time. Those of ping are smoothed as in the paper: a · old + (1 − a) · new.",
        "The paper's times are of D-ITG over TCP and UDP at a rate that it does not tell, so that queues are in them; ours are those of an idle path.",
        "The breakdown is of a round trip: what the routers' programs spend on it, what remains of the overhead (waiting for these programs, and for their TUN devices), and what background adds. A tunnel's creation is from the start of both ends to the first answer; refresh is a restart of both.",
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
            title: "What the overhead is made of",
            series: "breakdown",
            axes: &["octets"],
            columns: &[
                Column { value: "overhead", title: "overhead" },
                Column { value: "processing", title: "CPU time of both routers" },
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
            title: "Round trips by D-ITG",
            series: "ditg",
            axes: &["octets"],
            columns: &[
                Column { value: "tunnel-udp", title: "tunnel, UDP" },
                Column { value: "ipv6-udp", title: "native IPv6, UDP" },
                Column { value: "tunnel-tcp", title: "tunnel, TCP" },
                Column { value: "ipv6-tcp", title: "native IPv6, TCP" },
                Column { value: "tunnel-udp-rate", title: "rate, UDP" },
            ],
        },
    ],
    published: PUBLISHED,
};

const HEADLINES: &[Headline] = &[Headline {
    statement: "Tunnel over native, round-trip time over TCP at 64 octets",
    published: 1.88,
    today: Today::Nothing("the paper's routers do not run here; both ways are in the rows of each device"),
}];

const LINEUP: &[Entry] = &[Entry { task: TaskKind::Router6to4, usual: &["sixway"] }];
const SERIES: [&str; 8] = ["flow", "rtt", "tcp", "udp", "breakdown", "life", "ftp", "ditg"];
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

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let sizes = asked.numbers("sizes", if asked.quick { &QUICK } else { &SIZES })?;
        if let Some(wrong) = sizes.iter().find(|size| !(16.0..=60_000.0).contains(*size)) {
            return Err(format!("--set sizes: {wrong} is not a size from 16 to 60000"));
        }
        BadPath::of(asked)?;
        let wanted = asked.set.get("series").map(|names| names.split(',').collect::<Vec<_>>());
        if let Some(wrong) = wanted.iter().flatten().find(|name| !SERIES.contains(name)) {
            return Err(format!("--set series: there is no series {wrong}; they are {}", SERIES.join(", ")));
        }
        let mut cells = Vec::new();
        for series in SERIES.into_iter().filter(|name| wanted.as_ref().is_none_or(|all| all.contains(name))) {
            // Those without sizes are measured once; D-ITG takes long.
            let sizes = match series {
                "flow" | "life" | "ftp" => &sizes[..1],
                "ditg" | "breakdown" => &sizes[..sizes.len().min(if asked.quick { 1 } else { sizes.len() })],
                _ => &sizes[..],
            };
            for size in sizes {
                cells.extend(devices.iter().map(|device| Cell {
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
        match cell.series.as_str() {
            "flow" => 1.0,
            "life" => 1.0 + (60.0 * asked.scale).clamp(0.5, 60.0),
            "ftp" => 0.7,
            // Four streams, or two, each with a second in which its programs start and end.
            "ditg" => {
                f64::from(if asked.quick { 2 } else { 4 }) * (1.1 + (60.0 * asked.scale).clamp(0.2, 60.0))
            }
            "breakdown" => 0.5 + f64::from(packets(asked.scale)) * 0.004,
            "rtt" => 0.7 + f64::from(packets(asked.scale)) * 0.001,
            _ => 0.6 + 30.0 * asked.scale.max(0.01),
        }
    }

    fn build(&self, _cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Tunnel::build(line)?))
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
