//! The state files that a directory has.

use std::fs;
use std::path::{Path, PathBuf};

/// Their paths, in order of names.
pub(super) fn states(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut states: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "state")).collect();
    states.sort();
    states
}
