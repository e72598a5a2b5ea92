//! The asymmetric way (RFC 3068): a host sends to the nearest of two relays with the anycast address, and answers come back by the other one.

use super::load::{EACH, HOSTS, OCTETS, host_address, sweep};
use crate::device::{CpuSource, Forward, Place, Relay6to4, Running, Task, TaskKind};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{EchoSweep, From, Load as _, Outcome, Pace, Until};
use crate::measure::{Cores, Reading};
use crate::packet::six_to_four;
use crate::probe::cpu::pin_thread;
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The anycast address of relays.
const ANYCAST: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 1);
/// The relays' own addresses; answers go by the second one.
const RELAYS: [(&str, &str, &str); 2] =
    [("relay", "80.64.79.254", "2a02:a50::1"), ("relay2", "80.64.79.253", "2a02:a50::9")];
/// All of the responder's addresses.
const TARGETS: &str = "2001:738:2c01:8001:ffff:0:a00:0/104";

/// Two relays at work.
pub struct Anycast {
    // Dropped first: a device's end needs its network.
    relays: [Box<dyn Running>; 2],
    network: Arc<Network>,
    native: bool,
    cores: Cores,
    scale: f64,
}

impl Anycast {
    /// Builds the network and starts both relays, on the same core.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let native = !line.device.tasks().contains(&TaskKind::Relay6to4);
        let network = Arc::new(network(native, line.cores)?);
        let task =
            if native { Task::Forward(Forward) } else { Task::Relay6to4(Relay6to4 { address: ANYCAST }) };
        let start = |host: &'static str| {
            let network = Arc::clone(&network);
            let core = line.cores.device;
            line.device
                .start(&Place { network, host, inside: vec!["four"], outside: vec!["six"], core }, &task)
        };
        let relays = [start(RELAYS[0].0)?, start(RELAYS[1].0)?];
        let anycast = Self { relays, network, native, cores: line.cores, scale: line.asked.scale };
        interrupt::wait_until(Duration::from_secs(10), "an answer by the other relay", || {
            Ok(anycast.load(0.0)?.lost == 0)
        })?;
        Ok(anycast)
    }

    fn load(&self, scale: f64) -> Result<Outcome> {
        let sweep = sweep(1, self.native, OCTETS, scale);
        let from = match self.native {
            true => From::Native,
            false => From::SixToFour { host: host_address(1), relay: ANYCAST },
        };
        let sweep = EchoSweep { from, each: EACH, ..sweep };
        let pace =
            Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: Some(Duration::from_millis(10)) };
        let (core, host) = (self.cores.tester, self.network.host(HOSTS[0])?);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                core.map_or(Ok(()), pin_thread)?;
                host.enter(|| sweep.run(pace, Until::Done))?
            });
            let panicked = |_| Err(Failure::Unexpected("a host of the load panicked".to_owned()));
            sending.join().unwrap_or_else(panicked)
        })
    }

    /// Packets that a relay has sent by a link.
    fn sent(&self, relay: usize, link: &str) -> Result<u64> {
        let host = self.network.host(RELAYS[relay].0)?;
        let text = host.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?.unwrap_or_default();
        Ok(sent(&text, link).unwrap_or(0))
    }
}

/// The packets that a link has sent: the tenth number after its name.
fn sent(text: &str, link: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(link)?.strip_prefix(':'))?;
    line.split_whitespace().nth(9)?.parse().ok()
}

fn network(native: bool, cores: Cores) -> Result<Network> {
    let network = Network::new(&[HOSTS[0], "switch", RELAYS[0].0, RELAYS[1].0, "responder1"])?;
    let switch = network.host("switch")?;
    switch.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    for bridge in ["fours", "sixes"] {
        switch.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        switch.ip(&format!("link set {bridge} up"))?;
    }
    let join = |host: &str, device: &str, bridge: &str| {
        let port = format!("{host}-{device}");
        network.link((host, device), ("switch", &port))?;
        switch.ip(&format!("link set {port} master {bridge}"))
    };
    for (relay, four, six) in RELAYS {
        join(relay, "four", "fours")?;
        join(relay, "six", "sixes")?;
        network.address(relay, "four", &format!("{four}/24"))?;
        network.address(relay, "six", &format!("{six}/64"))?;
        // It has the anycast address, and does not say so to its neighbours.
        network.address(relay, "lo", &format!("{ANYCAST}/32"))?;
        network.host(relay)?.sysctl("ipv4/conf/all/arp_ignore", "1")?;
        network.route(relay, &format!("{TARGETS} via 2a02:a50::2"))?;
    }
    join(HOSTS[0], "up0", "fours")?;
    join("responder1", "up0", "sixes")?;
    network.address(HOSTS[0], "up0", &format!("{}/24", host_address(1)))?;
    network.address("responder1", "up0", "2a02:a50::2/64")?;
    network.route("responder1", &format!("local {TARGETS} dev lo"))?;
    network.route("responder1", &format!("default via {}", RELAYS[1].2))?;
    match native {
        false => network.route(HOSTS[0], &format!("{ANYCAST} via {}", RELAYS[0].1))?,
        true => {
            let host = six_to_four(host_address(1), 1);
            network.address(HOSTS[0], "up0", &format!("{host}/64"))?;
            for (number, (relay, ..)) in RELAYS.into_iter().enumerate() {
                let [a, b, c, ..] = host.segments();
                network.address(relay, "four", &format!("{a:x}:{b:x}:{c:x}::{}/64", number + 2))?;
            }
            let [a, b, c, ..] = host.segments();
            network.route(HOSTS[0], &format!("default via {a:x}:{b:x}:{c:x}::2"))?;
        }
    }
    if let Cores { device: Some(device), tester: Some(tester) } = cores {
        for (relay, ..) in RELAYS {
            for link in ["four", "six"] {
                network.receive_on(relay, link, device)?;
                network.receive_on("switch", &format!("{relay}-{link}"), tester)?;
            }
        }
    }
    Ok(network)
}

impl Stage for Anycast {
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let counts = |it: &Self| Ok::<_, Failure>([it.sent(0, "six")?, it.sent(1, "four")?]);
        let (before, others) = (counts(self)?, self.relays[1].cpu()?);
        let measured =
            measure(self.relays[0].as_ref(), (self.cores, Reading::Ticks), sheet, || self.load(self.scale))?;
        let (after, outcome) = (counts(self)?, &measured.outcome);
        let back = self.relays[1].cpu()?.since(&others);
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("requests", outcome.per_second(), Unit::PerSecond);
        sheet.times("response", &outcome.latency)?;
        sheet.value("there", (after[0] - before[0]) as f64, Unit::Count);
        sheet.value("back", (after[1] - before[1]) as f64, Unit::Count);
        let each = |spent: Duration| spent.as_nanos() as f64 / outcome.answered.max(1) as f64;
        // Interrupts of the core are those of both relays.
        if matches!(back.source, CpuSource::Process) {
            sheet.value("cpu-there", each(measured.spent), Unit::NanosecondsPerPacket);
            sheet.value("cpu-back", each(back.spent), Unit::NanosecondsPerPacket);
        }
        Ok(())
    }
}
