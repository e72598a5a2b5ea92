//! The counts of impaired packets.

use crate::failure::{Asking as _, Failure, Result};
use crate::load::{Histogram, histogram};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The impairments of packets, in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Packets that came.
    pub packets: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Those that left twice.
    pub duplicated: u64,
    /// Those with a bit turned.
    pub corrupted: u64,
    /// Packets that left after one that had come later.
    pub reordered: u64,
    /// Packets that left, those of the kernel's refusal among them.
    pub released: u64,
    /// Packets that the kernel refused to take.
    pub refused: u64,
    /// How long those that left had waited: pairs of nanoseconds and how often.
    pub waited: Vec<[u64; 2]>,
}

impl Ledger {
    /// Reads one.
    ///
    /// # Errors
    /// There is none, or a broken one.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).asking(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::Unexpected(format!("{}: {error}", path.display())))
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| Failure::Unexpected(error.to_string()))?;
        std::fs::write(path, text).asking(|| format!("writing {}", path.display()))
    }

    /// How long those that left had waited.
    pub fn times(&self) -> Histogram {
        let mut all = histogram();
        self.waited.iter().for_each(|[value, count]| all.saturating_record_n(*value, *count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("sixway-ledger-{}", std::process::id()));
        let ledger = Ledger { packets: 3, waited: vec![[5, 2], [1_000, 1]], ..Ledger::default() };
        ledger.write(&path).unwrap();
        assert_eq!(Ledger::read(&path).unwrap(), ledger);
        assert_eq!((ledger.times().len(), ledger.times().max()), (3, 1_000));
        std::fs::write(&path, "{").unwrap();
        assert!(Ledger::read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
