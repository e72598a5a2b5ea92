//! A reload that did not take effect.

use crate::view::{ProblemKind, ProblemRow, ReloadRow};

/// A reload that was rolled back.
pub(in crate::daemon) fn reload(row: &ReloadRow) -> Option<ProblemRow> {
    let why = row.reason.as_deref().filter(|_| row.state == "rolled back")?;
    let text = format!("the reload was rolled back, and the previous configuration is in force: {why}");
    let advice = "correct the configuration file, then run `sixway reload`";
    Some(ProblemRow::error(ProblemKind::Reload, text, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_was_rolled_back_is_an_error_with_its_reason() {
        let row = |state: &str| ReloadRow {
            state: state.into(),
            reason: Some("port 53 is in use".into()),
            ..ReloadRow::default()
        };
        assert!(reload(&row("rolled back")).unwrap().text.ends_with("in force: port 53 is in use"));
        assert_eq!(reload(&row("kept")), None);
    }
}
