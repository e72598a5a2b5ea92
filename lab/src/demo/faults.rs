//! The steps of the demonstration, and those that failed.

use crate::failure::{Failure, Result};
use crate::terminal;

/// What failed, by name.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    /// Shows the outcome of something that was tried.
    pub(super) fn tell(&mut self, name: &str, tried: &str, outcome: Result<String>) -> Result<()> {
        match outcome {
            Ok(result) => terminal::line(true, name, tried, &result),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                terminal::line(false, name, tried, &failure.to_string());
                self.0.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// Something failed whose outcome was shown otherwise.
    pub(super) fn note(&mut self, name: String) {
        self.0.push(name);
    }

    /// [`Failure::Unexpected`] if something failed.
    pub(super) fn judged(&self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Failure::Unexpected(format!("failed: {}", self.0.join(", ")))),
        }
    }
}
