//! The puzzle of the paper: with Linux the CPU load grows faster than the number of packets between four and seven hosts.
//!
//! | Hypothesis | Prediction | What the paper's own table says |
//! |---|---|---|
//! | Interrupts give way to polling (NAPI) as the load grows | packets become cheaper | they become dearer: the wrong sign |
//! | CPU time by ticks misses short bursts of work on received packets | the low values are wrong; at full load the cost of a packet stays the same | it stays the same from seven hosts on, when the CPU is full |
//! | Routes were cached for each destination in 2.6.32, with a limit of 4,096 | cost follows new destinations a second | it follows neither the rate nor the number of destinations, for both grow together with hosts and the cost stays the same from seven hosts on |

use super::published::PUBLISHED;
use crate::analyse::{Bearing, Finding, Group, Outcome, View};
use crate::results::Results;

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
    let view = View::of(results, "relay-2013");
    [vec![saturates()], in_guests(&view).to_vec()].concat()
}

fn in_guests(view: &View<'_>) -> [Finding; 2] {
    [misses(view), goes_on(view)]
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

/// The share of a guest's CPU time that its ticks count: they over the exact time of the thread that is its CPU.
struct Seen<'v, 'a> {
    row: &'v Group<'a>,
    share: Bearing,
}

/// At low and at full load, if both were measured.
fn seen<'v, 'a>(view: &'v View<'a>, device: &str) -> Option<[Seen<'v, 'a>; 2]> {
    // The usual series has the same values of a guest.
    let has_own = view.groups.iter().any(|group| group.cell.series == "puzzle");
    let series = if has_own { "puzzle" } else { "icmp" };
    let of = |hosts: f64| {
        let is_meant = |group: &&Group<'_>| {
            let cell = group.cell;
            cell.series == series && cell.device == device && cell.at("hosts") == hosts
        };
        let row = view.groups.iter().find(is_meant)?;
        row.value("guest-cpu").filter(|(exact, _)| exact.mean > 0.0)?;
        Some(Seen { row, share: view.ratio_of_counters((row, "guest-ticks"), (row, "guest-cpu")) })
    };
    Some([of(LOADS[0])?, of(LOADS[1])?])
}

impl Seen<'_, '_> {
    fn text(&self) -> String {
        let mean = |value: &str| self.row.value(value).map_or(f64::NAN, |(it, _)| it.mean);
        format!("{:.3} and {:.3} ({})", mean("guest-ticks"), mean("guest-cpu"), self.share.explained())
    }
}

/// A statement on the shares at low and at full load, which says nothing if the noise does not bear it.
fn finding(
    statement: &str,
    seen: Option<[Seen<'_, '_>; 2]>,
    device: &str,
    test: impl Fn(&Bearing, &Bearing) -> Option<bool>,
) -> Finding {
    let statement = statement.to_owned();
    let Some([low, high]) = seen else {
        let evidence = format!("{device} was not measured with one and with ten hosts");
        return Finding { statement, outcome: Outcome::NotShown, evidence };
    };
    Finding {
        statement,
        outcome: Outcome::from(test(&low.share, &high.share)),
        evidence: format!(
            "ticks and exact time, in cores: {} with one host, {} with ten; a kernel of today in an emulated machine, so it excludes \
             nothing for 2.6.32",
            low.text(),
            high.text()
        ),
    }
}

/// The same load's CPU time by the guest's ticks, and exactly that of the thread which is its CPU: if ticks miss work, their share of the exact time is smaller at
/// low load than at full load. Both shares are those of rows of their own: only intervals that do not meet differ.
fn misses(view: &View<'_>) -> Finding {
    let statement = "The puzzle in a guest of today: CPU time by ticks misses a larger share of it with one host than with ten, so that it \
                     grows faster than the load.";
    finding(statement, seen(view, "linux-sit"), "linux-sit", |low, high| {
        let ([least, most], [least_full, most_full]) = (ends(low)?, ends(high)?);
        match (most < (1.0 - SAME) * least_full, least >= (1.0 - SAME) * most_full) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            (false, false) => None,
        }
    })
}

/// A current kernel stops its ticks while it is idle, and work on received packets that begins and ends there has none. With ticks that go on, it
/// is counted. At full load ticks also count the time in which the emulator's other threads have the core.
fn goes_on(view: &View<'_>) -> Finding {
    let statement = "The puzzle in a guest whose ticks do not stop when it is idle: with one host, they miss less than a fifth of its CPU time.";
    let device = "linux-sit-ticking";
    finding(statement, seen(view, device), device, |low, _| match ends(low)? {
        [least, _] if least >= 1.0 - SAME => Some(true),
        [_, most] if most < 1.0 - SAME => Some(false),
        _ => None,
    })
}

/// The ends of the interval of a share.
fn ends(share: &Bearing) -> Option<[f64; 2]> {
    share.ratio().map(|ratio| [ratio.interval.0, ratio.interval.1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Sample, TesterCost, Unit, Value, Verdict};

    #[test]
    fn the_published_cost_of_a_request_stays_the_same_once_the_cpu_is_full() {
        let costs: Vec<f64> =
            published_cost().iter().map(|(_, cost)| (cost * 100.0).round() / 100.0).collect();
        assert_eq!(costs.len(), 10);
        assert!(costs[..7].is_sorted() && costs[0] < 3.0 && costs[3] < 5.0, "{costs:?}");
        assert!(costs[6..].iter().all(|cost| (19.0..=21.0).contains(cost)), "{costs:?}");
        assert_eq!(saturates().outcome, Outcome::Holds);
    }

    /// Rounds of a guest's CPU time by its ticks and of its CPU's thread, with this number of hosts.
    fn rounds((device, hosts, ticks, exact): (&str, f64, f64, f64), factors: &[f64]) -> Vec<Sample> {
        let round = |(repeat, factor): (u32, &f64)| Sample {
            cell: Cell {
                experiment: "relay-2013".to_owned(),
                series: "puzzle".to_owned(),
                device: device.to_owned(),
                point: [("hosts".to_owned(), hosts)].into(),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: [("guest-ticks", ticks * factor), ("guest-cpu", exact)]
                .map(|(name, cores)| (name.to_owned(), Value::one(cores, Unit::Cores)))
                .into(),
            not_measurable: [].into(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..).zip(factors).map(round).collect()
    }

    fn outcomes(rows: &[(&str, f64, f64, f64)], factors: &[f64]) -> [Outcome; 2] {
        let samples = rows.iter().flat_map(|row| rounds(*row, factors)).collect();
        let results = Results { header: Header::default(), samples };
        in_guests(&View::of(&results, "relay-2013")).map(|finding| finding.outcome)
    }

    const STEADY: [f64; 3] = [0.99, 1.0, 1.01];
    const STOPPING: [(&str, f64, f64, f64); 2] =
        [("linux-sit", 1.0, 0.02, 0.2), ("linux-sit", 10.0, 0.9, 0.95)];
    const TICKING: [(&str, f64, f64, f64); 2] =
        [("linux-sit-ticking", 1.0, 0.19, 0.2), ("linux-sit-ticking", 10.0, 0.9, 0.95)];

    #[test]
    fn ticks_that_miss_more_at_low_load_are_an_answer() {
        assert_eq!(outcomes(&STOPPING, &STEADY), [Outcome::Holds, Outcome::NotShown]);
        assert_eq!(outcomes(&TICKING, &STEADY), [Outcome::NotShown, Outcome::Holds]);
        let both = [("linux-sit", 1.0, 0.2, 0.2), ("linux-sit", 10.0, 0.95, 0.95)];
        assert_eq!(outcomes(&both, &STEADY)[0], Outcome::DoesNotHold);
        let few = [("linux-sit-ticking", 1.0, 0.1, 0.2), ("linux-sit-ticking", 10.0, 0.9, 0.95)];
        assert_eq!(outcomes(&few, &STEADY)[1], Outcome::DoesNotHold);
    }

    #[test]
    fn shares_that_the_rounds_do_not_bear_are_no_answer() {
        for rounds in [&STEADY[..1], &STEADY[..2], &[0.2, 1.0, 2.5]] {
            assert_eq!(outcomes(&STOPPING, rounds)[0], Outcome::NotShown, "{rounds:?}");
            assert_eq!(outcomes(&TICKING, rounds)[1], Outcome::NotShown, "{rounds:?}");
        }
    }
}
