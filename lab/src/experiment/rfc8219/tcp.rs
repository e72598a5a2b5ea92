//! The highest rate of new TCP connections (RFC 8219 §8.2, RFC 3511 §5.3): each carries a request and an answer, and is closed.

use super::search::{Search, Seen, Trial};
use super::stage::{LEAST, TARGET, at, precision, seen, trials};
use super::topology::{Scene, Tester};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{Ends, Load as _, Outcome, Pace, TransactionKind, Transactions, Until};
use crate::measure::{Reading, core_time};
use crate::results::{Cell, Unit};
use std::net::SocketAddr;
use std::time::Duration;

/// Connections that may be under way at the same time.
const TOGETHER: u16 = 64;

/// A device between the tester's ends.
pub struct TcpConnections {
    scene: Scene,
    precision: f64,
}

impl TcpConnections {
    /// Builds the network and starts the device.
    ///
    /// # Errors
    /// Something does not start.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let scene = Scene::build(line)?;
        scene.ends.warm_up(128)?;
        Ok(Self { scene, precision })
    }
}

/// Connections at a rate.
struct NewConnections<'a> {
    tester: &'a Tester,
    count: u64,
}

impl NewConnections<'_> {
    fn establish(&self, pace: Pace) -> Result<Outcome> {
        let Tester { network, cores, target, any } = self.tester;
        let [listens, _] = any;
        let transactions = Transactions {
            ends: Ends { client: network.host("near")?, server: network.host("far")?, core: cores.tester },
            kind: TransactionKind::TcpCrr,
            target: SocketAddr::new(*target, TARGET),
            listens: SocketAddr::new(*listens, TARGET),
            request: 1,
            response: 1,
            workers: TOGETHER,
        };
        transactions.run(pace, Until::Count(self.count))
    }
}

impl Trial for NewConnections<'_> {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let before = core_time(self.tester.cores.device)?;
        let outcome = self.establish(at(per_second))?;
        let stolen = core_time(self.tester.cores.device)?.stolen_since(&before);
        Ok(seen(&outcome, stolen))
    }
}

impl Stage for TcpConnections {
    /// The device begins without sessions: what all trials together establish has room in one address's ports.
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        self.scene.running.restart()?;
        self.scene.ends.warm_up(128)?;
        let Scene { running, ends } = &self.scene;
        let mut trial = NewConnections { tester: ends, count: cell.at("flows") as u64 };
        let closed = Pace::Closed { in_flight: TOGETHER, pause: Duration::ZERO, resend: None };
        let ceiling = trial.establish(closed)?.per_second().max(LEAST);
        let search =
            Search { rates: (LEAST, ceiling), passed: 0.0, loss: 0.0, precision: self.precision, repeats: 3 };
        let found = search.run(&mut trial)?;
        let measured = measure(running.as_ref(), (ends.cores, Reading::Ticks), sheet, || {
            trial.establish(at(found.rate.max(LEAST)))
        })?;
        let each = measured.nanoseconds_each(measured.outcome.answered as f64);
        sheet.value("connections-rate", found.rate, Unit::PerSecond);
        sheet.value("ceiling", ceiling, Unit::PerSecond);
        sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
        sheet.value("loss", measured.outcome.loss(), Unit::Lost);
        sheet.times("setup", &measured.outcome.setup)?;
        sheet.value("cpu-per-connection", each / 1e6, Unit::CpuMilliseconds);
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("no failure", &found))
    }
}
