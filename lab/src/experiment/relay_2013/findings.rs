//! The paper's statements. That response times grow along a straight line is not among them: with eight requests under way for each host, that
//! is arithmetic.

use super::published::LOSS;
use crate::analyse::{Finding, Outcome, greatest, groups};
use crate::results::{Results, Sample, Verdict};

/// Series with the paper's load.
const SERIES: [&str; 3] = ["icmp", "one-responder", "sizes"];

/// Whether the paper's statements hold for each device.
pub fn findings(results: &Results) -> Vec<Finding> {
    // Those with the paper's load: other series have a question of their own.
    let is_meant = |sample: &&Sample| {
        sample.cell.experiment == "relay-2013" && SERIES.contains(&sample.cell.series.as_str())
    };
    let of_this: Vec<_> = results.samples.iter().filter(is_meant).cloned().collect();
    let groups = groups(&of_this);
    let mut devices: Vec<&str> = groups.iter().map(|group| group.cell.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let finding = |device: &str| {
        let own = || groups.iter().filter(|group| group.cell.device == device);
        // What is lost in other rows may be the tester's loss.
        let busy = || own().filter(|group| *group.verdict() == Verdict::DeviceBound);
        let (count, in_busy) = (busy().count(), greatest(busy(), "loss"));
        let outcome = match (count, in_busy <= LOSS) {
            (0, _) => Outcome::NotShown,
            (_, true) => Outcome::Holds,
            (_, false) => Outcome::DoesNotHold,
        };
        let evidence = match count {
            0 => format!(
                "no row is device-bound; in all rows {:.3} % at most",
                greatest(own(), "loss") * 100.0
            ),
            _ => format!("{:.3} % at most in {count} device-bound rows", in_busy * 100.0),
        };
        let statement = format!("{device} loses at most {:.2} % while its core is busy.", LOSS * 100.0);
        Finding { statement, outcome, evidence }
    };
    devices.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    fn row(series: &str, hosts: f64, loss: f64, verdict: Verdict) -> Sample {
        Sample {
            cell: Cell {
                experiment: "relay-2013".to_owned(),
                series: series.to_owned(),
                device: "sixway".to_owned(),
                point: BTreeMap::from([("hosts".to_owned(), hosts)]),
                repeat: 0,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([("loss".to_owned(), Value::one(loss, Unit::Lost))]),
            not_measurable: BTreeMap::new(),
            verdict,
            tester: TesterCost::default(),
            control: None,
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        }
    }

    #[test]
    fn what_is_lost_counts_in_rows_with_a_busy_device() {
        let of = |samples: &[Sample]| {
            let results = Results { header: Header::default(), samples: samples.to_vec() };
            findings(&results).into_iter().map(|it| (it.outcome, it.evidence)).next()
        };
        let tester = || Verdict::TesterBound { why: String::new() };
        let well = row("icmp", 10.0, 0.0, Verdict::DeviceBound);
        let (holds, evidence) = of(&[well.clone(), row("icmp", 7.0, 0.01, tester())]).unwrap();
        assert_eq!((holds, evidence.as_str()), (Outcome::Holds, "0.000 % at most in 1 device-bound rows"));
        let lost = row("sizes", 10.0, 0.01, Verdict::DeviceBound);
        assert_eq!(of(&[well.clone(), lost]).unwrap().0, Outcome::DoesNotHold);
        let (not_shown, evidence) = of(&[row("icmp", 7.0, 0.01, tester())]).unwrap();
        assert_eq!(not_shown, Outcome::NotShown);
        assert_eq!(evidence, "no row is device-bound; in all rows 1.000 % at most");
        assert_eq!(of(&[row("ping6", 1.0, 0.01, Verdict::DeviceBound)]), None, "another load");
    }
}
