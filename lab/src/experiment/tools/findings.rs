//! Whether a tool and our own load agree, and why not if they do not.

use crate::analyse::{Finding, Group, Outcome, View};
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
            of.map(move |group| finding(tool, group)).collect::<Vec<_>>()
        })
        .collect()
}

fn finding(tool: Tool, group: &Group<'_>) -> Finding {
    let statement = format!("{} and the lab's own load agree within 10 % in response time.", tool.name());
    let mean = |name: &str| group.value(name).map(|(estimate, _)| estimate.mean);
    let (outcome, evidence) = match (mean("tool-response"), mean("own-response")) {
        (Some(theirs), Some(ours)) => judge(tool, theirs, ours),
        _ if group.samples.iter().all(|sample| sample.failed.is_some()) => {
            let why = group.samples.iter().find_map(|sample| sample.failed.clone());
            (Outcome::NotShown, why.unwrap_or_default())
        }
        _ => (Outcome::NotShown, why_not(tool).to_owned()),
    };
    Finding { statement, outcome, evidence }
}

/// Which one is longer, by how much, and what is known about the tool if they do not agree.
fn judge(tool: Tool, theirs: f64, ours: f64) -> (Outcome, String) {
    let (slower, faster) = (theirs.max(ours), theirs.min(ours));
    let more = slower / faster.max(1e-9) - 1.0;
    let said = format!("{theirs:.3} ms by the tool, {ours:.3} ms by ours");
    match more <= AGREED {
        true => (Outcome::Holds, said),
        false => {
            let which = if theirs > ours { "the tool's is longer" } else { "ours is longer" };
            (Outcome::DoesNotHold, format!("{said}: {which} by {:.0} %; {}", more * 100.0, why_not(tool)))
        }
    }
}

/// Why a tool's figure differs from ours.
const fn why_not(tool: Tool) -> &'static str {
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

    #[test]
    fn times_agree_within_a_tenth_of_the_shorter_one() {
        assert_eq!(judge(Tool::Ping, 0.2, 0.21).0, Outcome::Holds);
        assert_eq!(judge(Tool::Ping, 0.2, 0.219).0, Outcome::Holds);
        let (outcome, evidence) = judge(Tool::Ditg, 0.30, 0.20);
        assert_eq!(outcome, Outcome::DoesNotHold);
        assert!(evidence.contains("the tool's is longer by 50 %; its receiver"), "{evidence}");
    }
}
