//! Overload.

use super::tiny::tiny_with;
use crate::Interop;
use sixway_lab::experiment::{self, Experiment as _};
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[Interop::new(
    "overload_at_its_smallest_degrades_no_goodput_and_leaves_the_light_subscriber_alone_below_the_capacity",
    &["sixway", "nft"],
    overload,
)];

fn overload() -> Result<()> {
    let results =
        tiny_with(&experiment::Overload, &["sixway", "kernel-masquerade"], &[("load", "0.1,1.5,3")])?;
    assert_eq!(results.samples.len(), 6, "two devices with three loads");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value).unwrap_or(f64::NAN);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        assert!(value("capacity") > 1_000.0 && value("goodput") > 100.0, "{sample:#?}");
        let fairness = value("fairness");
        assert!((0.5 - 1e-9..=1.0 + 1e-9).contains(&fairness), "{sample:#?}");
        let established = sample.values.get("established").map_or(0, |value| value.n);
        assert!(established > 0, "{sample:#?}");
        if sample.cell.at("load") < 1.0 {
            // What is offered is a tenth of what the device does.
            assert_eq!((value("established-loss"), value("new-loss")), (0.0, 0.0), "{sample:#?}");
        }
    }
    for device in ["sixway", "kernel-masquerade"] {
        let goodput = |load: f64| {
            let mut rows =
                results.samples.iter().filter(|it| it.cell.device == device && it.cell.at("load") == load);
            rows.next().and_then(|it| it.values.get("goodput")).map_or(0.0, |value| value.value)
        };
        // The report's statement has a narrower limit; what else this machine does meanwhile takes a share of either row.
        let (at, above) = (goodput(1.5), goodput(3.0));
        assert!(above >= 0.5 * at, "{device}: {at:.0} and {above:.0} packets a second");
        assert!(
            above > 3.0 * goodput(0.1),
            "{device}: {above:.0} a second, and a tenth of the capacity is less"
        );
    }
    let said = experiment::Overload.findings(&results);
    assert_eq!(said.iter().filter(|it| it.statement.contains("degrades gracefully")).count(), 2, "{said:?}");
    Ok(())
}
