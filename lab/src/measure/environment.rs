//! Other load of the machine, and its CPU frequency governors.

use crate::failure::{Asking as _, Failure, Result};
use crate::measure::core_time::{CoreTime, core_time};
use crate::results::governors;
use serde::{Deserialize, Serialize};

/// A full run is refused above this load.
pub const QUIET: f64 = 0.5;

/// The machine just before or after a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Programs that want to run, on average over the last minute: those of the measurement count, too.
    pub load: f64,
    /// What governs the frequency of the CPUs; `None` if the machine does not show it.
    pub governor: Option<String>,
    /// Seconds that the hypervisor has taken from all CPUs since the machine started.
    pub stolen: f64,
    /// Seconds of all CPUs since then.
    pub all: f64,
}

impl Environment {
    /// Reads it.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn read() -> Result<Self> {
        let said = std::fs::read_to_string("/proc/loadavg").asking(|| "reading /proc/loadavg".to_owned())?;
        let load = load(&said).ok_or_else(|| Failure::Unexpected(format!("/proc/loadavg: {said:?}")))?;
        let CoreTime { stolen, all, .. } = core_time(None)?;
        Ok(Self { load, governor: governors(), stolen: stolen.as_secs_f64(), all: all.as_secs_f64() })
    }

    /// Whether nothing else runs.
    pub fn is_quiet(&self) -> bool {
        self.load <= QUIET
    }

    /// Share of the time since an earlier reading that the hypervisor took, 0 to 1.
    pub fn steal_since(&self, before: &Self) -> f64 {
        let all = self.all - before.all;
        if all > 0.0 { ((self.stolen - before.stolen) / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        assert_eq!(load("0.42 0.30 0.20 1/234 5678\n"), Some(0.42));
        let before = Environment::read().unwrap();
        assert!(before.load >= 0.0 && before.all > 0.0);
        let after = Environment { stolen: before.stolen + 1.0, all: before.all + 4.0, ..before.clone() };
        assert_eq!(after.steal_since(&before), 0.25);
        assert_eq!(before.steal_since(&before), 0.0);
        assert!(Environment { load: 0.1, ..before.clone() }.is_quiet());
        assert!(!Environment { load: 3.0, ..before }.is_quiet());
    }
}
