//! Changes of addresses that are being drained, and reports of them.

use crate::view::DrainingRow;
use sixway_dataplane::nat::Draining;
use sixway_wire::Prefix4;
use std::collections::BTreeMap;

/// The addresses that are being drained, of pools for which this was changed at run time, by their names.
pub(super) type Drained = BTreeMap<String, Draining>;

/// Logs once when the addresses that are being drained are unused.
#[derive(Debug, Default)]
pub(super) struct DrainLog {
    told: Vec<(String, Prefix4)>,
}

impl DrainLog {
    /// Those that are empty, and were not the last time.
    pub(super) fn news(&mut self, rows: &[DrainingRow]) -> Vec<String> {
        let empty: Vec<_> = rows.iter().filter(|row| row.is_empty()).collect();
        let known = std::mem::take(&mut self.told);
        self.told = empty.iter().map(|row| (row.pool.clone(), row.prefix)).collect();
        let new = empty.into_iter().filter(|row| !known.contains(&(row.pool.clone(), row.prefix)));
        new.map(|row| format!("pool {}: {} is drained: no binding is left", row.pool, row.prefix)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_reported_once_until_it_is_used_again() {
        let mut log = DrainLog::default();
        let row = |bindings, portless| DrainingRow {
            mechanism: "nat44".into(),
            pool: "main".into(),
            prefix: "192.0.2.4/30".parse().unwrap(),
            bindings,
            hosts: bindings,
            portless,
        };
        let told = |log: &mut DrainLog, rows: &[DrainingRow]| log.news(rows).len();
        let steps = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0), (1, 0, 0), (0, 0, 1)];
        for (bindings, portless, news) in steps {
            assert_eq!(told(&mut log, &[row(bindings, portless)]), news, "{bindings} {portless}");
        }
        assert_eq!(told(&mut log, &[]), 0);
    }
}
