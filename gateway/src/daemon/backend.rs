//! Answers the admin API.

use super::cursor::Cursor;
use super::gateway::{Gateway, sum};
use super::lease_keeper;
use super::leases::{LeaseBook, LeaseFiles, outcomes};
use super::reload::Wanted;
use super::remote_names;
use super::teredo_view;
use super::words;
use crate::admin::{
    AdminError, Backend, Filter, LiveFilter, MAX_LIMIT, Named, PoolPart, PoolVerb, Query, Ranking,
};
use crate::config::AftrAt;
use crate::metrics::{self, GatewaySample, Gauge, ProcessSample, WorkerSample};
use crate::trace::Detail;
use crate::view::{
    BindingRow, CounterRow, Dns64Row, DrainingRow, DropRow, Ended, FastPathRow, Flush, Flushed, LeaseRow,
    LiveRow, MechanismRow, NewRemote, Page, PcpRow, PoolBlocksRow, PoolRow, RouterAdvertisementRow,
    SessionRow, SixRdRow, Status, Subscribers, TeredoRow, TeredoServerRow,
};
use crate::worker::{BindingEntry, Command, Dump, DumpPage, Position, Report, SessionEntry, Table, Watch};
use sixway_dataplane::DropReason;
use sixway_dataplane::mechanism::table::Kind;
use sixway_wire::Prefix6;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, channel};

/// Rows of watched packets that wait for their reader.
const LIVE_ROWS: usize = 1_024;

impl Backend for Gateway {
    async fn status(&self) -> Result<Status, AdminError> {
        let reports = self.reports().await?;
        let tables = self.tables(&reports);
        let dns64 = self.dns64().await?;
        let mut status = self.overview(&tables, dns64);
        for row in teredo_view::rows(self, 0).await? {
            let mechanism = status.mechanisms.iter_mut().find(|it| it.name == row.name);
            mechanism.into_iter().for_each(|it| it.state = Some(teredo_view::state(&row)));
        }
        for (name, state) in self.lease_states().into_iter().chain(self.b4_states()) {
            let mechanism = status.mechanisms.iter_mut().find(|it| it.name == name);
            mechanism.into_iter().for_each(|it| it.state = Some(state.clone()));
        }
        status.problems = self.problems(&status, &tables, &reports).await;
        Ok(status)
    }

    async fn counters(&self) -> Result<Vec<CounterRow>, AdminError> {
        let reports = self.reports().await?;
        let of_worker = |report: &Report| -> Vec<(String, &'static str, u64)> {
            let engine = report.counters.named().map(|(name, help, value)| (name.to_owned(), help, value));
            let link = report.link.named().map(|(name, help, value)| (format!("link.{name}"), help, value));
            engine.chain(link).collect()
        };
        let by_worker: Vec<_> = reports.iter().map(of_worker).collect();
        let Some(first) = by_worker.first() else { return Ok(Vec::new()) };
        let rows = first.iter().enumerate().map(|(index, (name, help, _))| {
            let by_worker: Vec<u64> = by_worker.iter().map(|counters| counters[index].2).collect();
            CounterRow { name: name.clone(), help: (*help).into(), value: by_worker.iter().sum(), by_worker }
        });
        let fast_path = self.seen();
        Ok(rows.chain(fast_path.iter().flat_map(words::fast_path_counters)).collect())
    }

    async fn leases(&self) -> Result<Vec<LeaseRow>, AdminError> {
        Ok(self.lease_rows(MAX_LIMIT))
    }

    async fn teredo(&self) -> Result<Vec<TeredoRow>, AdminError> {
        teredo_view::rows(self, MAX_LIMIT).await
    }

    async fn end_lease(&self, ipv4: Ipv4Addr) -> Result<(), AdminError> {
        match self.leases() {
            Some(book) if book.end(ipv4) => {
                lease_keeper::tell(book, self).await;
                Ok(())
            }
            Some(_) => Err(AdminError::NotFound(format!("{ipv4} is not leased"))),
            None => Err(AdminError::NotFound(
                "no [four_over_six] with role = \"concentrator\" is configured".into(),
            )),
        }
    }

    async fn drops(&self, detail: Detail) -> Result<Vec<DropRow>, AdminError> {
        let counters = sum(&self.reports().await?);
        let mut samples = Vec::new();
        for worker in 0..self.workers() {
            samples.extend(self.ask(worker, Command::Samples).await?);
        }
        let sample = |reason: DropReason| {
            let last =
                samples.iter().filter(|sample| sample.reason == reason).max_by_key(|sample| sample.at)?;
            Some(match detail {
                Detail::Whole => last.packet.clone(),
                Detail::Prefixes => last.prefixes.clone(),
            })
        };
        let (history, now) = (self.history(), Instant::now());
        let rows = DropReason::ALL.iter().zip(counters.dropped).map(|(reason, count)| DropRow {
            reason: reason.name().into(),
            count,
            last_seconds: history.last_grown(*reason, now).map(|ago| ago.as_secs_f64()),
            help: reason.help().into(),
            answer: words::answer(reason.answer()),
            sample: sample(*reason),
        });
        Ok(rows.collect())
    }

    async fn live(&self, filter: LiveFilter, lasts: Duration) -> Result<Receiver<LiveRow>, AdminError> {
        let (rows, told) = channel(LIVE_ROWS);
        for (worker, post) in self.posts.iter().enumerate() {
            let watch = Watch { filter: filter.clone(), lasts, rows: rows.clone(), worker };
            post.send(Command::Watch(watch))
                .map_err(|error| AdminError::Busy(format!("worker {worker}: {error}")))?;
        }
        Ok(told)
    }

    async fn pools(&self) -> Result<Vec<PoolRow>, AdminError> {
        Ok(self.pool_rows(&self.reports().await?))
    }

    async fn pool_blocks(&self) -> Result<Vec<PoolBlocksRow>, AdminError> {
        let tables = self.tables(&self.reports().await?);
        self.pool_blocks_rows(&tables).await
    }

    async fn draining(&self) -> Result<Vec<DrainingRow>, AdminError> {
        self.draining_rows().await
    }

    async fn change_pool(&self, verb: PoolVerb, part: PoolPart) -> Result<(), AdminError> {
        Gateway::change_pool(self, verb, part).await
    }

    async fn sessions(&self, query: Query) -> Result<Page<SessionRow>, AdminError> {
        let tables = self.tables(&self.reports().await?);
        let total = tables.iter().map(|table| table.sessions + table.portless_sessions).sum();
        let (rows, next) =
            self.page(&query, Command::Sessions, |worker, entry| self.session_row(worker, entry)).await?;
        Ok(Page { rows, total, next })
    }

    async fn bindings(&self, query: Query) -> Result<Page<BindingRow>, AdminError> {
        let total = self.tables(&self.reports().await?).iter().map(|table| table.bindings).sum();
        let (rows, next) =
            self.page(&query, Command::Bindings, |worker, entry| self.binding_row(worker, entry)).await?;
        Ok(Page { rows, total, next })
    }

    async fn subscribers(&self, ranking: Ranking) -> Result<Subscribers, AdminError> {
        self.first_subscribers(&ranking).await
    }

    async fn end_subscriber(&self, inside: Prefix6, mechanism: Option<String>) -> Result<Ended, AdminError> {
        self.end_bindings_of(inside, mechanism.as_deref()).await
    }

    async fn make_binding(&self, named: Named) -> Result<(), AdminError> {
        Gateway::make_binding(self, &named).await
    }

    async fn end_binding(&self, named: Named) -> Result<(), AdminError> {
        Gateway::end_binding(self, &named).await
    }

    async fn end_session(&self, named: Named) -> Result<(), AdminError> {
        Gateway::end_session(self, &named).await
    }

    fn six_rd(&self) -> Vec<SixRdRow> {
        self.tunnels().six_rd.clone()
    }

    async fn set_remote(&self, remote: NewRemote) -> Result<(), AdminError> {
        let NewRemote { tunnel, remote } = remote;
        if let Some((_, within)) = self.facts.b4s.iter().find(|(name, _)| *name == tunnel) {
            let aftr = AftrAt::parse(&remote).ok_or_else(|| {
                let what = format!("remote {}: neither an IPv6 address nor a name", remote.escape_debug());
                AdminError::BadRequest(what)
            })?;
            if let AftrAt::Address(address) = &aftr
                && !(within.is_empty() || within.iter().any(|prefix| prefix.contains(*address)))
            {
                return Err(AdminError::Conflict(format!("{address} is not within aftr_within of {tunnel}")));
            }
            self.told_aftrs.send_modify(|told| drop(told.insert(tunnel, aftr)));
            return Ok(());
        }
        let (_, within) =
            self.facts.named_remotes.iter().find(|(name, _)| *name == tunnel).ok_or_else(|| {
                AdminError::NotFound(format!("no tunnel named {tunnel} has a host name as its remote"))
            })?;
        let address: Ipv4Addr = remote.parse().map_err(|_| {
            AdminError::BadRequest(format!("remote {}: not an IPv4 address", remote.escape_debug()))
        })?;
        if remote_names::chosen(&[address], within).is_none() {
            return Err(AdminError::Conflict(format!("{address} is not within remote_within of {tunnel}")));
        }
        let told = self.remotes.try_send((tunnel, address));
        told.map_err(|_| AdminError::Busy("too many remotes are changing; retry".into()))
    }

    fn router_advertisements(&self) -> Vec<RouterAdvertisementRow> {
        self.tunnels().advertisements.clone()
    }

    async fn dns64(&self) -> Result<Option<Dns64Row>, AdminError> {
        match &self.dns64 {
            Some(view) => view.row().await.map(Some),
            None => Ok(None),
        }
    }

    fn pcp(&self) -> Option<PcpRow> {
        self.pcp_row()
    }

    fn teredo_server(&self) -> Option<TeredoServerRow> {
        self.teredo_row()
    }

    async fn flush(&self, flush: Flush) -> Result<Flushed, AdminError> {
        match &self.dns64 {
            Some(view) => view.flush(&flush).await,
            None => Err(AdminError::NotFound("[dns64] is not configured".into())),
        }
    }

    async fn fast_path(&self) -> Result<Option<FastPathRow>, AdminError> {
        // A sample for the share.
        self.reports().await?;
        Ok(self.share().map(|summary| words::fast_path(summary, &self.seen().unwrap_or_default())))
    }

    async fn end_fast_path(&self) -> Result<bool, AdminError> {
        let Some(carried) = &self.fast_path else { return Ok(false) };
        // The engines take the sessions back before their entries are removed.
        for worker in 0..self.workers() {
            self.ask(worker, Command::EndFastPath).await?;
        }
        carried
            .end()
            .map_err(|error| AdminError::Conflict(format!("parts of the fast path may remain: {error}")))
    }

    async fn leave(&self) -> Result<(), AdminError> {
        if self.facts.device.is_none() && self.dns64.is_none() {
            let what = "the gateway has neither a device nor a DNS64, so it cannot be taken over; stop it, then start the new one";
            return Err(AdminError::Conflict(what.into()));
        }
        // Its successor does not know of it, and would keep an unconfirmed configuration.
        if self.reload_row().is_some_and(|row| row.state == "awaits confirmation") {
            let what = "the last reload awaits confirmation; run `sixway reload --keep` or `sixway reload --roll-back`";
            return Err(AdminError::Conflict(what.into()));
        }
        self.leaving.notify_one();
        Ok(())
    }

    async fn reload(&self, confirm: Option<Duration>) -> Result<(), AdminError> {
        self.reloads.ask(Wanted::Reload(confirm)).await
    }

    async fn keep_reload(&self) -> Result<(), AdminError> {
        self.reloads.ask(Wanted::Keep).await
    }

    async fn roll_back(&self) -> Result<(), AdminError> {
        self.reloads.ask(Wanted::RollBack).await
    }

    fn config(&self) -> serde_json::Value {
        self.config_in_force()
    }

    fn config_text(&self) -> String {
        self.config_text_in_force()
    }

    async fn metrics(&self) -> Result<String, AdminError> {
        let reports = self.reports().await?;
        let tables = self.tables(&reports);
        let of_nat46 = self.facts.mechanisms.iter().zip(&tables).filter(|(it, _)| it.kind == Kind::Nat46);
        let nat46 = of_nat46.map(|(it, table)| (it.name.clone(), words::mappings(&table.mappings))).collect();
        let samples = reports.into_iter().enumerate().map(|(worker, report)| WorkerSample {
            worker: worker as u8,
            gauges: self.gauges(&report.tables),
            counters: report.counters,
            link: report.link,
        });
        let dns64 = self.dns64().await?;
        let teredo = teredo_view::rows(self, 0).await?;
        let tunnels = self.tunnels();
        let (advertisements, steered) = (tunnels.advertisements.clone(), tunnels.steered);
        let fast_path =
            self.share().map(|summary| words::fast_path(summary, &self.seen().unwrap_or_default()));
        let stateful = self.facts.mechanisms.iter().filter(|it| it.kind.is_stateful());
        let stateful = stateful.map(|it| it.name.as_str());
        let gateway = GatewaySample {
            advertisements,
            steered,
            dns64,
            teredo_server: self.teredo_row(),
            pcp: self.pcp_row(),
            fast_path,
            host: self.host_row(),
            event_log: self.event_log_rows(),
            alarms: self.alarms().rows(stateful),
            lease_files: self.lease_files().into_iter().map(LeaseFiles::into_failing).collect(),
            lease_queries: self.lease_queries(),
            nat46,
            teredo,
            process: ProcessSample::now(),
        };
        metrics::encode(samples.collect(), gateway)
            .map_err(|error| AdminError::Busy(format!("metrics: {error}")))
    }
}

impl Gateway {
    /// B4s in few words.
    fn b4_states(&self) -> Vec<(String, String)> {
        let (silent, _) = self.aftrs();
        let is_silent = |name: &str| silent.iter().any(|it| it.b4 == name);
        let (aftrs, b4s) = (self.tunnels().aftrs.clone(), self.facts.b4s.iter());
        let state = |name: &str| match aftrs.get(name) {
            Some(aftr) if is_silent(name) => format!("AFTR {aftr} does not answer"),
            Some(aftr) => format!("AFTR {aftr}"),
            None => "no AFTR".into(),
        };
        b4s.map(|(name, _)| (name.clone(), state(name))).collect()
    }

    /// Queries to concentrators, by what became of them.
    fn lease_queries(&self) -> Vec<(String, Vec<(&'static str, u64)>)> {
        let all = self.leases().map(LeaseBook::queries).unwrap_or_default();
        all.into_iter().map(|(name, counters)| (name, outcomes(&counters).to_vec())).collect()
    }

    /// The gateway in a few numbers, without its problems.
    fn overview(&self, tables: &[Table], dns64: Option<Dns64Row>) -> Status {
        let fast_path = self.share();
        let (history, tunnels) = (self.history(), self.tunnels());
        let mechanisms = self.facts.mechanisms.iter().zip(tables).map(|(mechanism, table)| MechanismRow {
            name: mechanism.name.clone(),
            serves: tunnels.serves.get(&mechanism.name).unwrap_or(&mechanism.serves).clone(),
            frames: history.rate(|counters| words::passed(counters, mechanism.kind))
                + history.carried(|counts| words::carried(counts, mechanism.kind)),
            stateful: mechanism.kind.is_stateful(),
            sessions: table.sessions,
            bindings: table.bindings,
            bindings_capacity: table.bindings_capacity,
            mappings: (mechanism.kind == Kind::Nat46).then(|| words::mappings(&table.mappings)),
            remote: tunnels.aftrs.get(&mechanism.name).map(ToString::to_string),
            state: None,
        });
        Status {
            name: self.facts.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.started.elapsed().as_secs(),
            workers: self.posts.len(),
            device: self.facts.device.clone(),
            rates: history.rates(),
            fast_path,
            sessions: tables.iter().map(|table| table.sessions).sum(),
            bindings: tables.iter().map(|table| table.bindings).sum(),
            mechanisms: mechanisms.collect(),
            dns64,
            teredo_server: self.teredo_row(),
            pcp: self.pcp_row(),
            metrics: self.facts.metrics.clone(),
            host: self.host_row(),
            problems: Vec::new(),
            event_log: self.event_log_rows(),
            started_milliseconds: self.started_milliseconds(),
            config_file: self.config_file.display().to_string(),
            reload: self.reload_row(),
        }
    }

    /// Reads a page, worker by worker.
    async fn page<E, R>(
        &self,
        query: &Query,
        command: fn(Dump<E>) -> Command,
        row: impl Fn(usize, E) -> R,
    ) -> Result<(Vec<R>, Option<String>), AdminError> {
        let filter = query.filter().map_err(|error| AdminError::BadRequest(error.to_string()))?;
        let limit = query.limit.unwrap_or(crate::admin::DEFAULT_LIMIT);
        let mut at = match &query.cursor {
            None => Cursor::default(),
            Some(text) => {
                Cursor::read(text).filter(|cursor| cursor.worker < self.posts.len()).ok_or_else(|| {
                    AdminError::BadRequest(format!(
                        "cursor = {text:?} is not a cursor from an earlier response"
                    ))
                })?
            }
        };
        let mut rows = Vec::new();
        if self.posts.is_empty() {
            return Ok((rows, None));
        }
        loop {
            let page = self.rows(at, &filter, limit - rows.len(), command).await?;
            rows.extend(page.rows.into_iter().map(|entry| row(at.worker, entry)));
            at = match page.next {
                Some(position) => Cursor { position, ..at },
                None if at.worker + 1 < self.posts.len() => {
                    Cursor { worker: at.worker + 1, position: Position::default() }
                }
                None => return Ok((rows, None)),
            };
            if rows.len() >= limit {
                return Ok((rows, Some(at.text())));
            }
        }
    }

    async fn rows<E>(
        &self,
        at: Cursor,
        filter: &Filter,
        limit: usize,
        command: fn(Dump<E>) -> Command,
    ) -> Result<DumpPage<E>, AdminError> {
        let (filter, from) = (filter.clone(), at.position);
        self.ask(at.worker, |answer| {
            command(Dump { filter, from, limit, parts: None, rows: Vec::new(), answer })
        })
        .await
    }

    fn session_row(&self, worker: usize, entry: SessionEntry) -> SessionRow {
        SessionRow {
            mechanism: self.mechanism(entry.mechanism),
            worker,
            protocol: words::protocol(Some(entry.protocol)),
            softwire: entry.softwire.map(|b4| b4.to_string()),
            inside: entry.inside.map_or_else(|| "–".into(), |end| words::inside(entry.protocol, end)),
            outside: words::end(entry.protocol, entry.outside),
            remote: words::end(entry.protocol, entry.remote),
            state: entry.state.into(),
            idle_seconds: entry.idle.map(|idle| idle.as_secs()),
            ends_in_seconds: entry.ends_in.as_secs(),
            packets_out: entry.packets.map(|(out, _)| out),
            packets_in: entry.packets.map(|(_, back)| back),
            octets_out: entry.octets.map(|(out, _)| out),
            octets_in: entry.octets.map(|(_, back)| back),
            path: match self.fast_path.as_ref().filter(|_| entry.offloaded) {
                Some(carried) => carried.path().into(),
                None => "engine".into(),
            },
        }
    }

    fn binding_row(&self, worker: usize, entry: BindingEntry) -> BindingRow {
        let (inside, outside) = match entry.protocol {
            Some(number) => (words::inside(number, entry.inside), words::end(number, entry.outside)),
            None => {
                let inside = match entry.inside.address.to_ipv4_mapped() {
                    Some(client) if client.is_unspecified() => "all".into(),
                    Some(client) => client.to_string(),
                    None => entry.inside.address.to_string(),
                };
                (inside, entry.outside.address.to_string())
            }
        };
        BindingRow {
            mechanism: self.mechanism(entry.mechanism),
            worker,
            protocol: words::protocol(entry.protocol),
            softwire: entry.softwire.map(|b4| b4.to_string()),
            inside,
            outside,
            kind: entry.kind.into(),
            sessions: entry.sessions,
            server: entry.server.map(|server| server.to_string()),
        }
    }

    fn gauges(&self, tables: &[Table]) -> Vec<Gauge> {
        let mut gauges = Vec::new();
        for (mechanism, table) in self.facts.mechanisms.iter().zip(tables) {
            let mut gauge = |name, help, protocol, value| {
                gauges.push(Gauge { name, help, mechanism: mechanism.name.clone(), protocol, value });
            };
            if mechanism.kind.is_stateful() {
                for (protocol, used) in ["tcp", "udp", "icmp"].into_iter().zip(table.ports_used) {
                    let protocol = Some(protocol);
                    gauge("pool_ports", "Ports of the pool, all addresses together.", protocol, table.ports);
                    gauge("pool_ports_used", "Ports of the pool in use.", protocol, used);
                }
            }
            let mut add = |name, help, value| gauge(name, help, None, value);
            if table.blocks.size > 0 {
                add("pool_blocks_given", "Port blocks that subscribers have.", table.blocks.given.into());
                add(
                    "pool_blocks_unused",
                    "Port blocks that subscribers have, without a port in use.",
                    table.blocks.unused.into(),
                );
                add("pool_blocks_free", "Port blocks that subscribers may get.", table.blocks.free);
            }
            let translates =
                mechanism.kind.is_stateful() || matches!(mechanism.kind, Kind::Siit | Kind::Nat46);
            if mechanism.kind.is_stateful() {
                add("sessions", "Live sessions.", table.sessions);
                add("sessions_capacity", "Maximum number of sessions.", table.sessions_capacity);
            }
            if mechanism.kind == Kind::Nat44 {
                let (live, most) = (table.portless_sessions, table.portless_capacity);
                add("portless_sessions", "Live sessions of protocols without ports.", live);
                add(
                    "portless_sessions_capacity",
                    "Maximum number of sessions of protocols without ports.",
                    most,
                );
            }
            if translates {
                add("bindings", "Live bindings, or addresses in use.", table.bindings);
                add("bindings_capacity", "Maximum number of bindings.", table.bindings_capacity);
            }
        }
        gauges
    }
}
