//! The paper's statement on how steady translators are with large files and eight clients.

use crate::analyse::{Finding, Group, Outcome, Ratio, View, not_comparable};

const SERIES: &str = "http-8";
/// Octets of a file above which PF became unsteady.
const LARGE: f64 = 1_600.0;
const FILES: &str = "files";
/// Rounds within this factor of their mean are steady, with 95 % confidence.
const STEADY: f64 = 1.1;
/// Rounds that a statement takes.
const ROUNDS: usize = 3;

/// PF, and TAYGA if it was measured there.
pub fn findings(view: &View<'_>) -> Vec<Finding> {
    let is_meant = |group: &&Group<'_>| {
        let is_place = group.cell.series == SERIES && group.cell.at("octets") > LARGE;
        is_place && group.value(FILES).is_some()
    };
    let rows = || view.groups.iter().filter(is_meant);
    if rows().next().is_none() {
        return Vec::new();
    }
    let of_tayga: Vec<_> = rows().filter(|group| group.cell.device == "tayga-masquerade").collect();
    [Some(pf()), tayga(view, &of_tayga)].into_iter().flatten().collect()
}

fn pf() -> Finding {
    Finding {
        statement: format!("PF is unsteady with files of more than {LARGE} octets and eight clients."),
        outcome: Outcome::NotShown,
        evidence: "OpenBSD does not run here".to_owned(),
    }
}

fn tayga(view: &View<'_>, rows: &[&Group<'_>]) -> Option<Finding> {
    let said: Vec<_> = rows.iter().map(|row| steadiness(view, row)).collect();
    let outcome = match (said.iter().any(|it| it.0 == Some(false)), said.iter().all(|it| it.0 == Some(true)))
    {
        (true, _) => Outcome::DoesNotHold,
        (false, true) => Outcome::Holds,
        (false, false) => Outcome::NotShown,
    };
    let evidence = |(row, (_, text)): (&&Group<'_>, &(Option<bool>, String))| {
        format!("{} octets: {text}", row.cell.at("octets"))
    };
    (!rows.is_empty()).then(|| Finding {
        statement: format!("TAYGA stays steady with files of more than {LARGE} octets and eight clients."),
        outcome,
        evidence: rows.iter().zip(&said).map(evidence).collect::<Vec<_>>().join("; "),
    })
}

/// Whether a row's rounds differ little: less than a tenth from their mean with 95 % confidence. That they do not takes rounds that differ by more than a tenth and
/// twice the noise.
fn steadiness(view: &View<'_>, row: &Group<'_>) -> (Option<bool>, String) {
    if let Some(why) = not_comparable(row, FILES) {
        return (None, why);
    }
    let rounds = row.rounds(FILES);
    let logarithms: Vec<f64> = rounds.values().map(|files| files.ln()).collect();
    let (Some(noise), Some(mean)) = (view.noise, Ratio::of_logarithms(&logarithms)) else {
        return (None, "the noise of this run is not known, or there are fewer than two rounds".to_owned());
    };
    if mean.rounds < ROUNDS {
        return (None, format!("this takes {ROUNDS} rounds, and here are {}", mean.rounds));
    }
    let (least, greatest) =
        rounds.values().fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    let is_steady = mean.interval.1 <= STEADY * mean.value;
    let is_unsteady = greatest / least > STEADY * (1.0 + 2.0 * noise);
    let said = match (is_steady, is_unsteady) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    (said, format!("{least:.0} to {greatest:.0} files a second in {} rounds", mean.rounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Results, Sample, TesterCost, Unit, Value, Verdict};

    fn rows(octets: f64, files: &[f64], verdict: &Verdict) -> Vec<Sample> {
        let row = |(repeat, files): (u32, &f64)| Sample {
            cell: Cell {
                experiment: "nat64-2014".to_owned(),
                series: SERIES.to_owned(),
                device: "tayga-masquerade".to_owned(),
                point: [("octets".to_owned(), octets)].into(),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: [(FILES.to_owned(), Value::one(*files, Unit::PerSecond))].into(),
            not_measurable: [].into(),
            verdict: verdict.clone(),
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..).zip(files).map(row).collect()
    }

    fn of(samples: &[Vec<Sample>]) -> Vec<Outcome> {
        let results = Results { header: Header::default(), samples: samples.concat() };
        findings(&View::of(&results, "nat64-2014")).into_iter().map(|it| it.outcome).collect()
    }

    #[test]
    fn rounds_that_agree_are_steady_and_pf_does_not_run_here() {
        let busy = Verdict::DeviceBound;
        let with = |octets, files: &[f64]| of(&[rows(octets, files, &busy)]);
        let steady = [1_000.0, 1_010.0, 990.0];
        assert_eq!(with(12_800.0, &steady), [Outcome::NotShown, Outcome::Holds]);
        assert_eq!(with(12_800.0, &[1_000.0, 600.0, 1_400.0]), [Outcome::NotShown, Outcome::DoesNotHold]);
        assert_eq!(with(12_800.0, &[1_000.0, 1_060.0, 970.0])[1], Outcome::NotShown, "by about a tenth");
        assert_eq!(with(12_800.0, &steady[..2])[1], Outcome::NotShown, "two rounds");
        assert_eq!(with(1_600.0, &steady), [], "the statement is on larger files");
        let tester = Verdict::TesterBound { why: String::new() };
        let both = [rows(12_800.0, &steady, &busy), rows(6_400.0, &steady, &tester)];
        assert_eq!(of(&both)[1], Outcome::NotShown, "the tester's steadiness");
        let wild = rows(6_400.0, &[500.0, 1_000.0, 2_000.0], &busy);
        assert_eq!(of(&[rows(12_800.0, &steady, &busy), wild])[1], Outcome::DoesNotHold);
    }
}
