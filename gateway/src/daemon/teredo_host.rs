//! This host's Teredo client while it runs: its sockets, its machine, and what follows for the engines, the device and the routes.

use super::engines;
use super::error::RunError;
use super::teredo_kept::Kept;
use super::teredo_sockets::{Heard, TeredoSockets, payload_to};
use crate::config::{Config, Surroundings, TeredoClient};
use crate::host::native_ipv6;
use crate::view::TeredoClientRow;
use crate::worker::{Clock, Command, Inlet, Post};
use nix::time::ClockId;
use ring::hmac;
use sixway_control::teredo_client::{Action, Client, Local, Secret, ServerAddresses, Settings, Why};
use sixway_control::teredo_server::ClientKey;
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_link::UdpTunnel;
use sixway_wire::teredo::TeredoAddress;
use sixway_wire::{Endpoint4, Prefix4};
use std::io;
use std::net::{Ipv6Addr, SocketAddrV4};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often it is looked whether this host has IPv6 by other means.
const LOOK: Duration = Duration::from_secs(3);
/// A suspended host may be in another network when it goes on.
const SUSPENDED: Duration = Duration::from_secs(5);
/// How often the port of the previous process is tried: it may still have it.
const TRIES: u8 = 10;
/// How long the address of the previous process stays while nothing is known.
const GRACE: Duration = Duration::from_secs(30);

/// The client of this host.
pub(super) struct TeredoHost<'c> {
    config: &'c TeredoClient,
    /// Its number among Teredo's relays and clients.
    index: u16,
    clock: Clock,
    client: Client,
    sockets: TeredoSockets,
    bound: Option<Endpoint4>,
    networks: Vec<Prefix4>,
    kept: Kept,
    tries: u8,
    is_started: bool,
    /// The address on the device, which the workers know.
    engine: Option<TeredoAddress>,
    /// The address of the previous process is on the device until then.
    grace: Option<sixway_control::Instant>,
    /// A worker could not be told.
    is_untold: bool,
    looked: Option<sixway_control::Instant>,
    /// How long this host slept since its start.
    slept: Duration,
    trouble: Option<String>,
}

/// The address that a predecessor used.
pub(super) fn address_of_predecessor(config: &Config) -> Option<Ipv6Addr> {
    config.others.teredo_client.first()?;
    Kept::load(&config.gateway.name).address.map(TeredoAddress::address)
}

/// The secret of the configuration's client, if it has one.
///
/// # Errors
/// The file cannot be read, or is empty.
pub(super) fn secret(config: &Config) -> Result<Option<Secret>, RunError> {
    let secrets = config.others.teredo_client.iter();
    let mut secrets = secrets.filter_map(|it| it.client_id.as_ref().zip(it.secret_file.as_ref()));
    let Some((id, file)) = secrets.next() else { return Ok(None) };
    let failed = |error| RunError::Io(format!("teredo_client.secret_file = {}", file.display()), error);
    let text = std::fs::read_to_string(file).map_err(failed)?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        let what = "its first line is empty; write the secret there";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, line.as_bytes());
    let key = ClientKey::new(move |octets| {
        let mut value = [0; 20];
        value.copy_from_slice(hmac::sign(&key, octets).as_ref());
        value
    });
    Ok(Some(Secret { client: id.as_bytes().to_vec(), key }))
}

fn settings(config: &TeredoClient, secret: Option<Secret>) -> Settings {
    let servers = config.servers.iter();
    let servers = servers.map(|it| ServerAddresses { primary: it.address, secondary: it.secondary });
    Settings {
        secret,
        symmetric: config.symmetric,
        interval: config.interval,
        learn_interval: config.learn_interval,
        local_discovery: config.local_discovery,
        ..Settings::new(servers.collect())
    }
}

/// Why there is no address. A server says nothing to a client that it does not know (RFC 4380 §5.3.1), which looks like one that is gone.
fn explained(why: Why, has_secret: bool) -> String {
    let is_silence = matches!(why, Why::NoAnswer(_) | Why::NoSecondAnswer(_) | Why::Blocked(_));
    match is_silence && has_secret {
        true => {
            format!("{why}; servers do not answer clients whose client_id and secret_file they do not know")
        }
        false => why.to_string(),
    }
}

fn secret_seed() -> io::Result<[u8; 32]> {
    let words = [engines::seed()?, engines::seed()?];
    let mut octets = [0; 32];
    for (place, word) in octets.chunks_exact_mut(8).zip(words.as_flattened()) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    Ok(octets)
}

/// How long this host slept since its start.
fn slept() -> Duration {
    let now = |clock: ClockId| clock.now().map_or(Duration::ZERO, Duration::from);
    now(ClockId::CLOCK_BOOTTIME).saturating_sub(now(ClockId::CLOCK_MONOTONIC))
}

impl<'c> TeredoHost<'c> {
    /// That of a configuration, if it has one. A successor keeps the address of its predecessor until it knows better.
    pub(super) fn new(
        config: &'c Config,
        secret: Option<Secret>,
        clock: Clock,
        succeeds: bool,
    ) -> Option<Self> {
        let own = config.others.teredo_client.first()?;
        let seed = secret_seed().inspect_err(|error| tracing::error!("/dev/urandom: {error}")).ok()?;
        let mut client = Client::new(settings(own, secret), None, seed);
        let kept = Kept::load(&config.gateway.name);
        if let Some(address) = kept.address {
            client.keep(address);
        }
        let now = clock.now();
        client.native_ipv6(native_ipv6(), now);
        let engine = kept.address.filter(|_| succeeds);
        Some(Self {
            config: own,
            index: config.others.teredo_relay.len() as u16,
            clock,
            client,
            sockets: TeredoSockets::default(),
            bound: None,
            networks: Vec::new(),
            tries: if kept.port == 0 { TRIES } else { 0 },
            kept,
            is_started: false,
            grace: engine.map(|_| now + GRACE),
            engine,
            is_untold: false,
            looked: None,
            slept: slept(),
            trouble: None,
        })
    }

    /// Follows this host's addresses and networks. To be called when they change, and each second. Whether the socket was opened or closed.
    pub(super) fn follow(&mut self, now: &Surroundings, posts: &[Post]) -> bool {
        let (wanted, networks) = (self.config.address(now), now.subnets());
        let (before, networks_before) = (self.bound, std::mem::replace(&mut self.networks, networks));
        if let Some(bound) = self.bound.filter(|bound| Some(bound.address) != wanted) {
            tracing::warn!("{} lost its address {}", self.config.name, bound.address);
            self.sockets.close_all();
            let at = (bound.address, Some(bound.port));
            if let Some(Err(error)) = posts.first().map(|post| post.send(Command::RemoveInlet(at))) {
                tracing::warn!("the socket of {} could not be closed: {error}", self.config.name);
                return false;
            }
            self.bound = None;
        }
        if let (None, Some(address)) = (self.bound, wanted) {
            let opened = self.open(SocketAddrV4::new(address, 0), posts);
            let trouble = opened.err().map(|error| error.to_string());
            if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
                tracing::warn!("{}: {what}; it is tried again", self.config.name);
            }
            self.trouble = trouble;
        }
        if self.bound != before || self.networks != networks_before {
            self.tell(&TeredoChange::Local(self.bound, self.networks.clone()), posts);
            let local = self.bound.map(|endpoint| Local { endpoint, subnets: self.networks.clone() });
            self.client.moved(local, self.clock.now());
        }
        if !std::mem::replace(&mut self.is_started, true) {
            self.tell(&TeredoChange::Client(self.engine), posts);
            self.client.start(self.clock.now());
        }
        self.bound != before
    }

    /// The port as written, else the one that it had before, else any.
    fn open(&mut self, local: SocketAddrV4, posts: &[Post]) -> io::Result<()> {
        let port = match (self.config.port, self.kept.port) {
            (0, kept) if self.tries < TRIES => kept,
            (written, _) => written,
        };
        let opened = UdpTunnel::open(SocketAddrV4::new(*local.ip(), port));
        if opened.is_err() {
            self.tries = self.tries.saturating_add(1);
        }
        let socket = opened?;
        let sender = socket.sender()?;
        let local = socket.local();
        let Some(post) = posts.first() else { return Ok(()) };
        let inlet = Inlet { at: (*local.ip(), Some(local.port())), link: Box::new(socket) };
        post.send(Command::AddInlet(inlet)).map_err(io::Error::other)?;
        // Not before: a copy of a socket that nobody reads would keep the port.
        self.sockets.service = Some(sender);
        if self.config.local_discovery
            && let Err(error) = self.sockets.listen()
        {
            tracing::warn!("{}: clients of this link are not found: {error}", self.config.name);
        }
        tracing::info!("{}: UDP {local}", self.config.name);
        self.bound = Some(Endpoint4::new(*local.ip(), local.port()));
        (self.kept.port, self.tries) = (local.port(), 0);
        self.kept.save();
        Ok(())
    }

    /// Each second.
    pub(super) fn each_second(&mut self, posts: &[Post]) {
        let now = self.clock.now();
        let slept = slept();
        if slept.saturating_sub(self.slept) > SUSPENDED {
            tracing::info!("{}: this host was suspended; qualifying again", self.config.name);
            self.client.resumed(now);
        }
        self.slept = slept;
        if self.looked.is_none_or(|looked| now.since(looked) >= LOOK) {
            self.looked = Some(now);
            self.client.native_ipv6(native_ipv6(), now);
        }
        if self.grace.is_some_and(|until| now >= until) {
            (self.grace, self.engine) = (None, None);
            self.tell(&TeredoChange::Client(None), posts);
        }
        if std::mem::take(&mut self.is_untold) {
            self.tell(&TeredoChange::Local(self.bound, self.networks.clone()), posts);
            self.tell(&TeredoChange::Client(self.engine), posts);
        }
    }

    /// Does what is due. Returns the address that belongs on the device.
    pub(super) fn work(&mut self, posts: &[Post]) -> Option<Ipv6Addr> {
        let now = self.clock.now();
        while let Some(action) = self.client.step(now) {
            match action {
                Action::Send { from, to, octets } => {
                    if let Err(error) = self.sockets.send(from, to, &octets) {
                        tracing::debug!("{}: to {to}: {error}", self.config.name);
                    }
                }
                Action::Close(port) => self.sockets.close(port),
                Action::Use(state) => {
                    tracing::info!("{}: {}", self.config.name, self.client.status(now));
                    (self.grace, self.engine) = (None, Some(state.address));
                    self.tell(&TeredoChange::Client(self.engine), posts);
                    self.kept.address = self.engine;
                    self.kept.save();
                }
                Action::Stop(why) => {
                    tracing::warn!(
                        "{}: no address: {}",
                        self.config.name,
                        explained(why, self.config.client_id.is_some())
                    );
                    (self.grace, self.engine) = (None, None);
                    self.tell(&TeredoChange::Client(None), posts);
                }
                Action::LocalPeer(peer, endpoint) => {
                    self.tell(&TeredoChange::LocalPeer(peer, endpoint), posts);
                }
            }
        }
        self.engine.map(TeredoAddress::address)
    }

    /// The time until [`Self::work`] is to be called.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.client.due().map(|at| at.since(self.clock.now()))
    }

    /// Waits for a datagram at another port than the service port.
    pub(super) async fn hear(&self) -> Heard {
        self.sockets.hear().await
    }

    /// Takes such a datagram.
    pub(super) fn receive(&mut self, (port, from, payload): &Heard) {
        if let Err(why) = self.client.receive(*port, *from, payload, self.clock.now()) {
            tracing::debug!("{}: from {from}: {why}", self.config.name);
        }
    }

    /// Takes a whole IPv4 packet that a worker gave to control; whether it was for the client.
    pub(super) fn take(&mut self, packet: &[u8]) -> bool {
        let Some((from, payload)) = self.bound.and_then(|local| payload_to(local, packet)) else {
            return false;
        };
        self.receive(&(sixway_control::teredo_client::Port::Service, from, payload.to_vec()));
        true
    }

    /// Its name, and where its socket is bound.
    pub(super) fn end(&self) -> (String, Option<String>) {
        (self.config.name.clone(), self.bound.map(|bound| bound.to_string()))
    }

    /// How it is.
    pub(super) fn row(&self) -> TeredoClientRow {
        let status = self.client.status(self.clock.now());
        TeredoClientRow {
            phase: status.phase.word().into(),
            why: status.why.map(|why| explained(why, self.config.client_id.is_some())),
            address: status.in_use.map(|state| state.address.address().to_string()),
            server: status.server.map(|server| server.to_string()),
            mapped: status.mapped().map(|mapped| mapped.to_string()),
            nat: status.nat.words().into(),
            ports: status.ports.words().into(),
            interval_seconds: status.interval.as_secs(),
            answered_seconds: status.answered.map(|since| since.as_secs()),
            next_seconds: status.next.map(|until| until.as_secs()),
            key_expires: status.key_expires,
            mapping_changes: status.mapping_changes,
            refused: status.refused,
            last_refused: status.last_refused.map(|why| why.to_string()),
        }
    }

    /// Tells all engines of a change.
    fn tell(&mut self, change: &TeredoChange, posts: &[Post]) {
        for post in posts {
            // Nothing depends on the answer.
            let (answer, _) = oneshot::channel();
            self.is_untold |=
                post.send(Command::Teredo(self.index, Box::new(change.clone()), answer)).is_err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_silence_of_a_server_may_be_a_wrong_secret_if_there_is_one() {
        let silence = Why::NoAnswer(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(explained(silence, false), "no answer from server 192.0.2.1");
        assert!(explained(silence, true).contains("client_id and secret_file"));
        assert!(!explained(Why::NativeIpv6, true).contains("secret"));
    }
}
