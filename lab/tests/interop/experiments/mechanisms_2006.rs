//! Mechanisms against native IPv4 and IPv6.

use super::tiny::Instance;
use crate::{GUEST, Interop};
use sixway_lab::experiment::Mechanisms2006;
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "mechanisms_2006_at_their_smallest_answer_and_have_their_native_way",
        &["sixway"],
        mechanisms_2006,
    ),
    Interop::new(
        "mechanisms_2006_answer_transactions_over_udp_from_the_address_that_was_asked",
        &["sixway"],
        datagrams,
    ),
    Interop::new(
        "mechanisms_2006_are_reached_over_eight_hops_and_a_narrow_link",
        &["sixway", "ping", "tcpdump"],
        farther,
    ),
    Interop::new(
        "mechanisms_2006_count_the_messages_of_control_planes",
        &["sixway", "ping", "tcpdump"],
        control_planes,
    ),
    Interop::new("mechanisms_2006_have_ipsec_in_guests", &["sixway", GUEST], ipsec).busy(),
];

pub const INSTANCES: &[Instance] = &[SMALLEST, TRANSACTIONS, FARTHER, IDLE, START, IPSEC];

const SMALLEST: Instance = instance(
    &["sixway"],
    &[("sizes", "1024"), ("ways", "1,3,4,5,7"), ("loads", "1"), ("series", "overhead,loads")],
);
const TRANSACTIONS: Instance = instance(&["sixway"], &[("ways", "1"), ("loads", "6"), ("series", "loads")]);
/// A fault that was mended, and not counted with the smallest instances. Ways 3 (ISATAP), 5 (NAT46) and 6 (DS-Lite): the server is asked at another address than the one from which it would answer by its routes.
const DATAGRAMS: Instance = instance(&["sixway"], &[("ways", "3,5,6"), ("loads", "4"), ("series", "loads")]);
const FARTHER: Instance = instance(&["sixway"], &[("ways", "6,7"), ("series", "hops,narrow")]);
/// Way 2 is 6to4, 3 ISATAP, 7 Teredo, 8 4over6.
const IDLE: Instance = instance(&["sixway"], &[("ways", "2"), ("series", "control")]);
const START: Instance = instance(&["sixway"], &[("ways", "7,8"), ("series", "start")]);
/// Not counted with the smallest instances: they last as long as the shortest timers.
const IDLE_WITH_MESSAGES: Instance = instance(&["sixway"], &[("ways", "7"), ("series", "control")]);
const START_OF_ISATAP: Instance = instance(&["sixway"], &[("ways", "3"), ("series", "start")]);
/// Way 1 is a configured tunnel.
const IPSEC: Instance = instance(&["sixway-in-guest"], &[("ways", "1"), ("series", "ipsec")]);

fn datagrams() -> Result<()> {
    let results = DATAGRAMS.run()?;
    let series: Vec<&str> = results.samples.iter().map(|sample| sample.cell.series.as_str()).collect();
    assert_eq!(series, ["isatap", "nat46", "ds-lite"]);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        // Those of 0.1 s, and not one that was lost after a second.
        assert!(value("sent").is_some_and(|it| it.value >= 10.0), "{sample:#?}");
        for name in ["transactions", "native-transactions"] {
            assert!(value(name).is_some_and(|it| it.value >= 100.0), "{name}: {sample:#?}");
        }
        assert!(value("response").is_some_and(|it| it.n >= 10), "{sample:#?}");
        let own = value("native-transactions").and_then(|it| it.verdict.as_ref());
        assert!(own.is_some(), "the native load has no verdict: {sample:#?}");
    }
    Ok(())
}

const fn instance(
    devices: &'static [&'static str],
    set: &'static [(&'static str, &'static str)],
) -> Instance {
    Instance { experiment: &Mechanisms2006, devices, set }
}

fn ipsec() -> Result<()> {
    let results = IPSEC.run()?;
    assert_eq!(results.samples.len(), 2 * 2, "two loads, with and without");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let has_states = sample.commands.iter().any(|line| line.contains("ip xfrm state add"));
        assert_eq!(has_states, sample.cell.at("esp") > 0.0, "{sample:#?}");
        match sample.cell.at("load") as u8 {
            1 => assert!(value("response") > 0.0 && value("native-response") > 0.0, "{sample:#?}"),
            _ => assert!(value("throughput") > 0.0 && value("native-throughput") > 0.0, "{sample:#?}"),
        }
    }
    Ok(())
}

/// An idle 6to4 tunnel sends nothing. A Teredo client keeps its mapping in the NAT, here every 5 s and every 30 s by default.
fn control_planes() -> Result<()> {
    let all = [IDLE, IDLE_WITH_MESSAGES, START, START_OF_ISATAP].map(|instance| instance.run());
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let samples: Vec<_> = all.iter().flat_map(|results| &results.samples).collect();
    assert_eq!(samples.len(), 2 + 3, "two are idle, three start");
    for sample in samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let kinds =
            ["solicitations", "advertisements", "neighbours", "bubbles", "leases", "echoes", "others"];
        assert_eq!(kinds.map(value).iter().sum::<f64>(), value("packets"), "{sample:#?}");
        match (sample.cell.series.as_str(), sample.cell.at("way") as u8) {
            ("control", 7) => {
                assert!(value("solicitations") >= 1.0 && value("advertisements") >= 1.0, "{sample:#?}");
                assert_eq!([value("interval"), value("usual-interval")], [5_000.0, 30_000.0], "{sample:#?}");
                // At intervals of 22.5 to 30 s, a question and an answer.
                assert!((200.0..=700.0).contains(&value("packets-an-hour")), "{sample:#?}");
            }
            ("control", _) => {
                assert!(value("idle") >= 1_000.0 && value("packets") == 0.0, "{sample:#?}");
                assert_eq!(value("packets-an-hour"), 0.0, "{sample:#?}");
            }
            (_, 3) => assert!(value("solicitations") >= 1.0 && value("advertisements") >= 1.0, "{sample:#?}"),
            // A question and its answer at least.
            (_, 7) => {
                let messages = ["solicitations", "advertisements", "bubbles"].map(value);
                assert!(messages.iter().all(|count| *count >= 1.0), "{sample:#?}");
            }
            _ => assert!(value("leases") >= 2.0 && value("solicitations") == 0.0, "{sample:#?}"),
        }
        assert!(sample.cell.series == "control" || value("echoes") >= 2.0, "{sample:#?}");
    }
    Ok(())
}

/// Way 6 is DS-Lite, and 7 Teredo, whose network has no hops to add.
fn farther() -> Result<()> {
    let results = FARTHER.run()?;
    assert_eq!(
        results.samples.len(),
        2 + 4,
        "two loads each over hops, and over the link with DF clear and set"
    );
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let at = |axis: &str| sample.cell.at(axis);
        match (sample.cell.series.as_str(), at("df") as u8) {
            ("hops", _) if at("load") == 1.0 => {
                assert_eq!((value("answered"), value("loss")), (20.0, 0.0), "{sample:#?}");
            }
            ("hops", _) => {
                assert!(value("throughput") > 0.0 && value("native-throughput") > 0.0, "{sample:#?}");
            }
            // 1,500 octets of data are more than the first link takes, too.
            ("narrow", 1) => {
                assert_eq!([value("answered"), value("answered-natively")], [0.0; 2], "{sample:#?}");
            }
            // The first ones find the path's MTU; after that all are answered.
            _ => {
                assert_eq!([value("answered"), value("answered-natively")], [6.0; 2], "{sample:#?}");
                assert!(value("lost-before") >= 0.0, "{sample:#?}");
            }
        }
    }
    Ok(())
}

fn mechanisms_2006() -> Result<()> {
    let (results, transactions) = (SMALLEST.run()?, TRANSACTIONS.run()?);
    assert_eq!(results.samples.len(), 5 + 5, "forms of headers; a load by five mechanisms");
    assert_eq!(transactions.samples.len(), 1);
    for sample in results.samples.iter().chain(&transactions.samples) {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        if sample.cell.series == "overhead" {
            assert!(value("data-tcp") >= 1_412.0 && value("overhead-tcp") < 0.05, "{sample:#?}");
            continue;
        }
        match sample.cell.at("load") as u8 {
            1 => {
                assert_eq!(value("loss"), 0.0, "{sample:#?}");
                assert!(value("response") > 0.0 && value("native-response") > 0.0, "{sample:#?}");
            }
            _ => assert!(value("transactions") > 0.0 && value("native-transactions") > 0.0, "{sample:#?}"),
        }
    }
    Ok(())
}
