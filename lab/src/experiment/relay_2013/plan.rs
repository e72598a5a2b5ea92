//! What is measured, and what it is about.

use super::anycast::Anycast;
use super::findings::findings;
use super::published::PUBLISHED;
use super::puzzle;
use super::real_hosts::{RealHost, time};
use super::responders;
use super::stage::{Relay, time_of_puzzle};
use super::topology::{DRAWING, DRAWN};
use crate::analyse::{About, Column, Drawing, Figure, Finding, Headline, Kind, Table, Today};
use crate::device::{GuestKind, Needs, Realm, TaskKind, find};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part, times_as_long};
use crate::experiment::series::series;
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Relay2013;

const COLUMNS: &[Column] = &[
    Column { value: "loss", title: "loss" },
    Column { value: "response", title: "response" },
    Column { value: "requests", title: "requests" },
    Column { value: "packets-both-ways", title: "packets both ways" },
    Column { value: "cpu", title: "CPU" },
    Column { value: "cpu-per-packet", title: "CPU a packet" },
    Column { value: "memory", title: "memory" },
    Column { value: "late", title: "late" },
];

const REAL: &[Column] = &[
    Column { value: "loss", title: "loss" },
    Column { value: "response", title: "response" },
    Column { value: "cpu", title: "CPU" },
    Column { value: "host-cpu", title: "the host's CPU" },
];

const ABOUT: About = About {
    name: "relay-2013",
    question: "What does a 6to4 relay lose, and how long do packets take, when one to ten hosts load it?",
    source: "G. Lencse, S. Répás: Performance analysis and comparison of 6to4 relay implementations, 2013",
    topology: DRAWING,
    notes: &[
        "Requests are counted once, as in the paper; packets both ways are twice as many.",
        "Each flow pauses between two addresses so that one host offers at most a quarter of the device's capacity, \
         which is measured first.",
        "A closed loop does not overload a device: at most eight requests of each host are under way (more only after 10 ms \
         without an answer). So response time follows from the rate, and no statement is made on its shape.",
        "The device restarts before each row.",
        "The puzzle is for devices in guests, which name their CPU time by their own ticks, too. A host offers a seventh of the capacity there, \
         so that seven to ten hosts offer the capacity or more, as in the paper. Each packet is compared with 500 rules, for without them an emulated \
         machine spends more on its network cards than its CPU does on packets.",
        "The kernel's row is native IPv6 forwarding in the same network, without a tunnel; its CPU time is that of its core on \
         received packets, in ticks of 10 ms.",
        "The paper's memory is the change of the whole machine's; ours is the resident memory of the process.",
        "Of what the authors left for later, larger packets are measured with ten hosts only, UDP and TCP with one real host, and two relays with the \
         anycast address with one host. The series with one responder has the paper's numbers of hosts.",
    ],
    tables: &[
        Table { title: "Two responders", series: "icmp", axes: &["hosts"], columns: COLUMNS },
        Table { title: "One responder", series: "one-responder", axes: &["hosts"], columns: COLUMNS },
        Table {
            title: "Larger packets, which the authors left for later: octets of the IPv6 packet",
            series: "sizes",
            axes: &["octets", "hosts"],
            columns: COLUMNS,
        },
        Table {
            title: "ping from a real 6to4 host: octets of the IPv6 packet",
            series: "ping6",
            axes: &["octets"],
            columns: REAL,
        },
        Table {
            title: "UDP from a real 6to4 host, 2,000 round trips a second",
            series: "udp",
            axes: &["octets"],
            columns: REAL,
        },
        Table {
            title: "TCP from a real 6to4 host: octets of a write",
            series: "tcp",
            axes: &["octets"],
            columns: &[
                Column { value: "bits", title: "arrived" },
                Column { value: "cpu", title: "CPU" },
                Column { value: "host-cpu", title: "the host's CPU" },
            ],
        },
        Table {
            title: "There by one relay with the anycast address, back by another one",
            series: "anycast",
            axes: &["hosts"],
            columns: &[
                Column { value: "loss", title: "loss" },
                Column { value: "response", title: "response" },
                Column { value: "requests", title: "requests" },
                Column { value: "there", title: "sent by the first" },
                Column { value: "back", title: "sent by the second" },
                Column { value: "cpu-there", title: "CPU a request, first relay" },
                Column { value: "cpu-back", title: "CPU a request, second relay" },
            ],
        },
        Table {
            title: "The puzzle, in guests: time of the guest's CPU, exact and by its ticks",
            series: "puzzle",
            axes: &["hosts"],
            columns: &[
                Column { value: "requests", title: "requests" },
                Column { value: "cpu", title: "CPU of the whole machine" },
                Column { value: "guest-cpu", title: "its CPU alone" },
                Column { value: "guest-ticks", title: "CPU by ticks" },
                Column { value: "cost", title: "CPU a request" },
                Column { value: "cost-by-ticks", title: "CPU a request by ticks" },
                Column { value: "loss", title: "loss" },
                Column { value: "response", title: "response" },
            ],
        },
    ],
    published: PUBLISHED,
};

/// The values of the paper's figures.
const FIGURES: [(&str, &str); 6] = [
    ("response", "response time"),
    ("requests", "requests"),
    ("cpu", "CPU"),
    ("loss", "loss"),
    ("cpu-per-packet", "CPU a packet"),
    ("memory", "memory"),
];

const fn figure(value: &'static str, title: &'static str) -> Figure {
    Figure {
        group: "",
        title,
        series: "icmp",
        axis: "hosts",
        axis_title: "hosts",
        value,
        kind: Kind::Lines,
        at: &[],
        logarithmic: false,
        lines: &[],
        devices: &[],
    }
}

const HEADLINES: &[Headline] = &[
    Headline {
        statement: "Linux sit over FreeBSD stf: requests a second with ten hosts",
        published: 3.52,
        today: Today::Nothing("FreeBSD does not run here"),
    },
    Headline {
        statement: "Linux sit over NetBSD stf: requests a second with ten hosts",
        published: 2.22,
        today: Today::Nothing("NetBSD does not run here"),
    },
];

const LINEUP: &[Entry] = &[
    Entry {
        task: TaskKind::Relay6to4,
        usual: &[
            "sixway",
            "sixway-tc",
            "sixway-xdp",
            "linux-sit",
            TICKING,
            "sixway-in-guest",
            "sixway-tc-in-guest",
        ],
    },
    Entry { task: TaskKind::Forward, usual: &["kernel", "guest-plain"] },
];
/// Takes part in the puzzle only, unless it is named. User-Mode Linux tells no time of its CPU.
const TICKING: &str = "linux-sit-ticking";
/// Devices that Sixway is compared with, and their numbers of hosts in a quick run.
const PEERS: &[&str] = &["sixway-tc", "sixway-xdp", "linux-sit", "guest-plain", IN_GUEST[0], IN_GUEST[1]];
/// Sixway on the kernel of guests: unless it is named, it takes part in the paper's own series, next to Linux' relay.
const IN_GUEST: [&str; 2] = ["sixway-in-guest", "sixway-tc-in-guest"];
const BRIEF: [f64; 1] = [4.0];
/// Those of them that have these.
const BRIEFLY: [&str; 5] = ["sixway-xdp", "linux-sit", "guest-plain", IN_GUEST[0], IN_GUEST[1]];

const ALL: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
const QUICK: [f64; 4] = [1.0, 4.0, 7.0, 10.0];

const SERIES: [&str; 8] = ["icmp", "one-responder", "sizes", "ping6", "udp", "tcp", "anycast", "puzzle"];
/// The paper's numbers of hosts with one responder.
const ONE_RESPONDER: [f64; 5] = [1.0, 4.0, 5.0, 8.0, 10.0];
/// The tunnel's MTU is 1,480.
const OCTETS: [f64; 4] = [104.0, 512.0, 1_024.0, 1_480.0];

impl Experiment for Relay2013 {
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
        &["hosts", "octets", "series", "size"]
    }

    /// A quick run has two responders only; `--set series=icmp,one-responder,sizes` chooses.
    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let hosts = asked.numbers("hosts", if asked.quick { &QUICK } else { &ALL })?;
        if let Some(wrong) = hosts.iter().find(|hosts| !ALL.contains(hosts)) {
            return Err(format!("--set hosts: {wrong} is not a number of hosts from 1 to 10"));
        }
        let mut places = Vec::new();
        let named = |hosts: f64| BTreeMap::from([("hosts".to_owned(), hosts)]);
        for series in series(asked, &SERIES, &SERIES[1..])? {
            match series {
                "icmp" | "puzzle" => places.extend(hosts.iter().map(|hosts| (series, named(*hosts)))),
                "one-responder" => {
                    let hosts = asked.numbers("hosts", &ONE_RESPONDER)?;
                    places.extend(hosts.into_iter().map(|hosts| (series, named(hosts))));
                }
                "ping6" | "udp" | "tcp" => places.extend(
                    asked
                        .numbers("octets", &OCTETS)?
                        .into_iter()
                        .map(|octets| (series, BTreeMap::from([("octets".to_owned(), octets)]))),
                ),
                "anycast" => places.push((series, named(1.0))),
                "sizes" => places.extend(asked.numbers("octets", &OCTETS)?.into_iter().map(|octets| {
                    let mut point = named(10.0);
                    point.insert("octets".to_owned(), octets);
                    (series, point)
                })),
                _ => {}
            }
        }
        let cell = |device: &str, (series, point): &(&str, BTreeMap<String, f64>)| Cell {
            experiment: ABOUT.name.to_owned(),
            series: (*series).to_owned(),
            device: device.to_owned(),
            point: point.clone(),
            repeat: 0,
        };
        let is_relay_in_guest = |device: &str| {
            find(device).is_some_and(|it| {
                matches!(it.card().realm, Realm::Guest(_)) && it.tasks().contains(&TaskKind::Relay6to4)
            })
        };
        let is_usual = |device: &str, series: &str| match series {
            _ if !asked.devices.is_empty() => true,
            "icmp" => device != TICKING,
            "puzzle" => !IN_GUEST.contains(&device),
            _ => device != TICKING && !IN_GUEST.contains(&device),
        };
        let takes_part = |device: &str, (series, point): &(&str, BTreeMap<String, f64>)| match *series {
            "puzzle" => {
                is_relay_in_guest(device) && is_usual(device, series) && GuestKind::chosen() != GuestKind::Uml
            }
            _ => {
                is_usual(device, series)
                    && match part(device, PEERS, asked) {
                        Part::Whole => true,
                        Part::Brief => {
                            BRIEFLY.contains(&device)
                                && point.get("hosts").is_some_and(|hosts| BRIEF.contains(hosts))
                        }
                        Part::Nothing => false,
                    }
            }
        };
        let of_place = |place: &(&str, BTreeMap<String, f64>)| -> Vec<Cell> {
            let devices = devices.iter().filter(|device| takes_part(device, place));
            devices.map(|device| cell(device, place)).collect()
        };
        Ok(places.iter().flat_map(of_place).collect())
    }

    /// At scale 1 a flow makes 16,384 visits of about 10 ms; from four hosts on, a device of 65,000 requests a second is the limit.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        if ["ping6", "udp", "tcp"].contains(&cell.series.as_str()) {
            return 0.6 + time(asked.scale).as_secs_f64();
        }
        if cell.series == "puzzle" {
            return 5.0 + time_of_puzzle(asked.scale).as_secs_f64();
        }
        let requests = asked.scale * 1_441_792.0;
        let in_guest = times_as_long(&cell.device) > 1.0;
        if in_guest {
            // A guest boots, and answers 6,000 requests a second.
            return 5.0 + requests * f64::max(7.0, cell.at("hosts")) / 6_000.0;
        }
        0.6 + f64::max(asked.scale * 160.0, cell.at("hosts") * requests / 65_000.0)
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        match cell.series.as_str() {
            "ping6" | "udp" | "tcp" => return Ok(Box::new(RealHost::build(line)?)),
            "anycast" => return Ok(Box::new(Anycast::build(line)?)),
            _ => {}
        }
        let responders = if cell.series == "one-responder" { 1 } else { 2 };
        Ok(Box::new(Relay::build(responders, cell.series == "puzzle", line)?))
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn figures(&self) -> Vec<Figure> {
        FIGURES.map(|(value, title)| figure(value, title)).to_vec()
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        let all = [findings(results), responders::findings(results), puzzle::findings(results)];
        all.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESTS: [&str; 4] = ["linux-sit", "linux-sit-ticking", "sixway-in-guest", "sixway-tc-in-guest"];

    /// Series and hosts of a device.
    fn places(device: &str, asked: &Asked) -> Vec<(String, f64)> {
        let cells = Relay2013.cells(asked, &GUESTS).unwrap();
        let own = cells.into_iter().filter(|cell| cell.device == device);
        own.map(|cell| (cell.series.clone(), cell.at("hosts"))).collect()
    }

    #[test]
    fn sixway_in_a_guest_is_measured_next_to_the_guests_own_relay() {
        let usual: Vec<_> = LINEUP.iter().flat_map(|entry| entry.usual).collect();
        assert!(GUESTS.iter().all(|device| usual.contains(&device)));
        let quick = |repeats| Asked { quick: true, repeats, ..Asked::default() };
        let full = Asked { repeats: 3, ..Asked::default() };
        for device in IN_GUEST {
            assert_eq!(places(device, &quick(3)), [("icmp".to_owned(), 4.0)], "{device}");
            assert_eq!(places(device, &quick(3)), places("linux-sit", &quick(3)), "at the same place");
            assert_eq!(places(device, &quick(1)), [], "{device}: there is no ratio of one round");
            let expected: Vec<_> = ALL.iter().map(|hosts| ("icmp".to_owned(), *hosts)).collect();
            assert_eq!(places(device, &full), expected, "{device}");
            let named = Asked { devices: vec![device.to_owned()], ..full.clone() };
            assert!(places(device, &named).len() > ALL.len(), "{device} was named");
        }
    }
}
