//! The advice of all problems names keys that exist.

use super::*;
use crate::daemon::exhaustion;
use crate::daemon::leases::LeaseFiles;
use crate::view::{Dns64Row, MechanismRow, ProblemRow, Severity, SinkRow, UpstreamRow};
use crate::worker::Table;

/// What rows say, with their severity.
pub(super) fn said(rows: &[ProblemRow]) -> Vec<(Severity, &str)> {
    rows.iter().map(|row| (row.severity, &*row.text)).collect()
}

#[test]
fn keys_in_advice_are_keys_of_the_configuration() {
    let full = Table {
        sessions: 1,
        sessions_capacity: 1,
        bindings: 1,
        bindings_capacity: 1,
        portless_sessions: 1,
        portless_capacity: 1,
        ..Table::default()
    };
    let mechanisms = [true, false].map(|stateful| MechanismRow { stateful, ..MechanismRow::default() });
    let upstreams = vec![UpstreamRow { health: "down".into(), ..UpstreamRow::default() }];
    let mut all = tables(&mechanisms, &[full, full], |_, _| false);
    all.extend(dns64(&Dns64Row { upstreams, ..Dns64Row::default() }));
    all.extend(fast_path(Some("no BPF"), None, false, &["not eth2".into()]));
    let away =
        SinkRow { reason: Some(String::new()), away_seconds: Some(1), has_spool: true, ..SinkRow::default() };
    all.extend(event_log(&[SinkRow { lost_seconds: Some(1), ..away }]));
    let files = LeaseFiles {
        mechanism: "hub".into(),
        unwritten: Some("/a: full".into()),
        unread: Some("/b: gone".into()),
    };
    all.extend(lease_files(&[files]));
    all.extend(exhaustion::problems(|_| Some(std::time::Duration::ZERO)));
    let sections = crate::config::tables();
    let mut found = 0;
    for row in &all {
        let words = row.advice.split(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c));
        for (section, key) in words.filter_map(|word| word.split_once('.')) {
            let keys = sections.iter().find(|(name, _)| *name == section).map(|(_, keys)| keys);
            let is_key = keys.is_some_and(|keys| keys.contains(&format!("| `{key}` |")));
            assert!(is_key, "{section}.{key} in: {}", row.advice);
            found += 1;
        }
        // Both stateful translators have these.
        let words = row.advice.split(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c));
        for key in words.filter(|word| word.starts_with("max_")) {
            for translator in ["nat64", "nat44"] {
                let keys = sections.iter().find(|(name, _)| *name == translator).map(|(_, keys)| keys);
                assert!(
                    keys.is_some_and(|keys| keys.contains(&format!("| `{key}` |"))),
                    "{key}: {}",
                    row.advice
                );
            }
            found += 1;
        }
    }
    assert!(found >= 14, "{found}");
}
