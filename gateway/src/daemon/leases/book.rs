//! The leases of all concentrators while the gateway runs.

use super::concentrator::{Concentrator, Pending};
use super::untold::Untold;
use crate::config::Config;
use crate::event_log::LeaseNotice;
use crate::view::LeaseRow;
use crate::worker::Clock;
use sixway_control::dhcp4o6::SERVER_PORT;
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
    pub(super) untold: Untold,
}

impl LeaseBook {
    /// The leases of the time before, which the engines get. `None`: there is no concentrator.
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
        let mut all = Vec::new();
        for (index, section) in concentrators.enumerate() {
            let mut loaded =
                Concentrator::load(section, index as u16, &config.gateway.name, (seed, clock.wall()))?;
            engines.iter_mut().for_each(|engine| loaded.bind(engine));
            loaded.pending.clear();
            all.push(loaded);
        }
        Ok((!all.is_empty()).then(|| Self { clock, all: Mutex::new(all), untold: Untold::default() }))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Concentrator>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes: leases end, and Kea's file is looked at.
    pub(in crate::daemon) fn tick(&self) {
        let wall = self.clock.wall();
        self.all().iter_mut().for_each(|one| one.tick(wall));
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

    /// What the workers do not know yet: of each concentrator its place, its index among the engines' ends, and the changes.
    pub(in crate::daemon) fn take_pending(&self) -> Vec<(usize, u16, Pending)> {
        let mut all = self.all();
        let with = all.iter_mut().enumerate().filter(|(_, one)| !one.pending.is_empty());
        with.map(|(place, one)| (place, one.index, std::mem::take(&mut one.pending))).collect()
    }

    /// The workers know of these changes.
    pub(in crate::daemon) fn note_told(&self, pending: &Pending) {
        self.untold.remove(pending.keys().map(|prefix| prefix.address()));
    }

    /// Until somebody waits for the workers to know of a lease.
    pub(in crate::daemon) async fn hurried(&self) {
        self.untold.hurried().await;
    }

    /// The address of a concentrator's host, for a client that looks up its name, and for how many seconds it certainly has it. The workers know of it.
    pub(super) fn look_up(&self, place: usize, host: Ipv6Addr, client: IpAddr) -> Option<(Ipv4Addr, u32)> {
        let mut all = self.all();
        let one = all.get_mut(place)?;
        let wall = self.clock.wall();
        let (ipv4, left) = match one.server.reserve(host, client, wall.now) {
            Ok(found) => found,
            Err(refusal) => {
                tracing::debug!("{}: {client} looks up {host}: {refusal}", one.name);
                return None;
            }
        };
        one.take_changes(wall);
        if one.pending.contains_key(&Prefix4::holding(ipv4, 32)) {
            self.untold.add(ipv4);
        }
        drop(all);
        self.untold.wait(ipv4).then(|| (ipv4, u32::try_from(left.as_secs()).unwrap_or(u32::MAX)))
    }

    /// What the event log does not know yet.
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

    /// Ends the lease of an address. Whether there was one.
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
        self.all().iter_mut().for_each(|one| one.finish(wall));
    }
}
