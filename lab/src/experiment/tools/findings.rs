//! Whether a tool and our own load agree, and what is known about the tool if its times are longer.

use crate::analyse::{Bearing, Finding, Group, Outcome, View, short};
use crate::probe::Tool;
use crate::results::Results;

/// They agree if their response times differ by this share at most.
const AGREED: f64 = 0.1;

/// For each tool that was run.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "tools");
    Tool::ALL
        .into_iter()
        .flat_map(|tool| {
            let groups = view.groups.iter();
            let of = groups.filter(move |group| group.cell.at("tool") == f64::from(tool as u8));
            of.map(|group| finding(&view, tool, group)).collect::<Vec<_>>()
        })
        .collect()
}

fn finding(view: &View<'_>, tool: Tool, group: &Group<'_>) -> Finding {
    let statement = format!("{} and the lab's own load agree within 10 % in response time.", tool.name());
    let mean = |name: &str| group.value(name).map(|(estimate, _)| estimate.mean);
    let (outcome, evidence) = match (mean("tool-response"), mean("own-response")) {
        (Some(theirs), Some(ours)) => {
            let bearing = view.ratio_of((group, "tool-response"), (group, "own-response"));
            let (outcome, said) = judge(tool, &bearing);
            (outcome, format!("{theirs:.3} ms by the tool, {ours:.3} ms by ours: {said}"))
        }
        _ if group.samples.iter().all(|sample| sample.failed.is_some()) => {
            let why = group.samples.iter().find_map(|sample| sample.failed.clone());
            (Outcome::NotShown, why.unwrap_or_default())
        }
        _ => (Outcome::NotShown, why_longer(tool).to_owned()),
    };
    Finding { statement, outcome, evidence }
}

/// By the interval of the tool's time over ours. What is known of a tool explains only why its time is the longer one.
fn judge(tool: Tool, bearing: &Bearing) -> (Outcome, String) {
    let Some(ratio) = bearing.ratio() else { return (Outcome::NotShown, bearing.explained()) };
    let (low, high) = ratio.interval;
    let most = 1.0 + AGREED;
    let said = match bearing {
        Bearing::Number(_) => format!("{} times, {}", short(ratio.value), bearing.explained()),
        _ => bearing.explained(),
    };
    if low > most {
        (Outcome::DoesNotHold, format!("{said}; the tool's is longer: {}", why_longer(tool)))
    } else if high < 1.0 / most {
        let why = why_shorter(tool).unwrap_or("why is not known");
        (Outcome::DoesNotHold, format!("{said}; ours is longer: {why}"))
    } else if high <= most && low >= 1.0 / most {
        (Outcome::Holds, said)
    } else {
        (Outcome::NotShown, said)
    }
}

/// Why a tool's time is shorter than ours, if it is known.
const fn why_shorter(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Ping => Some(
            "ping takes the time of a reply from the kernel, and ours when its thread has been woken and has read it",
        ),
        Tool::Ditg | Tool::Mgen | Tool::Sipp | Tool::Curl | Tool::Wget | Tool::Iperf | Tool::Openvpn => None,
    }
}

/// Why a tool's time is longer than ours, or why there is none.
const fn why_longer(tool: Tool) -> &'static str {
    match tool {
        Tool::Ping => {
            "ping takes the time of a reply from the kernel, but of a request before it is sent, and it sleeps between requests, so that each wakes it"
        }
        Tool::Ditg => {
            "its receiver answers from a thread for each flow, and it takes times before it sends and after it has written its log"
        }
        Tool::Mgen => {
            "it takes the time of a packet before it writes its log and sends, and that of arrival when its event loop comes to it"
        }
        Tool::Sipp => "its callee answers from an event loop with timers of a millisecond",
        Tool::Curl => "nginx reads the page from a file, and each fetch is a process of its own",
        Tool::Wget => "nginx reads the page from a file, and all fetches come over one connection",
        Tool::Iperf => {
            "it prints rates and jitter but no response time; packets that arrived are counted by both"
        }
        Tool::Openvpn => {
            "its time includes encryption and two crossings of a TUN device at each end, which is what it is run for"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Ratio;
    use crate::results::{Cell, Header, Sample, TesterCost, Unit, Value, Verdict};
    use std::collections::BTreeMap;

    fn of(tool: Tool, [low, value, high]: [f64; 3]) -> (Outcome, String) {
        judge(tool, &Bearing::Number(Ratio { value, interval: (low, high), rounds: 3 }))
    }

    #[test]
    fn times_agree_within_a_tenth_of_the_shorter_one() {
        for theirs in [0.2 / 0.21, 0.2 / 0.219, 1.05, 1.095] {
            assert_eq!(of(Tool::Ping, [theirs, theirs, theirs]).0, Outcome::Holds, "{theirs}");
        }
        assert_eq!(of(Tool::Ping, [0.2 / 0.221; 3]).0, Outcome::DoesNotHold);
        assert_eq!(of(Tool::Ping, [0.92, 1.0, 1.095]).0, Outcome::Holds);
        assert_eq!(of(Tool::Ping, [1.05, 1.09, 1.13]).0, Outcome::NotShown, "1.1 is within the interval");
        assert_eq!(of(Tool::Ping, [0.88, 0.95, 1.0]).0, Outcome::NotShown);
        let (outcome, evidence) = of(Tool::Ditg, [1.4, 1.5, 1.6]);
        assert_eq!(outcome, Outcome::DoesNotHold);
        assert!(evidence.contains("the tool's is longer: its receiver"), "{evidence}");
    }

    #[test]
    fn what_is_known_of_a_tool_does_not_explain_why_ours_is_longer() {
        let (outcome, evidence) = of(Tool::Ditg, [0.5, 0.6, 0.7]);
        assert_eq!(outcome, Outcome::DoesNotHold);
        assert!(evidence.ends_with("ours is longer: why is not known"), "{evidence}");
        let (_, evidence) = of(Tool::Ping, [0.5, 0.6, 0.7]);
        assert!(
            evidence.contains("ours is longer: ping takes the time of a reply from the kernel"),
            "{evidence}"
        );
        // Numbers that the noise does not bear are not printed.
        let equal = Bearing::Equal(Ratio { value: 0.93, interval: (0.8, 1.08), rounds: 3 });
        let (outcome, evidence) = judge(Tool::Ping, &equal);
        assert_eq!((outcome, evidence.contains("0.93")), (Outcome::NotShown, false), "{evidence}");
        let nothing = Bearing::Nothing("a ratio takes 3 rounds, and here are 1".to_owned());
        assert_eq!(judge(Tool::Ping, &nothing).0, Outcome::NotShown);
    }

    fn rounds(theirs: f64, ours: f64) -> Vec<Sample> {
        let value = |it: f64| Value::one(it, Unit::Milliseconds);
        let round = |repeat: u32| Sample {
            cell: Cell {
                experiment: "tools".to_owned(),
                series: "agreement".to_owned(),
                device: "kernel".to_owned(),
                point: BTreeMap::from([("tool".to_owned(), f64::from(Tool::Ping as u8))]),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: BTreeMap::from([
                ("tool-response".to_owned(), value(theirs)),
                ("own-response".to_owned(), value(ours)),
            ]),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..3).map(round).collect()
    }

    #[test]
    fn a_tools_time_is_divided_by_ours() {
        let of = |theirs, ours| {
            let results = Results { header: Header::default(), samples: rounds(theirs, ours) };
            findings(&results).into_iter().map(|it| (it.outcome, it.evidence)).next().unwrap()
        };
        assert_eq!(of(0.200, 0.201).0, Outcome::Holds, "equal, and so within a tenth");
        let (outcome, evidence) = of(0.3, 0.2);
        assert_eq!(outcome, Outcome::DoesNotHold);
        assert!(evidence.starts_with("0.300 ms by the tool, 0.200 ms by ours: 1.50 times"), "{evidence}");
        assert!(evidence.contains("the tool's is longer"), "{evidence}");
        assert!(of(0.2, 0.3).1.contains("ours is longer"));
    }
}
