//! A concentrator's leases: by its own server, or from Kea.

use super::disk::Disk;
use super::file::{Line, unix};
use super::file_state::LeaseFiles;
use super::kea::KeaBindings;
use super::refused::{Strangers, refused};
use super::trouble::{LeaseTrouble, queries};
use crate::config::{Concentrator as Section, FourOverSix};
use crate::event_log::LeaseNotice;
use crate::show::count;
use crate::view::LeaseRow;
use sixway_control::dhcp4o6::{Change, Lease, LeaseState, Server, ServerCounters, ServerSettings};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use sixway_wire::Prefix4;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The server identifier, to which nothing is sent: the address of the concentrator by RFC 6333 §5.7.
const SERVER_ID: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 1);

/// Leases that are read together to be written: leases are not read or changed otherwise meanwhile.
const PAGE: usize = 4_096;

/// The new binding of an address: a host has it, or none.
pub(in crate::daemon) type Pending = BTreeMap<Prefix4, Option<Binding>>;

/// A concentrator's leases.
#[derive(Debug)]
pub(super) struct Concentrator {
    pub(super) name: String,
    /// Its index among the fixed ends of 4over6 tunnels.
    pub(super) index: u16,
    pub(super) listen: Vec<Ipv6Addr>,
    /// Bindings that there can be.
    most: u32,
    fixed: Vec<(Ipv6Addr, Prefix4)>,
    pub(super) server: Server,
    /// Kea's leases; `None`: the leases are those of the own server.
    kea: Option<KeaBindings>,
    /// Updates that the workers do not have yet.
    pub(super) pending: Pending,
    /// Updates that are being sent to them.
    telling: BTreeSet<Prefix4>,
    /// Changes that are not in the file yet.
    unwritten: Vec<Line>,
    /// What each host has, as the event log knows it.
    known: BTreeMap<Prefix4, Ipv6Addr>,
    /// Events that are not in the log yet.
    pub(super) notices: Vec<LeaseNotice>,
    /// How its files are.
    pub(super) files: LeaseFiles,
    strangers: Strangers,
}

impl Concentrator {
    /// With the leases of the time before.
    ///
    /// # Errors
    /// The lease file cannot be read, or is not one.
    pub(super) fn load(
        (section, concentrator): (&FourOverSix, &Section),
        index: u16,
        gateway: &str,
        (seed, wall): (u64, WallClock),
    ) -> io::Result<(Self, Disk)> {
        let (mut disk, leases) = Disk::load((section, concentrator), gateway, wall)?;
        let mut server = Server::new(settings(section, concentrator), seed);
        let count = leases.len();
        let restored = |(lease, asker): Line| match asker {
            Some(asker) => server.restore_waiting(lease, asker),
            None => server.restore(lease),
        };
        let taken = leases.into_iter().map(restored).filter(|is_taken| *is_taken).count();
        if count > 0 {
            tracing::info!("{}: {taken} leases taken up, {} not", section.name, count - taken);
        }
        let mut made = Self {
            name: section.name.clone(),
            index,
            listen: concentrator.listen.clone(),
            most: most(section, concentrator),
            fixed: section.fixed.iter().map(|fixed| (fixed.host, fixed.ipv4)).collect(),
            server,
            kea: concentrator.kea_leases.as_ref().map(|_| KeaBindings::new()),
            pending: Pending::new(),
            telling: BTreeSet::new(),
            unwritten: Vec::new(),
            known: BTreeMap::new(),
            notices: Vec::new(),
            files: disk.state().clone(),
            strangers: Strangers::default(),
        };
        made.take_changes(wall);
        // The file has them.
        made.unwritten.clear();
        made.take_kea(disk.kea(wall), wall);
        let name: Arc<str> = made.name.as_str().into();
        let fixed = made.fixed.iter().map(|(host, ipv4)| (*ipv4, *host));
        let all = fixed.chain(made.known.iter().map(|(ipv4, host)| (*ipv4, *host)));
        made.notices =
            all.map(|(ipv4, host)| LeaseNotice::continues(Arc::clone(&name), ipv4, host)).collect();
        Ok((made, disk))
    }

    /// Gives an engine the bindings, before its worker runs.
    pub(super) fn bind(&self, engine: &mut Engine) {
        let Some(built) = engine.four_over_six().get_mut(usize::from(self.index)) else { return };
        for binding in self.pending.values().flatten() {
            if let Err(fault) = built.bind(*binding) {
                tracing::warn!("{}: {} not bound: {fault}", self.name, binding.ipv4);
            }
        }
    }

    /// Collects changes for the disk and for the workers: nothing is written here.
    pub(super) fn take_changes(&mut self, wall: WallClock) {
        while let Some(change) = self.server.poll_change() {
            match change {
                Change::Bound(lease) => {
                    let ipv4 = Prefix4::holding(lease.ipv4, 32);
                    self.change(ipv4, Some(Binding { ipv4, host: lease.host, local: 0 }));
                    self.unwritten.push((lease, self.server.waits_for(&lease)));
                }
                Change::Ended(lease) => {
                    self.change(Prefix4::holding(lease.ipv4, 32), None);
                    let ended = Lease { state: LeaseState::Ended, until: wall.now, ..lease };
                    self.unwritten.push((ended, None));
                }
            }
        }
    }

    /// Changes that are not in the file yet.
    pub(super) fn take_unwritten(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.unwritten)
    }

    /// The leases that follow an address, as lines of the file.
    pub(super) fn page(&self, last: Option<Ipv4Addr>) -> Vec<Line> {
        let first = match last {
            Some(last) => last.to_bits().checked_add(1),
            None => Some(0),
        };
        let leases = first.map(|first| self.server.leases_from(first.into()).take(PAGE));
        leases.into_iter().flatten().map(|lease| (*lease, self.server.waits_for(lease))).collect()
    }

    /// Updates for the workers.
    pub(super) fn take_pending(&mut self) -> Pending {
        let pending = std::mem::take(&mut self.pending);
        self.telling.extend(pending.keys());
        pending
    }

    /// The workers have these, or could not get them: later updates are still pending.
    pub(super) fn end_telling(&mut self, pending: &Pending) {
        self.telling.retain(|ipv4| !pending.contains_key(ipv4));
    }

    /// Whether the workers may lack a change of an address.
    pub(super) fn is_untold(&self, ipv4: Prefix4) -> bool {
        self.pending.contains_key(&ipv4) || self.telling.contains(&ipv4)
    }

    /// Collects changes of an address for the workers and the event log. The latter does not record renewals.
    fn change(&mut self, ipv4: Prefix4, binding: Option<Binding>) {
        self.pending.insert(ipv4, binding);
        let host = binding.map(|binding| binding.host);
        let former = match host {
            Some(host) => self.known.insert(ipv4, host),
            None => self.known.remove(&ipv4),
        };
        if former == host {
            return;
        }
        let name: Arc<str> = self.name.as_str().into();
        self.notices.extend(former.map(|host| LeaseNotice::ended(Arc::clone(&name), ipv4, host)));
        self.notices.extend(host.map(|host| LeaseNotice::begun(name, ipv4, host)));
    }

    /// Time passes.
    pub(super) fn tick(&mut self, wall: WallClock) {
        self.server.expire(wall.now);
        self.take_changes(wall);
        self.strangers.note(&self.name, wall.now, &self.server.counters);
    }

    /// Problems with its queries, for the operator.
    pub(super) fn trouble(&self) -> Option<LeaseTrouble> {
        self.strangers.trouble(&self.name, &self.server.counters, self.server.bound())
    }

    /// Its name, and the outcome of queries; `None`: Kea answers them.
    pub(super) fn queries(&self) -> Option<(String, ServerCounters)> {
        (!self.listen.is_empty()).then(|| (self.name.clone(), self.server.counters))
    }

    /// How it is, in few words.
    pub(super) fn state(&self) -> (String, String) {
        let (bindings, most) = self.counts();
        let refused = match refused(&self.server.counters) {
            0 => String::new(),
            number => format!(" · {} refused", queries(number)),
        };
        (self.name.clone(), format!("{} of {} leases{refused}", count(bindings), count(most)))
    }

    /// What Kea has leased; `None`: its file has not changed.
    pub(super) fn take_kea(&mut self, found: Option<KeaBindings>, wall: WallClock) {
        let Some(known) = &mut self.kea else { return };
        let now = wall.unix_seconds;
        let found = match found {
            Some(found) => found,
            // Expired leases end, although no record is written.
            None if known.values().any(|(_, until)| *until <= now) => {
                known.iter().filter(|(_, (_, until))| *until > now).map(|(ipv4, one)| (*ipv4, *one)).collect()
            }
            None => return,
        };
        let mut changes = Vec::new();
        for (ipv4, (binding, _)) in known.iter().filter(|(ipv4, _)| !found.contains_key(*ipv4)) {
            tracing::debug!("{ipv4} is no longer leased");
            changes.push((binding.ipv4, None));
        }
        for (ipv4, (binding, _)) in &found {
            if known.get(ipv4).is_none_or(|(old, _)| old != binding) {
                changes.push((binding.ipv4, Some(*binding)));
            }
        }
        *known = found;
        changes.into_iter().for_each(|(ipv4, binding)| self.change(ipv4, binding));
    }

    /// Ends the lease of an address. Returns whether there was one.
    pub(super) fn end(&mut self, ipv4: Ipv4Addr, wall: WallClock) -> bool {
        let ended = self.server.end(ipv4, wall.now);
        self.take_changes(wall);
        ended
    }

    /// Bindings, and the most of them.
    pub(super) fn counts(&self) -> (u64, u64) {
        let kea = self.kea.as_ref().map_or(0, KeaBindings::len);
        (self.fixed.len() as u64 + u64::from(self.server.bound()) + kea as u64, self.most.into())
    }

    /// All leases, static ones first, at most `room`.
    pub(super) fn rows(&self, wall: WallClock, room: usize) -> Vec<LeaseRow> {
        let row = |ipv4: String, host: Ipv6Addr, state: &str, ends_in_seconds| LeaseRow {
            mechanism: self.name.clone(),
            ipv4,
            host: host.to_string(),
            state: state.into(),
            ends_in_seconds,
        };
        let fixed = self.fixed.iter().map(|(host, ipv4)| {
            let ipv4 = if ipv4.length() == 32 { ipv4.address().to_string() } else { ipv4.to_string() };
            row(ipv4, *host, "static", None)
        });
        let leases = self.server.leases_from(Ipv4Addr::UNSPECIFIED).map(|lease| {
            let (state, ends) = match lease.state {
                LeaseState::Offered => ("offered", true),
                LeaseState::Bound => ("leased", true),
                LeaseState::Ended => ("ended", false),
                LeaseState::Declined => ("declined", true),
            };
            let left = ends.then(|| unix(lease.until, wall).saturating_sub(wall.unix_seconds));
            row(lease.ipv4.to_string(), lease.host, state, left)
        });
        let kea = self.kea.iter().flatten().map(|(ipv4, (binding, until))| {
            row(ipv4.to_string(), binding.host, "leased", Some(until.saturating_sub(wall.unix_seconds)))
        });
        fixed.chain(leases).chain(kea).take(room).collect()
    }
}

/// The number of addresses of the pool, static bindings included; at most `max_leases`.
fn most(section: &FourOverSix, concentrator: &Section) -> u32 {
    let size = |prefix: &Prefix4| 1_u64 << (32 - prefix.length());
    let is_other = |place: usize, prefix: &Prefix4| {
        let covers = |other: &Prefix4| other.contains(prefix.address()) && other.length() <= prefix.length();
        !concentrator.pool[..place].iter().any(covers)
            && !concentrator.pool[place + 1..].iter().any(|other| covers(other) && other != prefix)
    };
    let pool = concentrator.pool.iter().enumerate();
    let pool: u64 =
        pool.filter(|(place, prefix)| is_other(*place, prefix)).map(|(_, prefix)| size(prefix)).sum();
    // A static prefix is one binding, of addresses that are not leased to others.
    let fixed = section.fixed.iter().map(|fixed| fixed.ipv4);
    let within = fixed.filter(|ipv4| concentrator.pool.iter().any(|prefix| prefix.overlaps(*ipv4)));
    let taken: u64 = within.map(|ipv4| size(&ipv4)).sum();
    let most = pool.saturating_sub(taken) + section.fixed.len() as u64;
    u32::try_from(most).unwrap_or(u32::MAX).min(concentrator.max_leases)
}

fn settings(section: &FourOverSix, concentrator: &Section) -> ServerSettings {
    let single = section.fixed.iter().filter(|fixed| fixed.ipv4.length() == 32);
    let wide = section.fixed.iter().filter(|fixed| fixed.ipv4.length() < 32);
    ServerSettings {
        id: SERVER_ID,
        pool: concentrator.pool.clone(),
        fixed: single.map(|fixed| (fixed.host, fixed.ipv4.address())).collect(),
        reserved: wide.map(|fixed| fixed.ipv4).collect(),
        clients: concentrator.clients.clone(),
        relays: concentrator.relays.clone(),
        client_bits: concentrator.client_prefix,
        leases_per_client: concentrator.leases_per_client,
        max_leases: concentrator.max_leases.saturating_sub(section.fixed.len() as u32),
        lease_time: concentrator.lease_time,
        queries_per_second: concentrator.queries_per_second,
    }
}
