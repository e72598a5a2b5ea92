//! The lab measures itself.

use super::tiny::Instance;
use crate::Interop;
use sixway_lab::experiment::tester::Tester;
use sixway_lab::failure::Result;
use sixway_lab::results::Verdict;

pub const TESTS: &[Interop] = &[Interop::new(
    "tester_at_its_smallest_knows_its_limits_and_loses_nothing_at_a_low_rate",
    &["clang"],
    tester,
)];

pub const INSTANCES: &[Instance] = &[TESTER];

const TESTER: Instance = Instance { experiment: &Tester, devices: &[], set: &[] };

fn tester() -> Result<()> {
    let results = TESTER.run()?;
    assert_eq!(results.samples.len(), 15, "ten on the bare link, and five impairments");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map(|value| value.value);
        assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
        match sample.cell.series.as_str() {
            "bare-transactions" => {
                assert!(value("transactions") > Some(0.0) && value("loss") == Some(0.0), "{sample:#?}");
            }
            "bare-paced" => {
                assert_eq!(value("loss"), Some(0.0), "{sample:#?}");
                assert!(sample.raw.contains(&"lateness.json".to_owned()), "{sample:#?}");
            }
            "bare-frames" => assert!(value("arrived-per-s") > Some(0.0), "{sample:#?}"),
            "bare-udp" => {
                assert!(value("sent-per-s") > Some(0.0) && value("cost") > Some(0.0), "{sample:#?}")
            }
            _ => {
                assert_eq!(value("sent"), Some(2_000.0), "{sample:#?}");
                assert!(value("injected") > Some(0.0) && value("measured") > Some(0.0), "{sample:#?}");
            }
        }
    }
    Ok(())
}
