//! Warnings about a configuration, on standard error.

use crate::config::{LogFormat, Warning, write_aligned};
use std::io::{self, Write as _};

/// Prints them in the format of the log.
pub(super) fn warn(warnings: &[Warning], format: LogFormat) {
    if format == LogFormat::Json {
        for warning in warnings {
            let line = serde_json::json!({ "level": "WARN", "message": warning.to_string() });
            // If the output is closed, no one can be notified.
            let _ = writeln!(io::stderr(), "{line}");
        }
        return;
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_aligned(&mut text, warnings);
    for line in text.lines() {
        // If the output is closed, no one can be notified.
        let _ = writeln!(io::stderr(), "warning: {line}");
    }
}
