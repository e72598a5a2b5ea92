//! The sources of the gateway's problems: its tables, its counters of the last seconds, a sample of its sessions, and its host's neighbours.

use super::gateway::Gateway;
use super::leases::LeaseTrouble;
use super::session_sample::{PARTS, ROWS, SessionSample};
use super::{alarms, exhaustion, problems, words};
use crate::admin::Filter;
use crate::host::{SilentRouter, silent_routers};
use crate::view::{HostRow, PoolRow, PoolShareRow, ProblemRow, Status};
use crate::worker::{Command, Dump, Position, Report, Table};
use sixway_dataplane::direction::Direction;
use sixway_dataplane::mechanism::table::Kind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// A look serves all requests for this long.
const FRESH: Duration = Duration::from_secs(2);
/// From this rate on, packets without answers are not a coincidence.
const BUSY: f64 = 10.0;
/// Addresses of the Internet, of networks for documentation: only the routes to them are of interest.
const INTERNET: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 77)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0x77)),
];

impl Gateway {
    /// The problems, most serious first.
    pub(super) async fn problems(
        &self,
        status: &Status,
        tables: &[Table],
        reports: &[Report],
    ) -> Vec<ProblemRow> {
        let (sample, silent) = self.look().await;
        let mut found = problems::routers(&silent);
        found.extend(self.one_direction(&sample));
        let now = Instant::now();
        found.extend(exhaustion::problems(|reason| self.history().last_grown(reason, now)));
        let is_raised = |mechanism: &str, resource: &str| self.alarms().is_raised(mechanism, resource);
        found.extend(problems::pools(&self.pool_rows(reports), |row| {
            is_raised(&row.mechanism, alarms::ports_of(&row.protocol))
        }));
        found.extend(problems::tables(&status.mechanisms, tables, is_raised));
        found.extend(problems::host(status.host.as_ref().unwrap_or(&HostRow::default())));
        found.extend(problems::packet_filter(&self.filter_findings()));
        found.extend(problems::vrfs(&self.vrf_troubles()));
        found.extend(status.reload.iter().filter_map(problems::reload));
        found.extend(problems::event_log(&status.event_log));
        found.extend(problems::lease_files(&self.lease_files()));
        found.extend(self.lease_troubles().iter().map(LeaseTrouble::problem));
        found.extend(problems::awaited(&self.tunnels().awaited));
        let (silent, faults) = self.aftrs();
        {
            let tunnels = self.tunnels();
            found.extend(problems::waiting_b4s(&tunnels.waiting_b4s, &faults));
            let waits = |name: &String| tunnels.waiting_b4s.iter().any(|(b4, _)| b4 == name);
            let in_use = tunnels.aftrs.iter().filter(|(name, _)| !waits(name));
            let in_use = in_use.map(|(name, aftr)| (name.clone(), *aftr)).collect();
            found.extend(problems::unresolved_aftrs(&faults, &in_use));
        }
        found.extend(problems::silent_aftrs(&silent));
        found.extend(status.dns64.iter().flat_map(problems::dns64));
        found.extend(status.teredo_server.iter().flat_map(problems::teredo_server));
        found.extend(self.pcp_row().iter().flat_map(problems::pcp));
        let (sockets, missing) = {
            let tunnels = self.tunnels();
            (tunnels.udp_troubles.clone(), tunnels.udp_missing.clone())
        };
        found.extend(problems::teredo(&sockets, &missing, self.teredo_client().as_ref()));
        let carried = self.fast_path.as_ref();
        found.extend(problems::fast_path(
            self.facts.without_fast_path.as_deref(),
            carried.and_then(|it| it.resting()),
            carried.is_some_and(|it| it.is_ended()),
            &carried.map(|it| it.left_out()).unwrap_or_default(),
        ));
        found.sort_by_key(|row| row.severity);
        found
    }

    fn one_direction(&self, sample: &SessionSample) -> Vec<ProblemRow> {
        let history = self.history();
        let rate = |direction: Direction| {
            let of_kind = |kind: &Kind| {
                history.rate(|counters| counters.passed[*kind as usize][direction as usize])
                    + history.carried(|counts| words::carried_one_way(counts, *kind, direction))
            };
            Kind::ALL.iter().filter(|kind| kind.is_stateful()).map(of_kind).sum::<f64>()
        };
        // Both directions of all translators are counted together: it says something of one only if it is the only one.
        let is_only = self.stateful().count() == 1;
        let outward = is_only && rate(Direction::Out) >= BUSY && rate(Direction::In) <= 0.0;
        let of = |index: u16| sample.counts.get(&index).cloned().unwrap_or_default();
        let found = self
            .stateful()
            .filter_map(|index| problems::one_direction(&self.mechanism(index), &of(index), outward));
        found.collect()
    }

    /// Examines some sessions, and the routers towards their remote hosts. Concurrent requests get the same result.
    async fn look(&self) -> (SessionSample, Vec<SilentRouter>) {
        let mut last = self.last_look.lock().await;
        if last.at.is_none_or(|at| at.elapsed() >= FRESH) {
            last.next.resize(self.workers(), Position::default());
            let mut sample = SessionSample::default();
            for worker in 0..self.workers() {
                let (from, limit) = (last.next[worker], ROWS.div_ceil(self.workers()));
                let dump = |answer| {
                    Command::Sessions(Dump {
                        filter: Filter::default(),
                        from,
                        limit,
                        parts: Some(PARTS),
                        rows: Vec::new(),
                        answer,
                    })
                };
                // A worker that has too many requests is examined the next time.
                let Ok(page) = self.ask(worker, dump).await else { continue };
                last.next[worker] = page.next.unwrap_or_default();
                sample.add(&page.rows);
            }
            let destinations: Vec<IpAddr> = match self.facts.device {
                Some(_) => INTERNET.into_iter().chain(sample.remotes.iter().copied()).collect(),
                None => Vec::new(),
            };
            // The control thread does not wait for the kernel.
            let asked = tokio::task::spawn_blocking(move || silent_routers(&destinations));
            last.silent = asked.await.unwrap_or_default();
            (last.sample, last.at) = (sample, Some(Instant::now()));
        }
        (last.sample.clone(), last.silent.clone())
    }

    /// How full the pools are, by protocol and worker.
    pub(super) fn pool_rows(&self, reports: &[Report]) -> Vec<PoolRow> {
        let mut rows = Vec::new();
        for (index, mechanism) in self.facts.mechanisms.iter().enumerate() {
            let Some(pool) = &mechanism.pool else { continue };
            for (place, protocol) in ["tcp", "udp", "icmp"].into_iter().enumerate() {
                let share = |table: &Table| {
                    let used = table.ports_used[place];
                    PoolShareRow { used, free: table.ports.saturating_sub(used) }
                };
                let by_worker: Vec<PoolShareRow> = reports
                    .iter()
                    .map(|report| report.tables.get(index).map(share).unwrap_or_default())
                    .collect();
                rows.push(PoolRow {
                    mechanism: mechanism.name.clone(),
                    pool: pool.clone(),
                    protocol: protocol.into(),
                    used: by_worker.iter().map(|row| row.used).sum(),
                    free: by_worker.iter().map(|row| row.free).sum(),
                    by_worker,
                });
            }
        }
        rows
    }
}
