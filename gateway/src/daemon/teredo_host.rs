//! This host's running Teredo client: its sockets, its state machine, and the updates of engines, device and routes.

use super::engines;
use super::error::RunError;
use super::teredo_kept::Kept;
use super::teredo_sockets::{Heard, TeredoSockets, payload_to};
use super::teredo_spares::TeredoSpares;
use crate::config::{Config, Ports, Surroundings, TeredoClient};
use crate::host::{Hop, hop_if_told, native_ipv6, routes_ipv6_internet};
use crate::teredo_secret::teredo_secret;
use crate::view::TeredoClientRow;
use crate::worker::{Clock, Command, Inlet, InletWatch, Post};
use nix::time::ClockId;
use sixway_control::teredo_client::{
    Action, Client, Local, NatKind, Phase, Port, Secret, ServerAddresses, Settings, Way, Why,
};
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_link::UdpTunnel;
use sixway_wire::teredo::TeredoAddress;
use sixway_wire::{Endpoint4, Prefix4};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often the client checks whether this host has IPv6 by other means, and how it reaches its servers.
const LOOK: Duration = Duration::from_secs(3);
/// How often the port of the previous process is tried: it may still have it.
const TRIES: u8 = 10;
/// How long the address of the previous process stays before the client has qualified.
const GRACE: Duration = Duration::from_secs(30);

/// The client of this host.
pub(super) struct TeredoHost<'c> {
    whole: &'c Config,
    config: &'c TeredoClient,
    /// Its number among Teredo's relays and clients.
    index: u16,
    clock: Clock,
    client: Client,
    sockets: TeredoSockets,
    spares: TeredoSpares,
    bound: Option<Endpoint4>,
    /// Whether a worker still has the service port's socket.
    watch: Option<InletWatch>,
    networks: Vec<Prefix4>,
    kept: Kept,
    tries: u8,
    is_started: bool,
    /// The address on the device, which the workers know.
    engine: Option<TeredoAddress>,
    /// The address of the previous process is on the device until then.
    grace: Option<sixway_control::Instant>,
    /// A worker could not be updated.
    is_untold: bool,
    looked: Option<sixway_control::Instant>,
    /// Packets sent to peers, and received from them, so far.
    passed: [u64; 2],
    /// Whether the configuration has routes to the IPv6 Internet, other than the client's.
    has_ipv6_route: bool,
    trouble: Option<String>,
    /// Why it does not listen for clients of the same link.
    deaf: Option<String>,
    /// Why the last datagram from the service port was not sent.
    unsent: Option<String>,
}

/// The address that a predecessor used.
pub(super) fn address_of_predecessor(config: &Config) -> Option<Ipv6Addr> {
    config.others.teredo_client.first()?;
    Kept::load(&config.gateway.name).used().map(TeredoAddress::address)
}

/// The secret of the configuration's client, if it has one.
///
/// # Errors
/// The file cannot be read, or is empty.
pub(super) fn secret(config: &Config) -> Result<Option<Secret>, RunError> {
    let Some(client) = config.others.teredo_client.first() else { return Ok(None) };
    let file = client.secret_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    teredo_secret(client).map_err(|error| RunError::Io(format!("teredo_client.secret_file = {file}"), error))
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

/// Why there is no address. A server does not answer a client that it does not know (RFC 4380 §5.3.1), which looks like a server that is
/// down.
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

/// Why a client is off: nothing would protect its address.
const NO_FILTER: &str =
    "the packet filter's table cannot be made, and unsolicited packets would reach its address";

/// The change of an address in use.
fn moved(before: TeredoAddress, now: TeredoAddress) -> String {
    let (address, mapped) = (now.address(), now.mapped());
    let why = match (before.mapped() == mapped, before.server == now.server) {
        (false, _) => format!("its NAT maps it to {mapped} and no longer to {}", before.mapped()),
        (true, false) => format!("by server {} and no longer by {}", now.server, before.server),
        (true, true) => "with other random bits".to_owned(),
    };
    format!("the address is {address} now: {why}")
}

/// The way to a server.
fn way(hop: Hop) -> Way {
    let router = match hop.gateway {
        Some(IpAddr::V4(router)) => Some(router),
        Some(IpAddr::V6(_)) | None => None,
    };
    (hop.interface, router)
}

/// How long this host slept since its start.
fn slept() -> Duration {
    let now = |clock: ClockId| clock.now().map_or(Duration::ZERO, Duration::from);
    now(ClockId::CLOCK_BOOTTIME).saturating_sub(now(ClockId::CLOCK_MONOTONIC))
}

impl<'c> TeredoHost<'c> {
    /// That of a configuration, if it has one. A new process keeps the address of the previous one until the client has qualified.
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
        let engine = kept.used().filter(|_| succeeds);
        let index = config.others.teredo_relay.len() as u16;
        Some(Self {
            whole: config,
            config: own,
            index,
            clock,
            client,
            sockets: TeredoSockets::default(),
            spares: TeredoSpares::new(index, own.prediction_ports),
            bound: None,
            watch: None,
            networks: Vec::new(),
            tries: if kept.port == 0 { TRIES } else { 0 },
            kept,
            is_started: false,
            grace: engine.map(|_| now + GRACE),
            engine,
            is_untold: false,
            looked: None,
            passed: [0; 2],
            has_ipv6_route: false,
            trouble: None,
            deaf: None,
            unsent: None,
        })
    }

    /// Follows this host's addresses and networks. To be called when they change, and each second. Returns whether the socket was opened or
    /// closed.
    pub(super) fn follow(&mut self, now: &Surroundings, posts: &[Post]) -> bool {
        let wanted = self.config.address(now);
        let before = self.bound;
        self.has_ipv6_route = routes_ipv6_internet(&self.whole.reach(now).routes);
        if self.bound.is_some() && self.watch.as_ref().is_some_and(InletWatch::is_closed) {
            tracing::warn!("{}: its socket failed; it is opened again", self.config.name);
            // Its sending half would keep the port.
            self.sockets.close_all();
            (self.bound, self.watch) = (None, None);
        }
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
        let networks_before = std::mem::replace(&mut self.networks, now.subnets());
        if self.bound != before || self.networks != networks_before {
            self.tell(&TeredoChange::Local(self.bound, self.networks.clone()), posts);
            let local = self.bound.map(|endpoint| Local { endpoint, subnets: self.networks.clone() });
            self.client.moved(local, self.clock.now());
        }
        // While the previous process still has the port, the address stays.
        let waits = self.grace.is_some() && self.bound.is_none() && wanted.is_some() && self.tries < TRIES;
        if !waits && !std::mem::replace(&mut self.is_started, true) {
            self.tell(&TeredoChange::Client(self.engine), posts);
            self.look();
            self.client.start(self.clock.now());
        }
        self.bound != before
    }

    /// The port as written, else the one that it had before, else any.
    fn open(&mut self, local: SocketAddrV4, posts: &[Post]) -> io::Result<()> {
        let is_pools =
            |(address, ports): &(Ipv4Addr, Ports)| address == local.ip() && ports.contain(self.kept.port);
        let port = match (self.config.port, self.kept.port) {
            // Packets to a port that a pool has since then would be steered to the translator.
            (0, _) if self.whole.shared_ports().iter().any(is_pools) => 0,
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
        let inlet = Inlet::new((*local.ip(), Some(local.port())), Box::new(socket));
        let watch = inlet.watch();
        post.send(Command::AddInlet(inlet)).map_err(io::Error::other)?;
        // Not before: an unread copy of a socket would keep the port.
        self.sockets.service = Some(sender);
        self.watch = Some(watch);
        self.listen();
        tracing::info!("{}: UDP {local}", self.config.name);
        self.bound = Some(Endpoint4::new(*local.ip(), local.port()));
        (self.kept.port, self.tries) = (local.port(), 0);
        self.kept.save();
        Ok(())
    }

    /// Listens for clients of the same link, if it is to and does not yet.
    fn listen(&mut self) {
        if !self.config.local_discovery || self.sockets.service.is_none() {
            return;
        }
        let trouble = self.sockets.listen().err().map(|error| error.to_string());
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.deaf) {
            tracing::warn!(
                "{}: clients of this link are not found: {what}; it is tried again",
                self.config.name
            );
        }
        self.deaf = trouble;
    }

    /// Each second. `passed`: packets sent to peers, and received from them, so far.
    pub(super) fn each_second(&mut self, passed: [u64; 2], posts: &[Post]) {
        let now = self.clock.now();
        self.sockets.each_second();
        self.listen();
        self.client.each_second(slept(), now);
        let [sent, received] = std::mem::replace(&mut self.passed, passed);
        // A relay's packets are counted with the client's.
        if self.index == 0 {
            self.client.observe(passed[0] > sent, passed[1] > received, now);
        }
        if self.looked.is_none_or(|looked| now.since(looked) >= LOOK) {
            self.look();
        }
        if self.grace.is_some_and(|until| now >= until) {
            self.give_up(posts);
        }
        if std::mem::take(&mut self.is_untold) {
            self.tell(&TeredoChange::Local(self.bound, self.networks.clone()), posts);
            self.tell(&TeredoChange::Client(self.engine), posts);
            self.tell(&TeredoChange::Prediction(self.spares.told().clone()), posts);
        }
        self.follow_spares(posts);
    }

    /// The spare ports follow the service port and the NAT.
    fn follow_spares(&mut self, posts: &[Post]) {
        let pools = self.whole.shared_ports();
        let bound = self.bound;
        let is_taken = |port: u16| {
            pools.iter().any(|(address, ports)| {
                bound.is_some_and(|bound| bound.address == *address) && ports.contain(port)
            })
        };
        if let Some(prediction) = self.spares.follow(bound, self.client.port_rule(), is_taken, posts) {
            self.tell(&TeredoChange::Prediction(prediction), posts);
        }
        self.spares.ask(posts);
    }

    /// Checks whether this host has IPv6 by other means, and how it reaches its servers.
    fn look(&mut self) {
        let now = self.clock.now();
        self.looked = Some(now);
        let own = (!self.has_ipv6_route).then_some(&*self.whole.tun.name);
        // If the kernel does not say, what was known stays.
        if let Some(exists) = native_ipv6(own) {
            self.client.native_ipv6(exists, now);
        }
        // Always the first one: another server may be reached by another router, and that is not a change of the NAT.
        let server = self.config.servers.first();
        self.routed(server.and_then(|server| hop_if_told(IpAddr::V4(server.address))), now);
    }

    /// The kernel's route to a server; `None`: the kernel could not be asked, and the previous route stays.
    fn routed(&mut self, told: Option<Option<Hop>>, now: sixway_control::Instant) {
        if let Some(hop) = told {
            self.client.routed(hop.map(way), now);
        }
    }

    /// The address is removed from the device, and the next process does not restore it.
    fn give_up(&mut self, posts: &[Post]) {
        (self.grace, self.engine) = (None, None);
        self.tell(&TeredoChange::Client(None), posts);
        if std::mem::take(&mut self.kept.in_use) {
            self.kept.save();
        }
    }

    /// Does what is due. Returns the address that belongs on the device.
    pub(super) fn work(&mut self, posts: &[Post]) -> Option<Ipv6Addr> {
        let now = self.clock.now();
        while let Some(action) = self.client.step(now) {
            match action {
                Action::Send { from, to, octets } => {
                    let failed = self.sockets.send(from, to, &octets).err().map(|error| error.to_string());
                    if let Some(what) = &failed {
                        tracing::debug!("{}: to {to}: {what}", self.config.name);
                    }
                    if from == Port::Service {
                        self.unsent = failed;
                    }
                }
                Action::Close(port) => self.sockets.close(port),
                Action::Use(state) => {
                    let name = &self.config.name;
                    match self.engine.filter(|before| *before != state.address) {
                        Some(before) => tracing::info!("{name}: {}", moved(before, state.address)),
                        None => tracing::info!("{name}: {}", self.client.status(now)),
                    }
                    (self.grace, self.engine) = (None, Some(state.address));
                    self.tell(&TeredoChange::Client(self.engine), posts);
                    (self.kept.address, self.kept.in_use) = (self.engine, true);
                    self.kept.save();
                }
                Action::Stop(why) => {
                    let why = explained(why, self.config.client_id.is_some());
                    tracing::warn!("{}: no address: {why}", self.config.name);
                    self.give_up(posts);
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
        self.sockets.note(*port);
        if let Err(why) = self.client.receive(*port, *from, payload, self.clock.now()) {
            tracing::debug!("{}: from {from}: {why}", self.config.name);
        }
    }

    /// Takes a whole IPv4 packet that a worker gave to control; returns whether it was for the client.
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

    /// Why it has no socket.
    pub(super) fn trouble(&self) -> Option<(String, String)> {
        Some((self.config.name.clone(), self.trouble.clone()?))
    }

    /// How it is. `is_open`: it has no address, since the packet filter's table cannot be made.
    pub(super) fn row(&self, is_open: bool) -> TeredoClientRow {
        let status = self.client.status(self.clock.now());
        let asks = !matches!(status.phase, Phase::Qualified | Phase::Stopped);
        let unsent = self.unsent.as_ref().filter(|_| asks);
        let why = match (is_open, unsent) {
            (true, _) => Some(NO_FILTER.to_owned()),
            (false, Some(what)) => Some(format!("the kernel does not send: {what}")),
            (false, None) => status.why.map(|why| explained(why, self.config.client_id.is_some())),
        };
        let phase = if is_open { Phase::Stopped } else { status.phase };
        TeredoClientRow {
            phase: phase.word().into(),
            is_as_wanted: status.why == Some(Why::NativeIpv6) || why.is_none(),
            why,
            address: status.in_use.filter(|_| !is_open).map(|state| state.address.address().to_string()),
            server: status.server.map(|server| server.to_string()),
            mapped: status.mapped().map(|mapped| mapped.to_string()),
            nat: status.nat.words().into(),
            ports: status.ports.words().into(),
            prediction: self.spares.words(status.nat != NatKind::Unknown),
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
    use crate::config::HostAddress;
    use crate::worker::{Mailbox, mailbox};
    use std::net::UdpSocket;

    /// A gateway with a client at 127.0.0.1, whose file ends with this.
    struct Bench {
        config: Config,
        now: Surroundings,
        posts: [Post; 1],
        mailbox: Mailbox,
    }

    impl Bench {
        fn new(name: &str, more: &str) -> Self {
            let name = format!("{name}-{}", std::process::id());
            let text = format!(
                "[gateway]\nname = \"{name}\"\n[teredo_client]\naddress = \"192.0.2.1\"\nservers = [{{ address = \"80.64.79.1\", secondary = \"80.64.79.2\" }}]\n{more}"
            );
            let own = HostAddress { interface: "lo".into(), address: Ipv4Addr::LOCALHOST.into(), length: 8 };
            let mut config = crate::sample::config(&text);
            crate::sample::localhost(&mut config.others.teredo_client[0].local);
            for pool in &mut config.pools {
                pool.addresses = vec![Prefix4::holding(Ipv4Addr::LOCALHOST, 32)];
            }
            let (post, mailbox) = mailbox().unwrap();
            Self { config, now: Surroundings::of(&[own]), posts: [post], mailbox }
        }

        fn keep(&self, port: u16, in_use: bool) {
            let mut kept = self.kept();
            kept.address = TeredoAddress::of("2001:0:5040:4f01:0:9c40:35ff:8efe".parse().unwrap());
            (kept.port, kept.in_use) = (port, in_use);
            kept.save();
        }

        fn kept(&self) -> Kept {
            Kept::load(&self.config.gateway.name)
        }

        /// It has no native IPv6, whatever this host has.
        fn start(&self, succeeds: bool) -> TeredoHost<'_> {
            let mut host = TeredoHost::new(&self.config, None, Clock::start(), succeeds).unwrap();
            host.follow(&self.now, &self.posts);
            host.client.native_ipv6(false, host.clock.now());
            host
        }

        fn inlets(&self) -> Vec<Inlet> {
            let waiting = std::iter::from_fn(|| self.mailbox.waiting());
            waiting
                .filter_map(|it| if let Command::AddInlet(inlet) = it { Some(inlet) } else { None })
                .collect()
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            self.kept().remove();
        }
    }

    #[tokio::test]
    async fn a_client_whose_filter_cannot_be_made_is_shown_as_off_with_the_reason() {
        let bench = Bench::new("unfiltered", "");
        bench.keep(0, true);
        let row = bench.start(true).row(true);
        assert_eq!((&*row.phase, row.why.as_deref(), row.address), ("stopped", Some(NO_FILTER), None));
        assert!(!row.is_as_wanted);
    }

    #[tokio::test]
    async fn that_the_kernel_does_not_send_is_the_reason_and_not_a_silent_server() {
        let bench = Bench::new("unsent", "");
        let mut host = bench.start(false);
        // From 127.0.0.1, nothing can be sent to the Internet.
        host.work(&bench.posts);
        let why = host.row(false).why.unwrap();
        assert!(why.starts_with("the kernel does not send: send to 80.64.79.1:3544"), "{why}");
    }

    #[tokio::test]
    async fn a_socket_that_failed_is_opened_again_at_the_same_port() {
        let bench = Bench::new("failed", "");
        let mut host = bench.start(false);
        let first = bench.inlets();
        assert_eq!(first.len(), 1);
        let at = first[0].at;
        assert!(!host.follow(&bench.now, &bench.posts) && bench.inlets().is_empty());
        drop(first);
        assert!(!host.follow(&bench.now, &bench.posts), "it is where it was");
        let second = bench.inlets();
        assert_eq!((second.len(), second[0].at), (1, at));
    }

    #[tokio::test]
    async fn an_address_that_was_given_up_is_not_brought_back_by_a_successor() {
        let bench = Bench::new("given-up", "");
        bench.keep(0, true);
        let mut host = bench.start(true);
        assert!(host.engine.is_some() && address_of_predecessor(&bench.config).is_some());
        host.give_up(&bench.posts);
        assert!(bench.kept().address.is_some(), "its bits are used again");
        assert_eq!((bench.start(true).engine, address_of_predecessor(&bench.config)), (None, None));
    }

    #[tokio::test]
    async fn a_kernel_that_cannot_be_asked_is_no_other_way_to_the_server() {
        let bench = Bench::new("untold", "");
        let mut host = bench.start(false);
        while host.client.step(host.clock.now()).is_some() {}
        let hop = |interface: &str| Some(Some(Hop { interface: interface.into(), gateway: None }));
        let now = host.clock.now();
        host.routed(hop("eth0"), now);
        while host.client.step(now).is_some() {}
        for told in [None, hop("eth0")] {
            host.routed(told, now);
            assert_eq!(host.client.step(now), None, "it does not qualify again");
        }
        host.routed(hop("wlan0"), now);
        assert!(host.client.step(now).is_some());
    }

    #[tokio::test]
    async fn while_the_previous_process_has_the_port_the_address_stays() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let bench = Bench::new("succeeds", "");
        bench.keep(other.local_addr().unwrap().port(), true);
        let mut host = bench.start(true);
        assert!(host.trouble.as_ref().unwrap().contains("in use"));
        assert!(host.work(&bench.posts).is_some() && host.bound.is_none());
        drop(other);
        assert!(host.follow(&bench.now, &bench.posts));
        assert!(host.work(&bench.posts).is_some() && host.is_started);
    }

    /// Steering would take its answers away.
    #[tokio::test]
    async fn a_kept_port_that_a_pool_has_since_then_is_not_opened() {
        let pool = "[[pool]]\nname = \"own\"\naddresses = \"192.0.2.1\"\nshared = true\nports = \"20000-20099\"\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"own\"\n";
        let bench = Bench::new("pooled", pool);
        bench.keep(20_007, false);
        let host = bench.start(false);
        assert!(host.bound.is_some_and(|bound| !(20_000..20_100).contains(&bound.port)), "{:?}", host.bound);
    }

    #[test]
    fn the_silence_of_a_server_may_be_a_wrong_secret_if_there_is_one() {
        let silence = Why::NoAnswer(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(explained(silence, false), "no answer from server 192.0.2.1");
        assert!(explained(silence, true).contains("client_id and secret_file"));
        assert!(!explained(Why::NativeIpv6, true).contains("secret"));
    }

    #[test]
    fn a_mapping_that_changed_is_told_with_both() {
        let of = |address: &str| TeredoAddress::of(address.parse().unwrap()).unwrap();
        // Mapped to 203.0.113.1, ports 40000 and 40001, and another server.
        let address = |server: &str, port: u16| {
            let flipped = !port;
            of(&format!("2001:0:{server}:0:{flipped:x}:34ff:8efe"))
        };
        let before = address("5040:4f01", 40_000);
        let said = moved(before, address("5040:4f01", 40_001));
        assert!(said.contains("maps it to 203.0.113.1:40001 and no longer to 203.0.113.1:40000"), "{said}");
        assert!(said.starts_with("the address is 2001:0:5040:4f01:"), "{said}");
        let said = moved(before, address("5040:4f02", 40_000));
        assert!(said.ends_with("by server 80.64.79.2 and no longer by 80.64.79.1"), "{said}");
    }
}
