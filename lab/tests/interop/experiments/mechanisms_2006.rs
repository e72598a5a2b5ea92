//! Mechanisms against native IPv4 and IPv6.

use super::tiny::{tiny, tiny_with};
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

/// Way 1 is a configured tunnel.
fn ipsec() -> Result<()> {
    let results = tiny_with(&Mechanisms2006, &["sixway-in-guest"], &[("ways", "1"), ("series", "ipsec")])?;
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

/// Way 3 is ISATAP, 7 Teredo, 8 4over6.
fn control_planes() -> Result<()> {
    let results = tiny(&Mechanisms2006, &[("ways", "3,7,8"), ("series", "control,start")])?;
    assert_eq!(results.samples.len(), 3 * 2);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let kinds =
            ["solicitations", "advertisements", "neighbours", "bubbles", "leases", "echoes", "others"];
        assert_eq!(kinds.map(value).iter().sum::<f64>(), value("packets"), "{sample:#?}");
        match (sample.cell.series.as_str(), sample.cell.at("way") as u8) {
            ("control", _) => assert!(value("idle") >= 1_000.0, "{sample:#?}"),
            // A question and its answer at least.
            (_, 3) => assert!(value("solicitations") >= 1.0 && value("advertisements") >= 1.0, "{sample:#?}"),
            (_, 7) => assert!(value("solicitations") >= 1.0 && value("bubbles") >= 1.0, "{sample:#?}"),
            _ => assert!(value("leases") >= 2.0 && value("solicitations") == 0.0, "{sample:#?}"),
        }
        assert!(sample.cell.series == "control" || value("echoes") >= 2.0, "{sample:#?}");
    }
    Ok(())
}

/// Way 2 is 6to4, 6 DS-Lite, 7 Teredo: an idle 6to4 tunnel sends nothing.
fn farther() -> Result<()> {
    let set = [("ways", "2,6,7"), ("series", "hops,narrow,control")];
    let results = tiny(&Mechanisms2006, &set)?;
    assert_eq!(results.samples.len(), 2 * (2 + 2) + 3);
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        let at = |axis: &str| sample.cell.at(axis);
        match (sample.cell.series.as_str(), at("df") as u8) {
            ("hops", _) if at("load") == 1.0 => {
                assert_eq!((value("answered"), value("loss")), (20.0, 0.0), "{sample:#?}");
            }
            ("hops", _) => assert!(value("throughput") > 0.0, "{sample:#?}"),
            // 1,500 octets of data are more than the first link takes, too.
            ("narrow", 1) => {
                assert_eq!([value("answered"), value("answered-natively")], [0.0; 2], "{sample:#?}");
            }
            // The first ones may find the path's MTU.
            ("narrow", _) => {
                let [through, natively] = ["answered", "answered-natively"].map(value);
                assert!(through >= 3.0 && natively >= 3.0, "{sample:#?}");
            }
            // Hosts' own neighbour discovery may fall into this second.
            _ if at("way") == 2.0 => assert!(value("packets") <= 2.0, "{sample:#?}"),
            _ => assert!(value("packets") >= 0.0, "{sample:#?}"),
        }
    }
    Ok(())
}

fn mechanisms_2006() -> Result<()> {
    let results =
        tiny(&Mechanisms2006, &[("sizes", "1024"), ("loads", "1,2,6"), ("series", "overhead,loads")])?;
    assert_eq!(results.samples.len(), 5 + 7 * 3, "forms of headers; three loads by seven mechanisms");
    for sample in &results.samples {
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
            2 => assert!(value("throughput") > 0.0 && value("native-throughput") > 0.0, "{sample:#?}"),
            _ => assert!(value("transactions") > 0.0 && value("native-transactions") > 0.0, "{sample:#?}"),
        }
    }
    Ok(())
}
