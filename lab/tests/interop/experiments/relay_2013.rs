//! The 6to4 relay.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::Relay2013;
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new("relay_2013_at_its_smallest_loses_nothing_and_counts_add_up", &["sixway"], relay_2013),
    Interop::new("relay_2013_has_one_responder_and_larger_packets", &["sixway"], later),
    Interop::new("relay_2013_has_a_real_host_and_two_relays", &["sixway", "ping"], real_host_and_anycast),
];

pub const INSTANCES: &[Instance] = &[TWO_RESPONDERS, LATER, REAL_HOST];

const TWO_RESPONDERS: Instance = instance(&["sixway"], &[("hosts", "4")]);
const LATER: Instance =
    instance(&["sixway"], &[("series", "one-responder,sizes"), ("hosts", "4"), ("octets", "1480")]);
const REAL_HOST: Instance = instance(&["sixway"], &[("series", "ping6,udp,tcp,anycast"), ("octets", "104")]);

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Relay2013, devices, set }
}

fn relay_2013() -> Result<()> {
    let results = TWO_RESPONDERS.run()?;
    assert_eq!(results.samples.len(), 1, "a device with four hosts");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        let requests = sample.cell.at("hosts") * f64::from(16 * 8 * 11);
        assert_eq!(value("sent"), requests, "{sample:#?}");
        // What else the machine does may delay a reply, but loses none.
        assert_eq!(value("loss"), 0.0, "{sample:#?}");
        let twice = value("packets-both-ways") / value("requests") / 2.0;
        assert!((twice - 1.0).abs() < 1e-9, "{sample:#?}");
        let response = sample.values.get("response").map(|value| value.n);
        assert_eq!(response, Some(requests as u64), "each reply has its time");
        assert!(value("cpu") > 0.0, "{sample:#?}");
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert_eq!(sample.raw, ["response.json"]);
    }
    Ok(())
}

fn later() -> Result<()> {
    let results = LATER.run()?;
    let series: Vec<_> = results.samples.iter().map(|sample| sample.cell.series.as_str()).collect();
    assert_eq!(series, ["one-responder", "sizes"]);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let requests = sample.cell.at("hosts") * f64::from(16 * 8 * 11);
        let answered = sample.values.get("response").map_or(0, |value| value.n) as f64;
        assert_eq!(value("sent"), requests, "{sample:#?}");
        assert_eq!(answered + (value("loss") * requests).round(), requests, "{sample:#?}");
        assert_eq!(value("loss"), 0.0, "{sample:#?}");
    }
    Ok(())
}

fn real_host_and_anycast() -> Result<()> {
    let results = REAL_HOST.run()?;
    let series: Vec<_> = results.samples.iter().map(|sample| sample.cell.series.as_str()).collect();
    assert_eq!(series, ["ping6", "udp", "tcp", "anycast"]);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "tcp" => assert!(value("bits") > 0.0 && value("host-cpu") > 0.0, "{sample:#?}"),
            "anycast" => {
                // Each request goes by the first relay and each reply by the second; neighbours are asked for, too.
                assert_eq!((value("loss"), value("sent")), (0.0, f64::from(16 * 8 * 11)), "{sample:#?}");
                assert!(value("there") >= value("sent") && value("back") >= value("sent"), "{sample:#?}");
                assert!(value("there") < 1.5 * value("sent"), "no reply came by the first: {sample:#?}");
            }
            _ => {
                assert_eq!(value("loss"), 0.0, "{sample:#?}");
                assert!(value("host-cpu") > 0.0 && value("sent") >= 60.0, "{sample:#?}");
                // Both are a gateway on a TUN device that forwards the same packets in the same time.
                let share = value("host-cpu") / value("cpu");
                assert!((0.1..10.0).contains(&share), "{share}: {sample:#?}");
            }
        }
    }
    Ok(())
}
