//! Bulk TCP through the fast path at tc ingress, GSO packets whole; NAT44 also without a fast path.

use super::left_out::left_out;
use super::settings::{Mode, nat44, relay, router, section};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::forwarder::{Forwarder, Running, masquerade};
use crate::gateway::run_sixway_on;
use crate::probe::{BulkServer, Direction, serve_bulk};
use crate::topology::Network;
use std::time::Duration;

const WAYS: [(Direction, &str); 2] = [(Direction::Up, "up"), (Direction::Down, "down")];

/// A network with two ends, and the server's address as the client writes it.
struct Path {
    name: &'static str,
    network: Network,
    target: &'static str,
    /// What it is to be compared with.
    compared: Comparison,
}

/// Rows to be compared with, by direction, and the least ratio.
type Comparison = Vec<([&'static str; 2], f64)>;

const KERNEL6: &str = "kernel IPv6";
const KERNEL4: &str = "kernel IPv4";
const TWO_KERNELS: &str = "kernel IPv6, two routers";
const TAYGA: &str = "tayga";
const SHARING_TAYGA: &str = "tayga + masquerade";
const MASQUERADE: &str = "kernel IPv4 + masquerade";

/// Measures all that can run here.
pub fn run(options: &Options, time: Duration) -> Result<Section> {
    let mut skipped = Vec::new();
    let mut paths = Vec::new();
    for (name, start) in STARTS {
        match start() {
            Ok((network, target, compared)) => paths.push(Path { name, network, target, compared }),
            Err(why) => skipped.push(left_out(name, why)?),
        }
    }
    let servers = paths.iter().map(|path| serve_bulk(&path.network, "server")).collect::<Result<Vec<_>>>()?;
    let mut rounds: Vec<[Vec<f64>; 2]> = paths.iter().map(|_| Default::default()).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, bulk TCP: round {number} of {}", options.repeats()));
        for ((path, server), rounds) in paths.iter().zip(&servers).zip(&mut rounds) {
            for ((direction, _), rounds) in WAYS.into_iter().zip(rounds) {
                rounds.push(transfer(server, path, direction, time)?);
            }
        }
    }
    Ok(Section {
        title: "Bulk TCP through tc",
        how: "iperf3, one stream, up: from the IPv6 client; down: to it. Compared with kernel forwarding of the family in which the data arrive. 6to4 passes the site's router \
              and the relay, and is compared with two kernel routers."
            .to_owned(),
        figures: figures(&paths, &rounds),
        skipped,
    })
}

fn transfer(server: &BulkServer<'_>, path: &Path, direction: Direction, time: Duration) -> Result<f64> {
    Ok(server.transfer("client", path.target, direction, time)?.bits_per_second / 1e9)
}

fn figures(paths: &[Path], rounds: &[[Vec<f64>; 2]]) -> Vec<Figure> {
    let find = |name: &str| paths.iter().position(|path| path.name == name).map(|at| &rounds[at]);
    let ratio = |ours: &[f64], theirs: &[f64]| ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let mut figures = Vec::new();
    for (way, (_, arrow)) in WAYS.into_iter().enumerate() {
        for (path, rounds) in paths.iter().zip(rounds) {
            figures.push(Figure::new(format!("{arrow}, {}", path.name), "Gbit/s", rounds[way].clone()));
        }
        if let (Some(kernel), Some(tayga)) = (find(KERNEL6), find(TAYGA)) {
            // Nothing that hands packets to the same hosts by the same devices can be expected to reach more.
            let name = format!("{arrow}, {KERNEL6} vs {TAYGA}");
            figures.push(Figure::new(name, "×", ratio(&kernel[way], &tayga[way])));
        }
        for (path, rounds) in paths.iter().zip(rounds) {
            for (names, least) in &path.compared {
                let name = names[way];
                let Some(theirs) = find(name) else { continue };
                let figure = Figure::new(
                    format!("{arrow}, {} vs {name}", path.name),
                    "×",
                    ratio(&rounds[way], &theirs[way]),
                );
                figures.push(figure.to_reach(Target::AtLeast(*least)));
            }
        }
    }
    figures
}

type Started = Result<(Network, &'static str, Comparison)>;

type Start = fn() -> Started;

const STARTS: [(&str, Start); 11] = [
    (KERNEL6, kernel6),
    (KERNEL4, || Ok((kernel4()?, SERVER4, Vec::new()))),
    (MASQUERADE, masquerading),
    (TWO_KERNELS, two_kernels),
    (TAYGA, || of(Forwarder::Tayga.start()?, Vec::new())),
    (SHARING_TAYGA, || of(Forwarder::SharingTayga.start()?, Vec::new())),
    ("nat64, tc", || of(with_tc(Forwarder::Nat64)?, translating(SHARING_TAYGA))),
    ("siit, tc", || of(with_tc(Forwarder::Siit)?, translating(TAYGA))),
    ("6to4 router and relay, tc", six_to_four),
    ("nat44, no fast path", || sharing(Mode::Off, 0.8)),
    ("nat44, tc", || sharing(Mode::Tc, 1.0)),
];

/// Kernel forwarding of the family in which the data arrive, and a peer that does the same work, stateful or stateless.
fn translating(peer: &'static str) -> Comparison {
    vec![([KERNEL6, KERNEL4], 1.0), ([peer; 2], 12.0)]
}

fn with_tc(forwarder: Forwarder) -> Result<Running> {
    forwarder.start_beside(&section(Mode::Tc, None))
}

fn of(running: Running, compared: Comparison) -> Started {
    Ok((running.network, running.target, compared))
}

fn kernel6() -> Started {
    of(Forwarder::Kernel.start()?, Vec::new())
}

const SERVER4: &str = "203.0.113.2";

fn masquerading() -> Started {
    let network = kernel4()?;
    masquerade(&network)?;
    Ok((network, SERVER4, Vec::new()))
}

/// NAT44, compared with the kernel's masquerade.
fn sharing(mode: Mode, least: f64) -> Started {
    let network = kernel4()?;
    run_sixway_on(&network, "gateway", &nat44(mode, None))?;
    Ok((network, SERVER4, vec![([MASQUERADE; 2], least)]))
}

fn kernel4() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "192.0.2.8/24")?;
    network.address("gateway", "in0", "192.0.2.1/24")?;
    network.address("gateway", "out0", "203.0.113.1/24")?;
    network.address("server", "up0", "203.0.113.2/24")?;
    network.route("client", "default via 192.0.2.1")?;
    network.route("server", "default via 203.0.113.1")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// client – site – gateway – server; the link in the middle has both families.
fn in_a_row(lan: &str) -> Result<Network> {
    let network = Network::new(&["client", "site", "gateway", "server"])?;
    network.link(("client", "up0"), ("site", "in0"))?;
    network.link(("site", "out0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", &format!("{lan}2/64"))?;
    network.address("site", "in0", &format!("{lan}1/64"))?;
    network.address("site", "out0", "192.0.2.8/24")?;
    network.address("site", "out0", "2001:db8:1::2/64")?;
    network.address("gateway", "in0", "192.0.2.1/24")?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    network.address("gateway", "out0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("client", &format!("default via {lan}1"))?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("site")?;
    network.forwards("gateway")?;
    Ok(network)
}

fn two_kernels() -> Started {
    let network = in_a_row("2001:db8:c::")?;
    network.route("site", "default via 2001:db8:1::1")?;
    network.route("gateway", "2001:db8:c::/64 via 2001:db8:1::2")?;
    Ok((network, "2001:db8:2::2", Vec::new()))
}

fn six_to_four() -> Started {
    let network = in_a_row("2002:c000:208:1::")?;
    run_sixway_on(&network, "gateway", &relay(Mode::Tc))?;
    run_sixway_on(&network, "site", &router(Mode::Tc))?;
    Ok((network, "2001:db8:2::2", vec![([TWO_KERNELS; 2], 1.0), ([TAYGA; 2], 12.0)]))
}
