//! DNS resolution performance (RFC 8219 §9): the highest rate at which each query for a different name, which has an A record only, gets a AAAA record
//! within a second.

use super::search::{Search, Seen, Trial};
use super::stage::{precision, trials};
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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const LISTEN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const AUTHORITY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// Names, each of which is queried once before the resolver restarts: the least, and the most, which nsd needs 10 s to read.
const NAMES: (f64, f64) = (250_000.0, 2_000_000.0);
/// Names for each second of a trial: a trial at a higher rate is shorter.
const EACH_SECOND: f64 = 50_000.0;
/// Rates of the search: the highest is far above what a sender on one CPU sends.
const RATES: (f64, f64) = (100.0, 1_000_000.0);
/// The search begins here, and doubles the rate until some query is not answered.
const FIRST: f64 = 8_000.0;
/// A trial that ends later than this share of its time and this time after it has a backlog, or its sender was too slow.
const SLACK: (f64, Duration) = (0.02, Duration::from_millis(20));
/// An answer that takes longer has waited for others in the resolver: then it was not the sender that was too slow.
const WAITED: Duration = Duration::from_millis(100);
/// A query without an answer for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// §9.2.1: the tester answers twice the rate and a tenth more within a quarter of that time.
const SELF_TEST: (f64, Duration) = (2.2, Duration::from_millis(250));

/// How often a trial is made whose sender was too slow: other programs may have had its CPU.
const TRIES: usize = 3;

/// How long a trial takes: a minute at scale 1, and a second at least, which is also how long an answer may take.
pub fn time(scale: f64) -> Duration {
    Duration::from_secs_f64((60.0 * scale).clamp(1.0, 60.0))
}

/// Names for trials of this length.
fn names(time: Duration) -> u32 {
    (time.as_secs_f64() * EACH_SECOND).clamp(NAMES.0, NAMES.1) as u32
}

/// A resolver between a client and the authority.
pub struct Resolution {
    // Dropped first: a device's end needs its network.
    running: Box<dyn Running>,
    network: Arc<Network>,
    cores: Cores,
    time: Duration,
    precision: f64,
    /// How many names there are.
    names: u32,
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
        let time = time(line.asked.scale);
        let names = names(time);
        start_authority(&network, &Tree::to_measure(names, 1))?;
        let place = Place {
            network: Arc::clone(&network),
            host: "gateway",
            inside: vec!["in0"],
            outside: vec!["out0"],
            core: line.cores.device,
        };
        let task = Dns64 { listen: LISTEN, authority: AUTHORITY, prefix: "64:ff9b::/96".to_owned() };
        let running = line.device.start(&place, &Task::Dns64(task))?;
        let resolution = Self { running, network, cores: line.cores, time, precision, names, next: 0 };
        resolution.wait()?;
        Ok(resolution)
    }

    /// The last name gets a AAAA record.
    fn wait(&self) -> Result<()> {
        let asker = Asker::open(self.network.host("client")?, SocketAddr::new(LISTEN.into(), 53))?;
        interrupt::wait_until(Duration::from_secs(20), "a AAAA record", || {
            let patience = Duration::from_millis(500);
            let reply = asker.ask_within(&large_name(self.names - 1), "AAAA", Flags::NONE, patience);
            Ok(reply.is_ok_and(|reply| !reply.data("AAAA").is_empty()))
        })
    }

    /// A file of queries that were not asked before, for a trial at a rate; with all names asked, the resolver restarts without its cache.
    fn prepare(&mut self, per_second: f64) -> Result<PathBuf> {
        let count = ((per_second * self.time.as_secs_f64()).ceil() as u32).clamp(1, self.names - 1);
        if self.next + count > self.names - 1 {
            self.running.restart()?;
            self.wait()?;
            self.next = 0;
        }
        let lines: String =
            (self.next..self.next + count).map(|number| large_name(number) + " AAAA\n").collect();
        self.next += count;
        self.network.file("questions", &lines)
    }

    fn ask(&self, file: &Path, per_second: f64) -> Result<Paced> {
        let server = SocketAddr::new(LISTEN.into(), 53);
        dnsperf_at(self.network.host("client")?, server, file, per_second, LOST_AFTER)
    }

    /// §9.2.1: the authority alone, asked from its own host.
    fn self_test(&self, rate: f64) -> Result<bool> {
        let (times, limit) = SELF_TEST;
        let count = (rate * times * self.time.as_secs_f64()).ceil() as u32;
        let lines: String = (0..count).map(|number| large_name(number % self.names) + " A\n").collect();
        let file = self.network.file("self-test", &lines)?;
        let server = SocketAddr::new(AUTHORITY.into(), 53);
        let paced = dnsperf_at(self.network.host("server")?, server, &file, rate * times, limit)?;
        Ok(paced.answered == paced.sent)
    }
}

impl Trial for Resolution {
    type Error = Failure;

    fn run(&mut self, per_second: f64) -> Result<Seen> {
        let mut best: Option<Seen> = None;
        for _ in 0..TRIES {
            let file = self.prepare(per_second)?;
            let seen = seen(&self.ask(&file, per_second)?, per_second);
            if seen.offered >= per_second {
                return Ok(seen);
            }
            best = best.filter(|best| best.offered >= seen.offered).or(Some(seen));
        }
        best.ok_or_else(|| Failure::Unexpected("there was no trial".to_owned()))
    }
}

/// What a trial at a rate has seen. Each query has to be answered within a second of its own, and as many in a second as are sent: what a resolver answers
/// after the end, for it has a backlog, counts as lost.
fn seen(paced: &Paced, per_second: f64) -> Seen {
    let loss = 1.0 - paced.answered as f64 / paced.sent.max(1) as f64;
    let planned = paced.sent as f64 / per_second.max(1e-9);
    let took = paced.took.as_secs_f64();
    // Those that are lost are waited for.
    if loss > 0.0 || took <= planned * (1.0 + SLACK.0) + SLACK.1.as_secs_f64() {
        return Seen { loss, offered: per_second, is_disturbed: false };
    }
    match paced.longest > WAITED {
        true => Seen { loss: 1.0 - planned / took, offered: per_second, is_disturbed: false },
        // Nothing has waited: the sender was too slow.
        false => Seen { loss, offered: paced.sent as f64 / took.max(1e-9), is_disturbed: false },
    }
}

impl Stage for Resolution {
    fn measure(&mut self, _cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let search = Search { rates: RATES, passed: 0.0, loss: 0.0, precision: self.precision, repeats: 0 };
        let found = search.from(FIRST, self)?;
        let rate = found.rate.max(RATES.0);
        let passed = self.self_test(rate)?;
        // A row at the rate that was found: the queries are made, and the resolver restarts, before it is measured.
        let file = self.prepare(rate)?;
        let measured = measure(self.running.as_ref(), (self.cores, Reading::Ticks), sheet, || {
            Ok(outcome(&self.ask(&file, rate)?))
        })?;
        if found.is_at_ceiling {
            let why = format!(
                "the sender sends no more than {:.0} queries a second, and all were answered",
                found.rate
            );
            sheet.limited_by_tester(why);
        }
        let Outcome { sent, answered, .. } = measured.outcome;
        let each = measured.nanoseconds_each(answered as f64) / 1e6;
        sheet.value("queries", found.rate, Unit::PerSecond);
        sheet.value("sent", sent as f64, Unit::Count);
        sheet.value("answered", answered as f64, Unit::Count);
        sheet.value("cpu-per-query", each, Unit::CpuMilliseconds);
        sheet.value("duration", sent as f64 / rate * 1e3, Unit::Milliseconds);
        sheet.value("self-test", f64::from(u8::from(passed)), Unit::Count);
        sheet.value("at-ceiling", f64::from(u8::from(found.is_at_ceiling)), Unit::Count);
        sheet.value("trials", found.trials.len() as f64, Unit::Count);
        sheet.keep("trials.txt", &trials("all answered", &found))
    }
}

/// The queries as a load. What they cost is the CPU time of another program on the tester's core.
fn outcome(paced: &Paced) -> Outcome {
    let lost = paced.sent.saturating_sub(paced.answered);
    Outcome { sent: paced.sent, answered: paced.answered, lost, took: paced.took, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(answered: u64, took: u64, longest: u64) -> Seen {
        let time = Duration::from_millis;
        seen(&Paced { sent: 10_000, answered, took: time(took), longest: time(longest) }, 10_000.0)
    }

    #[test]
    fn a_backlog_at_the_end_is_a_loss() {
        assert_eq!(paced(10_000, 1_010, 12), Seen { loss: 0.0, offered: 10_000.0, is_disturbed: false });
        // All were answered within a second, and half as fast as they were sent.
        let late = paced(10_000, 1_990, 990);
        assert!((late.loss - (1.0 - 1.0 / 1.99)).abs() < 1e-9 && late.offered == 10_000.0, "{late:?}");
        assert!(paced(10_000, 1_100, 110).loss > 0.05);
        // The wait for those that are lost is not a backlog.
        assert!((paced(9_900, 2_000, 300).loss - 0.01).abs() < 1e-9);
    }

    #[test]
    fn a_slow_sender_is_not_the_resolvers_backlog() {
        assert_eq!(paced(10_000, 2_000, 3), Seen { loss: 0.0, offered: 5_000.0, is_disturbed: false });
    }

    #[test]
    fn a_trial_is_long_enough_for_a_backlog_to_be_seen() {
        assert_eq!([time(0.000_2), time(0.02), time(1.0)].map(|it| it.as_millis()), [1_000, 1_200, 60_000]);
        assert!(time(0.0) >= LOST_AFTER);
        assert_eq!([time(0.0), time(1.0)].map(names), [250_000, 2_000_000]);
    }
}
