//! The kernel's error at the end of a chain of errors.

use std::io;

/// The operation and all causes of its failure.
pub(crate) fn in_full(doing: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = format!("{doing}: {error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        // Some errors include their cause in their own text, some do not.
        if !message.contains(&said) {
            message += &format!(": {said}");
        }
        cause = next.source();
    }
    message
}

/// The `io::Error` at the end of the chain.
pub(crate) fn os_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
