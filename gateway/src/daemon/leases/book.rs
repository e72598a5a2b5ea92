//! The leases of all concentrators while the gateway runs.

use super::awaited_leases::AwaitedLeases;
use super::concentrator::{Concentrator, Pending};
use super::disk::Disk;
use super::file::Line;
use super::file_state::LeaseFiles;
use super::trouble::LeaseTrouble;
use crate::config::Config;
use crate::event_log::LeaseNotice;
use crate::view::LeaseRow;
use crate::worker::Clock;
use sixway_control::dhcp4o6::{Asker, Refusal, SERVER_PORT, ServerCounters};
use sixway_control::dns64::LeasedAddress;
use sixway_dataplane::engine::Engine;
use sixway_link::udp::{Arrivals, Path};
use sixway_wire::Prefix4;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The leases of all concentrators.
#[derive(Debug)]
pub(in crate::daemon) struct LeaseBook {
    clock: Clock,
    all: Mutex<Vec<Concentrator>>,
    /// Only the control thread takes this one, and never while it has the other: DNS threads wait for no disk.
    disks: Mutex<Vec<Disk>>,
    pub(super) awaited: AwaitedLeases,
}

impl LeaseBook {
    /// The leases of the previous process, for the engines. `None`: there is no concentrator.
    ///
    /// # Errors
    /// A lease file cannot be read, or is not one.
    pub(in crate::daemon) fn load(
        config: &Config,
        engines: &mut [Engine],
        clock: Clock,
        seed: u64,
    ) -> io::Result<Option<Self>> {
        let sections = config.others.four_over_six.iter();
        let concentrators = sections.filter_map(|section| Some((section, section.concentrator()?)));
        let (mut all, mut disks) = (Vec::new(), Vec::new());
        for (index, section) in concentrators.enumerate() {
            let (mut loaded, disk) =
                Concentrator::load(section, index as u16, &config.gateway.name, (seed, clock.wall()))?;
            engines.iter_mut().for_each(|engine| loaded.bind(engine));
            loaded.pending.clear();
            all.push(loaded);
            disks.push(disk);
        }
        let (has_some, awaited) = (!all.is_empty(), AwaitedLeases::default());
        Ok(has_some.then(|| Self { clock, all: Mutex::new(all), disks: Mutex::new(disks), awaited }))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Concentrator>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disks(&self) -> MutexGuard<'_, Vec<Disk>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes: leases end, and files are examined.
    pub(in crate::daemon) fn tick(&self) {
        let wall = self.clock.wall();
        self.all().iter_mut().for_each(|one| one.tick(wall));
        for (place, disk) in self.disks().iter_mut().enumerate() {
            let found = disk.kea(wall);
            if let Some(one) = self.all().get_mut(place) {
                one.take_kea(found, wall);
            }
            disk.append(&self.take_unwritten(place), wall);
            disk.tidy(|last| self.page(place, last), wall);
            self.note_state(place, disk);
        }
    }

    /// Stores changes before they are used.
    pub(in crate::daemon) fn write_down(&self) {
        let wall = self.clock.wall();
        for (place, disk) in self.disks().iter_mut().enumerate() {
            disk.append(&self.take_unwritten(place), wall);
            self.note_state(place, disk);
        }
    }

    /// Records errors of the disk, for threads that must not wait for it.
    fn note_state(&self, place: usize, disk: &Disk) {
        if let Some(one) = self.all().get_mut(place)
            && one.files != *disk.state()
        {
            one.files = disk.state().clone();
        }
    }

    /// How the files of all concentrators are.
    pub(in crate::daemon) fn files(&self) -> Vec<LeaseFiles> {
        self.all().iter().map(|one| one.files.clone()).collect()
    }

    /// Problems for the operator.
    pub(in crate::daemon) fn troubles(&self) -> Vec<LeaseTrouble> {
        self.all().iter().filter_map(Concentrator::trouble).collect()
    }

    /// The outcome of queries, by concentrator.
    pub(in crate::daemon) fn queries(&self) -> Vec<(String, ServerCounters)> {
        self.all().iter().filter_map(Concentrator::queries).collect()
    }

    /// How each is, in few words.
    pub(in crate::daemon) fn states(&self) -> Vec<(String, String)> {
        self.all().iter().map(Concentrator::state).collect()
    }

    fn take_unwritten(&self, place: usize) -> Vec<Line> {
        self.all().get_mut(place).map(Concentrator::take_unwritten).unwrap_or_default()
    }

    fn page(&self, place: usize, last: Option<Ipv4Addr>) -> Vec<Line> {
        self.all().get(place).map(|one| one.page(last)).unwrap_or_default()
    }

    /// Where each concentrator's server listens, by the concentrator's place.
    pub(in crate::daemon) fn listening(&self) -> Vec<(usize, SocketAddr)> {
        let all = self.all();
        let of = |(place, one): (usize, &Concentrator)| {
            let sockets = one.listen.iter().map(|address| SocketAddr::from((*address, SERVER_PORT)));
            sockets.map(|socket| (place, socket)).collect::<Vec<_>>()
        };
        all.iter().enumerate().flat_map(of).collect()
    }

    /// Answers a batch of queries to a concentrator. The answers leave when the workers know of the leases.
    pub(in crate::daemon) fn answer(&self, place: usize, arrivals: &Arrivals) -> Vec<(Path, Vec<u8>)> {
        let (mut replies, mut all) = (Vec::new(), self.all());
        let Some(one) = all.get_mut(place) else { return replies };
        let wall = self.clock.wall();
        for (path, octets) in arrivals.iter() {
            let IpAddr::V6(source) = path.peer.ip() else { continue };
            match one.server.handle_query(wall.now, source, octets) {
                Ok(Some(reply)) => replies.push((*path, reply.octets)),
                Ok(None) => {}
                Err(refusal) => tracing::debug!("{}: query of {source}: {refusal}", one.name),
            }
        }
        one.take_changes(wall);
        replies
    }

    /// Changes that the workers do not have yet: of each concentrator its place, its index among the engines' ends, and the changes.
    pub(in crate::daemon) fn take_pending(&self) -> Vec<(usize, u16, Pending)> {
        let mut all = self.all();
        let with = all.iter_mut().enumerate().filter(|(_, one)| !one.pending.is_empty());
        with.map(|(place, one)| (place, one.index, one.take_pending())).collect()
    }

    /// The workers know of these changes.
    pub(in crate::daemon) fn note_told(&self, place: usize, pending: &Pending) {
        let mut all = self.all();
        let Some(one) = all.get_mut(place) else { return };
        one.end_telling(pending);
        // What has changed again meanwhile they do not know.
        let known = pending.keys().filter(|ipv4| !one.is_untold(**ipv4));
        self.awaited.remove(known.map(|prefix| prefix.address()));
    }

    /// Returns when a DNS thread waits for a lease to reach the workers.
    pub(in crate::daemon) async fn hurried(&self) {
        self.awaited.added().await;
    }

    /// The address of a concentrator's host, for a client that looks up its name, and for how many seconds it certainly has it. The workers know of it.
    /// A DNS thread calls this: nothing is read or written here.
    pub(super) fn look_up(&self, place: usize, host: Ipv6Addr, asker: Asker) -> LeasedAddress {
        let mut all = self.all();
        let Some(one) = all.get_mut(place) else { return LeasedAddress::None };
        let wall = self.clock.wall();
        let (ipv4, left) = match one.server.reserve(host, asker, wall.now) {
            Ok(found) => found,
            Err(refusal) => {
                tracing::debug!("{}: {} looks up {host}: {refusal}", one.name, asker.client);
                return match refusal {
                    Refusal::Unproven => LeasedAddress::Unproven,
                    Refusal::Malformed(_)
                    | Refusal::NotAQuery
                    | Refusal::NotAClient
                    | Refusal::NotARelay
                    | Refusal::RateLimit
                    | Refusal::Share
                    | Refusal::PoolEmpty
                    | Refusal::Reserved
                    | Refusal::NotOurs => LeasedAddress::None,
                };
            }
        };
        one.take_changes(wall);
        if one.is_untold(Prefix4::holding(ipv4, 32)) {
            self.awaited.add(ipv4);
        }
        drop(all);
        match self.awaited.wait(ipv4) {
            true => LeasedAddress::Has(ipv4, u32::try_from(left.as_secs()).unwrap_or(u32::MAX)),
            false => LeasedAddress::None,
        }
    }

    /// Events that are not in the log yet.
    pub(in crate::daemon) fn take_notices(&self) -> Vec<LeaseNotice> {
        self.all().iter_mut().flat_map(|one| std::mem::take(&mut one.notices)).collect()
    }

    /// The event log did not take those from number `known` on: they are given again, before newer ones.
    pub(in crate::daemon) fn put_back_notices(&self, mut notices: Vec<LeaseNotice>, known: usize) {
        notices.drain(..known.min(notices.len()));
        if let Some(one) = self.all().first_mut() {
            notices.append(&mut one.notices);
            one.notices = notices;
        }
    }

    /// A worker did not get these: they are given again, unless there are newer ones.
    pub(in crate::daemon) fn put_back(&self, place: usize, pending: Pending) {
        if let Some(one) = self.all().get_mut(place) {
            one.end_telling(&pending);
            for (ipv4, binding) in pending {
                one.pending.entry(ipv4).or_insert(binding);
            }
        }
    }

    /// The leases of all concentrators, at most `room`.
    pub(in crate::daemon) fn rows(&self, room: usize) -> Vec<LeaseRow> {
        let wall = self.clock.wall();
        self.all().iter().flat_map(|one| one.rows(wall, room)).take(room).collect()
    }

    /// Ends the lease of an address. Returns whether there was one.
    pub(in crate::daemon) fn end(&self, ipv4: Ipv4Addr) -> bool {
        let wall = self.clock.wall();
        self.all().iter_mut().any(|one| one.end(ipv4, wall))
    }

    /// Bindings of a concentrator, and the most of them.
    pub(in crate::daemon) fn counts(&self, name: &str) -> Option<(u64, u64)> {
        self.all().iter().find(|one| one.name == name).map(Concentrator::counts)
    }

    /// Writes all leases a last time.
    pub(in crate::daemon) fn finish(&self) {
        let wall = self.clock.wall();
        self.all().iter_mut().for_each(|one| one.take_changes(wall));
        for (place, disk) in self.disks().iter_mut().enumerate() {
            disk.append(&self.take_unwritten(place), wall);
            disk.finish(|last| self.page(place, last), wall);
        }
    }
}

#[cfg(test)]
mod tests;
