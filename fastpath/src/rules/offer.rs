//! The programs' constants, and what they leave to the engine.

use super::unoffered::{Mechanism, Unoffered, UnofferedReason};
use crate::settings::Rules;

/// What the fast path carries of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The programs' constants and tables.
    pub rules: Rules,
    /// What is left to the engine, in the order of the mechanisms.
    pub unoffered: Vec<Unoffered>,
}

impl Offer {
    /// Leaves a mechanism to the engine.
    pub(super) fn refuse(&mut self, mechanism: Mechanism, why: UnofferedReason) {
        self.unoffered.push(Unoffered { mechanism, why });
    }
}
