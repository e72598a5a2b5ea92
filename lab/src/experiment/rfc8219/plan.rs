//! What is measured, and what it is about.

use super::burst::Bursts;
use super::concurrent::{Concurrent, MOST as MOST_TOGETHER, attempts};
use super::cores::{CORES, Workers};
use super::dns64::{self, Resolution};
use super::dual;
use super::findings::findings;
use super::frame_sizes::{QUICK, SIZES};
use super::frames::FrameBench;
use super::mixed::MixedBench;
use super::recovery::Recovery;
use super::reset::Reset;
use super::rules::{MOST as MOST_RULES, RULES};
use super::search::trials;
use super::stage::{Bench, given, precision, time};
use super::stateful::{Stateful, filling};
use super::tables::{BURSTS, CONCURRENT, CORES_TABLE, DOUBLE, RECOVERY, RESET, TCP, THROUGHPUT};
use super::tcp::TcpConnections;
use super::topology::{DRAWING, DRAWN};
use crate::affinity::cpus;
use crate::analyse::{About, Column, Drawing, Finding, Table};
use crate::device::{self, Needs, TaskKind};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part};
use crate::experiment::series::series;
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Rfc8219;

const ABOUT: About = About {
    name: "rfc8219",
    question: "What are the throughput, frame loss rate, latency and delay variation of a translator, by the method of RFC 8219?",
    source: "RFC 8219 with RFC 2544, RFC 3511 and RFC 5180; the rate of new connections after RFC 9693",
    topology: DRAWING,
    notes: &[
        "Frames are UDP packets on 16 flows, and the far end sends each back: both directions have the same rate, and a frame is lost \
         if either direction loses it.",
        "Sizes are those of frames with IPv6 on Ethernet, 84 octets at least; with IPv4 a frame has 20 octets less.",
        "Throughput is given for no loss, and for a given loss: 0.01 %, or that of --set given. On a virtual machine one pause of the hypervisor loses frames at any rate. \
         A trial with more than 1 % of stolen time is repeated, three times at most.",
        "The tester's own limit is measured first for each size; a search that passes there says nothing of the device.",
        "A trial takes a minute at scale 1, 0.3 s at least; its length is in the data, and all trials of a search.",
        "Latency is that of store and forward devices (RFC 1242), of the way there and back; the report has the median and the 99.9th \
         percentile, and their difference from the least latency is the packet delay variation.",
        "Frames that the kernel makes come back by a program at the far end. What the device's links receive is worked on by threads on \
         the device's core, and what the tester's links receive by threads on the tester's.",
        "For RFC 9693, one frame of each flow establishes a connection in an empty table, and the far end, which has noted where each came \
         from, sends one frame back over each: only connections over which it comes back count. The kernel's table is deleted without a \
         restart; other devices restart.",
        "Two devices are a B4 and an AFTR of DS-Lite, or a CLAT and a PLAT of 464XLAT, between IPv4 ends; their CPU time is that of both.",
        "A burst has no gaps but those of the kernel that makes it, and goes one way. A device that forwards more slowly than the burst comes \
         keeps the rest in queues, the first of which is the link's own ring: 256 frames in front of every device. A burst of about 300 frames \
         is the ring's, and says nothing of the device.",
        "In the recovery's overload 110 % of the throughput with the given loss is offered, or the tester's limit if that is less; then half of \
         it. The recovery is the time from then to that at which the last lost frame was due. Without a loss there is none.",
        "A reset stops and starts the device's process under load at the throughput with the given loss. The reset time is the longest time without \
         a frame. In the reset time by loss as many frames are due as were lost: what it has more is loss before or after.",
        "With several workers the device has as many CPUs, after the tester's. If the machine has no more, the last worker shares the \
         tester's: such a row is tester-bound, and only its CPU time of a frame says something.",
        "The mapping of the tester's near end is the last of all; the others are of hosts that do not send.",
        "A rate of queries is found by doubling, then by halves. A trial takes a second at least. It fails if a query is not answered within a second, or if \
         answers come more slowly than queries, so that some are left at the end. With 1 in the column of the tester's limit, all queries were answered at the \
         highest rate that the sender reaches: then the resolver answers that many or more, and the row is tester-bound.",
        "The rate of new connections is the highest at which each of 2,000 new flows gets an answer to its first frame; that of TCP the highest \
         at which each of 2,000 connections is established, carries an octet each way and is closed, with 64 at the same time.",
        "Concurrent TCP connections are opened at 10,000 a second (--set attempts), each by a handshake, by programs of the tester's links instead of sockets. \
         When all are open, each carries 16 octets there and the same back; the far end answers only what comes from the address and port of the \
         connection's SYN. What has no answer is sent again, six times at most. A row is device-bound if what was left of a number of connections had no answer \
         twice, one after the other, and again when they were tried once more; and tester-bound if all that were tried were open, the pool was full that the lab gave to the device, or the rate was too high.",
        "By connections the device restarts for each number. They are established and validated 131,072 at a time; more than 2,000,000 in 200 seconds each, those of which a frame is lost again at half the rate. A number that \
         the machine has no memory for, or no room in the kernel's table, is a row without figures that says so.",
    ],
    tables: &[
        Table { title: "Throughput", series: "throughput", axes: &["frame"], columns: THROUGHPUT },
        Table {
            title: "Throughput of two devices, a B4 and an AFTR of DS-Lite",
            series: "dual",
            axes: &["frame"],
            columns: THROUGHPUT,
        },
        DOUBLE,
        CORES_TABLE,
        Table {
            title: "Throughput of frames of 84 octets by explicit address mappings",
            series: "rules",
            axes: &["rules"],
            columns: THROUGHPUT,
        },
        Table {
            title: "Throughput under frames that the kernel makes",
            series: "frames",
            axes: &["frame"],
            columns: THROUGHPUT,
        },
        Table {
            title: "Frame loss rate, by the share of the tester's highest rate in percent",
            series: "frame-loss",
            axes: &["percent", "frame"],
            columns: &[
                Column { value: "offered", title: "offered" },
                Column { value: "forwarded", title: "forwarded" },
                Column { value: "loss", title: "loss" },
            ],
        },
        Table {
            title: "Latency and delay variation at the throughput",
            series: "latency",
            axes: &["frame"],
            columns: &[
                Column { value: "rate", title: "rate" },
                Column { value: "typical", title: "typical latency" },
                Column { value: "worst", title: "worst-case latency" },
                Column { value: "pdv", title: "packet delay variation" },
                Column { value: "ipdv-min", title: "IPDV, least" },
                Column { value: "ipdv-median", title: "IPDV, median" },
                Column { value: "ipdv-max", title: "IPDV, greatest" },
                Column { value: "jitter", title: "jitter (RFC 3550)" },
            ],
        },
        BURSTS,
        RECOVERY,
        RESET,
        Table {
            title: "Connections established and validated (RFC 9693 §4.5)",
            series: "establishment",
            axes: &["connections"],
            columns: &[
                Column { value: "established-rate", title: "connections" },
                Column { value: "cpu-per-connection", title: "CPU a connection" },
                Column { value: "trials", title: "trials" },
            ],
        },
        Table {
            title: "Connections torn down (RFC 9693 §4.8)",
            series: "tear-down",
            axes: &["connections"],
            columns: &[
                Column { value: "torn-down", title: "connections" },
                Column { value: "deletion", title: "deletion" },
                Column { value: "deletion-of-none", title: "deletion of an empty table" },
                Column { value: "left", title: "left" },
                Column { value: "established-again", title: "established again" },
            ],
        },
        Table {
            title: "Capacity of the table (RFC 9693 §4.9), by the most that was tried",
            series: "capacity",
            axes: &["connections"],
            columns: &[Column { value: "capacity", title: "connections" }],
        },
        Table {
            title: "Throughput by connections (RFC 9693 §5.1)",
            series: "sessions",
            axes: &["connections"],
            columns: &[
                Column { value: "throughput", title: "frames, no loss" },
                Column { value: "throughput-given", title: "frames, given loss" },
                Column { value: "ceiling", title: "the tester's limit" },
                Column { value: "cpu-per-packet", title: "CPU a frame" },
                Column { value: "frames-per-cpu-second", title: "frames" },
            ],
        },
        Table {
            title: "Throughput with native traffic, by its share in percent",
            series: "native",
            axes: &["percent", "frame"],
            columns: &[
                Column { value: "throughput-given", title: "frames, given loss" },
                Column { value: "ceiling", title: "the tester's limit" },
                Column { value: "cpu-per-packet", title: "CPU a frame" },
            ],
        },
        Table {
            title: "DNS64, names that are not in the cache and have no AAAA record",
            series: "dns64",
            axes: &["cached"],
            columns: &[
                Column { value: "queries", title: "queries" },
                Column { value: "at-ceiling", title: "at the tester's limit" },
                Column { value: "cpu", title: "CPU" },
                Column { value: "cpu-per-query", title: "CPU a query" },
                Column { value: "memory", title: "memory" },
                Column { value: "self-test", title: "the tester's self-test" },
                Column { value: "trials", title: "trials" },
            ],
        },
        CONCURRENT,
        TCP,
        Table {
            title: "New connections",
            series: "connections",
            axes: &["flows"],
            columns: &[
                Column { value: "connections-rate", title: "new connections" },
                Column { value: "ceiling", title: "the tester's limit" },
                Column { value: "cpu-per-connection", title: "CPU a connection" },
                Column { value: "loss", title: "failures" },
            ],
        },
    ],
    published: &[],
};

const LINEUP: &[Entry] = &[
    Entry { task: TaskKind::Nat64, usual: &["sixway", "sixway-tc", "sixway-xdp", "tayga-masquerade"] },
    Entry { task: TaskKind::Nat44, usual: &["kernel-masquerade"] },
    Entry { task: TaskKind::Forward, usual: &["kernel"] },
    Entry { task: TaskKind::Siit, usual: &["tayga"] },
    Entry { task: TaskKind::Dns64, usual: &["unbound", "bind", "pdns-recursor"] },
];

/// Devices that Sixway is compared with, and what a quick run has of them: the smallest frames, made by the kernel.
const PEERS: &[&str] = &["sixway-tc", "sixway-xdp"];
const BRIEF: (&str, f64) = ("frames", 84.0);

const SERIES: [&str; 20] = [
    "throughput",
    "dual",
    "double",
    "cores",
    "rules",
    "frames",
    "frame-loss",
    "latency",
    "back-to-back",
    "recovery",
    "reset",
    "connections",
    "tcp",
    "tcp-capacity",
    "establishment",
    "tear-down",
    "capacity",
    "sessions",
    "native",
    "dns64",
];
/// What a quick run leaves out.
const NOT_QUICK: [&str; 5] = ["double", "cores", "recovery", "tcp", "tcp-capacity"];
/// Shares of native traffic (RFC 8219 §5.3); none has a series of its own.
const NATIVE: [f64; 3] = [10.0, 50.0, 90.0];
/// What has one frame or connection of each flow; the first four are RFC 9693's.
const OF_CONNECTIONS: [&str; 5] = ["establishment", "tear-down", "capacity", "sessions", "tcp-capacity"];
/// Connections of the series of RFC 9693: those of a trial, the most of a table, and those of its scalability.
const CONNECTIONS: [f64; 1] = [4_000.0];
const MOST: [f64; 1] = [65_536.0];
const SESSIONS: [f64; 5] = [1_000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0];
const PERCENT: [f64; 10] = [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0];
/// 1,024 ports of 16,384 addresses.
const MOST_FLOWS: f64 = 16_777_216.0;
const QUICK_PERCENT: [f64; 3] = [100.0, 50.0, 10.0];
/// The smallest size alone.
const ONE: [f64; 1] = [84.0];

impl Experiment for Rfc8219 {
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
        &[
            "attempts",
            "capacity",
            "connections",
            "frame",
            "given",
            "native",
            "percent",
            "precision",
            "rules",
            "series",
            "sessions",
            "tcp-capacity",
            "workers",
        ]
    }

    /// `--set series=throughput,latency` leaves the others out.
    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        precision(asked)?;
        given(asked)?;
        attempts(asked)?;
        let frames = asked.numbers("frame", if asked.quick { &QUICK } else { &SIZES })?;
        if let Some(wrong) = frames.iter().find(|frame| !(84.0..=1_518.0).contains(*frame)) {
            return Err(format!("--set frame: {wrong} is not from 84 to 1518"));
        }
        let percent = asked.numbers("percent", if asked.quick { &QUICK_PERCENT } else { &PERCENT })?;
        let named = |pairs: &[(&str, f64)]| -> BTreeMap<String, f64> {
            pairs.iter().map(|(axis, value)| ((*axis).to_owned(), *value)).collect()
        };
        let mut places = Vec::new();
        for series in series(asked, &SERIES, &NOT_QUICK)? {
            match series {
                "frame-loss" => {
                    let sizes = asked.numbers("frame", if asked.quick { &ONE } else { &frames })?;
                    places.extend(percent.iter().flat_map(|percent| {
                        let point =
                            |frame: &f64| (series, named(&[("percent", *percent), ("frame", *frame)]));
                        sizes.iter().map(point).collect::<Vec<_>>()
                    }));
                }
                "establishment" | "tear-down" | "capacity" | "sessions" | "tcp-capacity" => {
                    let (key, usual, quick) = match series {
                        "capacity" => ("capacity", &MOST[..], [2_048.0]),
                        "sessions" => ("sessions", &SESSIONS[..], [1_000.0]),
                        "tcp-capacity" => ("tcp-capacity", &[MOST_TOGETHER][..], [2_048.0]),
                        _ => ("connections", &CONNECTIONS[..], [1_000.0]),
                    };
                    let counts = asked.numbers(key, if asked.quick { &quick } else { usual })?;
                    if let Some(wrong) = counts.iter().find(|count| !(8.0..=MOST_FLOWS).contains(*count)) {
                        return Err(format!("--set {key}: {wrong} is not from 8 to {MOST_FLOWS}"));
                    }
                    places.extend(counts.iter().map(|count| (series, named(&[("connections", *count)]))));
                }
                "native" => {
                    let native =
                        asked.numbers("native", if asked.quick { &NATIVE[1..2] } else { &NATIVE })?;
                    if let Some(wrong) = native.iter().find(|share| !(1.0..=99.0).contains(*share)) {
                        return Err(format!("--set native: {wrong} is not from 1 to 99"));
                    }
                    let frame = frames.first().copied().unwrap_or(ONE[0]);
                    places.extend(
                        native.iter().map(|share| (series, named(&[("percent", *share), ("frame", frame)]))),
                    );
                }
                "dual" => places.extend(
                    frames
                        .iter()
                        .filter(|frame| **frame <= dual::LARGEST)
                        .map(|frame| (series, named(&[("frame", *frame)]))),
                ),
                "back-to-back" | "recovery" | "reset" => {
                    let all = series == "back-to-back" && !asked.quick;
                    let usual: &[f64] = if all { &SIZES } else { &ONE };
                    let sizes = asked.numbers("frame", usual)?;
                    places.extend(sizes.iter().map(|frame| (series, named(&[("frame", *frame)]))));
                }
                "cores" => {
                    let has = |workers: &f64| *workers <= cpus() as f64;
                    let usual: Vec<f64> = CORES.into_iter().filter(has).collect();
                    let counts = asked.numbers("workers", &usual)?;
                    if let Some(wrong) = counts.iter().find(|count| **count < 1.0 || !has(count)) {
                        return Err(format!("--set workers: {wrong} is not from 1 to {}", cpus()));
                    }
                    places.extend(counts.iter().map(|count| (series, named(&[("workers", *count)]))));
                }
                "rules" => {
                    let counts = asked.numbers("rules", if asked.quick { &RULES[2..] } else { &RULES })?;
                    if let Some(wrong) = counts.iter().find(|count| !(1.0..=MOST_RULES).contains(*count)) {
                        return Err(format!("--set rules: {wrong} is not from 1 to {MOST_RULES}"));
                    }
                    places.extend(counts.iter().map(|count| (series, named(&[("rules", *count)]))));
                }
                "dns64" => places.push((series, named(&[("cached", 0.0)]))),
                "connections" | "tcp" => places.push((series, named(&[("flows", 2_000.0)]))),
                _ => places.extend(frames.iter().map(|frame| (series, named(&[("frame", *frame)])))),
            }
        }
        let cell = |device: &str, (series, point): &(&str, BTreeMap<String, f64>)| Cell {
            experiment: ABOUT.name.to_owned(),
            series: (*series).to_owned(),
            device: device.to_owned(),
            point: point.clone(),
            repeat: 0,
        };
        // Plain forwarding has no connections.
        let takes_part = |name: &&str, series: &str| {
            let can = |task: TaskKind| device::find(name).is_none_or(|device| device.tasks().contains(&task));
            let forwards = can(TaskKind::Nat64) || can(TaskKind::Nat44);
            match series {
                "dns64" => can(TaskKind::Dns64),
                "native" => can(TaskKind::Nat64),
                "rules" => can(TaskKind::Siit),
                "dual" => can(TaskKind::Aftr) && can(TaskKind::B4),
                "double" => can(TaskKind::Clat) && can(TaskKind::Nat64),
                "cores" => device::find(name).is_none_or(|device| device.has_workers()),
                // The kernel has no process that could be restarted.
                "reset" => can(TaskKind::Nat64),
                of if OF_CONNECTIONS.contains(&of) => forwards,
                _ => forwards || can(TaskKind::Forward),
            }
        };
        let is_chosen =
            |name: &str, (series, point): &(&str, BTreeMap<String, f64>)| match part(name, PEERS, asked) {
                Part::Whole => true,
                Part::Brief => (*series, point.get("frame")) == (BRIEF.0, Some(&BRIEF.1)),
                Part::Nothing => false,
            };
        let of_place = |place: &(&str, BTreeMap<String, f64>)| -> Vec<Cell> {
            let chosen = devices.iter().filter(|it| takes_part(it, place.0) && is_chosen(it, place));
            chosen.map(|it| cell(it, place)).collect()
        };
        Ok(places.iter().flat_map(of_place).collect())
    }

    /// A trial of frames that the kernel makes waits for those that are lost; nearly all trials with no loss admitted have some.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        let time = time(asked.scale).as_secs_f64();
        let trials = precision(asked).map_or(1.0, trials);
        let filled = cell.at("connections") / filling(cell.at("connections"));
        match cell.series.as_str() {
            "throughput" | "dual" | "double" | "rules" => 0.8 + 2.0 * trials * (time + 0.1),
            "frames" | "cores" | "sessions" => 1.4 + 2.0 * filled + 2.0 * trials * (time + 0.4),
            "latency" | "native" => 0.8 + trials * (time + 0.1),
            "recovery" => 1.5 + trials * (time + 0.3) + 2.0 * time,
            "reset" => 3.3 + trials * (time + 0.3),
            // The shortest bursts are doubled until they are too long, and half of the others lose something.
            "back-to-back" => 1.4 + 0.25 * trials,
            "frame-loss" => 0.8 + time + 0.1,
            "establishment" => 0.8 + trials * (0.4 + 2.0 * filled),
            "capacity" => 1.0 + 4.0 * filled,
            "tear-down" => 1.3 + 7.0 * filled,
            "tcp" => 2.0 + trials * 0.5,
            // All numbers by doubling together are twice the last one, each of which is opened and asked.
            "tcp-capacity" => {
                let most = cell.at("connections");
                let doublings = 1.0 + (most / 1_024.0).log2().max(0.0);
                1.5 + 0.9 * doublings + 4.0 * most / attempts(asked).unwrap_or(1.0)
            }
            // The rate is doubled first, which finds the limit to a half; a trial that fails waits for what is lost.
            "dns64" => 0.3 + trials * (dns64::time(asked.scale).as_secs_f64() + 0.3),
            _ => 0.8 + trials * 0.15,
        }
    }

    fn built_for(&self, series: &str) -> &'static [&'static str] {
        match series {
            "rules" => &["rules"],
            "cores" => &["workers"],
            // The largest tables need a larger pool.
            "sessions" | "tcp-capacity" => &["connections"],
            _ => &[],
        }
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        match cell.series.as_str() {
            "frames" => Ok(Box::new(FrameBench::build(line)?)),
            "back-to-back" => Ok(Box::new(Bursts::build(line)?)),
            "recovery" => Ok(Box::new(Recovery::build(line)?)),
            "reset" => Ok(Box::new(Reset::build(line)?)),
            "cores" => Ok(Box::new(Workers::build(cell, line)?)),
            "tcp" => Ok(Box::new(TcpConnections::build(line)?)),
            "tcp-capacity" => Ok(Box::new(Concurrent::build(cell, line)?)),
            "dns64" => Ok(Box::new(Resolution::build(line)?)),
            "native" => Ok(Box::new(MixedBench::build(line)?)),
            series if OF_CONNECTIONS.contains(&series) => Ok(Box::new(Stateful::build(cell, line)?)),
            _ => Ok(Box::new(Bench::build(cell, line)?)),
        }
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}
