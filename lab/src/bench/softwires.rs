//! Bulk TCP through DS-Lite, 4over6 and NAT46 over TUN devices, compared with plain forwarding by the kernel. All networks are made first, then
//! measured in turn, round by round.
//!
//! The other end of a softwire is a Sixway of the client's own: not every kernel has tunnels of IPv4 in IPv6.

use super::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::forwarder::Forwarder;
use crate::gateway::{run_sixway, run_sixway_on};
use crate::interrupt;
use crate::probe::cpu::{cpus, process_cpu};
use crate::probe::{BulkServer, Direction, ping, serve_bulk};
use crate::sixway::sixway;
use crate::topology::{Network, client_gateway_server};
use std::time::Duration;

/// What bulk TCP is to reach, in the rate of plain forwarding.
const LEAST: f64 = 0.7;
/// Octets of payload in a full TCP segment through a softwire over links of 1,500 octets, with time stamps.
const SEGMENT: f64 = 1_408.0;
const SERVER: &str = "203.0.113.2";
const WAYS: [(Direction, &str); 2] = [(Direction::Up, "to the server"), (Direction::Down, "to the client")];

const GATEWAY: &str =
    "[gateway]\nworkers = 1\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n\n";
const END: &str = "[gateway]\nworkers = 1\n\n";

const AFTR: &str = r#"[[pool]]
name = "main"
addresses = ["198.51.100.0/28"]

[ds_lite]
role = "aftr"
addresses = ["2001:db8:a::1"]
clients = ["2001:db8:1::/48"]
pool = "main"
"#;

const B4: &str = "[ds_lite]\nrole = \"b4\"\ninterface = \"up0\"\naftr = \"2001:db8:a::1\"\n";

const CONCENTRATOR: &str = r#"[four_over_six]
role = "concentrator"
addresses = ["2001:db8:c::1"]
pool = ["198.51.100.16/29"]
clients = ["2001:db8:1::/48"]
"#;

const HOST: &str = r#"[four_over_six]
role = "host"
local = "2001:db8:1:b::1"
concentrator = "2001:db8:c::1"
servers = ["2001:db8:1::1"]
destinations = ["203.0.113.0/24"]
"#;

const NAT46: &str = r#"[nat46]
clients = ["10.1.0.0/16"]
pool = "192.168.46.0/24"
prefix = "2001:db8:46::/96"
static = [{ address = "192.168.46.80", server = "2001:db8:2::2" }]
"#;

/// A network at work.
struct Ready {
    name: &'static str,
    network: Network,
    target: &'static str,
    /// The processes that carry the packets.
    processes: Vec<(&'static str, u32)>,
}

/// What one network showed in one round.
struct Round {
    gigabits: f64,
    /// CPU time of each process for a packet, in nanoseconds.
    spent: Vec<f64>,
}

/// Measures, if Sixway is built.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    sixway()?;
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    let kernel = Forwarder::Kernel.start()?;
    let kernel =
        Ready { name: "kernel IPv6", network: kernel.network, target: kernel.target, processes: Vec::new() };
    let networks = [kernel, ds_lite()?, four_over_six()?, nat46()?];
    for one in &networks {
        answers(one)?;
    }
    let servers =
        networks.iter().map(|one| serve_bulk(&one.network, "server")).collect::<Result<Vec<_>>>()?;
    let mut rounds: [[Vec<Round>; 2]; 4] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("softwires, bulk TCP: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for ((one, server), rounds) in networks.iter().zip(&servers).zip(&mut rounds) {
                rounds[way].push(transfer(one, server, direction, seconds)?);
            }
        }
    }
    Ok(vec![section(&networks, &rounds)])
}

fn section(networks: &[Ready], rounds: &[[Vec<Round>; 2]]) -> Section {
    let mut figures = Vec::new();
    for (way, (_, arrow)) in WAYS.into_iter().enumerate() {
        let kernel = &rounds[0][way];
        for (one, rounds) in networks.iter().zip(rounds) {
            let name = format!("{arrow}, {}", one.name);
            let rounds = &rounds[way];
            figures.push(Figure::new(
                name.clone(),
                "Gbit/s",
                rounds.iter().map(|round| round.gigabits).collect(),
            ));
            if one.processes.is_empty() {
                continue;
            }
            let ratios =
                rounds.iter().zip(kernel).map(|(ours, kernel)| ours.gigabits / kernel.gigabits).collect();
            figures.push(
                Figure::new(format!("{name} vs kernel IPv6"), "×", ratios).to_reach(Target::AtLeast(LEAST)),
            );
            for (index, (process, _)) in one.processes.iter().enumerate() {
                let spent = rounds.iter().map(|round| round.spent[index]).collect();
                figures.push(Figure::new(format!("{arrow}, {process}"), "ns CPU/packet", spent));
            }
        }
    }
    Section {
        title: "TCP through softwires and NAT46",
        how: format!(
            "iperf3, one stream; {} CPUs, one worker each. The B4 and the end of 4over6 are on the client itself, by a Sixway of its own, which takes \
             its share of the CPUs and bounds the rate. A packet is {SEGMENT} octets of payload.",
            cpus()
        ),
        figures,
        skipped: Vec::new(),
    }
}

/// Waits until the client has an answer from the server.
fn answers(one: &Ready) -> Result<()> {
    let client = one.network.host("client")?;
    interrupt::wait_until(Duration::from_secs(15), &format!("an answer by {}", one.name), || {
        let answers = ping(client, one.target, 1, 56, Duration::ZERO);
        Ok(answers.is_ok_and(|answers| answers.answered == 1))
    })
}

fn ds_lite() -> Result<Ready> {
    let network = client_gateway_server()?;
    let aftr = run_sixway(&network, &format!("{GATEWAY}{AFTR}"))?;
    let b4 = run_sixway_on(&network, "client", &format!("{END}{B4}"))?;
    let processes = vec![("AFTR", aftr), ("B4", b4)];
    Ok(Ready { name: "DS-Lite", network, target: SERVER, processes })
}

fn four_over_six() -> Result<Ready> {
    let network = client_gateway_server()?;
    network.route("gateway", "2001:db8:1:b::1 via 2001:db8:1::2")?;
    let leases = |host: &str| format!("lease_file = {:?}\n", network.folder().join(format!("{host}.leases")));
    let hub = run_sixway(&network, &format!("{GATEWAY}{CONCENTRATOR}{}", leases("gateway")))?;
    let host = run_sixway_on(&network, "client", &format!("{END}{HOST}{}", leases("client")))?;
    let processes = vec![("4over6's concentrator", hub), ("4over6's host", host)];
    Ok(Ready { name: "4over6", network, target: SERVER, processes })
}

fn nat46() -> Result<Ready> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "10.1.0.2/24")?;
    network.address("gateway", "in0", "10.1.0.1/24")?;
    network.address("gateway", "out0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("client", "default via 10.1.0.1")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("gateway")?;
    let process = run_sixway(&network, &format!("{GATEWAY}{NAT46}"))?;
    Ok(Ready { name: "NAT46", network, target: "192.168.46.80", processes: vec![("NAT46", process)] })
}

fn transfer(one: &Ready, server: &BulkServer<'_>, direction: Direction, time: Duration) -> Result<Round> {
    let cpu = || one.processes.iter().map(|(_, id)| process_cpu(*id)).collect::<Result<Vec<_>>>();
    let before = cpu()?;
    let bulk = server.transfer("client", one.target, direction, time)?;
    let packets = (bulk.octets as f64 / SEGMENT).max(1.0);
    let spent = before.iter().zip(cpu()?);
    let spent = spent.map(|(before, after)| after.saturating_sub(*before).as_nanos() as f64 / packets);
    Ok(Round { gigabits: bulk.bits_per_second / 1e9, spent: spent.collect() })
}
