//! NAT64.

use super::tiny::{tiny, tiny_with};
use crate::Interop;
use sixway_lab::experiment;
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "nat64_2014_at_its_smallest_loses_nothing_and_counts_add_up",
        &["sixway", "tayga", "nft"],
        icmp,
    ),
    Interop::new(
        "nat64_2014_counts_each_udp_packet_that_the_kernel_makes",
        &["sixway", "tayga", "nft", "clang"],
        udp,
    ),
    Interop::new(
        "nat64_2014_at_its_smallest_fetches_every_file_through_openvpn",
        &["sixway", "tayga", "nft", "openvpn", "wget"],
        vpn,
    ),
    Interop::new("nat64_2014_at_its_smallest_fetches_every_file", &["sixway", "tayga", "nft"], http),
];

fn icmp() -> Result<()> {
    let results = tiny(&experiment::Nat642014, &[("protocols", "icmp"), ("clients", "8")])?;
    assert_eq!(results.samples.len(), 5, "four translators and plain forwarding");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let requests = f64::from(8 * 8 * 8 * 10);
        assert_eq!(value("sent"), requests, "{sample:#?}");
        let answered = sample.values.get("response").map_or(0, |value| value.n) as f64;
        assert_eq!(answered + (value("loss") * requests).round(), requests, "{sample:#?}");
        // What else the machine does may delay a reply, but loses none; but TAYGA's queue is short.
        let lost = if sample.cell.device == "tayga-masquerade" { 0.05 } else { 0.0 };
        assert!(value("loss") <= lost, "{sample:#?}");
        if sample.values.contains_key("insert-failed") {
            assert_eq!((value("insert-failed"), value("drop")), (0.0, 0.0), "{sample:#?}");
            assert!(value("connections") >= 512.0, "{sample:#?}");
        }
    }
    let tracked = results.samples.iter().filter(|sample| sample.values.contains_key("insert-failed"));
    assert_eq!(tracked.count(), 2, "those with masquerade");
    Ok(())
}

fn http() -> Result<()> {
    let set = [("protocols", "http"), ("clients", "2"), ("octets", "100,12800")];
    let results = tiny_with(&experiment::Nat642014, &["sixway", "tayga-masquerade"], &set)?;
    assert_eq!(results.samples.len(), 4, "two devices with two sizes");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!((value("sent"), value("loss")), (2.0 * 66.0, 0.0), "{sample:#?}");
        assert!(value("time-of-256") > 0.0, "{sample:#?}");
    }
    Ok(())
}

/// The tunnel's packets are the device's: they are more than its test's own.
fn vpn() -> Result<()> {
    let set = [("protocols", "vpn"), ("octets", "12800")];
    let results = tiny_with(&experiment::Nat642014, &["sixway", "tayga-masquerade", "kernel"], &set)?;
    assert_eq!(results.samples.len(), 3);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!((value("sent"), value("loss")), (66.0, 0.0), "{sample:#?}");
        assert!(value("files") > 1.0 && value("time-of-256") > 0.0, "{sample:#?}");
    }
    Ok(())
}

fn udp() -> Result<()> {
    let devices = ["sixway-xdp", "tayga-masquerade"];
    let results = tiny_with(&experiment::Nat642014, &devices, &[("protocols", "udp"), ("flows", "64")])?;
    assert_eq!(results.samples.len(), 2);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert!(value("sent") > 10_000.0 && value("arrived") > 100.0, "{sample:#?}");
        assert_eq!(value("arrived") + value("lost"), value("sent"), "{sample:#?}");
        assert!(value("cpu-per-packet") > 0.0, "{sample:#?}");
    }
    Ok(())
}
