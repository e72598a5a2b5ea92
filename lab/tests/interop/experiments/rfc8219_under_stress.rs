//! The benchmarks of RFC 8219 that stress a device: bursts, an overload, a reset; and those with more than one device or worker.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::Rfc8219;
use sixway_lab::failure::Result;
use sixway_lab::results::{Sample, Verdict};

pub const TESTS: &[Interop] = &[
    Interop::new("rfc8219_measures_bursts_recovery_and_reset", &["sixway", "clang", "ethtool"], stress),
    Interop::new("rfc8219_measures_double_translation_and_workers", &["sixway", "clang", "ethtool"], several),
    Interop::new("rfc8219_measures_tcp_connections", &["sixway"], tcp),
];

pub const INSTANCES: &[Instance] = &[STRESS, NO_RESET, SEVERAL];

/// Each part of a trial takes 300 ms, and each reset has a second afterwards.
const STRESS: Instance =
    instance(&["sixway"], &[("series", "back-to-back,recovery,reset"), ("frame", "84"), ("precision", "1")]);
/// The kernel has no process that could be restarted.
const NO_RESET: Instance = instance(&["kernel-masquerade", "kernel"], &[("series", "reset")]);
const SEVERAL: Instance = instance(
    &["sixway"],
    &[("series", "double,cores"), ("frame", "1518"), ("workers", "2"), ("precision", "1")],
);

const TCP: Instance = instance(&["sixway"], &[("series", "tcp"), ("precision", "1")]);

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Rfc8219, devices, set }
}

fn value(sample: &Sample, name: &str) -> f64 {
    sample.values.get(name).map_or(f64::NAN, |value| value.value)
}

fn stress() -> Result<()> {
    let results = STRESS.run()?;
    let series: Vec<_> = results.samples.iter().map(|sample| sample.cell.series.as_str()).collect();
    assert_eq!(series, ["back-to-back", "recovery", "reset"]);
    assert!(NO_RESET.run()?.samples.is_empty(), "the kernel is not restarted");
    for sample in &results.samples {
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let value = |name: &str| value(sample, name);
        match sample.cell.series.as_str() {
            "back-to-back" => {
                assert!(value("trials") >= 1.0 && value("burst-rate") > 0.0, "{sample:#?}");
                // Far more than its queues hold.
                assert_eq!(value("at-ceiling"), 0.0, "{sample:#?}");
                // One way: but for a neighbour's packet or two.
                assert!(value("came-back") < 8.0, "{sample:#?}");
                assert!(value("burst") <= (value("ceiling") * 0.3).max(16.0) + 1.0, "{sample:#?}");
            }
            "recovery" => {
                assert!(value("overload") >= value("throughput-given"), "{sample:#?}");
                // Of two equal times the second one has half the rate; what the sender is late with, it sends later.
                let share = value("offered") / value("overload");
                assert!((share - 0.75).abs() < 0.01 && value("duration") == 600.0, "{sample:#?}");
                // The overload may not have been one.
                let recovery = sample.values.get("recovery");
                assert!(recovery.is_none_or(|recovery| recovery.value <= 301.0), "{sample:#?}");
            }
            _ => {
                assert!(value("reset") > 1.0 && value("reset-by-loss") > 1.0, "{sample:#?}");
                assert!(value("reset") < value("restart") + 1_000.0, "{sample:#?}");
                // Nothing comes back while the process starts.
                assert!(value("reset") > value("restart") / 4.0, "{sample:#?}");
            }
        }
    }
    Ok(())
}

fn tcp() -> Result<()> {
    let results = TCP.run()?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let value = |name: &str| value(sample, name);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert!(value("connections-rate") >= 100.0 && value("cpu-per-connection") > 0.0, "{sample:#?}");
        assert!(sample.values.get("setup").is_some_and(|setup| setup.n > 0), "{sample:#?}");
    }
    Ok(())
}

fn several() -> Result<()> {
    let results = SEVERAL.run()?;
    assert_eq!(results.samples.len(), 2);
    for sample in &results.samples {
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let value = |name: &str| value(sample, name);
        assert!(value("throughput-given") >= value("throughput"), "{sample:#?}");
        assert!(value("trials") >= 2.0 && value("ceiling") > 1_000.0, "{sample:#?}");
        assert!(value("cpu-per-packet") > 0.0, "{sample:#?}");
        if sample.cell.series == "cores" {
            assert!(sample.commands.iter().any(|line| line.contains("workers = 2")), "{sample:#?}");
            let is_tester_bound = matches!(sample.verdict, Verdict::TesterBound { .. });
            let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(2);
            assert_eq!(value("receiving-cpus"), cpus as f64, "a link of the device for each: {sample:#?}");
            assert!(value("shared") == 0.0 || is_tester_bound, "{sample:#?}");
        }
    }
    Ok(())
}
