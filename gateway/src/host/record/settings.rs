//! Changed kernel settings, possibly of several gateways, and their restoration.

use nix::time::ClockId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A changed kernel setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) before: String,
    pub(super) value: String,
    /// When, in nanoseconds since the machine's start: settings of several gateways have one order.
    #[serde(default)]
    pub(super) made: u64,
}

impl Changed {
    /// A setting that is about to be made.
    pub(super) fn now(path: &Path, before: &str, value: &str) -> Self {
        let made = ClockId::CLOCK_BOOTTIME.now().map_or(Duration::ZERO, Duration::from);
        let made = u64::try_from(made.as_nanos()).unwrap_or(u64::MAX);
        Self { path: path.into(), before: before.into(), value: value.into(), made }
    }

    /// Whether it made a difference.
    pub(super) fn differs(&self) -> bool {
        self.before != self.value
    }
}

/// Puts settings back, the last made first: those that still are what was set. How many made a difference.
pub(super) fn put_back(mut settings: Vec<Changed>) -> usize {
    settings.sort_by_key(|changed| changed.made);
    // Before the first is written: writing one setting changes others.
    let mut values: HashMap<&Path, String> = HashMap::new();
    for changed in &settings {
        values.extend(sysctl(&changed.path).ok().map(|value| (changed.path.as_path(), value)));
    }
    let mut ours = Vec::new();
    for changed in settings.iter().rev() {
        if let Some(value) = values.get_mut(changed.path.as_path()).filter(|value| **value == changed.value) {
            value.clone_from(&changed.before);
            ours.push(changed);
        }
    }
    // An empty one is written as an empty line: the kernel sees nothing of a write of no octets.
    let written =
        ours.into_iter().filter(|changed| fs::write(&changed.path, format!("{}\n", changed.before)).is_ok());
    written.filter(|changed| changed.differs()).count()
}

/// What a setting is.
pub(super) fn sysctl(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}
