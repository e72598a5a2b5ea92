//! A site's gateway in one box and in two.

use super::tiny::Instance;
use crate::{GUEST, Interop};
use sixway_lab::experiment::{Experiment as _, Gateway2012};
use sixway_lab::failure::Result;
use sixway_lab::results::{Results, Sample, Verdict};

const NEEDS: &[&str] = &["sixway", "tc", "ethtool", "ping", "tcpdump", "nft"];

pub const TESTS: &[Interop] = &[
    Interop::new("gateway_2012_at_its_smallest_carries_its_tunnel_through_the_nat_and_past_it", NEEDS, outer),
    Interop::new(
        "gateway_2012_at_its_smallest_pairs_the_nat_and_the_6to4_of_sixway_and_of_linux_in_guests",
        &["sixway", "tc", "ethtool", "ping", "tcpdump", "nft", GUEST],
        paired,
    ),
    Interop::new(
        "gateway_2012_at_its_smallest_connects_and_fetches_over_ipv6_and_calls_over_ipv4",
        NEEDS,
        measures,
    ),
    Interop::new("gateway_2012_at_its_smallest_answers_over_links_of_100_megabits", NEEDS, shaped),
];

pub const INSTANCES: &[Instance] = &[OUTER, PAIRED, MEASURES, CALLS, SHAPED, NARROW];

/// Linux' 6to4, form 5, takes a guest.
const OUTER: Instance = instance(&["sixway"], &[("series", "outer"), ("forms", "1,3,5")]);
/// Decoupled, each role by either: the NAT by Linux (4), and 6to4 by Linux (5).
const PAIRED: Instance = instance(&["sixway-in-guest"], &[("series", "outer"), ("forms", "4,5")]);
const MEASURES: Instance = instance(
    &["sixway"],
    &[
        ("series", "connection,web"),
        ("forms", "1"),
        ("versions", "6"),
        ("links", "0"),
        ("background", "2"),
        ("pages", "30000"),
    ],
);
/// Masquerade has IPv4 alone.
const CALLS: Instance = instance(
    &["kernel-masquerade"],
    &[("series", "call"), ("forms", "1"), ("versions", "4"), ("links", "0"), ("background", "2")],
);
const SHAPED: Instance = instance(
    &["sixway"],
    &[("series", "rtt,cpu"), ("forms", "2"), ("versions", "6"), ("background", "10"), ("links", "100")],
);
/// More than the links pass is offered.
const NARROW: Instance = instance(
    &["sixway"],
    &[("series", "rtt"), ("forms", "2"), ("versions", "6"), ("background", "50"), ("links", "40")],
);

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Gateway2012, devices, set }
}

fn value(sample: &Sample, name: &str) -> f64 {
    sample.values.get(name).map_or(f64::NAN, |value| value.value)
}

fn measured(instance: Instance) -> Result<Results> {
    let results = instance.run()?;
    for sample in &results.samples {
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
    }
    Ok(results)
}

/// Requests and replies of five pings, by whose address they have outside.
fn outer() -> Result<()> {
    let results = measured(OUTER)?;
    assert_eq!(results.samples.len(), 2, "Linux' 6to4 takes a guest");
    for sample in &results.samples {
        assert_eq!(value(sample, "answered"), 5.0, "{sample:#?}");
        let past = if sample.cell.at("form") == 1.0 { 5.0 } else { 0.0 };
        let outer = ["own-address", "nat-address", "back"].map(|name| value(sample, name));
        assert_eq!(outer, [past, 5.0 - past, 5.0], "{sample:#?}");
    }
    Ok(())
}

fn paired() -> Result<()> {
    let results = measured(PAIRED)?;
    let forms: Vec<_> = results.samples.iter().map(|sample| sample.cell.at("form")).collect();
    assert_eq!(forms, [4.0, 5.0]);
    for sample in &results.samples {
        let outer = ["answered", "own-address", "nat-address", "back"].map(|name| value(sample, name));
        assert_eq!(outer, [5.0, 0.0, 5.0, 5.0], "{sample:#?}");
    }
    Ok(())
}

fn measures() -> Result<()> {
    let mut all = measured(MEASURES)?;
    all.samples.extend(measured(CALLS)?.samples);
    assert_eq!(all.samples.len(), 2 + 1);
    for sample in &all.samples {
        assert_eq!(value(sample, "failed"), 0.0, "{sample:#?}");
        assert!(value(sample, "background-wire") > value(sample, "background-payload"), "{sample:#?}");
        let (ours, wire) = match sample.cell.series.as_str() {
            "connection" => (("made", 200.0), ["connection", "connection-wire", "connection-net"]),
            // Each page is a text and two images.
            "web" => (("pages", 50.0), ["response", "response-wire", "response-net"]),
            _ => (("made", 11.0), ["setup", "setup-wire", "setup-net"]),
        };
        assert_eq!(value(sample, ours.0), ours.1, "{sample:#?}");
        let [through, bare, net] = wire.map(|name| value(sample, name));
        assert!((through - bare - net).abs() < 1e-9 && bare > 0.0, "{sample:#?}");
        if sample.cell.series == "web" {
            assert_eq!(sample.values["response"].n, 150, "{sample:#?}");
        }
        if sample.cell.series == "call" {
            assert_eq!(value(sample, "arrived"), value(sample, "sent"), "{sample:#?}");
            let back = if sample.cell.at("version") == 6.0 { 0.0 } else { 1.0 };
            assert_eq!(value(sample, "loss-back"), back, "{sample:#?}");
        }
    }
    assert!(!Gateway2012.findings(&all).is_empty());
    Ok(())
}

fn shaped() -> Result<()> {
    let results = measured(SHAPED)?;
    assert_eq!(results.samples.len(), 2);
    for sample in &results.samples {
        match sample.cell.series.as_str() {
            "rtt" => {
                assert_eq!(
                    [value(sample, "answered"), value(sample, "answered-ping")],
                    [30.0; 2],
                    "{sample:#?}"
                );
                assert_eq!(value(sample, "loss"), 0.0, "{sample:#?}");
            }
            _ => {
                assert!(value(sample, "sent") > 0.0, "{sample:#?}");
                assert_eq!(value(sample, "arrived"), value(sample, "sent"), "{sample:#?}");
            }
        }
    }
    narrow()
}

/// The links of the boxes and the bare wire are limited: a frame of background takes 0.2 ms, and echo requests wait for those in front of them.
fn narrow() -> Result<()> {
    let results = measured(NARROW)?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let lost = value(sample, "background-lost");
        let arrived = value(sample, "background-wire") * (1.0 - lost);
        assert!(lost > 0.2 && (20e6..42e6).contains(&arrived), "{sample:#?}");
        // The queue in front of the client's own link refuses requests, too.
        assert!(value(sample, "loss") > 0.0, "{sample:#?}");
        for way in ["response", "response-wire"] {
            assert!(value(sample, way) > 0.2, "{sample:#?}");
        }
    }
    Ok(())
}
