//! The plan of measurements, and the description.

use super::findings::findings;
use super::http::Http;
use super::icmp::{Icmp, time as time_of_states};
use super::published::PUBLISHED;
use super::topology::{ADDRESSES, DRAWING, DRAWN};
use super::udp::{Udp, time};
use super::vpn::{Vpn, files};
use crate::analyse::{About, Column, Drawing, Finding, Headline, Table, Today};
use crate::device::{Needs, TaskKind, find};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::series::has_every_series;
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Nat642014;

const HTTP: &[Column] = &[
    Column { value: "files", title: "files" },
    Column { value: "response", title: "response" },
    Column { value: "time-of-256", title: "time of 256 files" },
    Column { value: "cpu", title: "CPU" },
    Column { value: "cpu-per-file", title: "CPU a file" },
    Column { value: "files-per-cpu-second", title: "files" },
    Column { value: "loss", title: "loss" },
];

const fn http(title: &'static str, series: &'static str) -> Table {
    Table { title, series, axes: &["octets"], columns: HTTP }
}

const ABOUT: About = About {
    name: "nat64-2014",
    question: "What do translators from IPv6 to IPv4 lose, and how long do packets and files take, with one to eight clients?",
    source: "S. Répás, P. Farnadi, G. Lencse: Performance and stability analysis of free NAT64 implementations with different protocols, 2014",
    topology: DRAWING,
    notes: &[
        "Requests are counted once, as in the paper; packets both ways are twice as many.",
        "The translation prefix is the paper's but for its bits 64 to 71, which have to be zero (RFC 6052 §2.2).",
        "Each visit of an address has an identifier of its own, and a session is kept for a minute: so the stateful translator has nine \
         addresses. Masquerade has one, as in the paper; its identifiers need to be distinct for each destination only.",
        "Each flow pauses between two addresses so that one client offers at most a quarter of the device's capacity, which is measured \
         first with eight clients that do not pause.",
        "A closed loop does not overload a device, so no statement is made on the shape of the response time.",
        "The device restarts before each row; the kernel's table of connections stays, and its size and what it refused are in the data.",
        "UDP is sent on flows that exist before, a tenth faster than the most that the device forwarded in a short search, and at six tenths of the rate \
         at which the tester's core makes frames at most: forwarded is what arrived. What the device's links receive is worked on by threads on \
         the device's core.",
        "Each client has a tunnel of OpenVPN with processes of its own at both ends, in which four `wget` fetch at the same time, each over a \
         connection that stays where the server lets it; the translator sees one long UDP flow of each client. OpenVPN and `wget` share the tester's core, so the tester is usually at its limit: compare the CPU time for a file.",
        "`wget` does not say how long a file takes. The response time through a tunnel is that of single files which a client of our own fetches meanwhile in \
         the first tunnel, ten a second at most, each over a connection of its own, whose time is included. Files that `wget` does not get are lost.",
        "The kernel's row is native IPv6 forwarding in the same network; its CPU time is that of its core on received packets.",
        "PF of the paper had room for 40,000 states, and eight clients need 524,288 within the time for which one is kept. The series with a limit gives it to \
         devices that have a pool, a remote one as STATES, times the scale, but 1,024 at least: sessions that have no room are refused, and Sixway's refused requests are counted. It ends after 2 s, or a minute more at scale 1. The kernel's own \
         limit (nf_conntrack_max) is the machine's and not a namespace's, so that masquerade is not limited here; it is in run.json.",
        "At scale 1 a row has for each client 655,360 echo requests, 65,536 files, or 16,384 files through a tunnel, as in the paper.",
    ],
    tables: &[
        Table {
            title: "ICMP",
            series: "icmp",
            axes: &["clients"],
            columns: &[
                Column { value: "loss", title: "loss" },
                Column { value: "response", title: "response" },
                Column { value: "response-max", title: "longest" },
                Column { value: "requests", title: "requests" },
                Column { value: "packets-both-ways", title: "packets both ways" },
                Column { value: "cpu", title: "CPU" },
                Column { value: "cpu-per-packet", title: "CPU a packet" },
                Column { value: "memory", title: "memory" },
                Column { value: "late", title: "late" },
                Column { value: "connections", title: "tracked" },
                Column { value: "insert-failed", title: "not tracked" },
            ],
        },
        Table {
            title: "ICMP, eight clients, with a limit of sessions (at scale 1)",
            series: "icmp-states",
            axes: &["states"],
            columns: &[
                Column { value: "limit", title: "limit" },
                Column { value: "refused", title: "requests refused" },
                Column { value: "loss", title: "loss" },
                Column { value: "response", title: "response" },
                Column { value: "requests", title: "requests" },
                Column { value: "cpu", title: "CPU" },
                Column { value: "cpu-per-packet", title: "CPU a packet" },
                Column { value: "memory", title: "memory" },
            ],
        },
        Table {
            title: "UDP in frames that the kernel makes, a tenth more than can be forwarded (not in the paper)",
            series: "udp",
            axes: &["flows"],
            columns: &[
                Column { value: "ceiling", title: "the tester's limit" },
                Column { value: "capacity", title: "the most in a trial" },
                Column { value: "offered", title: "offered" },
                Column { value: "forwarded", title: "forwarded" },
                Column { value: "cpu-per-packet", title: "CPU a packet" },
                Column { value: "packets-per-cpu-second", title: "packets" },
                Column { value: "loss", title: "loss" },
            ],
        },
        http("wget through a tunnel of OpenVPN over UDP, one client", "vpn-1"),
        http("wget through tunnels of OpenVPN over UDP, two clients", "vpn-2"),
        http("wget through tunnels of OpenVPN over UDP, four clients", "vpn-4"),
        http("wget through tunnels of OpenVPN over UDP, eight clients", "vpn-8"),
        http("HTTP, one client", "http-1"),
        http("HTTP, two clients", "http-2"),
        http("HTTP, four clients", "http-4"),
        http("HTTP, eight clients", "http-8"),
    ],
    published: PUBLISHED,
};

const HEADLINES: &[Headline] = &[
    Headline {
        statement: "PF over TAYGA: requests a second with eight clients",
        published: 4.35,
        today: Today::Ratio {
            series: "icmp",
            point: &[("clients", 8.0)],
            value: "requests",
            devices: ("sixway", "tayga-masquerade"),
        },
    },
    Headline {
        statement: "PF over TAYGA: requests with eight clients (here: packets for each second of CPU time)",
        published: 4.35,
        today: Today::Ratio {
            series: "icmp",
            point: &[("clients", 8.0)],
            value: "packets-per-cpu-second",
            devices: ("sixway", "tayga-masquerade"),
        },
    },
    Headline {
        statement: "TAYGA over PF: response time with eight clients",
        published: 8.9,
        today: Today::Ratio {
            series: "icmp",
            point: &[("clients", 8.0)],
            value: "response",
            devices: ("tayga-masquerade", "sixway"),
        },
    },
    Headline {
        statement: "PF over TAYGA: files of 12,800 octets a second by HTTP, eight clients (here: for each second of CPU time)",
        published: 3.5,
        today: Today::Ratio {
            series: "http-8",
            point: &[("octets", 12_800.0)],
            value: "files-per-cpu-second",
            devices: ("sixway", "tayga-masquerade"),
        },
    },
    Headline {
        statement: "TAYGA over PF: response time by HTTP, files of 12,800 octets, eight clients",
        published: 3.45,
        today: Today::Ratio {
            series: "http-8",
            point: &[("octets", 12_800.0)],
            value: "response",
            devices: ("tayga-masquerade", "sixway"),
        },
    },
    by_vpn(
        "PF over TAYGA: files of 100 octets by OpenVPN over UDP (here: for each second of CPU time)",
        2.95,
        &[("octets", 100.0)],
    ),
    by_vpn(
        "PF over TAYGA: files of 12,800 octets by OpenVPN over UDP (here: for each second of CPU time)",
        3.2,
        &[("octets", 12_800.0)],
    ),
    Headline {
        statement: "TAYGA over PF: response time by OpenVPN over UDP, files of 12,800 octets, eight clients",
        published: 3.18,
        today: Today::Ratio {
            series: "vpn-8",
            point: &[("octets", 12_800.0)],
            value: "response",
            devices: ("tayga-masquerade", "sixway"),
        },
    },
];

const fn by_vpn(statement: &'static str, published: f64, point: &'static [(&'static str, f64)]) -> Headline {
    let (value, devices) = ("files-per-cpu-second", ("sixway", "tayga-masquerade"));
    Headline { statement, published, today: Today::Ratio { series: "vpn-8", point, value, devices } }
}

const LINEUP: &[Entry] = &[
    Entry { task: TaskKind::Nat64, usual: &["sixway", "sixway-xdp", "sixway-stateless", "tayga-masquerade"] },
    Entry { task: TaskKind::Forward, usual: &["kernel"] },
];

/// PF's limit in the paper.
const STATES: f64 = 40_000.0;
const ALL: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
const QUICK: [f64; 2] = [1.0, 8.0];
const SIZES: [f64; 8] = [100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0, 6_400.0, 12_800.0];
/// Those of one client and of eight, each a session.
const FLOWS: [f64; 2] = [8.0, 64.0];
const QUICK_SIZES: [f64; 2] = [100.0, 12_800.0];

/// The load and the number of clients of a series such as `http-8`.
fn clients(series: &str) -> Option<(&str, usize)> {
    let (load, clients) = series.split_once('-')?;
    Some((load, clients.parse().ok()?))
}

impl Experiment for Nat642014 {
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
        &["clients", "flows", "octets", "protocols", "series", "size", "states"]
    }

    /// `--set protocols=icmp,states,udp,http,vpn` chooses; `--set series=all` has all of them.
    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let clients = asked.numbers("clients", if asked.quick { &QUICK } else { &ALL })?;
        if let Some(wrong) = clients.iter().find(|clients| !ALL.contains(clients)) {
            return Err(format!("--set clients: {wrong} is not 1, 2, 4 or 8"));
        }
        let octets = asked.numbers("octets", if asked.quick { &QUICK_SIZES } else { &SIZES })?;
        let states = asked.numbers("states", &[STATES])?;
        if let Some(wrong) = states.iter().find(|states| !(1_024.0..=1e7).contains(*states)) {
            return Err(format!("--set states: {wrong} is not from 1024 to 10000000"));
        }
        let has_states = has_every_series(asked) || asked.set.contains_key("states");
        let usual = match asked.quick && !has_states {
            true => "icmp,udp,http,vpn",
            false => "icmp,states,udp,http,vpn",
        };
        let protocols = asked.set.get("protocols").map_or(usual, String::as_str);
        let mut places: Vec<(String, &str, f64)> = Vec::new();
        for protocol in protocols.split(',') {
            match protocol {
                "icmp" => {
                    places.extend(clients.iter().map(|clients| ("icmp".to_owned(), "clients", *clients)))
                }
                "states" => {
                    places.extend(states.iter().map(|states| ("icmp-states".to_owned(), "states", *states)))
                }
                "udp" => places.extend(
                    asked
                        .numbers("flows", if asked.quick { &FLOWS[1..] } else { &FLOWS })?
                        .into_iter()
                        .map(|flows| ("udp".to_owned(), "flows", flows)),
                ),
                "http" | "vpn" => places.extend(clients.iter().flat_map(|clients| {
                    octets.iter().map(move |octets| (format!("{protocol}-{clients}"), "octets", *octets))
                })),
                other => {
                    return Err(format!("--set protocols: {other} is not icmp, states, udp, http or vpn"));
                }
            }
        }
        let cell = |device: &str, (series, axis, value): &(String, &str, f64)| Cell {
            experiment: ABOUT.name.to_owned(),
            series: series.clone(),
            device: device.to_owned(),
            point: BTreeMap::from([((*axis).to_owned(), *value)]),
            repeat: 0,
        };
        let is_limited =
            |name: &str| find(name).is_none_or(|it| it.has_pool() && it.tasks().contains(&TaskKind::Nat64));
        let takes_part = |name: &str, series: &str| series != "icmp-states" || is_limited(name);
        let of_place = |place: &(String, &str, f64)| -> Vec<Cell> {
            let devices = devices.iter().filter(|device| takes_part(device, &place.0));
            devices.map(|device| cell(device, place)).collect()
        };
        Ok(places.iter().flat_map(of_place).collect())
    }

    /// At scale 1 one client is held to a quarter of a device's 65,000 requests a second; files come at about 2,000 a second.
    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        match clients(&cell.series) {
            Some(("http", clients)) => 0.7 + asked.scale * clients as f64 * ADDRESSES as f64 / 2_000.0,
            Some((_, clients)) => {
                let clients = clients as f64;
                0.6 + 0.2 * clients + files(asked.scale) as f64 * clients / 1_000.0
            }
            None if cell.series == "udp" => 3.7 + time(asked.scale).as_secs_f64(),
            None if cell.series == "icmp-states" => 3.5 + time_of_states(asked.scale).as_secs_f64(),
            None => 1.3 + asked.scale * f64::max(40.0, cell.at("clients") * 10.0),
        }
    }

    fn build(&self, cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        match clients(&cell.series) {
            Some(("http", clients)) => Ok(Box::new(Http::build(clients, line)?)),
            Some((_, clients)) => Ok(Box::new(Vpn::build(clients, line)?)),
            None if cell.series == "udp" => Ok(Box::new(Udp::build(line)?)),
            None => Ok(Box::new(Icmp::build(line, cell.point.get("states").copied())?)),
        }
    }

    fn built_for(&self, series: &str) -> &'static [&'static str] {
        if series == "icmp-states" { &["states"] } else { &[] }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn series(set: &[(&str, &str)], quick: bool) -> Vec<String> {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let asked = Asked { set, quick, ..Asked::default() };
        let cells = Nat642014.cells(&asked, &["sixway", "tayga-masquerade", "kernel"]).unwrap();
        let limited = cells.iter().filter(|cell| cell.series == "icmp-states");
        limited.map(|cell| format!("{} {}", cell.device, cell.at("states"))).collect()
    }

    #[test]
    fn the_papers_limit_of_states_is_a_series_of_devices_that_have_a_limit() {
        assert_eq!(series(&[], false), ["sixway 40000"]);
        assert_eq!(series(&[], true), [""; 0]);
        assert_eq!(series(&[("states", "20000,40000")], true), ["sixway 20000", "sixway 40000"]);
        assert_eq!(Nat642014.built_for("icmp-states"), ["states"]);
        let few = Asked { set: [("states".to_owned(), "5".to_owned())].into(), ..Asked::default() };
        assert!(Nat642014.cells(&few, &["sixway"]).is_err());
    }

    #[test]
    fn tunnels_have_as_many_clients_as_http() {
        let cells = |quick| Nat642014.cells(&Asked { quick, ..Asked::default() }, &["sixway"]).unwrap();
        for (quick, expected) in [(false, &ALL[..]), (true, &QUICK[..])] {
            for count in expected {
                let name = format!("vpn-{count}");
                assert!(cells(quick).iter().any(|cell| cell.series == name), "{name}");
                assert_eq!(clients(&name), Some(("vpn", *count as usize)));
            }
        }
        assert_eq!((clients("icmp"), clients("http-4")), (None, Some(("http", 4))));
    }
}
