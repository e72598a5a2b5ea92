//! The cost of a measurement, which determines its verdict: the same for all experiments.

use super::core_time::{CoreTime, Cores, core_time};
use super::idle::Soak;
use crate::affinity::cpus;
use crate::failure::Result;
use crate::load::Outcome;
use crate::results::TesterCost;
use std::time::{Duration, Instant};

/// A request that was sent later than this share of the median response time is late: its time says something about the tester.
const LATE: f64 = 0.1;

/// A measurement that runs.
pub struct Meter {
    cores: Cores,
    device: CoreTime,
    tester: CoreTime,
    soak: Option<Soak>,
    start: Instant,
}

/// How the device's core is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// By the kernel's ticks: for response times, which the loop would disturb.
    Ticks,
    /// By a loop that runs when nothing else does: exact for whatever the kernel does.
    LostCycles,
}

impl Meter {
    /// Begins, just before the load.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn begin(cores: Cores, reading: Reading) -> Result<Self> {
        let soak = match (reading, cores.device) {
            (Reading::LostCycles, Some(core)) => Some(Soak::start(core)?),
            (Reading::LostCycles, None) | (Reading::Ticks, _) => None,
        };
        let (device, tester) = (core_time(cores.device)?, core_time(cores.tester)?);
        Ok(Self { cores, device, tester, soak, start: Instant::now() })
    }

    /// Ends, just after the load: `device` is the CPU time that the device spent meanwhile, as far as it is that of a process.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn end(self, outcome: &Outcome, device: Duration) -> Result<TesterCost> {
        let took = self.start.elapsed();
        let (device_core, tester_core) = (core_time(self.cores.device)?, core_time(self.cores.tester)?);
        let soaked = self.soak.map(Soak::end).transpose()?;
        // Without a core of its own the tester has all of them.
        let cores = if self.cores.tester.is_some() { 1 } else { cpus() };
        let seen = Seen {
            tester_busy: tester_core.busy_since(&self.tester) * cores as f64,
            device_busy: device_core.busy_since(&self.device),
            device_interrupts: device_core.interrupts_since(&self.device),
            device_cores: device.as_secs_f64() / took.as_secs_f64().max(1e-9),
            lost_cycles: soaked.map(|soaked| soaked.busy),
            steal: device_core.stolen_since(&self.device),
        };
        Ok(cost(outcome, took, &seen))
    }
}

/// What was read, as shares of the time.
struct Seen {
    tester_busy: f64,
    device_busy: f64,
    device_interrupts: f64,
    device_cores: f64,
    lost_cycles: Option<f64>,
    steal: f64,
}

fn cost(outcome: &Outcome, took: Duration, seen: &Seen) -> TesterCost {
    // Shares are those of the time in which there was something to do: a second of waiting makes nobody idle.
    let active = outcome.active(took).as_secs_f64().max(1e-9);
    let longer = took.as_secs_f64() / active;
    let generator_cores = outcome.cost.cpu.as_secs_f64() / active;
    // Other programs on the device's core do not make the device busy. A process's time has part of the interrupts' in it. What a loop has lost is all.
    let own = seen.device_cores + seen.device_interrupts;
    let device_core_busy = longer
        * match seen.lost_cycles {
            None => own.min(seen.device_busy),
            Some(lost) => lost - seen.steal,
        };
    let late = (outcome.latency.value_at_quantile(0.5) as f64 * LATE) as u64;
    TesterCost {
        generator_cores,
        responder_cores: (longer * seen.tester_busy - generator_cores).max(0.0),
        device_core_busy: device_core_busy.clamp(0.0, 1.0),
        late_sends: outcome.lateness.count_between(late + 1, outcome.lateness.high()),
        steal: seen.steal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ThreadCost;
    use crate::results::Verdict;

    const TOOK: Duration = Duration::from_secs(1);

    fn outcome(cpu: Duration) -> Outcome {
        let mut outcome = Outcome { cost: ThreadCost { cpu, ..ThreadCost::default() }, ..Outcome::default() };
        for number in 0..100 {
            outcome.answer_due(0, 0, 1_000_000);
            outcome.lateness.saturating_record(if number < 3 { 200_000 } else { 20_000 });
        }
        outcome
    }

    #[test]
    fn an_idle_tester_is_not_tester_bound() {
        let idle = Seen {
            tester_busy: 0.12,
            device_busy: 0.97,
            device_interrupts: 0.25,
            device_cores: 0.7,
            lost_cycles: None,
            steal: 0.0,
        };
        let judged = cost(&outcome(Duration::from_millis(100)), TOOK, &idle);
        assert_eq!(Verdict::judge(&judged), Verdict::DeviceBound);
        assert_eq!(judged.late_sends, 3);
        assert!((judged.responder_cores - 0.02).abs() < 1e-9);
        let busy = Seen { tester_busy: 0.95, ..idle };
        let judged = cost(&outcome(Duration::from_millis(100)), TOOK, &busy);
        assert!(matches!(Verdict::judge(&judged), Verdict::TesterBound { .. }));
    }

    /// 300 ms of frames, and a second of waiting for those that were lost.
    #[test]
    fn a_wait_for_what_was_lost_makes_nobody_idle() {
        let seen = Seen {
            tester_busy: 0.18,
            device_busy: 0.24,
            device_interrupts: 0.01,
            device_cores: 0.22,
            lost_cycles: None,
            steal: 0.0,
        };
        let took = Duration::from_millis(1_300);
        let all = outcome(Duration::from_millis(100));
        assert_eq!(Verdict::judge(&cost(&all, took, &seen)), Verdict::NotLoaded, "it went on to the end");
        let some = Outcome { lost: 3, took: Duration::from_millis(300), ..all };
        let judged = cost(&some, took, &seen);
        assert!((judged.device_core_busy - 0.23 * 1.3 / 0.3).abs() < 1e-9, "{judged:?}");
        assert!((judged.generator_cores + judged.responder_cores - 0.78).abs() < 1e-9, "{judged:?}");
        assert_eq!(Verdict::judge(&judged), Verdict::DeviceBound);
        let busy = Seen { tester_busy: 0.25, ..seen };
        assert!(matches!(Verdict::judge(&cost(&some, took, &busy)), Verdict::TesterBound { .. }));
    }

    #[test]
    fn what_ticks_miss_is_seen_by_lost_cycles_without_the_hypervisors() {
        let kernel = Seen {
            tester_busy: 0.5,
            device_busy: 0.2,
            device_interrupts: 0.1,
            device_cores: 0.0,
            lost_cycles: Some(0.98),
            steal: 0.02,
        };
        let judged = cost(&outcome(Duration::ZERO), TOOK, &kernel);
        assert!((judged.device_core_busy - 0.96).abs() < 1e-9);
        assert_eq!(Verdict::judge(&judged), Verdict::DeviceBound);
    }
}
