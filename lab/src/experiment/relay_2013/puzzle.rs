//! The puzzle of the paper: with Linux the CPU load grows faster than the number of packets between four and seven hosts.
//!
//! | Hypothesis | Prediction | What the paper's own table says |
//! |---|---|---|
//! | Interrupts give way to polling (NAPI) as the load grows | packets become cheaper | they become dearer: the wrong sign |
//! | CPU time by ticks misses short bursts of work on received packets | the low values are wrong; at full load the cost of a packet stays the same | it stays the same from seven hosts on, when the CPU is full |
//! | Routes were cached for each destination in 2.6.32, with a limit of 4,096 | cost follows new destinations a second | it follows neither the rate nor the number of destinations, for both grow together with hosts and the cost stays the same from seven hosts on |

use super::published::PUBLISHED;
use crate::analyse::{Estimate, Finding, Outcome, groups, points};
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

/// What the published table shows, and what a guest shows.
pub fn findings(results: &Results) -> Vec<Finding> {
    let samples: Vec<Sample> = results
        .samples
        .iter()
        .filter(|sample| sample.cell.experiment == "relay-2013" && sample.cell.series == "icmp")
        .cloned()
        .collect();
    vec![saturates(), ticks(&samples)]
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

/// In a guest, the same load's CPU time by the guest's ticks and by its emulator's exact time: if ticks miss work, their share of the exact time is
/// smaller at low load than at high load.
fn ticks(samples: &[Sample]) -> Finding {
    let groups = groups(samples);
    let (by_ticks, exact) = (points(&groups, "hosts", "guest-ticks"), points(&groups, "hosts", "cpu"));
    let share = |hosts: f64| {
        let of = |values: &[(&str, f64, Estimate)]| {
            values
                .iter()
                .find(|(device, at, _)| *device == "linux-sit" && *at == hosts)
                .map(|(.., it)| it.mean)
        };
        Some((of(&by_ticks)?, of(&exact)?))
    };
    let statement = "The puzzle in a guest of today: CPU time by ticks misses a larger share of it with one host than with ten.".to_owned();
    match (share(1.0), share(10.0)) {
        (Some((low, low_exact)), Some((high, high_exact))) if low_exact > 0.0 && high_exact > 0.0 => {
            Finding {
                statement,
                outcome: match low / low_exact < 0.8 * (high / high_exact) {
                    true => Outcome::Holds,
                    false => Outcome::DoesNotHold,
                },
                evidence: format!(
                    "ticks and exact time, in cores: {low:.3} and {low_exact:.3} with one host, {high:.3} and {high_exact:.3} with ten; \
                 a kernel of today in an emulated machine, so it excludes nothing for 2.6.32"
                ),
            }
        }
        _ => Finding {
            statement,
            outcome: Outcome::NotShown,
            evidence: "linux-sit was not measured with one and with ten hosts".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_cost_of_a_request_stays_the_same_once_the_cpu_is_full() {
        let costs: Vec<f64> =
            published_cost().iter().map(|(_, cost)| (cost * 100.0).round() / 100.0).collect();
        assert_eq!(costs.len(), 10);
        assert!(costs[..7].is_sorted() && costs[0] < 3.0 && costs[3] < 5.0, "{costs:?}");
        assert!(costs[6..].iter().all(|cost| (19.0..=21.0).contains(cost)), "{costs:?}");
        assert_eq!(saturates().outcome, Outcome::Holds);
    }
}
