//! The benchmarks of RFC 8219.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::{Experiment as _, Rfc8219};
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new("rfc8219_at_its_smallest_has_a_value_from_each_benchmark", &["sixway"], rfc8219),
    Interop::new("rfc8219_is_measured_with_frames_that_the_kernel_makes", &["sixway", "clang"], frames),
    Interop::new("rfc9693_counts_connections_that_were_validated", &["clang", "nft"], stateful),
    Interop::new("rfc8219_has_native_traffic_and_dns64", &["sixway", "dnsperf", "nsd"], others),
];

pub const INSTANCES: &[Instance] = &[EACH_BENCHMARK, FRAMES, STATEFUL, SESSIONS, OTHERS];

/// With a precision of 1 a search ends with its first trial that fails.
const EACH_BENCHMARK: Instance = instance(
    &["sixway"],
    &[
        ("series", "throughput,dual,rules,frame-loss,connections"),
        ("frame", "84"),
        ("precision", "1"),
        ("percent", "10"),
        ("rules", "1000"),
    ],
);
const FRAMES: Instance =
    instance(&["sixway-xdp"], &[("series", "frames"), ("frame", "1518"), ("precision", "1")]);
const STATEFUL: Instance = instance(
    &["kernel-masquerade", "kernel"],
    &[
        ("series", "establishment,tear-down,capacity"),
        ("connections", "500"),
        ("capacity", "2048"),
        // With 1, no rate of new connections would be found.
        ("precision", "0.9"),
    ],
);
const SESSIONS: Instance =
    instance(&["kernel-masquerade"], &[("series", "sessions"), ("sessions", "500"), ("precision", "1")]);
const OTHERS: Instance = instance(
    &["sixway"],
    &[("series", "latency,native,dns64"), ("frame", "84"), ("native", "50"), ("precision", "1")],
);

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Rfc8219, devices, set }
}

fn rfc8219() -> Result<()> {
    // A device is configured for its mappings, and another for its workers: no other row is measured with it.
    assert_eq!(["rules", "cores"].map(|series| Rfc8219.built_for(series)), [["rules"], ["workers"]]);
    let results = EACH_BENCHMARK.run()?;
    let series: Vec<_> = results.samples.iter().map(|sample| sample.cell.series.as_str()).collect();
    assert_eq!(series, ["throughput", "dual", "rules", "frame-loss", "connections"]);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "throughput" | "dual" | "rules" => {
                // What else the machine does may lose a frame at any rate; the given loss admits a few.
                assert!(value("throughput-given") >= value("throughput"), "{sample:#?}");
                assert!(value("trials") >= 2.0 && value("ceiling") > 1_000.0, "{sample:#?}");
            }
            "frame-loss" => assert!(value("forwarded") > 0.0 && value("offered") > 0.0, "{sample:#?}"),
            _ => assert!(value("ceiling") > 0.0 && value("trials") >= 1.0, "{sample:#?}"),
        }
    }
    Ok(())
}

/// Each frame that was sent has come back or is lost, and the device's threads have worked.
fn frames() -> Result<()> {
    let results = FRAMES.run()?;
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert!(value("throughput-given") >= value("throughput"), "{sample:#?}");
        assert!(value("ceiling") > 10_000.0 && value("cpu-per-packet") > 0.0, "{sample:#?}");
        assert!(sample.raw.contains(&"trials.txt".to_owned()), "{sample:#?}");
    }
    assert_eq!(results.samples.len(), 1);
    Ok(())
}

fn stateful() -> Result<()> {
    let (results, sessions) = (STATEFUL.run()?, SESSIONS.run()?);
    assert_eq!(results.samples.len(), 3, "plain forwarding has no connections");
    assert_eq!(sessions.samples.len(), 1);
    for sample in results.samples.iter().chain(&sessions.samples) {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "establishment" => assert!(value("established-rate") > 0.0, "{sample:#?}"),
            // No frame comes back over a connection that was deleted.
            "tear-down" => {
                assert_eq!((value("left"), value("established-again")), (0.0, 500.0), "{sample:#?}");
            }
            "capacity" => assert_eq!((value("capacity"), value("at-ceiling")), (2_048.0, 1.0), "{sample:#?}"),
            _ => assert!(value("throughput-given") >= value("throughput"), "{sample:#?}"),
        }
    }
    Ok(())
}

fn others() -> Result<()> {
    let results = OTHERS.run()?;
    assert_eq!(results.samples.len(), 3);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "latency" => {
                assert!(value("typical") > 0.0 && value("worst") >= value("typical"), "{sample:#?}");
                assert!(value("pdv") <= value("worst"), "{sample:#?}");
                let ipdv = ["ipdv-min", "ipdv-median", "ipdv-max"].map(value);
                assert!(ipdv.is_sorted() && ipdv[0].is_finite(), "{sample:#?}");
            }
            "native" => assert!(value("trials") >= 1.0 && value("offered") > 0.0, "{sample:#?}"),
            // What else the machine does may lose a query at any rate.
            _ => assert!(value("sent") >= 30.0 && value("answered") <= value("sent"), "{sample:#?}"),
        }
    }
    Ok(())
}
