//! NAT64.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::Nat642014;
use sixway_lab::failure::Result;
use sixway_lab::probe::{wget, wget_beside};
use sixway_lab::results::Verdict;
use sixway_lab::topology::Network;

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
    Interop::new("nat64_2014_counts_files_that_wget_does_not_get_as_lost", &["ip", "wget"], lost_files),
    Interop::new("nat64_2014_refuses_and_counts_sessions_above_a_limit", &["sixway"], states),
];

pub const INSTANCES: &[Instance] = &[ICMP, UDP, VPN, HTTP];

const ICMP: Instance = instance(&["sixway", "tayga-masquerade"], &[("protocols", "icmp"), ("clients", "8")]);
const UDP: Instance = instance(&["sixway-xdp"], &[("protocols", "udp"), ("flows", "64")]);
const VPN: Instance = instance(&["sixway"], &[("protocols", "vpn"), ("clients", "2"), ("octets", "12800")]);
const HTTP: Instance = instance(&["sixway"], &[("protocols", "http"), ("clients", "2"), ("octets", "12800")]);

/// Not counted with the smallest instances: the smallest limit takes some time to be reached.
const STATES: Instance = instance(&["sixway"], &[("protocols", "states"), ("states", "40000")]);

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Nat642014, devices, set }
}

fn icmp() -> Result<()> {
    let results = ICMP.run()?;
    assert_eq!(results.samples.len(), 2, "two translators");
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
    assert_eq!(tracked.count(), 1, "the one with masquerade");
    Ok(())
}

/// At this scale the limit is 1,024 sessions; all requests of an address are of one session.
fn states() -> Result<()> {
    let results = STATES.run()?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!(value("limit"), 1_024.0, "{sample:#?}");
        let lost = (value("loss") * value("sent")).round();
        let answered = value("sent") - lost;
        assert!(answered > 0.0 && answered <= 10.0 * value("limit"), "{sample:#?}");
        assert!(value("refused") > 0.0 && lost > 0.0, "{sample:#?}");
        // What is refused is lost, but for what is under way when the load ends.
        assert!((value("refused") - lost).abs() <= 64.0 + 0.01 * lost, "{sample:#?}");
    }
    Ok(())
}

fn http() -> Result<()> {
    let results = HTTP.run()?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!((value("sent"), value("loss")), (2.0 * 66.0, 0.0), "{sample:#?}");
        assert!(value("time-of-256") > 0.0, "{sample:#?}");
    }
    Ok(())
}

/// A server that cannot be reached.
fn lost_files() -> Result<()> {
    let network = Network::new(&["client"])?;
    let from = (&network, "client");
    assert_eq!(wget_beside(from, "http://192.0.2.1/100", 3, 0)?, 0);
    assert!(wget(&network, "client", "http://192.0.2.1/100", 3).is_err());
    Ok(())
}

/// The tunnel's packets are the device's: they are more than its test's own.
fn vpn() -> Result<()> {
    let results = VPN.run()?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!((value("sent"), value("loss")), (2.0 * 16.0, 0.0), "{sample:#?}");
        let response = sample.values.get("response");
        assert!(response.is_some_and(|it| it.n >= 1 && it.quantiles.is_some()), "{sample:#?}");
        assert!(value("files") > 1.0 && value("time-of-256") > 0.0, "{sample:#?}");
    }
    Ok(())
}

fn udp() -> Result<()> {
    let results = UDP.run()?;
    assert_eq!(results.samples.len(), 1);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert!(value("sent") > 10_000.0 && value("arrived") > 100.0, "{sample:#?}");
        assert_eq!(value("arrived") + value("lost"), value("sent"), "{sample:#?}");
        assert!(value("cpu-per-packet") > 0.0, "{sample:#?}");
    }
    Ok(())
}
