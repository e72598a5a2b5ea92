//! The plan of measurements, and the description.

use super::findings::findings;
use super::form::Form;
use super::published::{HEADLINES, PUBLISHED};
use super::scene::UNSHAPED;
use super::stage::Site;
use super::topology::{DRAWING, DRAWN};
use crate::analyse::{About, Column, Drawing, Figure, Finding, Headline, Kind, Table};
use crate::device::{Device, Needs, TaskKind, find};
use crate::experiment::contract::{Entry, Experiment, Line, Stage};
use crate::experiment::peers::{Part, part, times_as_long};
use crate::experiment::series::series;
use crate::failure::Result;
use crate::results::{Asked, Cell, Results};
use std::collections::BTreeMap;

/// The experiment.
pub struct Gateway2012;

const fn column(value: &'static str, title: &'static str) -> Column {
    Column { value, title }
}

const CPU: Column = column("cpu", "CPU of the boxes");
const MEMORY: Column = column("memory", "memory of the boxes");
const PAYLOAD: Column = column("background-payload", "background, payload");
const WIRE: Column = column("background-wire", "background, on the wire");

const ABOUT: About = About {
    name: "gateway-2012",
    question: "What does a site gain if its 6to4 gateway and its NAT are one box, and how far is it from plain forwarding?",
    source: "S. Tsetse, A. Wijesinha, R. Karne, A. Loukili: A 6to4 gateway with co-located NAT, 2012",
    topology: DRAWING,
    notes: &[
        "Forms: 1 co-located, the tunnel's packets leave past the NAT; 2 decoupled: 6to4 in a box behind the NAT, which forwards protocol 41; 3 co-located, the tunnel's packets pass the NAT of the same box; 4 decoupled, with Linux' NAT and the device's 6to4; 5 decoupled, with the device's NAT and Linux' 6to4.",
        "Percentages are slower / faster − 1, as in the paper: 1.72 ms against 0.98 ms are 76 %.",
        "Version 6 is IPv6 through the tunnel, version 4 is IPv4 through the NAT. The kernel's masquerade has no tunnel, so background traffic passes it as native IPv6; plain forwarding has neither.",
        "Links: 100 Mbit/s, with a bucket of one frame; or 0, which is no limit. A frame that finds a link unused passes without the 0.12 ms that 1,514 octets take on a wire of that rate, and the next one waits for them: times have what a queue adds, but not the wire's own time. No host sends frames of several segments. Each measure is taken by a bare wire between client and server, too, with the same limit and the same background; what the boxes add is the difference of the means.",
        "Background is IPv6 from client to server at a constant rate of IP packets, of 1,000 octets each, and with 50 Mbit/s also of 200, 500 and 1,400; payload and wire rate are printed, the latter with the tunnel's header, Ethernet's, preamble and gap.",
        "Times of connections, of web servers and of calls are those of captures: at the client's link from SYN to the ACK that completes the connection, from GET to the first octets of 200, from INVITE to 200 OK.",
        "A page is a text of 4,000 octets and images of 25,000 at most, all over one connection.",
        "Over IPv4 the caller's messages carry its private address, so audio to it does not arrive.",
        "The far site's router is the same program, on the tester's CPU. Sixway with the fast path in the driver takes the place of the bare PC's program; it still has a kernel. Pairings with Linux' 6to4 run wholly in guests, with --devices linux-site-gateway,sixway-in-guest,guest-plain.",
    ],
    tables: &[
        Table {
            title: "TCP connection time",
            series: "connection",
            axes: &["form", "version", "link", "background", "packet"],
            columns: &[
                column("connection", "connection"),
                column("connection-wire", "by the bare wire"),
                column("connection-net", "difference"),
                column("connection-at-server", "at the server's link"),
                CPU,
                MEMORY,
                PAYLOAD,
                WIRE,
            ],
        },
        Table {
            title: "Web pages",
            series: "web",
            axes: &["form", "version", "link", "background", "packet", "page"],
            columns: &[
                column("response", "GET to 200"),
                column("response-wire", "by the bare wire"),
                column("response-net", "difference"),
                column("response-at-server", "at the server's link"),
                column("page-time", "whole page"),
                column("page-time-net", "whole page, difference"),
                CPU,
                MEMORY,
                WIRE,
            ],
        },
        Table {
            title: "Calls",
            series: "call",
            axes: &["form", "version", "link", "background", "packet"],
            columns: &[
                column("setup", "INVITE to 200"),
                column("setup-net", "difference to the bare wire"),
                column("setup-at-server", "at the server's link"),
                column("mean-jitter", "mean jitter"),
                column("mean-jitter-wire", "mean jitter by the bare wire"),
                column("jitter", "jitter (RFC 3550) after the last packet"),
                column("throughput", "throughput"),
                column("loss", "loss"),
                column("loss-back", "loss to the caller"),
                CPU,
                MEMORY,
                WIRE,
            ],
        },
        Table {
            title: "Round-trip time of 1,400 octets",
            series: "rtt",
            axes: &["form", "version", "link", "background", "packet"],
            columns: &[
                column("response", "response"),
                column("response-wire", "by the bare wire"),
                column("response-net", "difference"),
                column("by-ping", "by ping"),
                column("loss", "loss"),
                CPU,
                MEMORY,
                WIRE,
            ],
        },
        Table {
            title: "CPU by offered rate, links without a limit",
            series: "cpu",
            axes: &["form", "version", "background", "packet"],
            columns: &[CPU, MEMORY, PAYLOAD, WIRE, column("background-lost", "lost")],
        },
        Table {
            title: "Outer packets of five requests, in front of the far router",
            series: "outer",
            axes: &["form"],
            columns: &[
                column("answered", "answered"),
                column("own-address", "from the gateway's own address"),
                column("nat-address", "from the NAT's"),
                column("back", "back"),
            ],
        },
    ],
    published: PUBLISHED,
};

const LINEUP: &[Entry] = &[
    Entry {
        task: TaskKind::SiteGateway,
        usual: &["sixway", "sixway-tc", "sixway-xdp", "linux-site-gateway", "sixway-in-guest"],
    },
    Entry { task: TaskKind::Nat44, usual: &["kernel-masquerade"] },
    Entry { task: TaskKind::Forward, usual: &["kernel", "guest-plain"] },
    // On another machine, behind Linux' NAT.
    Entry { task: TaskKind::Router6to4, usual: &[] },
];

/// Devices that Sixway is compared with.
const PEERS: &[&str] = &["sixway-tc", "sixway-xdp", "linux-site-gateway", "sixway-in-guest", "guest-plain"];
/// What some of them have of a quick run; those in guests over IPv6 alone: two or three guests boot for each form.
const BRIEF: [(&str, &[&str]); 4] = [
    ("sixway-xdp", &WITHOUT_OUTER),
    ("linux-site-gateway", &WITHOUT_OUTER),
    ("guest-plain", &["connection", "web"]),
    ("sixway-in-guest", &["connection", "web"]),
];

const WITHOUT_OUTER: [&str; 5] = ["connection", "web", "call", "rtt", "cpu"];

/// Seconds until all guests of a form are at work.
const BOOTS: f64 = 6.0;

/// Whether a device has this place in a run.
fn takes_part(device: &str, series: &str, at: &BTreeMap<String, f64>, asked: &Asked) -> bool {
    match part(device, PEERS, asked) {
        Part::Whole => true,
        Part::Brief => {
            let has = |(of, all): &(&str, &[&str])| *of == device && all.contains(&series);
            BRIEF.iter().any(has) && (device == "sixway-xdp" || at.get("version") == Some(&6.0))
        }
        Part::Nothing => false,
    }
}

/// The series in the order of measurement.
const SERIES: [&str; 6] = ["outer", "connection", "web", "call", "rtt", "cpu"];
const PACKETS: [f64; 4] = [200.0, 500.0, 1_000.0, 1_400.0];
/// A packet of background where its size is not the question.
const PACKET: f64 = 1_000.0;
const FAST: f64 = 100.0;
/// Background of half of that rate.
const HALF: f64 = 50.0;

/// Numbers of the command line, with those of a full and of a quick run.
struct Sweep {
    forms: Vec<f64>,
    versions: Vec<f64>,
    links: Vec<f64>,
    packets: Vec<f64>,
    /// Whether these were named.
    has_packets: bool,
    pages: Vec<f64>,
    background: Option<Vec<f64>>,
    is_quick: bool,
}

impl Sweep {
    fn of(asked: &Asked) -> std::result::Result<Self, String> {
        let numbers = |key: &str, full: &[f64], quick: &[f64]| {
            asked.numbers(key, if asked.quick { quick } else { full })
        };
        let forms = numbers("forms", &[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 2.0])?;
        let versions = numbers("versions", &[6.0, 4.0], &[6.0, 4.0])?;
        if let Some(wrong) = forms.iter().find(|form| Form::of(**form).is_none()) {
            return Err(format!("--set forms: there is no form {wrong}; they are 1 to 5"));
        }
        if let Some(wrong) = versions.iter().find(|version| ![4.0, 6.0].contains(*version)) {
            return Err(format!("--set versions: {wrong} is neither 4 nor 6"));
        }
        Ok(Self {
            forms,
            versions,
            links: numbers("links", &[FAST, UNSHAPED], &[FAST])?,
            packets: numbers("packets", &PACKETS, &[PACKET])?,
            has_packets: asked.set.contains_key("packets"),
            pages: numbers("pages", &[4e3, 10e3, 25e3, 50e3, 100e3, 150e3], &[25e3])?,
            background: asked
                .set
                .contains_key("background")
                .then(|| numbers("background", &[], &[]))
                .transpose()?,
            is_quick: asked.quick,
        })
    }

    /// Mbit/s of background in a series.
    fn background(&self, series: &str) -> Vec<f64> {
        let usual: &[f64] = match (series, self.is_quick) {
            ("connection" | "web", _) => &[50.0],
            ("call", false) => &[0.0, 10.0, 30.0, 50.0, 70.0, 90.0],
            ("call", true) => &[50.0],
            ("rtt", false) => &[10.0, 30.0, 50.0, 70.0, 90.0],
            ("rtt", true) => &[50.0],
            ("cpu", false) => &[10.0, 50.0, 90.0, 150.0, 200.0],
            ("cpu", true) => &[90.0],
            _ => &[0.0],
        };
        self.background.clone().unwrap_or_else(|| usual.to_vec())
    }

    /// Octets of a packet of background: all sizes are measured with half of the paper's links, and one with each other rate.
    fn packets(&self, series: &str, background: f64) -> &[f64] {
        match series {
            "connection" | "cpu" => &self.packets,
            _ if self.has_packets || background == HALF => &self.packets,
            _ => &[PACKET],
        }
    }

    /// The places of a series at a form.
    fn points(&self, series: &str, form: f64) -> Vec<BTreeMap<String, f64>> {
        if series == "outer" {
            return vec![point(&[("form", form)])];
        }
        let mut all = Vec::new();
        for version in &self.versions {
            for link in if series == "cpu" { &[UNSHAPED][..] } else { &self.links } {
                for background in self.background(series) {
                    let at =
                        [("form", form), ("version", *version), ("link", *link), ("background", background)];
                    for packet in self.packets(series, background) {
                        let mut at = point(&at);
                        at.insert("packet".to_owned(), *packet);
                        // Sizes of packets and of pages are each a question of their own.
                        let pages = match (series, self.has_packets || *packet == PACKET) {
                            ("web", true) => &self.pages[..],
                            ("web", false) => &self.pages[..1],
                            _ => &[],
                        };
                        let with_page = |page: &f64| {
                            let mut at = at.clone();
                            at.insert("page".to_owned(), *page);
                            at
                        };
                        all.extend(pages.iter().map(with_page));
                        if series != "web" {
                            all.push(at);
                        }
                    }
                }
            }
        }
        all
    }
}

fn point(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
    of.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect()
}

/// Devices whose outer packets no capture sees: a program in the driver forwards them.
const UNSEEN: &[&str] = &["sixway-xdp", "sixway-xdp-poll"];

/// Whether a device has something to do at this place: only a tunnel has outer packets, and only translators and tunnels have more than plain forwarding's
/// forms. What has no tunnel is measured with what needs none; plain forwarding with both.
fn plays(device: &'static dyn Device, series: &str, at: &BTreeMap<String, f64>) -> bool {
    let number = |axis: &str| at.get(axis).copied().unwrap_or(0.0);
    let form = Form::of(number("form"));
    let has_part = form.is_some_and(|form| form.parts(device).is_some());
    let has_tunnel = form.is_some_and(|form| form.has_tunnel(device));
    let needs_tunnel = series == "outer" || (number("version") == 6.0 && !device.is_plain());
    let is_unseen = series == "outer" && (device.is_plain() || UNSEEN.contains(&device.card().name));
    has_part && (has_tunnel || !needs_tunnel) && !is_unseen
}

impl Experiment for Gateway2012 {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self) -> Needs {
        Needs { programs: &["ip", "tc", "ethtool", "ping", "tcpdump"], ..Needs::NAMESPACE }
    }

    fn lineup(&self) -> &[Entry] {
        LINEUP
    }

    fn settings(&self) -> &'static [&'static str] {
        &["background", "forms", "links", "packets", "pages", "series", "versions"]
    }

    fn cells(&self, asked: &Asked, devices: &[&str]) -> std::result::Result<Vec<Cell>, String> {
        let sweep = Sweep::of(asked)?;
        let mut cells = Vec::new();
        for series in series(asked, &SERIES, &[])? {
            for point in sweep.forms.iter().flat_map(|form| sweep.points(series, *form)) {
                let chosen = devices.iter().filter(|name| takes_part(name, series, &point, asked));
                let able = chosen.filter_map(|name| find(name));
                cells.extend(able.filter(|device| plays(*device, series, &point)).map(|device| Cell {
                    experiment: ABOUT.name.to_owned(),
                    series: series.to_owned(),
                    device: device.card().name.to_owned(),
                    point: point.clone(),
                    repeat: 0,
                }));
            }
        }
        Ok(cells)
    }

    fn seconds(&self, cell: &Cell, asked: &Asked) -> f64 {
        let load = match cell.series.as_str() {
            "outer" => 0.2,
            "call" => 2.0 * (180.0 * asked.scale).clamp(0.3, 180.0) + 0.8,
            "cpu" => (60.0 * asked.scale).clamp(0.2, 60.0),
            "connection" | "web" => 0.6 + 60.0 * asked.scale,
            _ => 4.0 * asked.scale.min(0.02) * 50.0,
        };
        // Two or three boxes are built for each form.
        load + if times_as_long(&cell.device) > 1.0 { BOOTS } else { 0.5 }
    }

    fn build(&self, _cell: &Cell, line: &Line<'_>) -> Result<Box<dyn Stage>> {
        Ok(Box::new(Site::new(line)?))
    }

    fn drawing(&self) -> Option<&'static Drawing> {
        Some(&DRAWN)
    }

    fn figures(&self) -> Vec<Figure> {
        let of_form = |form: usize| {
            let (group, at) = [("Co-located", &CO_LOCATED), ("Decoupled", &DECOUPLED)][form];
            let by = |title, (series, value), axis, axis_title, at: &'static [(&'static str, f64)]| Figure {
                group,
                title,
                series,
                axis,
                axis_title,
                value,
                kind: Kind::Lines,
                at,
                logarithmic: false,
                lines: &[],
                devices: &[],
            };
            let by_background = |title, of| by(title, of, "background", "background, Mbit/s", &at[..]);
            let by_page = by("HTTP response time", ("web", "response"), "page", "octets of a page", &at[..]);
            let cpu = by("CPU by rate", ("cpu", "cpu"), "background", "offered, Mbit/s", UNLIMITED[form]);
            [
                by_page,
                by_background("Call set-up", ("call", "setup")),
                by_background("Mean jitter", ("call", "mean-jitter")),
                by_background("Throughput of audio", ("call", "throughput")),
                by_background("Loss of audio", ("call", "loss")),
                by_background("Round-trip time", ("rtt", "response")),
                cpu,
            ]
        };
        let connection = Figure {
            group: "Connections",
            title: "TCP connection time",
            series: "connection",
            axis: "form",
            axis_title: "form",
            value: "connection",
            kind: Kind::Bars,
            at: &CONNECTION,
            logarithmic: false,
            lines: &[],
            devices: &[],
        };
        [connection].into_iter().chain([0, 1].into_iter().flat_map(of_form)).collect()
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn findings(&self, results: &Results) -> Vec<Finding> {
        findings(results)
    }
}

/// Places of figures: IPv6 over links of the paper's rate, with one size of background packets.
const CO_LOCATED: [(&str, f64); 4] = [("form", 1.0), ("version", 6.0), ("link", FAST), ("packet", PACKET)];
const DECOUPLED: [(&str, f64); 4] = [("form", 2.0), ("version", 6.0), ("link", FAST), ("packet", PACKET)];
const CONNECTION: [(&str, f64); 4] =
    [("version", 6.0), ("link", FAST), ("background", HALF), ("packet", PACKET)];
/// CPU time is measured over links without a limit.
const UNLIMITED: [&[(&str, f64)]; 2] = [
    &[("form", 1.0), ("version", 6.0), ("link", UNSHAPED), ("packet", PACKET)],
    &[("form", 2.0), ("version", 6.0), ("link", UNSHAPED), ("packet", PACKET)],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Today;

    const ALL: [&str; 4] = ["sixway", "sixway-xdp", "linux-site-gateway", "kernel"];

    fn cells(set: &[(&str, &str)], quick: bool) -> Vec<Cell> {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Gateway2012.cells(&Asked { set, quick, repeats: 3, ..Asked::default() }, &ALL).unwrap()
    }

    fn packets(cells: &[Cell], series: &str, background: f64) -> Vec<f64> {
        let of = |cell: &&Cell| {
            let at = |axis: &str, value| cell.at(axis) == value;
            let first =
                at("form", 1.0) && at("version", 6.0) && at("link", FAST) && at("background", background);
            first && cell.series == series && cell.device == "sixway"
        };
        let mut all: Vec<f64> = cells.iter().filter(of).map(|cell| cell.at("packet")).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    #[test]
    fn each_series_has_background_of_all_sizes() {
        let full = cells(&[], false);
        for series in ["connection", "web", "call", "rtt"] {
            assert_eq!(packets(&full, series, HALF), PACKETS, "{series}");
        }
        assert_eq!(packets(&full, "call", 90.0), [PACKET]);
        assert_eq!(packets(&cells(&[("packets", "200,1400")], false), "rtt", 90.0), [200.0, 1_400.0]);
        assert_eq!(packets(&cells(&[], true), "call", HALF), [PACKET]);
    }

    #[test]
    fn each_place_of_a_headline_is_in_a_quick_run() {
        let quick = cells(&[], true);
        let is_there = |device: &str, series: &str, point: &[(&str, f64)]| {
            let is_it = |cell: &Cell| {
                cell.device == device && cell.series == series && cell.point == super::point(point)
            };
            quick.iter().any(is_it)
        };
        for headline in HEADLINES {
            let there = match headline.today {
                Today::Ratio { series, point, devices, .. } => {
                    let (over, under) = devices;
                    is_there(over, series, point) && is_there(under, series, point)
                }
                Today::Rows { over, under } => {
                    [over, under].iter().all(|it| is_there(it.device, it.series, it.point))
                }
                Today::Nothing(_) => false,
            };
            assert!(there, "{}", headline.statement);
        }
    }

    #[test]
    fn the_papers_figures_are_drawn() {
        let figures = Gateway2012.figures();
        for (series, axis) in
            [("connection", "form"), ("web", "page"), ("cpu", "background"), ("call", "background")]
        {
            assert!(figures.iter().any(|it| it.series == series && it.axis == axis), "{series}");
        }
    }
}
