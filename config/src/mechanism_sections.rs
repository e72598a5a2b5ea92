//! What all sections of a mechanism have in common: default names, and how many sections are allowed.

use crate::fault::Report;
use crate::section::Reader;

/// Mechanisms of a kind; the engine numbers them with an octet.
const MAX_MECHANISMS: usize = 64;

/// Tells of more sections of a kind than a gateway has.
pub(crate) fn too_many(written: &[Reader], report: &mut Report) {
    if let Some(section) = written.get(MAX_MECHANISMS) {
        report.fault(section.place(), format!("is one too many; maximum {MAX_MECHANISMS} of a kind"));
    }
}

/// The default name of a mechanism.
pub(crate) fn default_name(mechanism: &str, index: usize, count: usize) -> String {
    if count == 1 { mechanism.to_owned() } else { format!("{mechanism}-{}", index + 1) }
}
