//! "6to4 relays under rising load" (Lencse, Répás 2013): one to ten 6to4 hosts send echo requests through one relay to two responders,
//! which answer for every address of their half of a /104.
//!
//! ```text
//! host1 80.64.79.1 ┐                                                            ┌ responder1 2a02:a50::2   …:a00::/105
//!   …              ├ switch ─ 80.64.79.254  relay  2a02:a50::1 ─ switch ┤
//! host10           ┘          2002:5040:4ffe::1                                 └ responder2 2a02:a50::3   …:a80::/105
//! ```
//!
//! In the paper host i sends eleven requests to each of 10.i.b.c and 10.(i+128).b.c under the /104, b from 0 to 255, c from 0 to 255, four
//! steps at a time: eight flows. Here b takes fewer values.

use super::echo_load::{Answers, EchoLoad};
use crate::failure::{Failure, Result};
use crate::gateway::run_sixway_on;

use crate::kernel_peer::KernelPeer;
use crate::probe::cpu::process_cpu;

use crate::terminal::{bold, cross, dim, table, thousands, tick};
use crate::topology::Network;
use serde_json::json;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

const HOSTS: [&str; 10] =
    ["host1", "host2", "host3", "host4", "host5", "host6", "host7", "host8", "host9", "host10"];
const RELAY: Ipv4Addr = Ipv4Addr::new(80, 64, 79, 254);
/// Echo requests to each address.
const EACH: u16 = 11;
/// Octets of an echo request.
const OCTETS: usize = 100;
/// Flows of one host to one responder.
const STEPS: u8 = 4;

/// The paper's figures for Linux's `sit` with 1 to 10 hosts: loss in %, response time in ms, CPU in %, packets a second.
const PUBLISHED: [(f64, f64, f64, u64); 10] = [
    (0.00, 0.274, 3.0, 11_177),
    (0.00, 0.308, 6.1, 21_360),
    (0.00, 0.241, 10.1, 29_424),
    (0.00, 0.480, 16.9, 35_166),
    (0.00, 0.576, 28.1, 39_829),
    (0.00, 0.7, 51.0, 42_615),
    (0.01, 0.867, 84.6, 43_502),
    (0.01, 0.998, 94.1, 45_411),
    (0.03, 1.168, 92.5, 45_691),
    (0.03, 1.311, 94.3, 46_812),
];

/// The loss that the paper saw at most, as a share.
pub const LOSS: f64 = 0.0003;

/// What is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Relay {
    /// Sixway
    Sixway,
    /// `sit` of a Linux guest, as the paper's: it runs several times slower than on a machine of its own
    Linux,
}

/// How much of the paper's load is sent.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How many of the 256 values of b are used.
    pub blocks: u16,
    /// With how many hosts at the same time.
    pub hosts: &'static [usize],
}

/// A sixteenth of the paper's count.
pub const USUAL: Scale = Scale { blocks: 16, hosts: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] };
/// A 128th of it, and fewer steps.
pub const QUICK: Scale = Scale { blocks: 2, hosts: &[1, 4, 7, 10] };

/// What was measured with a number of hosts.
#[derive(Clone, Debug)]
pub struct Step {
    /// Hosts at the same time.
    pub hosts: usize,
    /// Requests sent.
    pub sent: u64,
    /// Requests not answered, as a share.
    pub loss: f64,
    /// Response time on average and its standard deviation, in milliseconds.
    pub response: (f64, f64),
    /// CPU time of the relay's process, as a share of one CPU.
    pub cpu: f64,
    /// Requests and replies forwarded in a second.
    pub per_second: f64,
}

const SIXWAY: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "relay"
address = "80.64.79.254"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const SIT: &str = "set -e
ip address add 80.64.79.254/24 dev eth0
ip tunnel add six mode sit remote any local 80.64.79.254 ttl 64
ip address add 2002:5040:4ffe::1/16 dev six
ip link set six up
ip address add 2a02:a50::1/64 dev eth1
ip -6 route add 2001:738:2c01:8001:ffff:0:a00:0/105 via 2a02:a50::2
ip -6 route add 2001:738:2c01:8001:ffff:0:a80:0/105 via 2a02:a50::3
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding";

/// Builds the network, and measures with each number of hosts; `say` hears of each before it starts.
pub fn run(relay: Relay, scale: &Scale, mut say: impl FnMut(usize)) -> Result<Vec<Step>> {
    let network = network()?;
    let guest;
    let process = match relay {
        Relay::Sixway => {
            network.address("relay", "out0", "80.64.79.254/24")?;
            network.address("relay", "in0", "2a02:a50::1/64")?;
            network.route("relay", "2001:738:2c01:8001:ffff:0:a00:0/105 via 2a02:a50::2")?;
            network.route("relay", "2001:738:2c01:8001:ffff:0:a80:0/105 via 2a02:a50::3")?;
            network.forwards("relay")?;
            run_sixway_on(&network, "relay", SIXWAY)?
        }
        Relay::Linux => {
            guest = KernelPeer::start(&network, "relay", &["out0", "in0"])?;
            guest.sh(SIT)?;
            guest.process()
        }
    };
    // The first packets wait for neighbours to be found.
    measure(&network, process, 10, 0)?;
    scale
        .hosts
        .iter()
        .map(|hosts| {
            say(*hosts);
            measure(&network, process, *hosts, scale.blocks)
        })
        .collect()
}

fn network() -> Result<Network> {
    let others = ["switch", "relay", "responder1", "responder2"];
    let network = Network::new(&[&HOSTS[..], &others[..]].concat())?;
    let switch = network.host("switch")?;
    switch.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    for bridge in ["four", "six"] {
        switch.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        switch.ip(&format!("link set {bridge} up"))?;
    }
    let join = |host: &str, device: &str, bridge: &str| {
        let port = format!("{host}-{device}");
        network.link((host, device), ("switch", &port))?;
        switch.ip(&format!("link set {port} master {bridge}"))
    };
    join("relay", "out0", "four")?;
    join("relay", "in0", "six")?;
    for (number, host) in HOSTS.iter().enumerate() {
        join(host, "up0", "four")?;
        network.address(host, "up0", &format!("{}/24", address(number + 1)))?;
    }
    for (responder, address, half) in [
        ("responder1", "2a02:a50::2/64", "2001:738:2c01:8001:ffff:0:a00:0/105"),
        ("responder2", "2a02:a50::3/64", "2001:738:2c01:8001:ffff:0:a80:0/105"),
    ] {
        join(responder, "up0", "six")?;
        network.address(responder, "up0", address)?;
        network.route(responder, "default via 2a02:a50::1")?;
        network.route(responder, &format!("local {half} dev lo"))?;
    }
    Ok(network)
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(80, 64, 79, host as u8)
}

/// 10.x.b.c under the /104.
fn target(x: u8, b: u8, c: u8) -> Ipv6Addr {
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0x2001, 0x738, 0x2c01, 0x8001, 0xffff, 0, pair(10, x), pair(b, c))
}

/// What host `i` sends: to each responder four flows, which together visit every c of every b.
fn load(i: usize, blocks: u16) -> EchoLoad {
    let flow = |half: u8, step: u8| {
        let places = |b: u8| (step..=255).step_by(STEPS.into()).map(move |c| target(i as u8 + half, b, c));
        match blocks {
            0 => vec![target(i as u8 + half, 0, step)],
            blocks => (0..blocks).flat_map(|b| places(b as u8)).collect(),
        }
    };
    let flows = [0, 128].into_iter().flat_map(|half| (0..STEPS).map(move |step| flow(half, step))).collect();
    EchoLoad { host: address(i), relay: RELAY, flows, each: EACH, octets: OCTETS }
}

fn measure(network: &Network, relay: u32, hosts: usize, blocks: u16) -> Result<Step> {
    let before = process_cpu(relay)?;
    let start = Instant::now();
    let answers = std::thread::scope(|scope| {
        let running: Vec<_> = (1..=hosts)
            .map(|i| scope.spawn(move || network.host(HOSTS[i - 1])?.enter(|| load(i, blocks).run())?))
            .collect();
        let ended = running.into_iter().map(|host| {
            host.join().unwrap_or_else(|_| Err(Failure::Unexpected("a host of the load panicked".to_owned())))
        });
        ended.collect::<Result<Vec<Answers>>>()
    })?;
    let time = start.elapsed().as_secs_f64();
    let cpu = process_cpu(relay)?.saturating_sub(before).as_secs_f64() / time;
    let sent: u64 = answers.iter().map(|host| host.sent).sum();
    let times: Vec<f64> = answers.into_iter().flat_map(|host| host.milliseconds).collect();
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len().max(1) as f64;
    Ok(Step {
        hosts,
        sent,
        loss: 1.0 - times.len() as f64 / sent.max(1) as f64,
        response: (mean, variance.sqrt()),
        cpu,
        per_second: 2.0 * times.len() as f64 / time,
    })
}

/// What the paper praises, judged on what was measured: each with whether it holds.
pub fn judge(steps: &[Step]) -> Vec<(bool, String)> {
    let worst = steps.iter().map(|step| step.loss).fold(0.0, f64::max);
    let most = steps.iter().map(|step| step.per_second).fold(0.0, f64::max);
    let last = steps.last().map_or(0.0, |step| step.per_second);
    let line = straightness(steps);
    vec![
        (worst < LOSS, format!("loss {:.3} % at most (below {:.2} %)", worst * 100.0, LOSS * 100.0)),
        (line > 0.9, format!("response time grows along a straight line: R² = {line:.3} (above 0.9)")),
        (
            last > 0.8 * most,
            format!("under the full load {:.0} % of the best rate remain (80 %)", last / most * 100.0),
        ),
    ]
}

/// R² of the straight line through the response times over the number of hosts.
fn straightness(steps: &[Step]) -> f64 {
    let count = steps.len().max(1) as f64;
    let points = || steps.iter().map(|step| (step.hosts as f64, step.response.0));
    let (x, y) = points().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let (xy, xx, yy) = points().fold((0.0, 0.0, 0.0), |sum, point| {
        let (dx, dy) = (point.0 - x, point.1 - y);
        (sum.0 + dx * dy, sum.1 + dx * dx, sum.2 + dy * dy)
    });
    if xy > 0.0 { xy * xy / (xx * yy) } else { 0.0 }
}

/// Prints the table with the paper's figures, or JSON.
pub fn print(relay: Relay, steps: &[Step], as_json: bool) {
    if as_json {
        let rows: Vec<_> = steps
            .iter()
            .map(|step| {
                json!({ "hosts": step.hosts, "sent": step.sent, "loss": step.loss, "response_ms": step.response.0,
                        "response_sd_ms": step.response.1, "cpu": step.cpu, "per_second": step.per_second })
            })
            .collect();
        println!("{:#}", serde_json::Value::Array(rows));
        return;
    }
    let name = match relay {
        Relay::Sixway => "sixway",
        Relay::Linux => "sit of a Linux guest",
    };
    println!("\n{}", bold(format!("relay-2013: {name}; in brackets the paper's Linux sit")));
    println!("{}\n", dim("Hosts, relay and responders share this machine's CPUs; the paper's had one each."));
    let rows: Vec<_> = steps.iter().map(row).collect();
    print!("{}", table(&["HOSTS", "SENT", "LOSS %", "RESPONSE MS", "SD", "CPU %", "PACKETS/S"], &rows, true));
    println!();
    for (holds, what) in judge(steps) {
        println!("  {} {what}", if holds { tick() } else { cross() });
    }
}

fn row(step: &Step) -> Vec<String> {
    let published = PUBLISHED[(step.hosts - 1).min(9)];
    vec![
        step.hosts.to_string(),
        thousands(step.sent),
        format!("{:.3} ({:.2})", step.loss * 100.0, published.0),
        format!("{:.3} ({:.3})", step.response.0, published.1),
        format!("{:.3}", step.response.1),
        format!("{:.0} ({:.0})", step.cpu * 100.0, published.2),
        format!("{} ({})", thousands(step.per_second as u64), thousands(published.3)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(hosts: usize, milliseconds: f64) -> Step {
        Step { hosts, sent: 1, loss: 0.0, response: (milliseconds, 0.0), cpu: 0.0, per_second: 1.0 }
    }

    #[test]
    fn a_host_visits_as_many_addresses_as_the_papers() {
        let whole = load(10, 256);
        assert_eq!(whole.flows.len(), 8);
        let mut targets = whole.flows.concat();
        assert_eq!(targets.len() * usize::from(EACH), 1_441_792);
        assert!(targets.contains(&"2001:738:2c01:8001:ffff:0:a8a:fffc".parse().unwrap()));
        targets.sort_unstable();
        targets.dedup();
        assert_eq!(targets.len(), 131_072);
    }

    #[test]
    fn a_straight_line_is_known_from_a_bent_one() {
        let straight: Vec<_> = (1..=10).map(|hosts| step(hosts, 0.1 + 0.3 * hosts as f64)).collect();
        assert!(straightness(&straight) > 0.999);
        let bent: Vec<_> = (1..=10).map(|hosts| step(hosts, if hosts < 9 { 1.0 } else { 100.0 })).collect();
        assert!(straightness(&bent) < 0.7);
    }
}
