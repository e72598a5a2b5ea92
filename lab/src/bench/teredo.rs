//! Teredo next to miredo, in turn, round by round: what a packet costs the relay, bulk TCP, and how soon a client has its first answer.

use super::{Figure, Options, Section, Target};
use crate::failure::{Asking as _, Result};
use crate::gateway::{run_sixway, run_sixway_on};
use crate::interrupt;
use crate::load::discard_all;
use crate::probe::cpu::{cpus, family_cpu};
use crate::probe::{BulkServer, Direction, PAYLOAD, SmallUdp, flooded_counting, open, ping, serve_bulk};
use crate::programs;
use crate::sixway::sixway;
use crate::teredo::{
    HOST, OPEN_CLIENT, RELAY, SERVER, network, run_miredo_client, run_miredo_relay, run_miredo_server,
};
use crate::teredo_stub::Stub;
use crate::topology::Network;
use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Octets of payload in a full TCP segment through Teredo (1,280 octets), with time stamps.
const SEGMENT: f64 = 1_208.0;
/// Flows of small packets.
const FLOWS: u16 = 16;
/// The native host.
const NATIVE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
const WAYS: [(Direction, &str); 2] = [(Direction::Up, "from the client"), (Direction::Down, "to the client")];

/// Whose programs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Sixway,
    Miredo,
}

/// The devices, in this order in every round.
const SIDES: [(&str, Side); 2] = [("sixway", Side::Sixway), ("miredo", Side::Miredo)];

struct Ready {
    network: Network,
    relay: u32,
    /// The time from the start of the client to the first answer.
    first_answer: Duration,
}

/// Measures, if Sixway is built and miredo is installed.
///
/// # Errors
/// A network could not be made.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    sixway()?;
    let mut sections = [
        (
            "What a packet costs a Teredo relay",
            format!(
                "UDP of 64-octet IPv6 packets in {FLOWS} flows, as many as one core sends, to and from a client that is a socket; server of \
                 miredo. CPU time of the relay's processes for each packet that arrived, with what the kernel does for the hosts that receive; they have the \
                 other core."
            ),
        ),
        (
            "TCP through Teredo",
            format!(
                "iperf3, one stream, {} CPUs; client, server and relay of one kind. A packet is {SEGMENT} octets of payload; CPU time is \
                 that of the relay's processes.",
                cpus()
            ),
        ),
        (
            "A Teredo client's first answer",
            "From the start of a client that has no state to its first answer from a native host, through server and relay of its kind."
                .to_owned(),
        ),
    ]
    .map(|(title, how)| Section { title, how, figures: Vec::new(), skipped: Vec::new() });
    if let Some(missing) =
        ["miredo", "miredo-server"].into_iter().find(|program| !programs::installed(program))
    {
        sections.iter_mut().for_each(|section| section.skipped.push(format!("needs {missing}")));
        return Ok(sections.into());
    }
    sections[0].figures = packets(options)?;
    sections[1].figures = bulk(options)?;
    sections[2].figures = first_answers(options)?;
    Ok(sections.into())
}

fn time(options: &Options) -> Duration {
    Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds })
}

/// A network whose relay, server and client are of this kind, once the client has had an answer.
fn ready(side: Side) -> Result<Ready> {
    let network = network()?;
    let relay = match side {
        Side::Sixway => run_sixway(&network, RELAY)?,
        Side::Miredo => run_miredo_relay(&network)?,
    };
    match side {
        Side::Sixway => run_sixway_on(&network, "server", SERVER)?,
        Side::Miredo => run_miredo_server(&network)?,
    };
    // Nobody may measure how long a server takes to start.
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    match side {
        Side::Sixway => run_sixway_on(&network, "client", OPEN_CLIENT)?,
        Side::Miredo => run_miredo_client(&network)?,
    };
    interrupt::wait_until(Duration::from_secs(30), "a first answer", || {
        let answers = ping(network.host("client")?, HOST, 1, 56, Duration::from_millis(200));
        Ok(answers.is_ok_and(|answers| answers.answered == 1))
    })?;
    Ok(Ready { network, relay, first_answer: begun.elapsed() })
}

/// What one side's relay forwards for a client that is a socket.
struct Loaded {
    network: Network,
    relay: u32,
    client: Stub,
}

fn loaded(side: Side) -> Result<Loaded> {
    let network = network()?;
    let (relay, port) = match side {
        Side::Sixway => (run_sixway(&network, RELAY)?, 3_544),
        Side::Miredo => (run_miredo_relay(&network)?, 3_545),
    };
    run_miredo_server(&network)?;
    let client = Stub::meet(
        (network.host("nat")?, Endpoint4::new(Ipv4Addr::new(198, 51, 100, 18), 4_000)),
        (network.host("host")?, NATIVE),
        (Ipv4Addr::new(198, 51, 100, 1), (Ipv4Addr::new(198, 51, 100, 34), port).into()),
    )?;
    discard_all(&client.socket)?;
    Ok(Loaded { network, relay, client })
}

/// One way for a while: from the client's socket, or from sockets of the native host to the client.
fn flooded_by(loaded: &Loaded, direction: Direction, time: Duration) -> Result<SmallUdp> {
    let (nat, host) = (loaded.network.host("nat")?, loaded.network.host("host")?);
    let sink = open(host, SocketAddr::new(NATIVE.into(), 4_000))?;
    discard_all(&sink)?;
    let measured = match direction {
        Direction::Up => {
            let packets = loaded.client.packets(FLOWS, &[0x36; PAYLOAD]);
            let train = (&loaded.client.socket, packets.iter().map(Vec::as_slice).collect());
            flooded_counting(Some(loaded.relay), nat, &|| host.received_datagrams(), &[train], time)
        }
        Direction::Down => {
            let to = SocketAddr::new(loaded.client.address.into(), 4_000);
            let sockets = (0..FLOWS)
                .map(|_| {
                    let socket = open(host, SocketAddr::new(NATIVE.into(), 0))?;
                    socket.connect(to).asking(|| format!("connecting to {to}"))?;
                    Ok(socket)
                })
                .collect::<Result<Vec<_>>>()?;
            let trains: Vec<_> = sockets.iter().map(|socket| (socket, vec![&[0x36; PAYLOAD][..]])).collect();
            flooded_counting(Some(loaded.relay), host, &|| nat.received_datagrams(), &trains, time)
        }
    };
    drop(sink);
    measured
}

fn packets(options: &Options) -> Result<Vec<Figure>> {
    let [ours, theirs] = SIDES.map(|(_, side)| loaded(side));
    let both = [ours?, theirs?];
    let mut spent: [[Vec<f64>; 2]; 2] = Default::default();
    let mut rates: [[Vec<f64>; 2]; 2] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("Teredo relay, small packets: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for (side, loaded) in both.iter().enumerate() {
                let measured = flooded_by(loaded, direction, time(options))?;
                spent[way][side].extend(measured.forwarder_ns);
                rates[way][side].push(measured.per_second / 1e3);
            }
        }
    }
    let mut figures = Vec::new();
    for (((_, arrow), [ours, theirs]), [our_rates, their_rates]) in WAYS.into_iter().zip(spent).zip(rates) {
        let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        figures.push(Figure::new(format!("{arrow}, sixway"), "1,000 packets/s", our_rates));
        figures.push(Figure::new(format!("{arrow}, miredo"), "1,000 packets/s", their_rates));
        figures.push(Figure::new(format!("{arrow}, sixway"), "ns CPU/packet", ours));
        figures.push(Figure::new(format!("{arrow}, miredo"), "ns CPU/packet", theirs));
        let name = format!("{arrow}, CPU of a packet, sixway vs miredo");
        figures.push(Figure::new(name, "×", ratios).to_reach(Target::AtMost(0.2)));
    }
    Ok(figures)
}

struct Round {
    megabits: f64,
    spent: f64,
}

fn bulk(options: &Options) -> Result<Vec<Figure>> {
    let [ours, theirs] = SIDES.map(|(_, side)| ready(side));
    let both = [ours?, theirs?];
    let servers = both.iter().map(|ready| serve_bulk(&ready.network, "host")).collect::<Result<Vec<_>>>()?;
    let mut rounds: [[Vec<Round>; 2]; 2] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("Teredo, bulk TCP: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for (side, (ready, server)) in both.iter().zip(&servers).enumerate() {
                rounds[way][side].push(transfer(ready.relay, server, direction, time(options))?);
            }
        }
    }
    let mut figures = Vec::new();
    for ((_, arrow), rounds) in WAYS.into_iter().zip(&rounds) {
        for ((name, _), rounds) in SIDES.into_iter().zip(rounds) {
            let of = |figure: fn(&Round) -> f64| rounds.iter().map(figure).collect::<Vec<f64>>();
            figures.push(Figure::new(format!("{arrow}, {name}"), "Mbit/s", of(|round| round.megabits)));
            figures.push(Figure::new(format!("{arrow}, {name}"), "ns CPU/packet", of(|round| round.spent)));
        }
        let rates = rounds[0].iter().zip(&rounds[1]).map(|(ours, theirs)| ours.megabits / theirs.megabits);
        let name = format!("{arrow}, rate, sixway vs miredo");
        figures.push(Figure::new(name, "×", rates.collect()).to_reach(Target::AtLeast(8.0)));
    }
    Ok(figures)
}

fn transfer(process: u32, server: &BulkServer<'_>, direction: Direction, time: Duration) -> Result<Round> {
    let before = family_cpu(process)?;
    let bulk = server.transfer("client", HOST, direction, time)?;
    let packets = (bulk.octets as f64 / SEGMENT).max(1.0);
    let spent = family_cpu(process)?.saturating_sub(before).as_nanos() as f64 / packets;
    Ok(Round { megabits: bulk.bits_per_second / 1e6, spent })
}

fn first_answers(options: &Options) -> Result<Vec<Figure>> {
    let mut times: [Vec<f64>; 2] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("Teredo, first answers: round {number} of {}", options.repeats()));
        for ((_, side), times) in SIDES.into_iter().zip(&mut times) {
            times.push(ready(side)?.first_answer.as_secs_f64() * 1e3);
        }
    }
    let ratios = times[0].iter().zip(&times[1]).map(|(ours, theirs)| ours / theirs).collect();
    let [ours, theirs] = times;
    Ok(vec![
        Figure::new("sixway", "ms", ours),
        Figure::new("miredo", "ms", theirs),
        Figure::new("sixway vs miredo", "×", ratios).to_reach(Target::AtMost(1.2)),
    ])
}
