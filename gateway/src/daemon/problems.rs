//! What is wrong with the running gateway, in plain words, with what to do about it: `sixway show` begins with it.

use crate::view::{Dns64Row, FastPathShare, HostRow, ProblemRow, ReloadRow};
use crate::worker::{Report, Table};
use sixway_dataplane::DropReason;
use std::time::Duration;

/// A part of a pool or table in use that is a warning.
const WARNING: f64 = 0.80;
/// A part that is an error.
const ERROR: f64 = 0.95;

/// What packets are dropped for when something is exhausted, and what helps.
pub(super) const EXHAUSTED: [(DropReason, &str); 5] = [
    (DropReason::PortPoolEmpty, "add addresses to the pool"),
    (
        DropReason::SubscriberLimit,
        "find the host with `sixway show bindings`; raise nat64.limits if it is legitimate",
    ),
    (DropReason::BindingTableFull, "raise nat64.limits.bindings"),
    (DropReason::SessionTableFull, "raise nat64.limits.sessions"),
    (
        DropReason::OutsideSessionsFull,
        "set nat64.filtering = \"address_and_port\", or raise nat64.limits.sessions",
    ),
];

/// What is observed.
#[derive(Debug, Default)]
pub(super) struct Observed<'a> {
    /// Stateful mechanisms by name, in the order of the workers' tables.
    pub stateful: Vec<&'a str>,
    /// The workers' reports.
    pub reports: &'a [Report],
    /// Packets a second that are dropped, by reason.
    pub drops: Vec<(DropReason, f64)>,
    /// Translators by title: packets that went out since one came back last, and how long ago that is.
    pub one_way: Vec<(&'static str, u64, Duration)>,
    pub host: Option<&'a HostRow>,
    pub dns64: Option<&'a Dns64Row>,
    pub fast_path: Option<&'a FastPathShare>,
    /// The configuration wants a fast path.
    pub wants_fast_path: bool,
    pub reload: Option<&'a ReloadRow>,
    /// What the trial of the packet filter found.
    pub packet_filter: &'a [String],
    /// Mechanisms that wait for an address, with their words.
    pub waiting: Vec<(&'a str, &'a str)>,
    /// Next hops that do not answer.
    pub neighbours: &'a [String],
}

/// What is wrong, errors first.
pub(super) fn problems(seen: &Observed<'_>) -> Vec<ProblemRow> {
    let mut found = Vec::new();
    paths(seen, &mut found);
    exhaustion(seen, &mut found);
    others(seen, &mut found);
    found.sort_by_key(|problem: &ProblemRow| problem.severity != "error");
    found
}

fn row(severity: &str, kind: &str, text: String, advice: &str) -> ProblemRow {
    ProblemRow { severity: severity.into(), kind: kind.into(), text, advice: advice.into() }
}

/// Packets find no way.
fn paths(seen: &Observed<'_>, found: &mut Vec<ProblemRow>) {
    for (title, out, ago) in &seen.one_way {
        let text = format!("{title}: {out} packets out and none back for {} s", ago.as_secs());
        found.push(row(
            "error",
            "no_way_back",
            text,
            "`sixway doctor` looks for the reason: routes to the pool, the packet filter",
        ));
    }
    for neighbour in seen.neighbours {
        let text = format!("the next hop {neighbour} does not answer");
        found.push(row("error", "neighbour", text, "check the link and the router's address: ip neighbour"));
    }
    for what in seen.packet_filter {
        let (text, advice) = what.split_once("; ").unwrap_or((what, ""));
        found.push(row("error", "packet_filter", text.into(), advice));
    }
    for (name, what) in &seen.waiting {
        found.push(row(
            "warning",
            "address",
            format!("{name}: {what}"),
            "nothing, if the address comes by DHCP or PPP",
        ));
    }
}

fn level(part: f64) -> Option<&'static str> {
    match part {
        part if part >= ERROR => Some("error"),
        part if part >= WARNING => Some("warning"),
        _ => None,
    }
}

fn part(used: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { used as f64 / all as f64 }
}

/// Pools and tables that are used up, or nearly.
fn exhaustion(seen: &Observed<'_>, found: &mut Vec<ProblemRow>) {
    let percent = |part: f64| format!("{:.0} %", (part * 100.0).floor());
    for (place, name) in seen.stateful.iter().enumerate() {
        let tables: Vec<&Table> = seen.reports.iter().filter_map(|report| report.tables.get(place)).collect();
        let sum = |field: fn(&Table) -> u64| tables.iter().map(|table| field(table)).sum::<u64>();
        for (number, protocol) in ["TCP", "UDP", "ICMP"].into_iter().enumerate() {
            let used: u64 = tables.iter().map(|table| table.ports_used[number]).sum();
            let all = part(used, sum(|table| table.ports));
            let fullest =
                tables.iter().map(|table| part(table.ports_used[number], table.ports)).fold(0.0, f64::max);
            if let Some(severity) = level(all) {
                let text = format!(
                    "{name}: {} of the pool's {protocol} ports are in use (fullest worker: {})",
                    percent(all),
                    percent(fullest)
                );
                found.push(row(severity, "pool_ports", text, "add addresses to the pool"));
            }
        }
        let bounds = [
            ("sessions", part(sum(|table| table.sessions), sum(|table| table.sessions_capacity))),
            ("bindings", part(sum(|table| table.bindings), sum(|table| table.bindings_capacity))),
        ];
        for (what, part) in bounds {
            if let Some(severity) = level(part) {
                let text = format!("{name}: {} of the table of {what} is in use", percent(part));
                found.push(row(severity, "table", text, &format!("raise nat64.limits.{what}")));
            }
        }
    }
    for (reason, advice) in EXHAUSTED {
        let rate = seen.drops.iter().find(|(dropped, _)| *dropped == reason).map_or(0.0, |(_, rate)| *rate);
        if rate > 0.0 {
            let text = format!("{rate:.1} packets/s dropped: {}: {}", reason.name(), reason.help());
            found.push(row("error", "exhausted", text, advice));
        }
    }
}

fn others(seen: &Observed<'_>, found: &mut Vec<ProblemRow>) {
    for what in seen.host.iter().flat_map(|host| &host.left_alone) {
        let text = format!("another program changes it again and again: {what}");
        found.push(row("error", "host", text, "end that, or restart the gateway"));
    }
    if let Some(dns64) = seen.dns64 {
        let upstreams = &dns64.upstreams;
        if !upstreams.is_empty() && upstreams.iter().all(|upstream| upstream.health == "down") {
            let text = "dns64: no upstream answers".to_owned();
            found.push(row("error", "upstreams", text, "`sixway show dns64` has the reason of each"));
        }
    }
    if seen.wants_fast_path && seen.fast_path.is_none_or(FastPathShare::is_off) {
        let text = "the fast path does not run: the engine forwards all packets".to_owned();
        found.push(row(
            "warning",
            "fast_path",
            text,
            "the log has the reason; the next start or reload loads it again",
        ));
    }
    if let Some(reload) = seen.reload.filter(|reload| reload.state == "rolled back") {
        let why = reload.reason.as_deref().unwrap_or("no reason is known");
        let text = format!("the reload was rolled back, and the previous configuration is in force: {why}");
        found.push(row("error", "reload", text, "mend the configuration file, then `sixway reload`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::UpstreamRow;

    fn told(seen: &Observed<'_>) -> Vec<String> {
        let rows = problems(seen).into_iter();
        rows.map(|row| format!("{} {}: {}", row.severity, row.kind, row.text)).collect()
    }

    #[test]
    fn all_is_well_where_nothing_is_wrong() {
        let reports = [Report {
            tables: vec![Table { ports: 100, ports_used: [79; 3], ..Table::default() }],
            ..Report::default()
        }];
        let seen = Observed { stateful: vec!["nat64"], reports: &reports, ..Observed::default() };
        assert_eq!(told(&seen), Vec::<String>::new());
    }

    #[test]
    fn a_pool_that_fills_is_told_with_its_fullest_worker_and_errors_come_first() {
        let worker = |tcp, udp| Report {
            tables: vec![Table {
                ports: 100,
                ports_used: [tcp, udp, 0],
                sessions: 96,
                sessions_capacity: 100,
                ..Table::default()
            }],
            ..Report::default()
        };
        let reports = [worker(99, 60), worker(70, 99)];
        let seen = Observed {
            stateful: vec!["nat64"],
            reports: &reports,
            drops: vec![(DropReason::PortPoolEmpty, 2.5), (DropReason::NoBinding, 9.0)],
            ..Observed::default()
        };
        let said = told(&seen);
        assert_eq!(said[0], "error table: nat64: 96 % of the table of sessions is in use");
        assert!(said[1].starts_with("error exhausted: 2.5 packets/s dropped: PortPoolEmpty: "));
        assert_eq!(
            said[2],
            "warning pool_ports: nat64: 84 % of the pool's TCP ports are in use (fullest worker: 99 %)"
        );
        assert_eq!(said.len(), 3, "{said:?}");
    }

    #[test]
    fn each_other_trouble_has_its_line() {
        let host = HostRow { left_alone: vec!["net.ipv4.ip_forward".into()], ..HostRow::default() };
        let down = UpstreamRow { health: "down".into(), ..UpstreamRow::default() };
        let dns64 = Dns64Row { upstreams: vec![down], ..Dns64Row::default() };
        let reload =
            ReloadRow { state: "rolled back".into(), reason: Some("port 53".into()), ..ReloadRow::default() };
        let seen = Observed {
            one_way: vec![("nat64", 120, Duration::from_secs(20))],
            host: Some(&host),
            dns64: Some(&dns64),
            wants_fast_path: true,
            reload: Some(&reload),
            packet_filter: &["the packet filter: inet filter forward drops; nft insert rule".into()],
            waiting: vec![("six_rd", "waiting for an address on eth0")],
            neighbours: &["192.0.2.1 on eth0".into()],
            ..Observed::default()
        };
        assert_eq!(
            told(&seen),
            [
                "error no_way_back: nat64: 120 packets out and none back for 20 s",
                "error neighbour: the next hop 192.0.2.1 on eth0 does not answer",
                "error packet_filter: the packet filter: inet filter forward drops",
                "error host: another program changes it again and again: net.ipv4.ip_forward",
                "error upstreams: dns64: no upstream answers",
                "error reload: the reload was rolled back, and the previous configuration is in force: port 53",
                "warning address: six_rd: waiting for an address on eth0",
                "warning fast_path: the fast path does not run: the engine forwards all packets",
            ]
        );
    }
}
