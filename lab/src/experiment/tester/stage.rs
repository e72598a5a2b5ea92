//! The networks at work, and one measurement.

use super::compared::{Compared, compare};
use super::impairments::Kind;
use super::topology::{BARE, BOX, THROUGH, network};
use crate::device::{Forward, Place, Running, Task};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::failure::Result;
use crate::impair::{ImpairedWire, Impairment, Ledger, program};
use crate::interrupt;
use crate::load::{
    Ends, FrameEnds, FrameStream, Gaps, Load as _, Outcome, Pace, StampedFrames, StampedSink,
    TransactionKind, Transactions, Trip, UdpStream, Until, before_all_others, compile_stamped, link_address,
};
use crate::measure::{Cores, Meter, Reading};
use crate::probe::cpu::{family_cpu, pin_process, pin_thread};
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Packets a second through an impaired link.
pub const RATE: f64 = 50_000.0;
/// Packets at scale 1: 1 % of loss needs a million to be known to 1 %.
const PACKETS: f64 = 1_000_000.0;
/// The port of the server.
const PORT: u16 = 7_000;

/// How many packets are sent at a scale.
pub fn packets(scale: f64) -> u64 {
    (PACKETS * scale).clamp(2_000.0, PACKETS) as u64
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap_or(Ipv6Addr::UNSPECIFIED).into(), port)
}

fn stream<'a>(network: &'a Network, cores: Cores, server: &str, payload: usize) -> Result<UdpStream<'a>> {
    let ends = Ends { client: network.host("client")?, server: network.host("server")?, core: cores.tester };
    let any = |port| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let (target, source, listens) = (at(server, PORT), any(0), any(PORT));
    Ok(UdpStream { ends, source, target, listens, flows: 1, payload, trip: Trip::OneWay })
}

/// What was measured through an impaired link.
pub struct Injection {
    /// The comparison.
    pub compared: Compared,
    /// The load through the link while it did nothing, before and after.
    pub control: Outcome,
    /// The load through it.
    pub outcome: Outcome,
    /// What it did.
    pub ledger: Ledger,
    /// CPU time of its process.
    pub cpu: Duration,
    /// Its command line.
    pub command: String,
}

/// Measures an impairment: this many packets at a rate, and a twentieth of them before and after through the same process while it does nothing.
///
/// # Errors
/// Something does not start.
pub fn inject(
    network: &Arc<Network>,
    cores: Cores,
    (kind, seed): (Kind, u64),
    (packets, per_second): (u64, f64),
) -> Result<Injection> {
    let pace = Pace::Open { per_second, gaps: Gaps::Even };
    let through = |impairment: Impairment, count: u64| {
        let wire = ImpairedWire::start(network, BOX.0, &BOX.1, (&program()?, impairment))?;
        cores.device.map_or(Ok(()), |core| pin_process(wire.process(), core))?;
        let stream = stream(network, cores, THROUGH, 16)?;
        let before = family_cpu(wire.process())?;
        let outcome = undisturbed(|| stream.run(pace, Until::Count(count)))?;
        let cpu = family_cpu(wire.process())?.saturating_sub(before);
        let command = wire.command().to_owned();
        Ok((outcome, wire.end()?, cpu, command))
    };
    // Neighbours are found before.
    interrupt::wait_until(Duration::from_secs(10), "a packet that arrives through the box", || {
        Ok(stream(network, cores, THROUGH, 16)?.run(pace, Until::Count(10))?.lost == 0)
    })?;
    let unimpaired = || through(Impairment::default(), packets.div_ceil(20));
    let (mut control, ..) = unimpaired()?;
    let (outcome, ledger, cpu, command) = through(kind.impairment(seed), packets)?;
    control.add(&unimpaired()?.0);
    let compared = compare(kind, &control, &outcome, &ledger);
    Ok(Injection { compared, control, outcome, ledger, cpu, command })
}

/// Runs a load before all other programs, as far as that is allowed: what else the machine does is not to be measured.
fn undisturbed(load: impl FnOnce() -> Result<Outcome> + Send) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            // Threads that it starts inherit this.
            before_all_others(0).ok();
            load()
        });
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// An impaired link.
pub struct Injected {
    // Dropped first: a device's end needs its network.
    _running: Box<dyn Running>,
    network: Arc<Network>,
    kind: Kind,
    cores: Cores,
    seed: u64,
}

impl Injected {
    /// Builds the network; the process is started for each measurement.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(kind: Kind, line: &Line<'_>) -> Result<Self> {
        let (network, running) = built(line)?;
        Ok(Self { _running: running, network, kind, cores: line.cores, seed: line.asked.seed })
    }
}

fn built(line: &Line<'_>) -> Result<(Arc<Network>, Box<dyn Running>)> {
    let network = Arc::new(network(line.cores)?);
    let [inside, outside] = BOX.1;
    let place = Place {
        network: Arc::clone(&network),
        host: BOX.0,
        inside: vec![inside],
        outside: vec![outside],
        core: line.cores.device,
    };
    let running = line.device.start(&place, &Task::Forward(Forward))?;
    Ok((network, running))
}

impl Stage for Injected {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let meter = Meter::begin(self.cores, Reading::Ticks)?;
        let count = cell.at("packets") as u64;
        let seed = self.seed.wrapping_add(u64::from(cell.repeat));
        let injection = inject(&self.network, self.cores, (self.kind, seed), (count, RATE))?;
        let Injection { compared, control, outcome, ledger, cpu, command } = injection;
        sheet.tester(meter.end(&outcome, cpu)?);
        sheet.value("injected", compared.injected, compared.unit);
        sheet.value("measured", compared.measured, compared.unit);
        sheet.value("allowed", compared.allowed, compared.unit);
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("lost-without", control.lost as f64, Unit::Count);
        sheet.times("latency", &outcome.latency)?;
        sheet.times("waited", &ledger.times())?;
        sheet.command(command);
        Ok(())
    }
}

/// The bare link.
pub struct Bare {
    // Dropped first.
    _running: Box<dyn Running>,
    network: Arc<Network>,
    cores: Cores,
    scale: f64,
}

impl Bare {
    /// Builds the network.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let (network, running) = built(line)?;
        Ok(Self { _running: running, network, cores: line.cores, scale: line.asked.scale })
    }

    /// How long a measurement takes: two seconds at scale 1.
    fn time(&self) -> Duration {
        Duration::from_secs_f64((2.0 * self.scale).clamp(0.1, 2.0))
    }

    fn load(&self, cell: &Cell) -> Result<Outcome> {
        let until = Until::Time(self.time());
        match cell.series.as_str() {
            "bare-udp" => {
                let payload = cell.at("payload") as usize;
                stream(&self.network, self.cores, BARE, payload)?.run(Pace::AsFastAsPossible, until)
            }
            "bare-paced" => {
                let pace = Pace::Open { per_second: cell.at("per-s"), gaps: Gaps::Even };
                stream(&self.network, self.cores, BARE, 16)?.run(pace, until)
            }
            "bare-frames" => self.frames(cell.at("per-s"), until),
            _ => {
                let stream = stream(&self.network, self.cores, BARE, 16)?;
                let kind = match cell.at("kind") as u8 {
                    1 => TransactionKind::UdpRr,
                    2 => TransactionKind::TcpRr,
                    _ => TransactionKind::TcpCrr,
                };
                let (ends, target, listens) = (stream.ends, stream.target, stream.listens);
                let transactions =
                    Transactions { ends, kind, target, listens, request: 16, response: 16, workers: 1 };
                let pace = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
                transactions.run(pace, until)
            }
        }
    }
}

impl Bare {
    /// Frames from the client's end of the bare link to the server's.
    fn frames(&self, per_second: f64, until: Until) -> Result<Outcome> {
        let (client, server) = (self.network.host("client")?, self.network.host("server")?);
        let object = compile_stamped(self.network.folder())?;
        let ends = FrameEnds {
            to: link_address(server, "bare0")?,
            source: Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 1, 0).into(),
            destination: at(BARE, PORT).ip(),
            port: PORT,
            flows: 16,
            octets: 0,
        };
        let sink = StampedSink::attach(&object, server, "bare0")?;
        let sender = StampedFrames::load(&object, &ends, client, "bare0")?;
        let pace = match per_second > 0.0 {
            true => Pace::Open { per_second, gaps: Gaps::Even },
            false => Pace::AsFastAsPossible,
        };
        on(self.cores.tester, || FrameStream { sender: &sender, sink: Some(&sink) }.run(pace, until))
    }
}

/// Runs a load on a CPU, if it has one.
fn on(core: Option<usize>, load: impl FnOnce() -> Result<Outcome> + Send) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            core.map_or(Ok(()), pin_thread)?;
            load()
        });
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Stage for Bare {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let meter = Meter::begin(self.cores, Reading::Ticks)?;
        let outcome = self.load(cell)?;
        sheet.tester(meter.end(&outcome, Duration::ZERO)?);
        let seconds = outcome.took.as_secs_f64().max(1e-9);
        let cost = outcome.cost.cpu.as_nanos() as f64 / outcome.sent.max(1) as f64;
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("sent-per-s", outcome.sent as f64 / seconds, Unit::PerSecond);
        sheet.value("cost", cost, Unit::NanosecondsPerPacket);
        match cell.series.as_str() {
            "bare-transactions" => {
                sheet.value("transactions", outcome.per_second(), Unit::PerSecond);
                sheet.times("response", &outcome.latency)?;
            }
            _ => {
                sheet.value("arrived-per-s", outcome.per_second(), Unit::PerSecond);
                sheet.times("latency", &outcome.latency)?;
                sheet.times("lateness", &outcome.lateness)?;
                sheet.value("jitter", outcome.jitter.unwrap_or(0.0) / 1e6, Unit::Milliseconds);
            }
        }
        Ok(())
    }
}
