//! The papers' own tools next to our loads.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::{Experiment as _, Tools};
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "own_and_ping_own_and_ditg_own_and_mgen_are_answered_at_one_pace",
        &["ping", "ITGSend", "ITGRecv", "ITGDec", "mgen"],
        packets,
    ),
    Interop::new(
        "own_and_sipp_own_and_web_clients_are_answered_at_one_pace",
        &["sipp", "curl", "wget", "nginx", "tcpdump", "iperf3", "openvpn", "ping"],
        programs,
    ),
];

pub const INSTANCES: &[Instance] = &[PACKETS, PROGRAMS];

const PACKETS: Instance = instance(&[("tools", "1,2,3"), ("per-s", "400")]);
const PROGRAMS: Instance = instance(&[("tools", "4,5,6,7,8"), ("per-s", "400")]);

const fn instance(set: &'static [(&'static str, &'static str)]) -> Instance {
    Instance { experiment: &Tools, devices: &["kernel"], set }
}

fn packets() -> Result<()> {
    all_answered(PACKETS, 3)
}

fn programs() -> Result<()> {
    all_answered(PROGRAMS, 5)
}

/// Whatever the machine does, both lose nothing; whether their times agree is a finding of a quiet machine.
fn all_answered(instance: Instance, tools: usize) -> Result<()> {
    let results = instance.run()?;
    assert_eq!(results.samples.len(), tools);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        for who in ["tool", "own"] {
            let [sent, answered] = ["sent", "answered"].map(|what| value(&format!("{who}-{what}")));
            assert!(sent > 0.0 && sent == answered, "{who}: {sample:#?}");
        }
        assert_eq!(value("own-sent"), 20.0, "{sample:#?}");
    }
    assert_eq!(Tools.findings(&results).len(), results.samples.len());
    Ok(())
}
