//! Alarms: the use of a resource exceeds a threshold. An alarm is cleared at a lower threshold than it is raised at, so that it does not
//! change with every binding.

use crate::config::AlarmThresholds;
use crate::event_log::AlarmNotice;
use crate::worker::Table;
use std::collections::BTreeSet;

/// The resources that have alarms.
const RESOURCES: [Resource; 6] = [
    Resource { name: "tcp_ports", of: |table| (table.ports_used[0], table.ports) },
    Resource { name: "udp_ports", of: |table| (table.ports_used[1], table.ports) },
    Resource { name: "icmp_identifiers", of: |table| (table.ports_used[2], table.ports) },
    Resource { name: "sessions", of: |table| (table.sessions, table.sessions_capacity) },
    Resource {
        name: "sessions_without_ports",
        of: |table| (table.portless_sessions, table.portless_capacity),
    },
    Resource { name: "bindings", of: |table| (table.bindings, table.bindings_capacity) },
];

struct Resource {
    name: &'static str,
    /// How much of it is used, and how much there is.
    of: fn(&Table) -> (u64, u64),
}

/// The alarms that are raised, by mechanism and resource.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    raised: BTreeSet<(String, &'static str)>,
}

impl Alarms {
    /// Checks the tables of a mechanism. Returns the alarms that were raised or cleared.
    pub(super) fn judge(
        &mut self,
        mechanism: &str,
        table: &Table,
        thresholds: AlarmThresholds,
    ) -> Vec<AlarmNotice> {
        let mut changes = Vec::new();
        for resource in &RESOURCES {
            let (used, capacity) = (resource.of)(table);
            let key = (mechanism.to_owned(), resource.name);
            let was_raised = self.raised.contains(&key);
            let reaches =
                |percentage: u8| used.saturating_mul(100) >= capacity.saturating_mul(percentage.into());
            let exceeds =
                |percentage: u8| used.saturating_mul(100) > capacity.saturating_mul(percentage.into());
            let is_raised =
                capacity > 0 && if was_raised { exceeds(thresholds.clear) } else { reaches(thresholds.at) };
            if is_raised == was_raised {
                continue;
            }
            if is_raised {
                self.raised.insert(key)
            } else {
                self.raised.remove(&key)
            };
            let (translator, resource) = (mechanism.into(), resource.name.into());
            changes.push(AlarmNotice { is_raised, translator, resource, used, capacity });
        }
        changes
    }

    /// Whether one is raised.
    pub(super) fn is_raised(&self, mechanism: &str, resource: &str) -> bool {
        self.raised.iter().any(|(raised, of)| raised == mechanism && *of == resource)
    }

    /// Each alarm of these mechanisms, and whether it is raised.
    pub(super) fn rows<'m>(
        &self,
        mechanisms: impl Iterator<Item = &'m str>,
    ) -> Vec<(String, &'static str, bool)> {
        let of = |mechanism: &'m str| {
            RESOURCES
                .iter()
                .map(move |one| (mechanism.to_owned(), one.name, self.is_raised(mechanism, one.name)))
        };
        mechanisms.flat_map(of).collect()
    }
}

/// The resource of a protocol of a pool.
pub(super) fn ports_of(protocol: &str) -> &'static str {
    match protocol {
        "tcp" => "tcp_ports",
        "udp" => "udp_ports",
        _ => "icmp_identifiers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: AlarmThresholds = AlarmThresholds { at: 80, clear: 70 };

    fn table(used: u64) -> Table {
        Table { ports: 1_000, ports_used: [0, used, 0], ..Table::default() }
    }

    fn told(alarms: &mut Alarms, used: u64) -> Option<bool> {
        let changes = alarms.judge("nat44", &table(used), USUAL);
        assert!(changes.len() <= 1 && changes.iter().all(|one| &*one.resource == "udp_ports"), "{changes:?}");
        changes.first().map(|one| one.is_raised)
    }

    #[test]
    fn an_alarm_is_raised_once_and_cleared_once_however_the_use_varies_between() {
        let mut alarms = Alarms::default();
        assert_eq!(told(&mut alarms, 799), None);
        assert_eq!(told(&mut alarms, 800), Some(true));
        for used in [799, 800, 1_000, 701, 900, 750] {
            assert_eq!(told(&mut alarms, used), None, "{used}");
            assert!(alarms.is_raised("nat44", "udp_ports"));
        }
        assert_eq!(told(&mut alarms, 700), Some(false));
        for used in [701, 799, 0] {
            assert_eq!(told(&mut alarms, used), None, "{used}");
        }
        assert_eq!(alarms.rows(["nat44"].into_iter()).iter().filter(|row| row.2).count(), 0);
    }

    #[test]
    fn each_mechanism_and_each_table_has_its_own() {
        let mut alarms = Alarms::default();
        let full =
            Table { sessions: 9, sessions_capacity: 10, bindings: 1, bindings_capacity: 1, ..table(1_000) };
        let raised: Vec<_> =
            alarms.judge("nat44", &full, USUAL).into_iter().map(|one| one.resource).collect();
        assert_eq!(raised.iter().map(|it| &**it).collect::<Vec<_>>(), ["udp_ports", "sessions", "bindings"]);
        assert_eq!(
            alarms.judge("nat64", &Table::default(), USUAL),
            [],
            "what has no capacity is not used up"
        );
        assert!(!alarms.is_raised("nat64", "sessions"));
        assert_eq!(alarms.judge("nat44", &Table::default(), USUAL).len(), 3, "they are cleared");
    }

    #[test]
    fn sessions_without_ports_have_an_alarm_of_their_own() {
        let mut alarms = Alarms::default();
        let table = |portless_sessions| Table {
            portless_sessions,
            portless_capacity: 100,
            sessions_capacity: 100,
            ..Table::default()
        };
        assert_eq!(alarms.judge("nat44", &table(79), USUAL), []);
        let raised = alarms.judge("nat44", &table(80), USUAL);
        let [AlarmNotice { is_raised: true, resource, used: 80, capacity: 100, .. }] = &raised[..] else {
            panic!("{raised:?}")
        };
        assert_eq!(&**resource, "sessions_without_ports");
        assert!(
            alarms.is_raised("nat44", "sessions_without_ports") && !alarms.is_raised("nat44", "sessions")
        );
        assert_eq!(alarms.judge("nat44", &table(70), USUAL).len(), 1, "it is cleared");
    }

    #[test]
    fn with_a_threshold_of_100_only_what_is_full_raises_an_alarm() {
        let (mut alarms, only_full) = (Alarms::default(), AlarmThresholds { at: 100, clear: 99 });
        assert_eq!(alarms.judge("nat44", &table(999), only_full), []);
        assert_eq!(alarms.judge("nat44", &table(1_000), only_full).len(), 1);
        assert_eq!(alarms.judge("nat44", &table(991), only_full), []);
        assert_eq!(alarms.judge("nat44", &table(990), only_full).len(), 1);
    }
}
