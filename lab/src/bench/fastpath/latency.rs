//! Round trips: a packet at a time.

use super::left_out;
use super::settings::{Mode, section};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use crate::forwarder::{Forwarder, Running};
use crate::namespace::command;
use crate::probe::ping_pong;
use std::net::SocketAddr;
use std::time::Duration;

/// Round trips of one round.
const COUNT: usize = 20_000;
const WAYS: [(&str, Mode); 3] = [("no fast path", Mode::Off), ("tc", Mode::Tc), ("xdp", Mode::Xdp)];

/// Measures all that can run here.
pub fn run(options: &Options) -> Result<Section> {
    let mut skipped = Vec::new();
    let mut ready = vec![("kernel IPv6", Forwarder::Kernel.start()?)];
    for (name, mode) in WAYS {
        match Forwarder::Nat64.start_beside(&section(mode, None)) {
            Ok(running) => ready.push((name, running)),
            Err(why) => skipped.push(left_out(name, why)?),
        }
    }
    for (_, running) in &ready {
        finish_checksums(running)?;
    }
    let mut rounds: Vec<[Vec<f64>; 2]> = ready.iter().map(|_| Default::default()).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, latency: round {number} of {}", options.repeats()));
        for ((_, running), [medians, worst]) in ready.iter().zip(&mut rounds) {
            let times = round_trips(running)?;
            let at = |thousandth: usize| {
                times.get(times.len() * thousandth / 1_000).copied().unwrap_or(f64::INFINITY)
            };
            medians.push(at(500));
            worst.push(at(999));
        }
    }
    Ok(Section {
        title: "Latency",
        how: format!(
            "Round trips of UDP packets with 16 octets of payload through NAT64, {COUNT} in a round, each when the last one came back; client and server on CPU 0. \
             The ends finish their checksums (tx off), as packets from a wire have them."
        ),
        figures: figures(&ready, &rounds),
        skipped,
    })
}

fn figures(ready: &[(&'static str, Running)], rounds: &[[Vec<f64>; 2]]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (which, what) in ["median", "99.9 %"].into_iter().enumerate() {
        for ((name, _), rounds) in ready.iter().zip(rounds) {
            figures.push(Figure::new(format!("{what}, {name}"), "µs", rounds[which].clone()));
        }
        for ((name, _), ours) in ready.iter().zip(rounds).skip(1) {
            let beside = ours[which].iter().zip(&rounds[0][which]).map(|(ours, kernel)| ours / kernel);
            let figure = Figure::new(format!("{what}, {name} beside kernel IPv6"), "×", beside.collect());
            let target = if *name == WAYS[0].0 { Target::None } else { Target::AtMost(1.0) };
            figures.push(figure.to_reach(target));
        }
    }
    figures
}

fn round_trips(running: &Running) -> Result<Vec<f64>> {
    let parse = |address: &str| {
        let parsed = address.parse().map(|address| SocketAddr::new(address, 4_001));
        parsed.map_err(|_| Failure::Unexpected(format!("{address} is no address")))
    };
    let hosts = (running.network.host("client")?, running.network.host("server")?);
    ping_pong(hosts, parse(running.target)?, parse(running.listens)?, (COUNT / 20, COUNT))
}

fn finish_checksums(running: &Running) -> Result<()> {
    for host in ["client", "server"] {
        let mut ethtool = command("ethtool")?;
        ethtool.args(["-K", "up0", "tx", "off"]);
        running.network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded()?;
    }
    Ok(())
}
