//! DNS resolution performance (RFC 8219 §9): the highest rate at which each query for a different name, which has an A record only, gets a AAAA record
//! within a second.

use super::search::{Search, Seen, Trial};
use super::stage::{precision, time, trials};
use crate::device::{Dns64, Place, Running, Task};
use crate::dns64::{Asker, Flags, Tree, large_name, start_authority};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::Outcome;
use crate::measure::{Cores, Reading};
use crate::probe::{Paced, dnsperf_at};
use crate::results::{Cell, Unit};
use crate::topology::{Network, client_gateway_server};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const LISTEN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const AUTHORITY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// Names, each of which is queried once before the resolver restarts.
const NAMES: u32 = 100_000;
/// Rates of the search.
const RATES: (f64, f64) = (100.0, 40_000.0);
/// A query without an answer for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// §9.2.1: the tester answers twice the rate and a tenth more within a quarter of that time.
const SELF_TEST: (f64, Duration) = (2.2, Duration::from_millis(250));

/// A resolver between a client and the authority.
pub struct Resolution {
    // Dropped first: a device's end needs its network.
    running: Box<dyn Running>,
    network: Arc<Network>,
    cores: Cores,
    time: Duration,
    precision: f64,
    /// The next name that was not asked for.
    next: u32,
}

impl Resolution {
    /// Builds the network, and starts the authority and the resolver.
    ///
    /// # Errors
    /// Something does not start, or does not answer.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let precision = precision(line.asked).map_err(Failure::Unexpected)?;
        let network = Arc::new(client_gateway_server()?);
        start_authority(&network, &Tree::to_measure(NAMES, 1))?;
        let place = Place {
            network: Arc::clone(&network),
            host: "gateway",
            inside: vec!["in0"],
            outside: vec!["out0"],
            core: line.cores.device,
        };
        let task = Dns64 { listen: LISTEN, authority: AUTHORITY, prefix: "64:ff9b::/96".to_owned() };
        let running = line.device.start(&place, &Task::Dns64(task))?;
        let time = time(line.asked.scale);
        let resolution = Self { running, network, cores: line.cores, time, precision, next: 0 };
        resolution.wait()?;
        Ok(resolution)
    }

    /// The last name gets a AAAA record.
    fn wait(&self) -> Result<()> {
        let asker = Asker::open(self.network.host("client")?, SocketAddr::new(LISTEN.into(), 53))?;
        interrupt::wait_until(Duration::from_secs(20), "a AAAA record", || {
            let patience = Duration::from_millis(500);
            let reply = asker.ask_within(&large_name(NAMES - 1), "AAAA", Flags::NONE, patience);
            Ok(reply.is_ok_and(|reply| !reply.data("AAAA").is_empty()))
        })
    }

    /// Queries that were not asked before, at a rate for a trial's time; with all names asked, the resolver restarts without its cache.
    fn ask(&mut self, per_second: f64) -> Result<Paced> {
        let count = ((per_second * self.time.as_secs_f64()).ceil() as u32).clamp(1, NAMES - 1);
        if self.next + count > NAMES - 1 {
            self.running.restart()?;
            self.wait()?;
            self.next = 0;
        }
        let lines: String =
            (self.next..self.next + count).map(|number| large_name(number) + " AAAA\n").collect();
        self.next += count;
        let file = self.network.file("questions", &lines)?;
        let server = SocketAddr::new(LISTEN.into(), 53);
        dnsperf_at(self.network.host("client")?, server, &file, per_second, LOST_AFTER)
    }

    /// §9.2.1: the authority alone, asked from its own host.
    fn self_test(&self, rate: f64) -> Result<bool> {
        let (times, limit) = SELF_TEST;
        let count = (rate * times * self.time.as_secs_f64()).ceil() as u32;
        let lines: String = (0..count).map(|number| large_name(number % NAMES) + " A\n").collect();
        let file = self.network.file("self-test", &lines)?;
        let server = SocketAddr::new(AUTHORITY.into(), 53);
        let paced = dnsperf_at(self.network.host("server")?, server, &file, rate * times, limit)?;
        Ok(paced.answered == paced.sent)
    }
}

impl Trial for Resolution {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let paced = self.ask(per_second)?;
        let loss = 1.0 - paced.answered as f64 / paced.sent.max(1) as f64;
        // The last answers are waited for, a second at most.
        let has_kept_up = paced.took <= self.time + LOST_AFTER;
        let sent = paced.sent as f64 / paced.took.as_secs_f64().max(1e-9);
        Ok(Seen { loss, offered: if has_kept_up { per_second } else { sent }, is_disturbed: false })
    }
}

impl Stage for Resolution {
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let search = Search { rates: RATES, passed: 0.0, loss: 0.0, precision: self.precision, repeats: 0 };
        let found = search.run(self)?;
        let rate = found.rate.max(RATES.0);
        let passed = self.self_test(rate)?;
        // A row at the rate that was found: the queries are made before it is measured.
        let (before, cores) = (self.running.cpu()?, self.cores);
        let paced = self.ask(rate)?;
        let spent = self.running.cpu()?.spent.saturating_sub(before.spent);
        measure(self.running.as_ref(), (cores, Reading::Ticks), sheet, || {
            Ok(Outcome { sent: paced.sent, answered: paced.answered, ..Outcome::default() })
        })?;
        let each = spent.as_secs_f64() * 1e3 / paced.answered.max(1) as f64;
        sheet.value("queries", found.rate, Unit::PerSecond);
        sheet.value("sent", paced.sent as f64, Unit::Count);
        sheet.value("answered", paced.answered as f64, Unit::Count);
        sheet.value("cpu-per-query", each, Unit::CpuMilliseconds);
        sheet.value("self-test", f64::from(u8::from(passed)), Unit::Count);
        sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("all answered", &found))
    }
}
