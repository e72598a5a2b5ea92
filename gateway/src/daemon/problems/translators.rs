//! Translators whose sessions get no answers, and whose pools and tables are nearly full.

use crate::daemon::session_sample::SampleCount;
use crate::show::{count, plural};
use crate::view::{MechanismRow, PoolRow, ProblemKind, ProblemRow};
use crate::worker::Table;
use std::net::IpAddr;

/// From this share on, it is full but for a rest.
const ALMOST: f64 = 0.95;

/// From this share on, the addresses that all clients of a NAT46 share need attention: a used address rests for minutes.
const ADDRESSES: f64 = 0.8;

/// Fewer sessions than this may be without answers for other reasons.
const FEW: u64 = 10;

/// Sessions with packets in one direction only: more of them than others. `outward`: whether the mechanism forwarded packets out, and none in,
/// for some seconds.
pub(in crate::daemon) fn one_direction(
    name: &str,
    sample: &SampleCount,
    outward: bool,
) -> Option<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::NoAnswers;
    let SampleCount { answered, unanswered, outside } = sample;
    let advice = match outside {
        Some(IpAddr::V4(address)) => format!("no route back to {address}? run `sixway doctor`"),
        Some(IpAddr::V6(_)) | None => "no route back to the pool? run `sixway doctor`".into(),
    };
    let seen = answered + unanswered;
    match (*unanswered >= FEW, answered) {
        (true, 0) => {
            let text = format!("{name}: {} with packets out and none back", plural(*unanswered, "session"));
            Some(ProblemRow::error(KIND, text, advice))
        }
        (true, answered) if unanswered > answered => {
            let text = format!(
                "{name}: {} of {} examined sessions have packets out and none back",
                count(*unanswered),
                count(seen)
            );
            Some(ProblemRow::warning(KIND, text, advice))
        }
        (_, _) if outward => {
            let text = format!("{name}: packets go out and none come back");
            Some(ProblemRow::warning(KIND, text, advice))
        }
        (_, _) => None,
    }
}

/// Pools whose ports are nearly all in use; the fullest worker, where the pool as a whole has enough.
pub(in crate::daemon) fn pools(rows: &[PoolRow], is_raised: impl Fn(&PoolRow) -> bool) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::PoolPorts;
    const ADVICE: &str = "add addresses to the pool, or set max_bindings_per_subscriber; sixway show subscribers lists the subscribers with most ports";
    let problem = |row: &PoolRow| {
        let share = row.share();
        let (worker, fullest) = row.fullest()?;
        let what = format!("{}: pool {}, {}", row.mechanism, row.pool, row.protocol.to_uppercase());
        let mut text = format!("{what}: {:.0} % of the ports are in use", share * 100.0);
        if row.by_worker.len() > 1 {
            text.push_str(&format!("; worker {worker}: {:.0} %", fullest * 100.0));
        }
        match share {
            share if share >= ALMOST => Some(ProblemRow::error(KIND, text, ADVICE)),
            _ if is_raised(row) || fullest >= ALMOST => Some(ProblemRow::warning(KIND, text, ADVICE)),
            _ => None,
        }
    };
    rows.iter().filter_map(problem).collect()
}

/// A pool of NAT46 that all clients share, and that is nearly used up.
fn pool_addresses(mechanism: &MechanismRow) -> Option<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::PoolAddresses;
    const CURE: &str =
        "enlarge nat46.pool, or lower nat46.max_mappings_per_client; sixway show bindings lists their users";
    let mappings = mechanism.mappings.as_ref()?;
    let (used, all) = (u64::from(mappings.addresses_used), u64::from(mappings.addresses));
    let text = || {
        let (used, all) = (count(used), count(all));
        format!("{}: {used} of {all} addresses of the pool are in use or resting", mechanism.name)
    };
    match used {
        _ if all == 0 => None,
        used if used >= all => Some(ProblemRow::error(KIND, text(), CURE)),
        used if used as f64 >= all as f64 * ADDRESSES => Some(ProblemRow::warning(KIND, text(), CURE)),
        _ => None,
    }
}

/// Tables that are nearly full.
pub(in crate::daemon) fn tables(
    mechanisms: &[MechanismRow],
    tables: &[Table],
    is_raised: impl Fn(&str, &str) -> bool,
) -> Vec<ProblemRow> {
    let mut found = Vec::new();
    for (mechanism, table) in mechanisms.iter().zip(tables) {
        let bindings = match mechanism.mappings {
            Some(_) => "raise nat46.max_mappings",
            None if mechanism.stateful => "raise nat64.max_bindings",
            None if mechanism.state.as_ref().is_some_and(|state| state.contains(" leases")) => {
                "enlarge four_over_six.pool, or raise four_over_six.max_leases if that is less"
            }
            None => "enlarge siit.dynamic_pool",
        };
        found.extend(pool_addresses(mechanism));
        let kinds = [
            (
                ProblemKind::Sessions,
                "sessions",
                table.sessions,
                table.sessions_capacity,
                "raise nat64.max_sessions",
            ),
            (
                ProblemKind::Sessions,
                "sessions without ports",
                table.portless_sessions,
                table.portless_capacity,
                "raise nat44.max_portless_sessions",
            ),
            (ProblemKind::Bindings, "bindings", table.bindings, table.bindings_capacity, bindings),
        ];
        for (kind, noun, used, capacity, cure) in kinds {
            let share = if capacity == 0 { 0.0 } else { used as f64 / capacity as f64 };
            let text = format!("{}: {} of {} {noun}", mechanism.name, count(used), count(capacity));
            match share {
                share if share >= 1.0 => found.push(ProblemRow::error(kind, text, cure)),
                share if share >= ALMOST || is_raised(&mechanism.name, &noun.replace(' ', "_")) => {
                    found.push(ProblemRow::warning(kind, text, cure));
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::{MappingsRow, PoolShareRow, Severity};

    #[test]
    fn sessions_without_answers_are_a_problem_unless_they_are_few() {
        let outside = Some(IpAddr::from([203, 0, 113, 2]));
        let of = |answered, unanswered| {
            one_direction("nat64", &SampleCount { answered, unanswered, outside }, false)
        };
        let all = of(0, 120).unwrap();
        assert_eq!(all.text, "nat64: 120 sessions with packets out and none back");
        assert_eq!(all.advice, "no route back to 203.0.113.2? run `sixway doctor`");
        let most = of(5, 20).unwrap();
        assert_eq!(
            (most.severity, &*most.text),
            (Severity::Warning, "nat64: 20 of 25 examined sessions have packets out and none back")
        );
        assert_eq!((of(0, 9), of(20, 20)), (None, None));
        let gone = one_direction("nat64", &SampleCount { answered: 50, ..SampleCount::default() }, true);
        assert_eq!(gone.unwrap().text, "nat64: packets go out and none come back");
    }

    #[test]
    fn a_pool_is_a_problem_with_its_alarm_and_a_worker_from_95_percent() {
        let row = |used, free, by_worker: &[(u64, u64)]| PoolRow {
            mechanism: "nat64".into(),
            pool: "main".into(),
            protocol: "tcp".into(),
            used,
            free,
            by_worker: by_worker
                .iter()
                .map(|(used, free)| PoolShareRow { used: *used, free: *free })
                .collect(),
        };
        let rows = [
            row(79, 21, &[(79, 21)]),
            row(80, 20, &[(80, 20)]),
            row(95, 5, &[(95, 5)]),
            row(97, 103, &[(2, 98), (95, 5)]),
            row(0, 0, &[(0, 0)]),
        ];
        let found = pools(&rows, |row| row.used == 80);
        let main = "nat64: pool main, TCP:";
        assert_eq!(
            said(&found),
            [
                (Severity::Warning, &*format!("{main} 80 % of the ports are in use")),
                (Severity::Error, &*format!("{main} 95 % of the ports are in use")),
                (Severity::Warning, &*format!("{main} 48 % of the ports are in use; worker 1: 95 %")),
            ]
        );
    }

    #[test]
    fn a_table_is_a_problem_before_it_is_full() {
        let mechanism = MechanismRow { name: "nat64".into(), stateful: true, ..MechanismRow::default() };
        let of = |sessions, bindings| {
            let table = Table {
                sessions,
                sessions_capacity: 100,
                bindings,
                bindings_capacity: 100,
                ..Table::default()
            };
            tables(std::slice::from_ref(&mechanism), &[table], |_, noun| sessions == 80 && noun == "sessions")
        };
        assert_eq!(of(94, 94), []);
        assert_eq!(said(&of(80, 80)), [(Severity::Warning, "nat64: 80 of 100 sessions")], "its alarm");
        let found = of(100, 95);
        assert_eq!(
            said(&found),
            [
                (Severity::Error, "nat64: 100 of 100 sessions"),
                (Severity::Warning, "nat64: 95 of 100 bindings")
            ]
        );
        assert_eq!(
            tables(std::slice::from_ref(&mechanism), &[Table::default()], |_, _| false),
            [],
            "it has none"
        );
        let portless = Table { portless_sessions: 95, portless_capacity: 100, ..Table::default() };
        let found = tables(std::slice::from_ref(&mechanism), &[portless], |_, _| false);
        assert_eq!(said(&found), [(Severity::Warning, "nat64: 95 of 100 sessions without ports")]);
        let alarmed = Table { portless_sessions: 80, ..portless };
        let found = tables(&[mechanism], &[alarmed], |_, resource| resource == "sessions_without_ports");
        assert_eq!(said(&found), [(Severity::Warning, "nat64: 80 of 100 sessions without ports")]);
    }

    #[test]
    fn a_shared_pool_of_nat46_is_a_problem_before_it_is_used_up() {
        let of = |addresses_used| {
            let mappings = MappingsRow { addresses: 254, addresses_used, ..MappingsRow::default() };
            let mechanism =
                MechanismRow { name: "nat46".into(), mappings: Some(mappings), ..MechanismRow::default() };
            tables(&[mechanism], &[Table::default()], |_, _| false)
        };
        assert_eq!(of(203), []);
        let text = "nat46: 204 of 254 addresses of the pool are in use or resting";
        assert_eq!(said(&of(204)), [(Severity::Warning, text)]);
        assert_eq!(of(254)[0].severity, Severity::Error);
        let own = MechanismRow { mappings: Some(MappingsRow::default()), ..MechanismRow::default() };
        let full = Table { bindings: 1, bindings_capacity: 1, ..Table::default() };
        let found = tables(&[own], &[full], |_, _| false);
        assert_eq!(found[0].advice, "raise nat46.max_mappings", "its pool is not shared");
        let lends = MechanismRow { state: Some("1 of 1 leases".into()), ..MechanismRow::default() };
        let found = tables(&[lends], &[full], |_, _| false);
        assert!(found[0].advice.starts_with("enlarge four_over_six.pool"), "{}", found[0].advice);
    }
}
