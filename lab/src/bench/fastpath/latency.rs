//! Round trips: a packet at a time.

use super::left_out::left_out;
use super::settings::{Mode, section};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use crate::fast_path::offloads;
use crate::forwarder::{Forwarder, Running};
use crate::interrupt::pause;
use crate::load::{Redirector, compile};
use crate::probe::ping_pong;
use crate::programs;
use crate::terminal::median;
use crate::topology::Network;
use std::net::SocketAddr;
use std::time::Duration;

/// Round trips of one round.
const COUNT: usize = 20_000;
const WAYS: [(&str, Mode); 3] = [("no fast path", Mode::Off), ("tc", Mode::Tc), ("xdp", Mode::Xdp)];
/// Gateways check every two seconds whether a driver sends frames of XDP programs.
const SEEN: Duration = Duration::from_secs(3);
const KERNEL: &str = "kernel IPv6";
const ALONE: &str = "XDP redirect alone";

/// A path that packets take.
struct MeasuredPath {
    name: &'static str,
    running: Running,
    _onward: Vec<Redirector>,
}

/// Measures all that can run here.
pub fn run(options: &Options) -> Result<Section> {
    let (ready, skipped) = start()?;
    let mut rounds: Vec<[Vec<f64>; 2]> = ready.iter().map(|_| Default::default()).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, latency: round {number} of {}", options.repeats()));
        for (way, [medians, worst]) in ready.iter().zip(&mut rounds) {
            let times = round_trips(&way.running)?;
            medians.push(median(&times));
            worst.push(times.get(times.len() * 999 / 1_000).copied().unwrap_or(f64::INFINITY));
        }
    }
    Ok(Section {
        title: "Latency",
        how: format!(
            "Round trips of UDP packets with 16 octets of payload through NAT64, {COUNT} in a round, each when the last one came back; client and server on CPU 0. \
             The ends finish their checksums (tx off), as packets from a wire have them, and all devices receive as cards do (GRO). \
             \"{ALONE}\" only redirects packets: no program in the driver can take less time."
        ),
        figures: figures(&ready, &rounds),
        skipped,
    })
}

/// Everything that can run here, and why the rest cannot.
fn start() -> Result<(Vec<MeasuredPath>, Vec<String>)> {
    let mut ready =
        vec![MeasuredPath { name: KERNEL, running: Forwarder::Kernel.start()?, _onward: Vec::new() }];
    let mut skipped = Vec::new();
    match redirecting() {
        Ok(way) => ready.push(way),
        Err(why) => skipped.push(left_out(ALONE, why)?),
    }
    for (name, mode) in WAYS {
        match Forwarder::Nat64.start_beside(&section(mode, None)) {
            Ok(running) => ready.push(MeasuredPath { name, running, _onward: Vec::new() }),
            Err(why) => skipped.push(left_out(name, why)?),
        }
    }
    ready.iter().try_for_each(|way| as_cards_do(&way.running.network))?;
    pause(SEEN)?;
    Ok((ready, skipped))
}

fn as_cards_do(network: &Network) -> Result<()> {
    for host in ["client", "server"] {
        offloads(network.host(host)?, "up0", &["tx", "off", "gro", "on"])?;
    }
    ["in0", "out0"]
        .into_iter()
        .try_for_each(|device| offloads(network.host("gateway")?, device, &["gro", "on"]))
}

/// Programs at both of the gateway's devices that send on what comes by the other one. They write no addresses: the ends take each other for the
/// gateway.
fn redirecting() -> Result<MeasuredPath> {
    programs::require("clang")?;
    let running = Forwarder::Kernel.start()?;
    let network = &running.network;
    let ends = [("client", "02:00:00:00:00:0c"), ("server", "02:00:00:00:00:0e")];
    for (host, address) in ends {
        network.host(host)?.ip(&format!("link set up0 address {address}"))?;
    }
    let [(client, clients), (server, servers)] = ends;
    for (host, router, other) in [(client, "2001:db8:1::1", servers), (server, "2001:db8:2::1", clients)] {
        let neighbour = format!("neighbour replace {router} lladdr {other} dev up0 nud permanent");
        network.host(host)?.ip(&neighbour)?;
    }
    let object = compile(network.folder())?;
    let gateway = network.host("gateway")?;
    let onward = [("in0", "out0"), ("out0", "in0")]
        .map(|(device, out)| Redirector::attach(&object, gateway, device, out))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    Ok(MeasuredPath { name: ALONE, running, _onward: onward })
}

fn figures(ready: &[MeasuredPath], rounds: &[[Vec<f64>; 2]]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (which, what) in ["median", "99.9 %"].into_iter().enumerate() {
        for (way, rounds) in ready.iter().zip(rounds) {
            figures.push(Figure::new(format!("{what}, {}", way.name), "µs", rounds[which].clone()));
        }
        for (way, ours) in ready.iter().zip(rounds).skip(1) {
            let beside = ours[which].iter().zip(&rounds[0][which]).map(|(ours, kernel)| ours / kernel);
            let figure = Figure::new(format!("{what}, {} vs {KERNEL}", way.name), "×", beside.collect());
            let is_ours = WAYS[1..].iter().any(|(name, _)| *name == way.name);
            let target = if is_ours { Target::AtMost(1.0) } else { Target::None };
            figures.push(figure.to_reach(target));
        }
    }
    figures
}

fn round_trips(running: &Running) -> Result<Vec<f64>> {
    let parse = |address: &str| {
        let parsed = address.parse().map(|address| SocketAddr::new(address, 4_001));
        parsed.map_err(|_| Failure::Unexpected(format!("{address} is not an address")))
    };
    let hosts = (running.network.host("client")?, running.network.host("server")?);
    ping_pong(hosts, parse(running.target)?, parse(running.listens)?, (COUNT / 20, COUNT))
}
