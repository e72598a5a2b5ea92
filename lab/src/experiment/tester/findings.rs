//! Whether the lab has found what was injected.

use super::impairments::Kind;
use crate::analyse::{Finding, Outcome, groups};
use crate::results::Results;

/// One finding for each impairment that was measured.
pub fn findings(results: &Results) -> Vec<Finding> {
    let own: Vec<_> =
        results.samples.iter().filter(|sample| sample.cell.experiment == "tester").cloned().collect();
    let groups = groups(&own);
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for group in groups.iter().filter(|group| group.cell.series == kind.series()) {
            let value = |name: &str| group.value(name).map(|(estimate, unit)| (estimate.mean, unit));
            let (Some((injected, unit)), Some((measured, _)), Some((allowed, _))) =
                (value("injected"), value("measured"), value("allowed"))
            else {
                continue;
            };
            let outcome = match (measured - injected).abs() <= allowed {
                true => Outcome::Holds,
                false => Outcome::DoesNotHold,
            };
            let shown = |value: f64| value * unit.factor();
            let text = unit.text();
            all.push(Finding {
                statement: format!("The lab finds {}.", kind.name()),
                outcome,
                evidence: format!(
                    "{:.4} {text} measured, {:.4} {text} injected; they may differ by {:.4} {text}",
                    shown(measured),
                    shown(injected),
                    shown(allowed)
                ),
            });
        }
    }
    all
}
