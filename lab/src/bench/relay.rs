//! Real packets through a 6to4 relay: small ones compared with NAT64 over the same kind of device and with the kernel's forwarding, and bulk
//! TCP compared with the same relay without GSO packets. All are started first, then measured in turn, round by round.
//!
//! This machine's kernel need not know 6to4. Small packets are wrapped and swallowed by a raw socket of the client; for TCP the client is a
//! 6to4 host by a Sixway of its own, which always has its GSO packets, so only the relay differs.

use super::{Figure, Options, Section, Target};
use crate::failure::{Asking as _, Result};
use crate::forwarder::{Forwarder, Running};
use crate::load::{discard_all, tunnel_socket};
use crate::namespace::command;
use crate::packet;
use crate::probe::cpu::{cpus, process_cpu};
use crate::probe::{BulkServer, Direction, PAYLOAD, SmallUdp, flooded, open, serve_bulk, small_udp};
use crate::six_to_four::{RELAY, Relay, RelayOptions, SERVER, SITE};
use crate::sixway::sixway;
use std::net::SocketAddr;
use std::time::Duration;

/// Flows of small packets.
const FLOWS: u16 = 16;
/// Flows of small tunnel packets, one of each in turn: more than the relay looks at together, so that none are joined and counted as one.
const MIXED: u16 = 128;
/// Octets of payload in a full TCP segment through a tunnel of 1,480 octets, with time stamps.
const SEGMENT: f64 = 1_408.0;
/// Both ways: from the site (the relay takes the outer header off), and to it.
const WAYS: [(Direction, &str); 2] = [(Direction::Up, "decap"), (Direction::Down, "encap")];

/// Measures, if Sixway is built.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    sixway()?;
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    Ok(vec![small(options, seconds)?, bulk(options, seconds)?])
}

fn small(options: &Options, seconds: Duration) -> Result<Section> {
    let relay = Relay::start(RelayOptions::default())?;
    let nat64 = Forwarder::Nat64.start_on_one_core()?;
    let kernel = Forwarder::Kernel.start()?;
    for host in ["client", "server"] {
        // Tunnel packets have finished checksums, which their receiver verifies; so do the packets they are compared with.
        for network in [&nat64.network, &kernel.network, &relay.network] {
            let mut ethtool = command("ethtool")?;
            ethtool.args(["-K", "up0", "tx", "off"]);
            network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded()?;
        }
    }
    let mut rounds: [[Vec<SmallUdp>; 2]; 3] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("relay, small packets: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            // Decap makes IPv6 of what comes in IPv4, as NAT64 does on its way back.
            let nearest = match direction {
                Direction::Up => Direction::Down,
                Direction::Down => Direction::Up,
            };
            let other = |running: &Running| small_udp(running, FLOWS.into(), nearest, seconds);
            rounds[0][way].push(other(&kernel)?);
            rounds[1][way].push(other(&nat64)?);
            rounds[2][way].push(small_through(&relay, direction, seconds)?);
        }
    }
    let names = ["kernel IPv6", "sixway nat64", "sixway 6to4 relay"];
    let mut figures = Vec::new();
    for (way, (_, arrow)) in WAYS.into_iter().enumerate() {
        let each = |what: &str, unit, of: fn(&SmallUdp) -> f64| {
            names
                .iter()
                .zip(&rounds)
                .map(move |(name, rounds)| {
                    Figure::new(format!("{what}, {name}"), unit, rounds[way].iter().map(of).collect())
                })
                .collect::<Vec<_>>()
        };
        figures.extend(each(arrow, "kpps", |round| round.per_second / 1e3));
        let pairs = || rounds[2][way].iter().zip(&rounds[1][way]);
        let arrived = pairs().map(|(ours, nat64)| ours.per_second / nat64.per_second).collect();
        figures.push(Figure::new(format!("{arrow} arrived, 6to4 relay vs nat64"), "×", arrived));
        let per_core: Option<Vec<_>> =
            pairs().map(|(ours, nat64)| Some(nat64.forwarder_ns? / ours.forwarder_ns?)).collect();
        figures.extend(per_core.map(|repeats| {
            Figure::new(format!("{arrow} per core, 6to4 relay vs nat64"), "×", repeats)
                .to_reach(Target::AtLeast(1.0))
        }));
        figures.extend(each(arrow, "ns CPU/packet", |round| round.forwarder_ns.unwrap_or(0.0)).split_off(1));
        figures.extend(each(&format!("{arrow}, whole machine"), "ns CPU/packet", |round| round.machine_ns));
    }
    Ok(Section {
        title: "Small packets through a 6to4 relay",
        how: format!(
            "UDP with {PAYLOAD} octets of payload (inner packets of 64 octets), {FLOWS} flows; the client's tunnel packets come from a raw socket by \
             sendmmsg, {MIXED} flows in turn, so that none can be joined. All checksums are finished by their senders. The sender has CPU 0, the relay CPU 1; counted at the receiver's device. Decap is beside NAT64's v4→v6, encap beside its v6→v4; \
             the kernel forwards plain IPv6."
        ),
        figures,
        skipped: Vec::new(),
    })
}

/// As [`small_udp`], the client's side in tunnel packets.
fn small_through(relay: &Relay, direction: Direction, time: Duration) -> Result<SmallUdp> {
    let client = relay.network.host("client")?;
    let server = relay.network.host("server")?;
    let site = packet::six_to_four(SITE, 1);
    // Both ends stay open, so that no host answers "port unreachable" or "protocol unreachable".
    let tunnel = client.enter(|| tunnel_socket(RELAY))??;
    discard_all(&tunnel)?;
    let sink = open(server, SocketAddr::new(SERVER.into(), 4_000))?;
    match direction {
        Direction::Up => {
            let inner = |flow| packet::udp((site, 5_000 + flow), (SERVER, 4_000), &[0x36; PAYLOAD]);
            let packets: Vec<_> = (0..MIXED).map(inner).collect();
            let half = usize::from(MIXED) / 2;
            let trains: Vec<_> = packets
                .chunks(half)
                .map(|some| (&tunnel, some.iter().map(Vec::as_slice).collect()))
                .collect();
            flooded(Some(relay.process), (client, server), &trains, time)
        }
        Direction::Down => {
            let sockets: Vec<_> = (0..FLOWS)
                .map(|flow| {
                    let socket = open(server, SocketAddr::new(SERVER.into(), 6_000 + flow))?;
                    socket.connect((site, 5_000)).asking(|| format!("connecting to {site}"))?;
                    Ok(socket)
                })
                .collect::<Result<_>>()?;
            let trains: Vec<_> = sockets.iter().map(|socket| (socket, vec![&[0x36; PAYLOAD][..]])).collect();
            let measured = flooded(Some(relay.process), (server, client), &trains, time);
            drop((sink, tunnel));
            measured
        }
    }
}

/// Gbit/s, and CPU time of the relay for each packet that a wire would carry.
fn transfer(
    relay: &Relay,
    server: &BulkServer<'_>,
    direction: Direction,
    time: Duration,
) -> Result<(f64, f64)> {
    let before = process_cpu(relay.process)?;
    let bulk = server.transfer("client", &SERVER.to_string(), direction, time)?;
    let spent = process_cpu(relay.process)?.saturating_sub(before).as_nanos() as f64;
    Ok((bulk.bits_per_second / 1e9, spent / (bulk.octets as f64 / SEGMENT).max(1.0)))
}

fn bulk(options: &Options, seconds: Duration) -> Result<Section> {
    let without = RelayOptions { gso: false, ..RelayOptions::default() };
    let relays = [Relay::start_with_site(RelayOptions::default())?, Relay::start_with_site(without)?];
    let servers =
        relays.iter().map(|relay| serve_bulk(&relay.network, "server")).collect::<Result<Vec<_>>>()?;
    let mut rounds: [[Vec<(f64, f64)>; 2]; 2] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("relay, bulk TCP: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for (which, (relay, server)) in relays.iter().zip(&servers).enumerate() {
                rounds[which][way].push(transfer(relay, server, direction, seconds)?);
            }
        }
    }
    let mut figures = Vec::new();
    for ((way, (_, arrow)), least) in WAYS.into_iter().enumerate().zip([2.0, 1.1]) {
        let [with, without] = [&rounds[0][way], &rounds[1][way]];
        for (name, rounds) in [("GSO packets", with), ("without", without)] {
            let gigabits = rounds.iter().map(|round| round.0).collect();
            figures.push(Figure::new(format!("{arrow}, {name}"), "Gbit/s", gigabits));
            let cpu = rounds.iter().map(|round| round.1).collect();
            figures.push(Figure::new(format!("{arrow}, {name}"), "ns CPU/packet", cpu));
        }
        let faster = with.iter().zip(without).map(|(with, without)| with.0 / without.0).collect();
        figures.push(Figure::new(format!("{arrow}, vs without"), "×", faster));
        let cheaper = with.iter().zip(without).map(|(with, without)| without.1 / with.1).collect();
        figures.push(
            Figure::new(format!("{arrow} per core, vs without"), "×", cheaper)
                .to_reach(Target::AtLeast(least)),
        );
    }
    Ok(Section {
        title: "TCP through a 6to4 relay",
        how: format!(
            "iperf3, one stream; {} CPUs, one worker each. The client is a 6to4 host by a Sixway of its own with GSO packets, which takes its share \
             of the CPUs and bounds the rate: the target stands beside what the relay carries in a second of its own CPU time. A packet is {SEGMENT} \
             octets of payload.",
            cpus()
        ),
        figures,
        skipped: Vec::new(),
    })
}
