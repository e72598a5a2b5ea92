//! The 6to4 tunnel between two routers.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::{Experiment as _, Tunnel2012};
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "tunnel_2012_at_its_smallest_answers_on_all_three_ways",
        &["sixway", "ping", "tcpdump"],
        tunnel_2012,
    ),
    Interop::new("tunnel_2012_over_a_bad_path_is_as_slow_as_the_path", &["sixway", "ping"], bad_path),
    Interop::new(
        "tunnel_2012_breaks_its_overhead_down_and_fetches_a_file_by_ftp",
        &["sixway", "tcpdump", "curl", "vsftpd", "ITGSend"],
        breakdown,
    ),
];

pub const INSTANCES: &[Instance] = &[THREE_WAYS, BAD_PATH, BREAKDOWN];

const THREE_WAYS: Instance = instance(&[("sizes", "64"), ("series", "flow,rtt,tcp,udp")]);
const BAD_PATH: Instance = instance(&[("sizes", "512"), ("series", "rtt"), ("delay", "10"), ("rate", "100")]);
const BREAKDOWN: Instance = instance(&[("sizes", "512"), ("series", "breakdown,life,ftp,ditg")]);

const fn instance(set: &'static [(&'static str, &'static str)]) -> Instance {
    Instance { experiment: &Tunnel2012, devices: &["sixway"], set }
}

/// 10 ms of delay in each direction, in a link of 100 Mbit/s: the tunnel and the native ways have it.
fn bad_path() -> Result<()> {
    let results = BAD_PATH.run()?;
    assert_eq!(results.samples.len(), 1);
    let sample = &results.samples[0];
    assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
    for way in ["tunnel", "ipv6", "ipv4"] {
        let milliseconds = sample.values.get(way).map_or(f64::NAN, |value| value.value);
        assert!((20.0..60.0).contains(&milliseconds), "{way}: {sample:#?}");
    }
    assert!(
        sample.commands.iter().any(|line| line.contains("impair") && line.contains("--delay=10")),
        "{sample:#?}"
    );
    Ok(())
}

/// The parts of the overhead add up, an idle tunnel sends nothing, and the file comes whole.
fn breakdown() -> Result<()> {
    let results = BREAKDOWN.run()?;
    assert_eq!(results.samples.len(), 4);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "breakdown" => {
                let parts = value("processing") + value("crossing");
                assert!((parts - value("overhead")).abs() < 1e-9, "{sample:#?}");
                assert_eq!([value("answered"), value("answered-loaded")], [20.0; 2], "{sample:#?}");
            }
            "life" => {
                assert!(value("creation") > 0.0 && value("refresh") > 0.0 && value("deletion") > 0.0);
                assert_eq!(value("idle-packets"), 0.0, "{sample:#?}");
            }
            "ftp" => {
                for way in ["tunnel-octets", "ipv6-octets", "ipv4-octets"] {
                    assert_eq!(value(way), value("file"), "{way}: {sample:#?}");
                }
            }
            _ => {
                // A quick run leaves UDP and IPv4 out.
                for way in ["tunnel-tcp", "ipv6-tcp"] {
                    assert!(value(&format!("{way}-packets")) > 0.0 && value(way) > 0.0, "{way}: {sample:#?}");
                    assert!(value(&format!("{way}-smoothed-half")) > 0.0, "{way}: {sample:#?}");
                }
            }
        }
    }
    Ok(())
}

fn tunnel_2012() -> Result<()> {
    let results = THREE_WAYS.run()?;
    assert_eq!(results.samples.len(), 4, "the flow, and three loads");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "flow" => {
                assert_eq!([value("answered"), value("answered-natively")], [5.0, 5.0], "{sample:#?}");
                assert_eq!([value("there"), value("back")], [5.0, 5.0], "{sample:#?}");
                let reached = ["ipv4", "ipv6", "tunnel"].map(|it| value(&format!("reached-{it}")));
                assert_eq!(reached, [20.0, 20.0, 12.0], "{sample:#?}");
            }
            "rtt" => {
                assert_eq!(value("loss"), 0.0, "{sample:#?}");
                let overhead = value("tunnel") - value("ipv6");
                assert!((value("overhead") - overhead).abs() < 1e-9, "{sample:#?}");
                assert!(value("smoothed-half") > 0.0 && value("smoothed-seven-eighths") > 0.0, "{sample:#?}");
            }
            _ => {
                for way in ["tunnel", "ipv6", "ipv4"] {
                    assert!(value(way) > 0.0, "{way}: {sample:#?}");
                }
            }
        }
    }
    assert_eq!(Tunnel2012.findings(&results).len(), 5);
    Ok(())
}
