//! The result of a check.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// The result of a check.
    pub what: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

/// How something is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Packets are lost.
    Fault,
    /// Packets may be lost.
    Warning,
    /// It is not known.
    NotChecked,
    /// It is as it should be.
    Fine,
}

impl Finding {
    /// Packets are lost.
    pub fn fault(check: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fault, what: what.into(), cure: Some(cure.into()) }
    }

    /// Packets may be lost.
    pub fn warning(check: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, what: what.into(), cure: Some(cure.into()) }
    }

    /// It could not be found out.
    pub fn not_checked(check: &'static str, why: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::NotChecked, what: why.into(), cure: None }
    }

    /// It is as it should be.
    pub fn fine(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fine, what: what.into(), cure: None }
    }
}
