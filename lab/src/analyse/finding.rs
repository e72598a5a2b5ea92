//! Whether the measurement confirms a paper's statement.

/// The outcome for one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not.
    DoesNotHold,
    /// The measurements cannot show it.
    NotShown,
}

/// A statement, its outcome and the figures behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is stated, as a sentence.
    pub statement: String,
    /// Whether it holds.
    pub outcome: Outcome,
    /// The figures that decide, or what is missing.
    pub evidence: String,
}

/// Of what a ratio or a row says of a statement: nothing, if it is uncertain.
impl From<Option<bool>> for Outcome {
    fn from(said: Option<bool>) -> Self {
        match said {
            Some(true) => Self::Holds,
            Some(false) => Self::DoesNotHold,
            None => Self::NotShown,
        }
    }
}

impl Outcome {
    /// As it is written in a report.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::NotShown => "not shown here",
        }
    }
}
