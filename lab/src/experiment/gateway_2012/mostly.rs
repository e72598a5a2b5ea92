//! Statements that hold if a gateway is ahead at most places.

use super::compared::Standing;
use super::published::FORMULA;
use crate::analyse::{Finding, Outcome};

/// A statement that holds if a gateway is ahead at most places, by ratios that are above 1 there. One that is uncertain is not left out.
pub fn is_mostly_ahead(statement: String, all: &[Standing], compared: &str) -> Option<Finding> {
    let count = |said: Option<bool>| all.iter().filter(|it| it.is_ahead == said).count();
    let (ahead, behind, uncertain) = (count(Some(true)), count(Some(false)), count(None));
    let outcome = match (2 * ahead > all.len(), 2 * behind >= all.len()) {
        (true, _) => Outcome::Holds,
        (false, true) => Outcome::DoesNotHold,
        (false, false) => Outcome::NotShown,
    };
    let mut evidence = format!("ahead in {ahead} of {} rows, not in {behind}", all.len());
    let percentages: Vec<_> =
        all.iter().filter_map(|it| it.bearing.number()).map(|ratio| percent(ratio.value)).collect();
    if !percentages.is_empty() {
        evidence += &format!("; {FORMULA}{compared}: {}", percentages.join(", "));
    }
    let is_audio = |it: &Standing| it.bearing.ratio().is_none() && it.is_ahead.is_some();
    if all.iter().any(is_audio) {
        evidence += "; audio is compared by what is lost in each round, and equal loss is not ahead";
    }
    if let Some(first) = all.iter().find(|it| it.is_ahead.is_none()) {
        evidence += &format!("; uncertain in {uncertain}: {}", first.bearing.explained());
    }
    (!all.is_empty()).then_some(Finding { statement, outcome, evidence })
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Bearing, Ratio};

    #[test]
    fn a_gateway_is_ahead_if_most_rows_say_so_and_uncertain_ones_are_rows() {
        let of = |value: f64, interval| Ratio { value, interval, rounds: 3 };
        let number = || Bearing::Number(of(1.76, (1.6, 1.9)));
        let less = || Bearing::Direction(of(0.5, (0.4, 0.9)));
        let wide = || Bearing::Equal(of(1.14, (0.97, 1.35)));
        let near = || Bearing::Equal(of(1.0, (0.99, 1.02)));
        let nothing = || Bearing::Nothing("the tester was at its limit".to_owned());
        let standings = |all: &[Bearing]| -> Vec<Standing> {
            let of = |it: &Bearing| Standing { is_ahead: it.is_above(), bearing: it.clone() };
            all.iter().map(of).collect()
        };
        let outcome =
            |all: &[Bearing]| is_mostly_ahead(String::new(), &standings(all), "").map(|it| it.outcome);
        assert_eq!(outcome(&[]), None);
        assert_eq!(outcome(&[number(), number(), near()]), Some(Outcome::Holds));
        assert_eq!(outcome(&[number(), near()]), Some(Outcome::DoesNotHold));
        assert_eq!(outcome(&[number(), less(), near()]), Some(Outcome::DoesNotHold));
        assert_eq!(outcome(&[number(), number(), nothing()]), Some(Outcome::Holds));
        assert_eq!(outcome(&[wide()]), Some(Outcome::NotShown), "nothing is shown by a wide interval");
        assert_eq!(outcome(&[near()]), Some(Outcome::DoesNotHold));
        assert_eq!(outcome(&[number(), wide(), nothing()]), Some(Outcome::NotShown));
        let evidence =
            |all: &[Bearing]| is_mostly_ahead(String::new(), &standings(all), ", here").unwrap().evidence;
        assert_eq!(evidence(&[near()]), "ahead in 0 of 1 rows, not in 1");
        let audio = Standing { is_ahead: Some(false), bearing: nothing() };
        assert_eq!(
            is_mostly_ahead(String::new(), &[audio], "").unwrap().evidence,
            "ahead in 0 of 1 rows, not in 1; audio is compared by what is lost in each round, and equal loss is not ahead"
        );
        assert_eq!(
            evidence(&[number(), less(), nothing()]),
            "ahead in 1 of 3 rows, not in 1; slower / faster − 1, here: 76 %; uncertain in 1: the tester was at its limit"
        );
    }
}
