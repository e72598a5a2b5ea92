//! The puzzle of the paper: with Linux the CPU load grows faster than the number of packets between four and seven hosts.
//!
//! | Hypothesis | Prediction | What the paper's own table says |
//! |---|---|---|
//! | Interrupts give way to polling (NAPI) as the load grows | packets become cheaper | they become dearer: the wrong sign |
//! | CPU time by ticks misses short bursts of work on received packets | the low values are wrong; at full load the cost of a packet stays the same | it stays the same from seven hosts on, when the CPU is full |
//! | Routes were cached for each destination in 2.6.32, with a limit of 4,096 | cost follows new destinations a second | it follows neither the rate nor the number of destinations, for both grow together with hosts and the cost stays the same from seven hosts on |

use super::published::PUBLISHED;
use crate::analyse::{Finding, Group, Outcome, groups, points};
use crate::results::{Results, Sample};

/// Hosts, and CPU time of a request as a share of one at full load, from the published table.
fn published_cost() -> Vec<(f64, f64)> {
    let rows = PUBLISHED.iter().find(|table| table.device.starts_with("Linux")).map_or(&[][..], |it| it.rows);
    let cost = |values: &[f64]| match values {
        [_, _, cpu, requests, ..] => cpu / requests * 1e6,
        _ => f64::NAN,
    };
    rows.iter().map(|(hosts, values)| (*hosts, cost(values))).collect()
}

/// What the published table shows, and what guests show.
pub fn findings(results: &Results) -> Vec<Finding> {
    let of = |series: &str| -> Vec<Sample> {
        let is_meant =
            |sample: &&Sample| sample.cell.experiment == "relay-2013" && sample.cell.series == series;
        results.samples.iter().filter(is_meant).cloned().collect()
    };
    let (own, usual) = (of("puzzle"), of("icmp"));
    // The usual series has the same values of a guest.
    let mut all = vec![saturates()];
    all.extend(in_guests(if own.is_empty() { &usual } else { &own }));
    all
}

fn in_guests(samples: &[Sample]) -> [Finding; 2] {
    let groups = groups(samples);
    [misses(&groups), goes_on(&groups)]
}

/// In microseconds of CPU time for a request.
fn saturates() -> Finding {
    let costs = published_cost();
    let at = |hosts: f64| costs.iter().find(|(of, _)| *of == hosts).map_or(f64::NAN, |(_, cost)| *cost);
    let full = [7.0, 8.0, 9.0, 10.0].map(at);
    let (least, most) =
        full.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    let holds = most / least < 1.1 && at(1.0) < least / 5.0;
    Finding {
        statement: "The puzzle: the paper's CPU load is too low at low load, not too high at high load. The cost of a request stays the \
                    same once the CPU is full, which neither polling nor a cache of routes predicts."
            .to_owned(),
        outcome: if holds { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!(
            "published: {:.1} µs of CPU time for a request with one host, {:.1} with four, and {least:.1} to {most:.1} with seven to ten",
            at(1.0),
            at(4.0)
        ),
    }
}

/// Hosts at low and at full load.
const LOADS: [f64; 2] = [1.0, 10.0];
/// Shares of CPU time that differ by more than this are not the same.
const SAME: f64 = 0.2;

/// CPU time by the guest's ticks, and of the thread that is its CPU, in cores, at low and at full load.
fn seen(groups: &[Group<'_>], device: &str) -> Option<[[f64; 2]; 2]> {
    let of = |value: &str, hosts: f64| {
        let all = points(groups, "hosts", value);
        all.into_iter().find(|(of, at, _)| *of == device && *at == hosts).map(|(.., it)| it.mean)
    };
    let at =
        |hosts: f64| Some([of("guest-ticks", hosts)?, of("guest-cpu", hosts).filter(|exact| *exact > 0.0)?]);
    Some([at(LOADS[0])?, at(LOADS[1])?])
}

fn finding(
    statement: &str,
    seen: Option<[[f64; 2]; 2]>,
    device: &str,
    holds: impl Fn(f64, f64) -> bool,
) -> Finding {
    let statement = statement.to_owned();
    let Some([[low, low_exact], [high, high_exact]]) = seen else {
        let evidence = format!("{device} was not measured with one and with ten hosts");
        return Finding { statement, outcome: Outcome::NotShown, evidence };
    };
    let holds = holds(low / low_exact, high / high_exact);
    Finding {
        statement,
        outcome: if holds { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!(
            "ticks and exact time, in cores: {low:.3} and {low_exact:.3} with one host, {high:.3} and {high_exact:.3} with ten; \
             a kernel of today in an emulated machine, so it excludes nothing for 2.6.32"
        ),
    }
}

/// The same load's CPU time by the guest's ticks, and exactly that of the thread which is its CPU: if ticks miss work, their share of the exact time is smaller at
/// low load than at full load.
fn misses(groups: &[Group<'_>]) -> Finding {
    let statement = "The puzzle in a guest of today: CPU time by ticks misses a larger share of it with one host than with ten, so that it \
                     grows faster than the load.";
    finding(statement, seen(groups, "linux-sit"), "linux-sit", |low, high| low < (1.0 - SAME) * high)
}

/// A current kernel stops its ticks while it is idle, and work on received packets that begins and ends there has none. With ticks that go on, it
/// is counted. At full load ticks also count the time in which the emulator's other threads have the core.
fn goes_on(groups: &[Group<'_>]) -> Finding {
    let statement = "The puzzle in a guest whose ticks do not stop when it is idle: with one host, they miss less than a fifth of its CPU time.";
    let device = "linux-sit-ticking";
    finding(statement, seen(groups, device), device, |low, _| low >= 1.0 - SAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, TesterCost, Unit, Value, Verdict};

    #[test]
    fn the_published_cost_of_a_request_stays_the_same_once_the_cpu_is_full() {
        let costs: Vec<f64> =
            published_cost().iter().map(|(_, cost)| (cost * 100.0).round() / 100.0).collect();
        assert_eq!(costs.len(), 10);
        assert!(costs[..7].is_sorted() && costs[0] < 3.0 && costs[3] < 5.0, "{costs:?}");
        assert!(costs[6..].iter().all(|cost| (19.0..=21.0).contains(cost)), "{costs:?}");
        assert_eq!(saturates().outcome, Outcome::Holds);
    }

    /// A guest's CPU time by its ticks and of its CPU's thread, with this number of hosts.
    fn sample((device, hosts, ticks, exact): (&str, f64, f64, f64)) -> Sample {
        let cell = Cell {
            experiment: "relay-2013".to_owned(),
            series: "puzzle".to_owned(),
            device: device.to_owned(),
            point: [("hosts".to_owned(), hosts)].into(),
            repeat: 0,
        };
        let values = [("guest-ticks", ticks), ("guest-cpu", exact)];
        Sample {
            cell,
            started: String::new(),
            took: 1.0,
            values: values.map(|(name, cores)| (name.to_owned(), Value::one(cores, Unit::Cores))).into(),
            not_measurable: [].into(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    #[test]
    fn ticks_that_miss_more_at_low_load_are_an_answer() {
        let outcomes = |rows: &[(&str, f64, f64, f64)]| {
            in_guests(&rows.iter().copied().map(sample).collect::<Vec<_>>()).map(|finding| finding.outcome)
        };
        let stopping = [("linux-sit", 1.0, 0.02, 0.2), ("linux-sit", 10.0, 0.9, 0.95)];
        assert_eq!(outcomes(&stopping), [Outcome::Holds, Outcome::NotShown]);
        let ticking = [("linux-sit-ticking", 1.0, 0.19, 0.2), ("linux-sit-ticking", 10.0, 0.9, 0.95)];
        assert_eq!(outcomes(&ticking), [Outcome::NotShown, Outcome::Holds]);
        let both = [("linux-sit", 1.0, 0.2, 0.2), ("linux-sit", 10.0, 0.95, 0.95)];
        assert_eq!(outcomes(&both)[0], Outcome::DoesNotHold);
    }
}
