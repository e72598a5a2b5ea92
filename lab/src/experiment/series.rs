//! Which series of an experiment are measured: `--set series`.

use crate::results::Asked;

/// The word for every series, also those that a quick run leaves out.
const EVERY: &str = "all";

/// Whether every series was asked for by `--set series=all`.
pub fn has_every_series(asked: &Asked) -> bool {
    asked.set.get("series").is_some_and(|text| text == EVERY)
}

/// The series that were asked for, in the experiment's order. Without the setting, a quick run leaves some out.
///
/// # Errors
/// There is no series of this name.
pub fn series(
    asked: &Asked,
    every: &[&'static str],
    not_quick: &[&str],
) -> Result<Vec<&'static str>, String> {
    let chosen: Option<Vec<&str>> = match asked.set.get("series") {
        Some(text) if text != EVERY => Some(text.split(',').collect()),
        _ => None,
    };
    if let Some(wrong) = chosen.iter().flatten().find(|name| !every.contains(name)) {
        return Err(format!("--set series: {wrong} is not all, or one of {}", every.join(", ")));
    }
    let is_usual = |name: &&str| has_every_series(asked) || !(asked.quick && not_quick.contains(name));
    let is_wanted = |name: &&str| chosen.as_ref().map_or_else(|| is_usual(name), |all| all.contains(name));
    Ok(every.iter().copied().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(setting: Option<&str>, quick: bool) -> Result<Vec<&'static str>, String> {
        let set = setting.map(|text| ("series".to_owned(), text.to_owned())).into_iter().collect();
        series(&Asked { set, quick, ..Asked::default() }, &["short", "long", "longest"], &["longest"])
    }

    #[test]
    fn a_quick_run_leaves_series_out_unless_they_are_asked_for() {
        assert_eq!(of(None, false).unwrap(), ["short", "long", "longest"]);
        assert_eq!(of(None, true).unwrap(), ["short", "long"]);
        assert_eq!(of(Some("all"), true).unwrap(), ["short", "long", "longest"]);
        assert_eq!(
            of(Some("longest,short"), true).unwrap(),
            ["short", "longest"],
            "in the experiment's order"
        );
    }

    #[test]
    fn an_unknown_series_is_named() {
        let said = of(Some("short,shorter"), false).unwrap_err();
        assert_eq!(said, "--set series: shorter is not all, or one of short, long, longest");
    }
}
