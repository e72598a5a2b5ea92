//! The UDP sockets of tunnels: opened where this host has the address, given to the first worker, and closed when the address is removed.
//!
//! The engines learn each change: without a local end, nothing is sent.

use super::error::RunError;
use crate::config::{Config, Surroundings, TeredoRelay};
use crate::worker::{Command, Inlet, InletAt, InletWatch, Post};
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_link::UdpTunnel;
use sixway_wire::{Endpoint4, Prefix4};
use std::io;
use std::net::SocketAddrV4;
use tokio::sync::oneshot;

/// The sockets.
pub(super) struct UdpTunnels<'c> {
    all: Vec<UdpEnd<'c>>,
    /// This host's networks, as the engines know them.
    networks: Vec<Prefix4>,
}

/// That of a relay.
struct UdpEnd<'c> {
    relay: &'c TeredoRelay,
    /// Where a worker has its socket.
    bound: Option<Endpoint4>,
    /// Whether it still has it.
    watch: Option<InletWatch>,
    /// A worker could not be updated.
    is_untold: bool,
    /// A socket that no worker has yet.
    opened: Option<UdpTunnel>,
    /// The kernel's error, so that it is logged once.
    trouble: Option<String>,
}

impl<'c> UdpTunnels<'c> {
    /// Opens the sockets of this host's addresses. A successor may find them in use: they are opened when its predecessor has ended.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn open(config: &'c Config, now: &Surroundings, succeeds: bool) -> Result<Self, RunError> {
        let ends = config.others.teredo_relay.iter();
        let mut all: Vec<UdpEnd<'_>> = ends.map(UdpEnd::new).collect();
        for end in &mut all {
            if let Err(error) = end.try_open(now)
                && !succeeds
            {
                return Err(RunError::Io(format!("relay {}", end.relay.name), error));
            }
        }
        Ok(Self { all, networks: now.subnets() })
    }

    /// Whether there is any.
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Begins: the opened sockets go to the worker, and the engines learn of them.
    pub(super) fn begin(&mut self, now: &Surroundings, posts: &[Post]) {
        for (index, end) in self.all.iter_mut().enumerate() {
            end.say_to_whom();
            end.give(posts);
            end.tell(index, &self.networks, posts);
        }
        self.follow(now, posts);
    }

    /// Where each is bound.
    pub(super) fn ends(&self) -> Vec<(String, Option<String>)> {
        let end = |it: &UdpEnd<'_>| (it.relay.name.clone(), it.bound.map(|bound| bound.to_string()));
        self.all.iter().map(end).collect()
    }

    /// Why each has no socket.
    pub(super) fn troubles(&self) -> Vec<(String, String)> {
        self.all.iter().filter_map(|it| Some((it.relay.name.clone(), it.trouble.clone()?))).collect()
    }

    /// Follows this host's addresses. To be called when they change, and from time to time: a port may be free again. Whether a socket was
    /// opened or closed.
    pub(super) fn follow(&mut self, now: &Surroundings, posts: &[Post]) -> bool {
        let networks = now.subnets();
        let networks_changed = networks != self.networks;
        self.networks = networks;
        let mut any = false;
        for (index, end) in self.all.iter_mut().enumerate() {
            let (before, trouble) = (end.bound, end.trouble.clone());
            end.follow(now, posts);
            any |= end.bound != before || end.trouble != trouble;
            if end.bound != before || networks_changed || end.is_untold {
                end.tell(index, &self.networks, posts);
            }
        }
        any
    }
}

impl<'c> UdpEnd<'c> {
    const fn new(relay: &'c TeredoRelay) -> Self {
        Self { relay, bound: None, watch: None, is_untold: false, opened: None, trouble: None }
    }

    /// The endpoint that it should have at the moment; `None` without the address.
    fn wanted(&self, now: &Surroundings) -> Option<Endpoint4> {
        self.relay.end(now).filter(|end| now.holder(end.address).is_some())
    }

    /// Opens the socket, if there is an address for it.
    fn try_open(&mut self, now: &Surroundings) -> io::Result<()> {
        let Some(end) = self.wanted(now) else { return Ok(()) };
        self.opened = Some(UdpTunnel::open(SocketAddrV4::new(end.address, end.port))?);
        Ok(())
    }

    /// Gives the opened socket to the first worker.
    fn give(&mut self, posts: &[Post]) {
        let (Some(post), Some(socket)) = (posts.first(), self.opened.take()) else { return };
        let (local, name) = (socket.local(), &self.relay.name);
        let inlet = Inlet::new((*local.ip(), Some(local.port())), Box::new(socket));
        let watch = inlet.watch();
        match post.send(Command::AddInlet(inlet)) {
            Ok(()) => {
                tracing::info!("{name}: UDP {local}");
                self.watch = Some(watch);
                self.bound = Some(Endpoint4::new(*local.ip(), local.port()));
            }
            Err(error) => {
                tracing::error!("{name}: its socket could not be given to a worker: {error}");
            }
        }
    }

    fn follow(&mut self, now: &Surroundings, posts: &[Post]) {
        let wanted = self.wanted(now);
        if self.bound.is_some() && self.watch.as_ref().is_some_and(InletWatch::is_closed) {
            tracing::warn!("{}: its socket failed; it is opened again", self.relay.name);
            (self.bound, self.watch) = (None, None);
        }
        if let Some(bound) = self.bound.filter(|bound| Some(*bound) != wanted) {
            let name = &self.relay.name;
            tracing::warn!("{name} lost its address {}: clients cannot reach it there", bound.address);
            let at: InletAt = (bound.address, Some(bound.port));
            match posts.first().map(|post| post.send(Command::RemoveInlet(at))) {
                Some(Err(error)) => {
                    tracing::warn!("the socket of {name} could not be closed: {error}");
                    return;
                }
                Some(Ok(())) | None => self.bound = None,
            }
        }
        if self.bound.is_none() && wanted.is_some() {
            let trouble = self.try_open(now).err().map(|error| error.to_string());
            if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
                tracing::warn!("{}: {what}; it is tried again", self.relay.name);
            }
            self.trouble = trouble;
            self.give(posts);
        }
        if wanted.is_none() {
            self.trouble = None;
        }
    }

    /// Informs all engines of the end. A worker with a full ring is informed the next time.
    fn tell(&mut self, index: usize, networks: &[Prefix4], posts: &[Post]) {
        self.is_untold = false;
        for (worker, post) in posts.iter().enumerate() {
            // Nothing depends on the answer.
            let (answer, _) = oneshot::channel();
            let change = Box::new(TeredoChange::Local(self.bound, networks.to_vec()));
            if let Err(error) = post.send(Command::Teredo(index as u16, change, answer)) {
                tracing::warn!(
                    "worker {worker} does not know the address of {} yet: {error}",
                    self.relay.name
                );
                self.is_untold = true;
            }
        }
    }

    /// Tells the operator who can use the relay.
    fn say_to_whom(&self) {
        let TeredoRelay { name, port, serves, .. } = self.relay;
        let whom = self.relay.whom();
        match serves.is_empty() {
            true => tracing::warn!(
                "{name} is open: it accepts UDP packets from any host on the Internet at port {port}, and forwards packets of Teredo clients to {whom}; \
                 serves = [\"your prefix\"] restricts it"
            ),
            false => tracing::info!(
                "{name} accepts UDP packets from any host on the Internet at port {port}, and forwards packets of Teredo clients to {whom}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;
    use crate::worker::{Mailbox, mailbox};
    use std::net::{Ipv4Addr, UdpSocket};

    /// A configuration with a relay at this port of 127.0.0.1, a host that has this address, and a worker's ring.
    fn relay_at(port: u16) -> (Config, Surroundings, Post, Mailbox) {
        let text = format!(
            "[teredo_relay]\naddress = \"192.0.2.1\"\nport = {port}\nipv6_address = \"2001:db8::1\"\n"
        );
        let own = HostAddress { interface: "lo".into(), address: Ipv4Addr::LOCALHOST.into(), length: 8 };
        let (post, mailbox) = mailbox().unwrap();
        let mut config = crate::sample::config(&text);
        crate::sample::localhost(&mut config.others.teredo_relay[0].local);
        (config, Surroundings::of(&[own]), post, mailbox)
    }

    fn free_port() -> u16 {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_worker_whose_ring_was_full_learns_the_end_later() {
        let (config, now, post, _mailbox) = relay_at(free_port());
        let (full, other) = crate::worker::mailbox().unwrap();
        while full.send(Command::EndFastPath(oneshot::channel().0)).is_ok() {}
        let mut ends = UdpTunnels::open(&config, &now, false).unwrap();
        let posts = [post, full];
        ends.begin(&now, &posts);
        let told = |mailbox: &Mailbox| {
            let mut told = 0;
            while let Some(command) = mailbox.waiting() {
                told += usize::from(matches!(command, Command::Teredo(0, change, _)
                    if matches!(*change, TeredoChange::Local(Some(_), _))));
            }
            told
        };
        assert_eq!(told(&other), 0);
        ends.follow(&now, &posts);
        assert_eq!(told(&other), 1);
    }

    #[test]
    fn a_socket_that_a_worker_closed_is_opened_again_at_the_same_port() {
        let port = free_port();
        let (config, now, post, mailbox) = relay_at(port);
        let mut ends = UdpTunnels::open(&config, &now, false).unwrap();
        let posts = [post];
        ends.begin(&now, &posts);
        let inlets = |mailbox: &Mailbox| {
            let waiting = std::iter::from_fn(|| mailbox.waiting());
            waiting
                .filter_map(|it| if let Command::AddInlet(inlet) = it { Some(inlet) } else { None })
                .collect()
        };
        let first: Vec<Inlet> = inlets(&mailbox);
        assert_eq!(first.len(), 1);
        assert!(!ends.follow(&now, &posts));
        assert_eq!(inlets(&mailbox).len(), 0, "it is open");
        drop(first);
        ends.follow(&now, &posts);
        let second: Vec<Inlet> = inlets(&mailbox);
        assert_eq!((second.len(), second[0].at.1), (1, Some(port)));
        assert_eq!(ends.ends(), [("teredo_relay".to_owned(), Some(format!("127.0.0.1:{port}")))]);
    }

    #[test]
    fn a_port_that_another_program_has_is_named_until_it_is_free() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (config, now, post, _mailbox) = relay_at(other.local_addr().unwrap().port());
        let mut ends = UdpTunnels::open(&config, &now, true).unwrap();
        let posts = [post];
        ends.begin(&now, &posts);
        let troubles = ends.troubles();
        assert!(troubles.len() == 1 && troubles[0].1.contains("in use"), "{troubles:?}");
        drop(other);
        assert!(ends.follow(&now, &posts));
        assert_eq!(ends.troubles(), []);
    }
}
