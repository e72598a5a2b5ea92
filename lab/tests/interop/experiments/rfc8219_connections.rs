//! Concurrent TCP connection capacity (RFC 8219 §8.1): on real packets, with tables that are large enough and with one that is not.

use super::tiny::{Instance, run_with};
use crate::Interop;
use sixway_lab::device::{self, Card, Device, Nat64, Place, Running, Task, TaskKind};
use sixway_lab::experiment::Rfc8219;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::namespace::command;
use sixway_lab::results::{Sample, Verdict};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "rfc8219_counts_connections_that_are_open_together",
        &["sixway", "clang", "ethtool", "nft"],
        together,
    ),
    Interop::new(
        "rfc8219_finds_how_many_connections_a_small_table_holds",
        &["sixway", "clang", "ethtool", "nft"],
        small_table,
    ),
];

/// As that of the series `tcp`, it is not counted among the instances whose plan is bounded.
const TOGETHER: Instance = Instance {
    experiment: &Rfc8219,
    devices: &["sixway", "kernel-masquerade", "kernel"],
    set: &[("series", "tcp-capacity"), ("tcp-capacity", "2048")],
};

fn value(sample: &Sample, name: &str) -> f64 {
    sample.values.get(name).map_or(f64::NAN, |value| value.value)
}

fn together() -> Result<()> {
    let results = TOGETHER.run()?;
    assert_eq!(results.samples.len(), 2, "plain forwarding has no connections");
    for sample in &results.samples {
        assert!(sample.failed.is_none(), "{sample:#?}");
        assert_eq!((value(sample, "capacity"), value(sample, "at-ceiling")), (2_048.0, 1.0), "{sample:#?}");
        // More would have been open, too.
        let Verdict::TesterBound { why } = &sample.verdict else { panic!("{sample:#?}") };
        assert!(why.contains("all 2048 connections were open"), "{why}");
        for name in ["setup", "answer"] {
            assert!(sample.values.get(name).is_some_and(|times| times.n == 2_048), "{name}: {sample:#?}");
        }
        // At 10,000 a second.
        assert!(value(sample, "opening") >= 150.0, "{sample:#?}");
        // What the kernel does not track it does not translate, and that would be answered, too.
        let tracked = sample.values.get("connections");
        assert!(tracked.is_none_or(|tracked| tracked.value >= 2_048.0), "{sample:#?}");
    }
    Ok(())
}

/// Sessions that the small table has room for. Each address is a subscriber, so that together they may have all.
const ROOM: u32 = 1_500;

/// Sixway with a small table, on a host that drops what its kernel takes for invalid: segments without a right checksum or sequence number.
struct Small;

impl Small {
    fn sixway() -> Result<&'static dyn Device> {
        device::find("sixway").ok_or_else(|| Failure::Unexpected("sixway is not a device".to_owned()))
    }
}

impl Device for Small {
    fn card(&self) -> &Card {
        Self::sixway().expect("a device").card()
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Nat64]
    }

    fn version(&self) -> Result<String> {
        Self::sixway()?.version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let Task::Nat64(Nat64 { prefix, .. }) = task else {
            return Err(Failure::Unexpected("not a NAT64".to_owned()));
        };
        let rules = "table inet strict { chain pre { type filter hook prerouting priority 0; ct state invalid drop; }; }";
        let mut nft = command("nft")?;
        nft.arg(rules);
        place.network.host(place.host)?.run(nft, Duration::from_secs(10))?.succeeded()?;
        let pool = vec!["198.19.1.1/32".to_owned()];
        Self::sixway()?
            .start(place, &Task::Nat64(Nat64 { prefix: prefix.clone(), pool, sessions: Some(ROOM.into()) }))
    }
}

fn small_table() -> Result<()> {
    let set = [("series", "tcp-capacity"), ("tcp-capacity", "8192")];
    let results = run_with(&Rfc8219, &[&Small], &["sixway"], &set, None)?;
    let [sample] = results.samples.as_slice() else { panic!("{:#?}", results.samples) };
    assert!(sample.failed.is_none(), "{sample:#?}");
    let open = value(sample, "capacity");
    let failed = value(sample, "failed");
    let room = f64::from(ROOM);
    assert!(open <= room && failed > room, "{sample:#?}");
    // To the precision of a quick run.
    assert!(failed - open <= 0.1 * failed && value(sample, "at-ceiling") == 0.0, "{sample:#?}");
    assert_eq!(sample.verdict, Verdict::DeviceBound, "{sample:#?}");
    // The row is that of the last trial in which all were open.
    assert!(sample.values.get("answer").is_some_and(|times| times.n as f64 == open), "{sample:#?}");
    Ok(())
}
