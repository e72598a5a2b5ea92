//! What needs the operator's attention, in plain words and with what to do: from what the gateway knows already, so that asking costs little.
//! Each check is a function of what was seen.

use super::session_sample::SampleCount;
use super::tunnel_view::{ANY_INTERFACE, MissingEnd};
use crate::host::{SilentRouter, VrfTrouble};
use crate::show::{count, plural};
use crate::view::{
    Dns64Row, HostRow, MechanismRow, PoolRow, ProblemKind, ProblemRow, ReloadRow, SinkRow, TeredoClientRow,
    TeredoServerRow,
};
use crate::worker::Table;
use std::net::IpAddr;

/// From this share on, it is full but for a rest.
const ALMOST: f64 = 0.95;
/// From this share on, the addresses that all clients of a NAT46 share need attention: what is used rests for minutes.
const ADDRESSES: f64 = 0.8;
/// Seconds for which a loss is a problem.
const LATELY: u64 = 60;
/// Fewer sessions than this may have reasons of their own to get no answer.
const FEW: u64 = 10;

/// Sessions with packets in one direction only: more of them than others. `outward`: whether the mechanism forwarded packets out, and none in,
/// for some seconds.
pub(super) fn one_direction(name: &str, sample: &SampleCount, outward: bool) -> Option<ProblemRow> {
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
                "{name}: {} of {} sessions looked at have packets out and none back",
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
pub(super) fn pools(rows: &[PoolRow], is_raised: impl Fn(&PoolRow) -> bool) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::PoolPorts;
    const ADVICE: &str = "add addresses to the pool, or set max_bindings_per_subscriber; sixway show subscribers lists who has the ports";
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
        "enlarge nat46.pool, or lower nat46.max_mappings_per_client; sixway show bindings lists who has them";
    let mappings = mechanism.mappings.as_ref()?;
    let (used, all) = (u64::from(mappings.addresses_used), u64::from(mappings.addresses));
    let text = || {
        let (used, all) = (count(used), count(all));
        format!("{}: {used} of {all} addresses of the pool are used, or rest", mechanism.name)
    };
    match used {
        _ if all == 0 => None,
        used if used >= all => Some(ProblemRow::error(KIND, text(), CURE)),
        used if used as f64 >= all as f64 * ADDRESSES => Some(ProblemRow::warning(KIND, text(), CURE)),
        _ => None,
    }
}

/// Tables that are nearly full.
pub(super) fn tables(
    mechanisms: &[MechanismRow],
    tables: &[Table],
    is_raised: impl Fn(&str, &str) -> bool,
) -> Vec<ProblemRow> {
    let mut found = Vec::new();
    for (mechanism, table) in mechanisms.iter().zip(tables) {
        let bindings = match mechanism.mappings {
            Some(_) => "raise nat46.max_mappings",
            None if mechanism.stateful => "raise nat64.max_bindings",
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

/// What other programs changed again and again.
pub(super) fn host(row: &HostRow) -> Vec<ProblemRow> {
    let left = row.left_alone.iter().map(|what| {
        ProblemRow::error(
            ProblemKind::LeftAlone,
            format!("left alone, because another program changes it again and again: {what}"),
            "end that program, or configure it to ignore the gateway's device and routes",
        )
    });
    left.collect()
}

/// Rules that drop the gateway's packets: what was found and, behind an arrow, what mends it.
pub(super) fn packet_filter(findings: &[String]) -> Vec<ProblemRow> {
    let row = |finding: &String| {
        let (text, advice) = finding.split_once(" → ").unwrap_or((finding, "`sixway doctor` has the rule"));
        ProblemRow::error(ProblemKind::PacketFilter, text, advice)
    };
    findings.iter().map(row).collect()
}

/// Realms that are not in their VRFs.
pub(super) fn vrfs(troubles: &[(String, VrfTrouble)]) -> Vec<ProblemRow> {
    let row = |(realm, trouble): &(String, VrfTrouble)| {
        let text = format!("{realm}: {}; its hosts are not translated", trouble.what);
        ProblemRow::error(ProblemKind::Vrf, text, trouble.advice.clone())
    };
    troubles.iter().map(row).collect()
}

/// A reload that was rolled back.
pub(super) fn reload(row: &ReloadRow) -> Option<ProblemRow> {
    let why = row.reason.as_deref().filter(|_| row.state == "rolled back")?;
    let text = format!("the reload was rolled back, and the previous configuration is in force: {why}");
    let advice = "mend the configuration file, then `sixway reload`";
    Some(ProblemRow::error(ProblemKind::Reload, text, advice))
}

/// Upstreams of the DNS64 that do not answer.
pub(super) fn dns64(row: &Dns64Row) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::UpstreamDown;
    let down: Vec<&str> =
        row.upstreams.iter().filter(|one| one.health == "down").map(|one| one.name.as_str()).collect();
    let all = down.len() == row.upstreams.len();
    let problem = |name: &&str| {
        let text = format!("dns64: the upstream {name} does not answer");
        let advice = "`sixway doctor` asks it; check the route to it and dns64.upstream";
        if all { ProblemRow::error(KIND, text, advice) } else { ProblemRow::warning(KIND, text, advice) }
    };
    let warnings = row.warnings.iter().map(|warning| {
        ProblemRow::warning(
            ProblemKind::Dns64,
            format!("dns64: {warning}"),
            "`sixway show dns64` has the details",
        )
    });
    down.iter().map(problem).chain(warnings).collect()
}

/// From this many datagrams of the last minute on, those that are discarded are an attack or a mistake.
const MANY_DATAGRAMS: u64 = 1_000;

/// What keeps the Teredo server from its clients.
pub(super) fn teredo_server(row: &TeredoServerRow) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::TeredoServer;
    let details = "`sixway show teredo-server` has the reasons";
    let waits = row.waits.iter().map(|address| {
        let text = format!("teredo_server: this host does not have {address}");
        ProblemRow::error(KIND, text, format!("add it: ip address add {address}/32 dev INTERFACE"))
    });
    let failed = row.troubles.iter().map(|what| {
        let advice = "stop the program that has this port: ss -lunp 'sport = :3544'";
        ProblemRow::error(KIND, format!("teredo_server: {what}"), advice)
    });
    let over = (row.over_total_rate_last_minute > 0).then(|| {
        let text = format!(
            "teredo_server: {} discarded, since all together were over teredo_server.total_rate",
            plural(row.over_total_rate_last_minute, "datagram")
        );
        ProblemRow::warning(
            KIND,
            text,
            "it may be a flood of forged sources; clients with a secret are still served",
        )
    });
    let (received, refused) = (row.received_last_minute, row.refused_last_minute);
    let refuses = (received >= MANY_DATAGRAMS && refused > received / 2).then(|| {
        let text = format!("teredo_server: {} of {} discarded", count(refused), plural(received, "datagram"));
        ProblemRow::warning(KIND, text, details)
    });
    waits.chain(failed).chain(over).chain(refuses).collect()
}

/// What keeps relays and clients of Teredo from their peers: a socket that cannot be opened, and a client without an address.
pub(super) fn teredo(sockets: &[(String, String)], client: Option<&TeredoClientRow>) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::Teredo;
    let closed = sockets.iter().map(|(name, what)| {
        let advice = "check which program has the port: ss -lunp; `sixway doctor` names it";
        ProblemRow::error(KIND, format!("{name}: its socket cannot be opened: {what}"), advice)
    });
    let client = client.filter(|row| !row.is_as_wanted && row.address.is_none());
    let without = client.and_then(|row| {
        let text = format!("teredo_client: no address: {}", row.why.as_ref()?);
        Some(ProblemRow::error(
            KIND,
            text,
            "`sixway doctor` looks for the cause; `sixway show teredo` has the details",
        ))
    });
    closed.chain(without).collect()
}

/// Why packets that could be in the fast path are not.
pub(super) fn fast_path(
    missing: Option<&str>,
    resting: Option<&str>,
    is_ended: bool,
    left_out: &[String],
) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::FastPath;
    let slow = "the engine forwards all packets, more slowly;";
    let missing = missing.map(|why| {
        ProblemRow::warning(
            KIND,
            format!("there is no fast path: {why}"),
            format!("{slow} resolve this, then restart; or set fastpath.mode = \"off\""),
        )
    });
    let resting = resting.map(|why| {
        ProblemRow::warning(
            KIND,
            format!("the fast path is suspended: {why}"),
            format!("{slow} it continues when this is no longer so"),
        )
    });
    let ended = is_ended.then(|| {
        ProblemRow::warning(
            KIND,
            "the fast path was removed",
            format!("{slow} restart the gateway to load it again"),
        )
    });
    let left_out = left_out.iter().map(|line| {
        ProblemRow::warning(
            KIND,
            format!("fast path: {line}"),
            "correct it, or name other interfaces in fastpath.interfaces",
        )
    });
    missing.into_iter().chain(resting).chain(ended).chain(left_out).collect()
}

/// Sinks of the event log that are away, and those that lost events lately.
pub(super) fn event_log(rows: &[SinkRow]) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::EventLog;
    let lately = |row: &&SinkRow| row.lost_seconds.is_some_and(|seconds| seconds < LATELY);
    let lost = rows.iter().filter(lately).map(|row| {
        let text = format!("event log: {} lost {}", row.name, plural(row.lost, "event"));
        ProblemRow::error(
            KIND,
            text,
            "end what makes it slow or fail; log.spool_size bounds what waits for servers",
        )
    });
    let away = rows.iter().filter_map(|row| {
        let (reason, seconds) = (row.reason.as_ref()?, row.away_seconds?);
        let text = format!("event log: {} is away for {seconds} s: {reason}", row.name);
        Some(match row.has_spool {
            true => ProblemRow::warning(
                KIND,
                text,
                "its events wait in log.spool, and are sent when it is there again",
            ),
            false => ProblemRow::error(KIND, text, "its events are lost until it can be written again"),
        })
    });
    lost.chain(away).collect()
}

/// Tunnels and pools that wait for an address.
pub(super) fn awaited(tunnels: &[(String, String)]) -> Vec<ProblemRow> {
    let row = |(name, interface): &(String, String)| {
        ProblemRow::error(
            ProblemKind::AwaitedAddress,
            format!("{name}: waiting for an IPv4 address on {interface}"),
            match &**interface {
                ANY_INTERFACE => {
                    "configure it on an interface (ip -4 address); it begins by itself then".into()
                }
                _ => format!(
                    "check that {interface} is up and gets one (ip -4 address); it begins by itself then"
                ),
            },
        )
    };
    tunnels.iter().map(row).collect()
}

/// B4s that have no prefix or no AFTR.
pub(super) fn waiting_b4s(b4s: &[(String, MissingEnd)]) -> Vec<ProblemRow> {
    let row = |(name, missing): &(String, MissingEnd)| {
        let (what, mend) = match missing {
            MissingEnd::Local(interface) => (
                format!("{name}: waiting for an IPv6 prefix on {interface}"),
                format!("check that {interface} gets a global IPv6 address (ip -6 address); it begins by itself then"),
            ),
            MissingEnd::Name(aftr) => (
                format!("{name}: the AFTR {aftr} has no address yet"),
                "check that a name server is reachable over IPv6 and knows AAAA records of that name; see the log"
                    .into(),
            ),
            MissingEnd::Lease(file) => (
                format!("{name}: no AFTR in {file} yet"),
                "check that the DHCPv6 client asks for option 64 and writes it there, or set `aftr`".into(),
            ),
        };
        ProblemRow::error(ProblemKind::AwaitedAddress, what, mend)
    };
    b4s.iter().map(row).collect()
}

/// Routers that the kernel cannot resolve.
pub(super) fn routers(silent: &[SilentRouter]) -> Vec<ProblemRow> {
    let row = |router: &SilentRouter| {
        let SilentRouter { address, interface } = router;
        let protocol = if address.is_ipv4() { "ARP" } else { "neighbour discovery" };
        ProblemRow::error(
            ProblemKind::Neighbour,
            format!("the router {address} on {interface} does not answer {protocol}"),
            format!(
                "check the cable and the VLAN of {interface}, and whether {address} is the right address: ip route get"
            ),
        )
    };
    silent.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::exhaustion;
    use super::*;
    use crate::view::{MappingsRow, PoolShareRow, Severity, UpstreamRow};

    fn said(rows: &[ProblemRow]) -> Vec<(Severity, &str)> {
        rows.iter().map(|row| (row.severity, &*row.text)).collect()
    }

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
            (Severity::Warning, "nat64: 20 of 25 sessions looked at have packets out and none back")
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
        let text = "nat46: 204 of 254 addresses of the pool are used, or rest";
        assert_eq!(said(&of(204)), [(Severity::Warning, text)]);
        assert_eq!(of(254)[0].severity, Severity::Error);
        let own = MechanismRow { mappings: Some(MappingsRow::default()), ..MechanismRow::default() };
        let full = Table { bindings: 1, bindings_capacity: 1, ..Table::default() };
        let found = tables(&[own], &[full], |_, _| false);
        assert_eq!(found[0].advice, "raise nat46.max_mappings", "its pool is not shared");
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
        let away = SinkRow {
            reason: Some(String::new()),
            away_seconds: Some(1),
            has_spool: true,
            ..SinkRow::default()
        };
        all.extend(event_log(&[SinkRow { lost_seconds: Some(1), ..away }]));
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

    #[test]
    fn an_upstream_that_is_down_is_named_and_all_of_them_are_an_error() {
        let upstream = |name: &str, health: &str| UpstreamRow {
            name: name.into(),
            health: health.into(),
            ..UpstreamRow::default()
        };
        let mut row = Dns64Row {
            upstreams: vec![upstream("192.0.2.53:53", "down"), upstream("192.0.2.54:53", "suspected")],
            ..Dns64Row::default()
        };
        let text = "dns64: the upstream 192.0.2.53:53 does not answer";
        assert_eq!(said(&dns64(&row)), [(Severity::Warning, text)]);
        row.upstreams.pop();
        assert_eq!(said(&dns64(&row)), [(Severity::Error, text)]);
        row.upstreams.clear();
        assert_eq!(dns64(&row), []);
    }

    #[test]
    fn a_sink_that_is_away_is_a_warning_and_a_loss_an_error_for_a_minute() {
        let row = SinkRow { name: "syslog".into(), lost: 7, ..SinkRow::default() };
        assert_eq!(event_log(&[SinkRow { lost_seconds: Some(60), ..row.clone() }]), []);
        let lost = event_log(&[SinkRow { lost_seconds: Some(59), ..row.clone() }]);
        assert_eq!(said(&lost), [(Severity::Error, "event log: syslog lost 7 events")]);
        let away = SinkRow { away_seconds: Some(3), reason: Some("refused".into()), ..row };
        let text = "event log: syslog is away for 3 s: refused";
        let of_file = event_log(std::slice::from_ref(&away));
        assert_eq!(said(&of_file), [(Severity::Error, text)], "without a spool, events are lost");
        let of_server = event_log(&[SinkRow { has_spool: true, ..away }]);
        assert_eq!(said(&of_server), [(Severity::Warning, text)]);
    }

    #[test]
    fn a_fast_path_that_rests_has_its_reason() {
        assert_eq!(fast_path(None, None, false, &[]), []);
        let found = fast_path(Some("no BPF"), Some("IPsec policies"), true, &["not eth2: it is gone".into()]);
        let texts: Vec<&str> = found.iter().map(|row| &*row.text).collect();
        assert_eq!(
            texts,
            [
                "there is no fast path: no BPF",
                "the fast path is suspended: IPsec policies",
                "the fast path was removed",
                "fast path: not eth2: it is gone",
            ]
        );
    }

    #[test]
    fn what_others_changed_what_is_awaited_and_who_is_silent_is_named() {
        let row = HostRow { left_alone: vec!["routes into sixway0".into()], ..HostRow::default() };
        assert!(host(&row)[0].text.ends_with("again and again: routes into sixway0"));
        let waits = awaited(&[("six_rd".into(), "ppp0".into())]);
        assert_eq!(waits[0].text, "six_rd: waiting for an IPv4 address on ppp0");
        let waits = awaited(&[("pool main, 192.0.2.1".into(), ANY_INTERFACE.into())]);
        assert_eq!(waits[0].text, "pool main, 192.0.2.1: waiting for an IPv4 address on this host");
        assert!(waits[0].advice.starts_with("configure it on an interface"));
        let router = SilentRouter { address: [192, 0, 2, 1].into(), interface: "eth0".into() };
        assert_eq!(routers(&[router])[0].text, "the router 192.0.2.1 on eth0 does not answer ARP");
    }

    #[test]
    fn a_realm_without_its_vrf_is_an_error_with_what_mends_it() {
        let (what, advice) =
            ("VRF red does not exist".into(), "ip link add red up type vrf table 101".into());
        let rows = vrfs(&[("customers".into(), VrfTrouble { what, advice })]);
        let text = "customers: VRF red does not exist; its hosts are not translated";
        assert_eq!(said(&rows), [(Severity::Error, text)]);
        assert!(rows[0].advice.starts_with("ip link add red"));
    }

    #[test]
    fn rules_that_drop_and_a_reload_that_was_rolled_back_are_errors() {
        let rows =
            packet_filter(&["the packet filter: forward drops one; and another → nft one; nft two".into()]);
        assert_eq!(said(&rows), [(Severity::Error, "the packet filter: forward drops one; and another")]);
        assert_eq!(rows[0].advice, "nft one; nft two");
        let row = |state: &str| ReloadRow {
            state: state.into(),
            reason: Some("port 53 is in use".into()),
            ..ReloadRow::default()
        };
        assert!(reload(&row("rolled back")).unwrap().text.ends_with("in force: port 53 is in use"));
        assert_eq!(reload(&row("kept")), None);
    }

    #[test]
    fn what_keeps_a_teredo_server_from_its_clients_is_said() {
        assert_eq!(teredo_server(&TeredoServerRow::default()), []);
        let quiet =
            TeredoServerRow { received_last_minute: 900, refused_last_minute: 900, ..Default::default() };
        assert_eq!(teredo_server(&quiet), [], "a few strangers");
        let row = TeredoServerRow {
            waits: vec!["192.0.2.2".into()],
            troubles: vec!["UDP 192.0.2.3:3544: in use".into()],
            received_last_minute: 4_000,
            refused_last_minute: 3_000,
            over_total_rate_last_minute: 7,
            ..TeredoServerRow::default()
        };
        let found = teredo_server(&row);
        assert_eq!(
            found.iter().map(|row| row.severity).collect::<Vec<_>>(),
            [Severity::Error, Severity::Error, Severity::Warning, Severity::Warning]
        );
        assert_eq!(found[0].text, "teredo_server: this host does not have 192.0.2.2");
        assert_eq!(found[1].text, "teredo_server: UDP 192.0.2.3:3544: in use");
        assert_eq!(found[3].text, "teredo_server: 3,000 of 4,000 datagrams discarded");
    }

    #[test]
    fn a_relay_without_a_socket_and_a_client_without_an_address_are_errors() {
        assert_eq!(teredo(&[], None), []);
        let row = TeredoClientRow { why: Some("no answer".into()), ..TeredoClientRow::default() };
        let found = teredo(&[("relay".into(), "in use".into())], Some(&row));
        let texts = ["relay: its socket cannot be opened: in use", "teredo_client: no address: no answer"];
        assert_eq!(said(&found), texts.map(|text| (Severity::Error, text)));
        let native = TeredoClientRow { is_as_wanted: true, ..row.clone() };
        let in_use = TeredoClientRow { address: Some("2001::1".into()), ..row };
        for fine in [native, in_use, TeredoClientRow::default()] {
            assert_eq!(teredo(&[], Some(&fine)), [], "{fine:?}");
        }
    }
}
