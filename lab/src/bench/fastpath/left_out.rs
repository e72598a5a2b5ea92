//! Rows that cannot be measured here.

use crate::failure::{Failure, Result};

/// A skipped measurement, on one line; an interruption is returned as an error.
pub fn left_out(what: &str, why: Failure) -> Result<String> {
    match why {
        Failure::Interrupted => Err(Failure::Interrupted),
        why => {
            let said = why.to_string();
            let lines: Vec<_> = said.lines().map(str::trim).take(2).collect();
            Ok(format!("{what}: {}", lines.join(" ")))
        }
    }
}
