//! One measurement: through a mechanism, and natively by the same routers right after it; or headers, which need no network.

use super::overhead::{Form, Transport};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, Stream, Target, Terrain, Way, bits_per_second};
use crate::failure::{Failure, Result};
use crate::load::{Outcome, TransactionKind};
use crate::results::{Cell, TesterCost, Unit};
use std::time::{Duration, Instant};

/// A run of the paper.
const SECONDS: f64 = 60.0;
/// Echo requests at scale 1.
const PINGS: f64 = 10_000.0;

/// Values of the native load, which has a verdict of its own.
pub const NATIVE: [&str; 3] = ["native-response", "native-transactions", "native-throughput"];

/// What is loaded. Its number is its place on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Echo requests, one at a time.
    Ping = 1,
    /// TCP in writes of a size; small ones are gathered.
    Tcp,
    /// UDP, as fast as it goes.
    Udp,
    /// Transactions over UDP.
    UdpRr,
    /// Transactions over a connection.
    TcpRr,
    /// Transactions over a connection each.
    TcpCrr,
    /// TCP in writes of a size, a segment each.
    TcpNoDelay,
    /// TCP with segments of that size at most.
    TcpSegment,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Ping,
        Self::Tcp,
        Self::Udp,
        Self::UdpRr,
        Self::TcpRr,
        Self::TcpCrr,
        Self::TcpNoDelay,
        Self::TcpSegment,
    ];

    /// The load with this number on the axis.
    ///
    /// # Errors
    /// There is none.
    pub fn of(number: f64) -> Result<Self> {
        let kind = Self::ALL.into_iter().find(|kind| f64::from(*kind as u8) == number);
        kind.ok_or_else(|| Failure::Unexpected(format!("no load has the number {number}")))
    }

    /// Whether this size says something about it: transactions have one size, small data is 256 octets or less, and Linux admits no segment below 88.
    pub fn has(self, octets: f64) -> bool {
        match self {
            Self::Ping | Self::Tcp | Self::Udp => true,
            Self::UdpRr | Self::TcpRr | Self::TcpCrr => false,
            Self::TcpNoDelay => octets <= 256.0,
            Self::TcpSegment => (128.0..=256.0).contains(&octets),
        }
    }

    /// Whether it is a transaction.
    pub const fn transaction(self) -> Option<TransactionKind> {
        match self {
            Self::UdpRr => Some(TransactionKind::UdpRr),
            Self::TcpRr => Some(TransactionKind::TcpRr),
            Self::TcpCrr => Some(TransactionKind::TcpCrr),
            Self::Ping | Self::Tcp | Self::Udp | Self::TcpNoDelay | Self::TcpSegment => None,
        }
    }
}

/// Headers, computed.
pub struct Headers;

impl Stage for Headers {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let form = Form::ALL.get((cell.at("form") as usize).wrapping_sub(1));
        let form = form.ok_or_else(|| Failure::Unexpected("no such form of headers".to_owned()))?;
        sheet.tester(TesterCost::default());
        for (data, overhead, transport) in
            [("data-tcp", "overhead-tcp", Transport::Tcp), ("data-udp", "overhead-udp", Transport::Udp)]
        {
            sheet.value(data, form.data(transport) as f64, Unit::Octets);
            sheet.value(overhead, form.overhead(transport), Unit::Share);
        }
        Ok(())
    }
}

/// A mechanism at work.
pub struct Mechanism {
    at_work: AtWork,
    scale: f64,
}

impl Mechanism {
    /// Builds the network and starts the device at both ends.
    pub fn build(way: Way, line: &Line<'_>) -> Result<Self> {
        Ok(Self { at_work: AtWork::build(way, Terrain::DRAWN, line)?, scale: line.asked.scale })
    }

    fn load(&self, kind: Kind, octets: usize, target: Target) -> Result<Outcome> {
        let time = Duration::from_secs_f64((SECONDS * self.scale).clamp(0.1, SECONDS));
        let stream = |no_delay, segment| Stream { write: octets, no_delay, segment };
        let transactions = |kind| self.at_work.transactions(target, kind, time);
        match kind {
            Kind::Ping => self.at_work.echo(target, octets, (PINGS * self.scale).clamp(20.0, PINGS) as u16),
            Kind::Udp => self.at_work.udp(target, octets, time),
            Kind::Tcp => self.at_work.tcp(target, stream(false, None), time),
            Kind::TcpNoDelay => self.at_work.tcp(target, stream(true, None), time),
            Kind::TcpSegment => self.at_work.tcp(target, stream(false, Some(octets as u32)), time),
            Kind::UdpRr => transactions(TransactionKind::UdpRr),
            Kind::TcpRr => transactions(TransactionKind::TcpRr),
            Kind::TcpCrr => transactions(TransactionKind::TcpCrr),
        }
    }
}

/// CPU time of the device, and the time in which it was spent.
struct Spent {
    cpu: Duration,
    active: Duration,
}

impl Spent {
    fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.active.as_secs_f64().max(1e-9)
    }

    /// Nanoseconds for each KiB of data.
    fn each_kib(&self, octets: u64) -> f64 {
        self.cpu.as_nanos() as f64 / (octets.max(1) as f64 / 1_024.0)
    }
}

impl Stage for Mechanism {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let kind = Kind::of(cell.at("load"))?;
        let octets = cell.at("octets") as usize;
        let [target, native] = [self.at_work.way().target(), self.at_work.way().native()];
        for target in [target, native] {
            self.at_work.is_reached(target, if kind == Kind::Ping { octets } else { 56 })?;
        }
        let measured = self.at_work.measured(sheet, || self.load(kind, octets, target))?;
        let start = Instant::now();
        let (past, cost, spent) = self.at_work.metered(|| self.load(kind, octets, native))?;
        let natively = Spent { cpu: spent, active: past.active(start.elapsed()) };
        let spent = Spent { cpu: measured.spent, active: measured.active };
        let through = measured.outcome;
        sheet.value("sent", through.sent as f64, Unit::Count);
        sheet.value("native-cpu", natively.cores(), Unit::Cores);
        sheet.value("cpu-increase", spent.cores() - natively.cores(), Unit::Cores);
        match (kind, kind.transaction()) {
            (Kind::Ping, _) => {
                sheet.times("response", &through.latency)?;
                sheet.times("native-response", &past.latency)?;
                sheet.value("loss", through.loss(), Unit::Lost);
            }
            (_, Some(_)) => {
                sheet.value("transactions", through.per_second(), Unit::PerSecond);
                sheet.value("native-transactions", past.per_second(), Unit::PerSecond);
                sheet.times("response", &through.latency)?;
                sheet.times("native-response", &past.latency)?;
            }
            _ => {
                let payload = |outcome: &Outcome| match kind {
                    Kind::Udp => outcome.answered * octets as u64,
                    _ => outcome.octets,
                };
                sheet.value("throughput", bits_per_second(payload(&through), &through), Unit::BitsPerSecond);
                sheet.value("native-throughput", bits_per_second(payload(&past), &past), Unit::BitsPerSecond);
                let more = spent.each_kib(payload(&through)) - natively.each_kib(payload(&past));
                sheet.value("cpu-increase-kib", more, Unit::NanosecondsPerPacket);
            }
        }
        sheet.tester_of(&NATIVE, &cost);
        self.at_work.describe(sheet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_in_a_second_and_for_each_kib() {
        let spent = Spent { cpu: Duration::from_millis(300), active: Duration::from_millis(600) };
        assert_eq!((spent.cores(), spent.each_kib(3 * 1_024)), (0.5, 1e8));
    }
}
