//! A worker's tunnels: the sockets that some packets come through, and updates from the daemon.

use sixway_dataplane::engine::TunnelConfig;
use sixway_link::Link;
use sixway_wire::{Ipv4Header, protocol};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc::Sender;

/// The tunnels of all engines, and this host's addresses.
#[derive(Clone, Default)]
pub struct TunnelSet {
    /// The tunnels.
    pub tunnels: Vec<TunnelConfig>,
    /// This host's IPv4 addresses.
    pub host4: Vec<Ipv4Addr>,
    /// This host's IPv6 addresses, as far as the gateway knows them.
    pub host6: Vec<Ipv6Addr>,
    /// The gateway's own IPv6 address.
    pub own6: Option<Ipv6Addr>,
}

impl fmt::Debug for TunnelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelSet").field("tunnels", &self.tunnels.len()).finish_non_exhaustive()
    }
}

/// Where a socket is bound: an address of this host, and a UDP port if it is a UDP socket.
pub type InletAt = (Ipv4Addr, Option<u16>);

/// A socket that brings packets for one of this host's addresses. By a UDP socket leaves what its address and port send.
pub struct Inlet {
    /// Where it is bound.
    pub at: InletAt,
    /// The socket.
    pub link: Box<dyn Link + Send>,
    /// Ends with it.
    life: Arc<()>,
}

/// Whether a socket is open that was given to a worker: it closes one that fails.
#[derive(Clone, Debug)]
pub struct InletWatch(Weak<()>);

impl InletWatch {
    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Inlet {
    /// A socket that is bound there.
    pub fn new(at: InletAt, link: Box<dyn Link + Send>) -> Self {
        Self { at, link, life: Arc::default() }
    }

    /// Closes the socket; while the returned value lives, it does not count as closed, so that no other one is opened.
    pub(super) fn retire(self) -> Arc<()> {
        self.life
    }

    /// Tells later whether it was closed.
    pub fn watch(&self) -> InletWatch {
        InletWatch(Arc::downgrade(&self.life))
    }
}

impl fmt::Display for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            (address, Some(port)) => write!(f, "UDP {address}:{port}"),
            (address, None) => write!(f, "{address}"),
        }
    }
}

/// The sockets of a worker.
#[derive(Debug, Default)]
pub(super) struct Inlets {
    all: Vec<Inlet>,
    /// Whether packets leave by any of them.
    have_outlets: bool,
}

impl Inlets {
    /// Adds one.
    pub(super) fn add(&mut self, inlet: Inlet) {
        self.all.push(inlet);
        self.note_outlets();
    }

    /// Takes those away that are bound there.
    pub(super) fn remove(&mut self, at: InletAt) -> Vec<Inlet> {
        let (removed, kept) = self.all.drain(..).partition(|inlet| inlet.at == at);
        self.all = kept;
        self.note_outlets();
        removed
    }

    /// Takes the one at this place away.
    pub(super) fn take(&mut self, place: usize) -> Inlet {
        let taken = self.all.swap_remove(place);
        self.note_outlets();
        taken
    }

    fn note_outlets(&mut self) {
        self.have_outlets = self.all.iter().any(|inlet| inlet.at.1.is_some());
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Inlet] {
        &self.all
    }

    /// The same, to receive from.
    pub(super) fn all_mut(&mut self) -> &mut [Inlet] {
        &mut self.all
    }

    /// Closes all, as [`Inlet::retire`] does.
    pub(super) fn retire(&mut self) -> Vec<Arc<()>> {
        self.have_outlets = false;
        self.all.drain(..).map(Inlet::retire).collect()
    }

    /// The socket by which a packet leaves; `None`: by a link, as nearly all do.
    #[inline(always)]
    pub(super) fn outlet(&mut self, packet: &[u8]) -> Option<&mut (dyn Link + Send)> {
        if self.have_outlets { self.outlet_of(packet) } else { None }
    }

    #[inline(never)]
    fn outlet_of(&mut self, packet: &[u8]) -> Option<&mut (dyn Link + Send)> {
        let (header, behind) = Ipv4Header::split_quoted(packet).ok()?;
        // A later fragment has no ports.
        if header.protocol != protocol::UDP || header.is_fragment() {
            return None;
        }
        let port = u16::from_be_bytes(*behind.first_chunk()?);
        let at = (header.source, Some(port));
        let inlet = self.all.iter_mut().find(|inlet| inlet.at == at)?;
        Some(inlet.link.as_mut())
    }

    /// Sends what the sockets collected.
    #[inline(always)]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.have_outlets {
            return self.all.iter_mut().try_for_each(|inlet| inlet.link.flush());
        }
        Ok(())
    }
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Where packets go that are for the gateway's own control protocols: whole IPv4 packets.
pub type ControlSender = Sender<Vec<u8>>;
