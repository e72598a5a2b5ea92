//! The UDP sockets of tunnels: opened where this host has the address, given to the first worker, and closed when the address is gone.
//!
//! The engines learn each change: without a local end, nothing is sent.

use super::error::RunError;
use crate::config::{Config, Surroundings, TeredoRelay};
use crate::worker::{Command, Inlet, InletAt, Post};
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
    /// A socket that no worker has yet.
    opened: Option<UdpTunnel>,
    /// What the kernel said, so that it is logged once.
    trouble: Option<String>,
}

impl<'c> UdpTunnels<'c> {
    /// Opens the sockets of this host's addresses. A successor may find them in use: they are opened when its predecessor has ended.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn open(config: &'c Config, now: &Surroundings, succeeds: bool) -> Result<Self, RunError> {
        let ends = config.others.teredo_relay.iter();
        let mut all: Vec<UdpEnd<'_>> =
            ends.map(|relay| UdpEnd { relay, bound: None, opened: None, trouble: None }).collect();
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
            tell(index, end.bound, &self.networks, posts);
        }
        self.follow(now, posts);
    }

    /// Where each is bound.
    pub(super) fn ends(&self) -> Vec<(String, Option<String>)> {
        let end = |it: &UdpEnd<'_>| (it.relay.name.clone(), it.bound.map(|bound| bound.to_string()));
        self.all.iter().map(end).collect()
    }

    /// Follows this host's addresses. To be called when they change, and from time to time: a port may be free again. Whether a socket was
    /// opened or closed.
    pub(super) fn follow(&mut self, now: &Surroundings, posts: &[Post]) -> bool {
        let networks = now.subnets();
        let networks_changed = networks != self.networks;
        self.networks = networks;
        let mut any = false;
        for (index, end) in self.all.iter_mut().enumerate() {
            let before = end.bound;
            end.follow(now, posts);
            any |= end.bound != before;
            if end.bound != before || networks_changed {
                tell(index, end.bound, &self.networks, posts);
            }
        }
        any
    }
}

impl UdpEnd<'_> {
    /// Where it should be at the moment: nowhere without the address.
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
        let inlet = Inlet { at: (*local.ip(), Some(local.port())), link: Box::new(socket) };
        match post.send(Command::AddInlet(inlet)) {
            Ok(()) => {
                tracing::info!("{name}: UDP {local}");
                self.bound = Some(Endpoint4::new(*local.ip(), local.port()));
            }
            Err(error) => {
                tracing::error!("{name}: its socket could not be given to a worker: {error}");
            }
        }
    }

    fn follow(&mut self, now: &Surroundings, posts: &[Post]) {
        let wanted = self.wanted(now);
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
    }

    /// Tells the operator who can use the relay.
    fn say_to_whom(&self) {
        let TeredoRelay { name, port, serves, .. } = self.relay;
        let whom = self.relay.whom();
        match serves.is_empty() {
            true => tracing::warn!(
                "{name} is open: it takes UDP packets of anybody on the Internet at port {port}, and forwards what Teredo clients send to {whom}; \
                 serves = [\"your prefix\"] restricts it"
            ),
            false => tracing::info!(
                "{name} takes UDP packets of anybody on the Internet at port {port}, and forwards what Teredo clients send to {whom}"
            ),
        }
    }
}

/// Tells all engines of a relay's end.
fn tell(index: usize, local: Option<Endpoint4>, networks: &[Prefix4], posts: &[Post]) {
    for (worker, post) in posts.iter().enumerate() {
        // Nothing depends on the answer.
        let (answer, _) = oneshot::channel();
        let change = Box::new(TeredoChange::Local(local, networks.to_vec()));
        if let Err(error) = post.send(Command::Teredo(index as u16, change, answer)) {
            tracing::error!("worker {worker} does not know the address of a relay: {error}");
        }
    }
}
