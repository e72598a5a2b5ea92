//! The PCP server of a gateway: a thread with its sockets, which requests bindings from the workers.

use super::error::RunError;
use super::pcp_faults::{Fault, Faults};
use super::pcp_kept::{KeptFile, seconds};
use super::pcp_leases::InsideLeases;
use super::pcp_nat::{Workers, WorkersNat};
use super::pcp_sockets::Listener;
use super::pcp_view::PcpView;
use super::threads::confine;
use crate::config::{Config, Pcp as Section, Pool, Route};
use crate::show::plural;
use crate::worker::{Clock, Post};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sixway_control::pcp::{Arrival, Lifetimes, Restored, SERVER_PORT, Server, Settings};
use sixway_dataplane::Instant;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::rates::Rate;
use sixway_link::udp::Arrivals;
use sixway_link::{Duty, Wake};
use sixway_wire::Prefix4;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval between checks of the interfaces, and between writes of the file after changes.
const LOOK: Duration = Duration::from_secs(1);
/// Batches of one socket that are handled before the next one's.
const BATCHES: usize = 4;

/// The PCP server before the workers run.
#[derive(Debug)]
pub(super) struct ReadyServer {
    server: Server,
    nat: WorkersNat<'static>,
    file: KeptFile,
    leases: Option<InsideLeases>,
    seed: u64,
}

impl ReadyServer {
    /// Restores the mappings of the last server. The workers do not run yet, so their ports are free. While the pools have no address, the mappings
    /// stay in the file: the gateway is reloaded when there is an address.
    pub(super) fn restore(
        (config, section): (&Config, &Section),
        engines: &mut [Engine],
        now: Instant,
        seed: u64,
    ) -> Self {
        Self::restore_from(KeptFile::of(&config.gateway.name), (config, section), engines, now, seed)
    }

    fn restore_from(
        file: KeptFile,
        (config, section): (&Config, &Section),
        engines: &mut [Engine],
        now: Instant,
        seed: u64,
    ) -> Self {
        let kept = file.read();
        let epoch = kept.as_ref().map_or(0, |kept| kept.epoch);
        let mut server = Server::new(settings(config, section), epoch, seed, now);
        let mut nat = WorkersNat::new(config, Workers::Waiting(engines, now));
        if let Some(kept) = kept.filter(|_| !external(config).is_empty()) {
            report(server.restore(kept, &mut nat, now));
        }
        let leases = section.lease_file.as_ref().map(|path| InsideLeases::new(path.clone(), file.leases()));
        Self { server, nat: nat.running(Vec::new()), file, leases, seed }
    }
}

/// The PCP server while the gateway runs. Dropping it ends the thread, and leaves the bindings to the workers.
#[derive(Debug)]
pub(super) struct PcpServer {
    view: Arc<PcpView>,
    end: Arc<AtomicBool>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl PcpServer {
    /// Starts it.
    ///
    /// # Errors
    /// Another program has the port, or the kernel has no thread left.
    pub(super) fn start(
        (config, section): (&Config, &Section),
        ReadyServer { server, nat, file, leases, seed }: ReadyServer,
        posts: Vec<Post>,
        clock: Clock,
    ) -> Result<Self, RunError> {
        let failed = |error: io::Error| RunError::Pcp(format!("pcp: {error}"));
        let mut listeners = listeners(config, section);
        for listener in &mut listeners {
            if let Err(error) = listener.look() {
                let mend = format!("stop the program that has this port: ss -lunp sport = :{SERVER_PORT}");
                let at = &listener.interface;
                return Err(RunError::Pcp(format!("pcp: UDP port {SERVER_PORT} on {at}: {error}; {mend}")));
            }
        }
        let most = max_mappings(config, section);
        let nat = nat.running(posts);
        let (end, wake) = (Arc::new(AtomicBool::new(false)), Wake::new().map_err(failed)?);
        let view = Arc::new(PcpView::default());
        let (mut task, faults) = (
            Task {
                server,
                nat,
                listeners,
                file,
                leases,
                kept: None,
                has_address: !external(config).is_empty(),
                clock,
                most,
                seed,
                faults: 0,
                view: Arc::clone(&view),
                end: Arc::clone(&end),
                wake: wake.clone(),
            },
            Faults::default(),
        );
        let run = move || {
            confine(Duty::Queries);
            task.keep_running(faults, Task::run);
        };
        let thread = Builder::new().name("pcp".into()).spawn(run).map_err(failed)?;
        Ok(Self { view, end, wake, thread: Some(thread) })
    }

    /// The state for the admin API.
    pub(super) fn view(&self) -> Arc<PcpView> {
        Arc::clone(&self.view)
    }
}

impl Drop for PcpServer {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            // Panics were reported already.
            let _ = thread.join();
        }
    }
}

fn report(Restored { same, moved, lost }: Restored) {
    let all = plural((same + moved + lost) as u64, "mapping");
    match (moved, lost) {
        (0, 0) if same == 0 => {}
        (0, 0) => tracing::info!("pcp: kept {all}"),
        (_, _) => {
            tracing::warn!(
                "pcp: of {all}, {moved} have other external ports and {lost} are lost; clients are notified"
            );
        }
    }
}

fn listeners(config: &Config, section: &Section) -> Vec<Listener> {
    let families = [(true, config.nat44.is_some()), (false, !config.nat64.is_empty())];
    let families = families.into_iter().filter(|(_, is_served)| *is_served).map(|(is_ipv4, _)| is_ipv4);
    let both =
        families.flat_map(|is_ipv4| section.interfaces.iter().map(move |name| Listener::new(name, is_ipv4)));
    both.collect()
}

fn settings(config: &Config, section: &Section) -> Settings {
    let network = |route: &Route| match route {
        Route::V4(prefix) => (IpAddr::V4(prefix.address()), prefix.length()),
        Route::V6(prefix) => (IpAddr::V6(prefix.address()), prefix.length()),
    };
    let pool = config.nat44.as_ref().and_then(|nat44| config.pool(&nat44.pool));
    let only = pool.and_then(|pool| match &pool.addresses[..] {
        [prefix] if prefix.length() == 32 => Some(prefix.address()),
        _ => None,
    });
    let rate = section.requests_per_second;
    Settings {
        map: section.map,
        peer: section.peer,
        nat_pmp: section.nat_pmp,
        third_party: section.third_party.iter().map(network).collect(),
        lifetimes: Lifetimes { least: section.min_lifetime, most: section.max_lifetime },
        max_mappings: max_mappings(config, section),
        mappings_per_subscriber: section.mappings_per_subscriber,
        max_port_set: section.max_port_set,
        subscriber_bits: section.subscriber_bits,
        rate: Rate { rate, burst: rate.saturating_mul(3) },
        prefixes64: config.nat64.iter().map(|nat64| nat64.prefix).collect(),
        external: external(config),
        external_address: only,
        ..Settings::default()
    }
}

/// The addresses of the pools that mappings can use.
fn external(config: &Config) -> Vec<Prefix4> {
    let names = config.nat44.iter().map(|nat44| &nat44.pool).chain(config.nat64.iter().map(|it| &it.pool));
    let pools = names.filter_map(|name| config.pool(name));
    let mut all: Vec<_> = pools.flat_map(|pool| pool.addresses.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Mappings keep their ports without traffic: half of the smallest pool is reserved for other bindings.
fn max_mappings(config: &Config, section: &Section) -> u32 {
    let nat44 = config.nat44.iter().map(|nat44| &nat44.pool);
    let names = nat44.chain(config.nat64.iter().map(|nat64| &nat64.pool));
    let smallest = names.filter_map(|name| config.pool(name)).map(ports_of).min();
    section.max_mappings.min(smallest.map_or(u32::MAX, |ports| ports / 2))
}

/// Ports of a pool, of one protocol. One that follows an interface has one address.
fn ports_of(pool: &Pool) -> u32 {
    let addresses: u64 = pool.addresses.iter().map(|prefix| 1_u64 << (32 - prefix.length().min(32))).sum();
    u32::try_from(addresses.max(1).saturating_mul(pool.ports.count().into())).unwrap_or(u32::MAX)
}

/// The state of the thread.
struct Task {
    server: Server,
    nat: WorkersNat<'static>,
    listeners: Vec<Listener>,
    file: KeptFile,
    leases: Option<InsideLeases>,
    /// Changes until it was written.
    kept: Option<u64>,
    /// Whether the pools have an address; without one there are no mappings.
    has_address: bool,
    clock: Clock,
    most: u32,
    seed: u64,
    /// How often it restarted.
    faults: u64,
    view: Arc<PcpView>,
    end: Arc<AtomicBool>,
    wake: Wake,
}

impl Task {
    /// Runs until the end, also after a panic, which does not affect the workers.
    fn keep_running(&mut self, mut faults: Faults, mut run: impl FnMut(&mut Self) -> io::Result<()>) {
        let mut is_damaged = false;
        while !self.end.load(Ordering::Acquire) {
            let outcome = faults.watch(|| {
                if is_damaged {
                    self.begin_again();
                    is_damaged = false;
                }
                run(self)
            });
            let Err((Fault { why, panicked }, pause)) = outcome else { return };
            is_damaged |= panicked;
            self.faults = faults.count();
            let why = format!("the server restarts in {} s: {why}", pause.as_secs());
            tracing::error!("pcp: {why}");
            self.view.note_fault(self.faults, why);
            self.pause(pause);
        }
    }

    /// Restores the server's mappings, and releases bindings that it lost track of when it panicked.
    fn begin_again(&mut self) {
        let now = self.clock.now();
        self.kept = None;
        report(self.server.begin_again(self.seed, &mut self.nat, now));
        let server = &self.server;
        self.nat.close_others(|transport, internal| server.mapping(transport, internal).is_some());
    }

    /// Waits for this long, or for the end.
    fn pause(&self, pause: Duration) {
        let until = std::time::Instant::now() + pause;
        while !self.end.load(Ordering::Acquire) {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                break;
            }
            let mut waits = [PollFd::new(self.wake.fd(), PollFlags::POLLIN)];
            let milliseconds = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
            if poll(&mut waits, PollTimeout::from(milliseconds)).is_err() {
                std::thread::sleep(left.min(LOOK));
            }
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut arrivals = Arrivals::new();
        let mut look = self.clock.now();
        while !self.end.load(Ordering::Acquire) {
            let now = self.clock.now();
            if now >= look {
                self.look(now);
                look = now + LOOK;
            }
            self.server.handle_timeout(&mut self.nat, now);
            self.announce(now);
            let due = self.server.poll_timeout().map_or(look, |due| due.min(look));
            self.wait(due.since(self.clock.now()))?;
            for at in 0..self.listeners.len() {
                self.serve(at, &mut arrivals);
            }
        }
        self.keep();
        Ok(())
    }

    /// Writes the mappings, if there are others than at the last time.
    fn keep(&mut self) {
        let changes = self.server.changes();
        if !self.has_address || self.kept == Some(changes) {
            return;
        }
        self.kept = Some(changes);
        let now = self.clock.now();
        self.file.write(&self.server.kept(now));
    }

    fn announce(&mut self, now: Instant) {
        while let Some(transmit) = self.server.poll_transmit(now) {
            for listener in &mut self.listeners {
                listener.announce(&transmit.octets, &transmit.to);
            }
        }
        self.listeners.iter_mut().for_each(Listener::send);
    }

    /// Waits for datagrams, for this long at most.
    fn wait(&self, longest: Duration) -> io::Result<()> {
        let sockets = self.listeners.iter().filter_map(|it| it.socket.as_ref());
        let mut waits: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket.poll_fd(), PollFlags::POLLIN)).collect();
        waits.push(PollFd::new(self.wake.fd(), PollFlags::POLLIN));
        let milliseconds = u16::try_from(longest.as_millis() + 1).unwrap_or(u16::MAX);
        match poll(&mut waits, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles the datagrams of a socket.
    fn serve(&mut self, at: usize, arrivals: &mut Arrivals) {
        for _batch in 0..BATCHES {
            let Some(listener) = self.listeners.get_mut(at) else { return };
            let Some(socket) = &mut listener.socket else { return };
            match socket.receive(arrivals) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!("pcp: {}: {error}; the socket is reopened", listener.interface);
                    listener.close();
                    return;
                }
            }
            for (path, payload) in arrivals.iter() {
                let asked_at = listener.asked_at(*path);
                let arrival = Arrival { from: path.peer, at: Some(&asked_at), payload };
                let answers = self.server.handle(&arrival, &mut self.nat, self.clock.now());
                for octets in answers.unwrap_or_default() {
                    listener.answer(&octets, *path);
                }
            }
            listener.send();
        }
    }

    /// Ends the mappings of hosts that have lost their addresses.
    fn follow_leases(&mut self) {
        let ended = self.leases.as_mut().map(|leases| leases.look(seconds()));
        for host in ended.unwrap_or_default() {
            tracing::debug!("pcp: {host} has lost its lease, and with it its mappings and sessions");
            self.server.forget_host(host.into(), &mut self.nat);
        }
    }

    /// Checks the interfaces and leases, writes the file, and publishes the counters.
    fn look(&mut self, now: Instant) {
        for listener in &mut self.listeners {
            let before = listener.trouble.clone();
            let _ = listener.look();
            if let (Some(what), true) = (&listener.trouble, listener.trouble != before) {
                tracing::warn!("pcp: {}: {what}; it is retried each second", listener.interface);
            }
        }
        self.follow_leases();
        self.keep();
        let (open, closed): (Vec<_>, Vec<_>) = self.listeners.iter().partition(|it| it.socket.is_some());
        let family = |listener: &Listener| if listener.is_ipv4 { "IPv4" } else { "IPv6" };
        let open = open.into_iter().map(|it| format!("{} {}", it.interface, family(it)));
        let closed = closed.into_iter().map(|it| {
            format!("{} {}: {}", it.interface, family(it), it.trouble.as_deref().unwrap_or("closed"))
        });
        self.view.note(&self.server, self.most, (open.collect(), closed.collect()), self.faults, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::engines;
    use sixway_control::pcp::{ControlledNat as _, ExistingKind, Internal, Kept, Transport, Wanted};
    use sixway_dataplane::nat::Selection;
    use std::path::Path;

    const TEXT: &str = "[gateway]\nipv4_address = \"192.0.2.254\"\nworkers = 2\n[[pool]]\nname = \"public\"\naddresses = [\"192.0.2.1\"]\n[nat44]\ninside = [\"192.168.0.0/16\"]\npool = \"public\"\n[pcp]\ninterfaces = [\"eth1\"]\n";

    /// A MAP request of five minutes for TCP port 80 (RFC 6887 §7.1, §11.1).
    fn map(client: std::net::Ipv4Addr) -> Vec<u8> {
        let mut request = vec![2, 1, 0, 0, 0, 0, 1, 44];
        request.extend(client.to_ipv6_mapped().octets());
        request.extend([7; 12]);
        request.extend([6, 0, 0, 0, 0, 80, 0, 0]);
        request.extend(std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets());
        request
    }

    #[test]
    fn mappings_are_made_again_before_the_workers_run() {
        let directory = std::env::temp_dir().join(format!("sixway-pcp-ready-{}", std::process::id()));
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", TEXT, &Default::default(), &mut no_file).unwrap().0;
        let both = (&config, config.pcp.as_ref().unwrap());
        let now = Instant::from_secs(10);
        let fresh = || engines::engines(&config, [1, 2], [3, 4], &Default::default(), None).unwrap();
        let file = || KeptFile::new(&directory, "sixway");
        let explicit = |engines: &mut [Engine]| {
            let mut rows = Vec::new();
            for engine in engines {
                let (translator, _) = engine.stateful_at(0).unwrap();
                translator.bindings(0, u32::MAX, &Selection::default(), &mut rows);
            }
            let explicit = rows.iter().filter(|row| row.is_explicit);
            explicit.map(|row| (row.inside, row.outside)).collect::<Vec<_>>()
        };

        let mut before = fresh();
        let mut first = ReadyServer::restore_from(file(), both, &mut before, now, 1);
        for host in 1..=20 {
            let client = std::net::Ipv4Addr::new(192, 168, 1, host);
            let (from, payload) = ((client, 40_000).into(), map(client));
            let mut nat = WorkersNat::new(&config, Workers::Waiting(&mut before, now));
            first.server.handle(&Arrival { from, at: None, payload: &payload }, &mut nat, now).unwrap();
        }
        first.file.write(&first.server.kept(now));

        let mut after = fresh();
        ReadyServer::restore_from(file(), both, &mut after, now, 1);
        let (mut before, mut after) = (explicit(&mut before), explicit(&mut after));
        before.sort();
        after.sort();
        assert_eq!((before.len(), &before), (20, &after));
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// An interface that the pool follows gets its address after the gateway has started, as with PPP.
    #[test]
    fn mappings_wait_in_the_file_while_the_pool_has_no_address() {
        let directory = std::env::temp_dir().join(format!("sixway-pcp-waits-{}", std::process::id()));
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let mut parse = |text: &str| Config::parse("f", text, &Default::default(), &mut no_file).unwrap().0;
        let with = parse(TEXT);
        let without = parse(&TEXT.replace(
            "addresses = [\"192.0.2.1\"]",
            "interface = \"ppp0\"\nshared = true\nports = \"1024-32767\"",
        ));
        let now = Instant::from_secs(10);
        let file = || KeptFile::new(&directory, "sixway");
        let ready = |config: &Config| {
            let mut engines = engines::engines(config, [1, 2], [3, 4], &Default::default(), None).unwrap();
            let section = config.pcp.as_ref().unwrap();
            let mut ready = ReadyServer::restore_from(file(), (config, section), &mut engines, now, 1);
            let client = std::net::Ipv4Addr::new(192, 168, 1, 2);
            let (from, payload) = ((client, 40_000).into(), map(client));
            let restored = ready.server.sizes().0;
            let mut nat = WorkersNat::new(config, Workers::Waiting(&mut engines, now));
            ready.server.handle(&Arrival { from, at: None, payload: &payload }, &mut nat, now).unwrap();
            (ready, restored)
        };
        let (mut first, _) = ready(&with);
        first.file.write(&Kept { epoch: 1_000, ..first.server.kept(now) });
        let (waiting, restored) = ready(&without);
        assert!(waiting.server.epoch(now) >= 1_000, "nothing is lost");
        assert_eq!((restored, waiting.server.sizes().0, external(&without).len()), (0, 0, 0));
        let mut task = Task {
            server: waiting.server,
            nat: waiting.nat,
            listeners: Vec::new(),
            file: waiting.file,
            leases: None,
            kept: None,
            has_address: !external(&without).is_empty(),
            clock: Clock::start(),
            most: 100,
            seed: 1,
            faults: 0,
            view: Arc::default(),
            end: Arc::default(),
            wake: Wake::new().unwrap(),
        };
        task.keep();
        assert_eq!(ready(&with).1, 1, "the file was not written without an address");
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// A panic ends neither the gateway nor a mapping, and leaves no binding that is unknown to the server.
    #[test]
    fn after_a_panic_the_server_begins_again_with_its_mappings() {
        let directory = std::env::temp_dir().join(format!("sixway-pcp-panic-{}", std::process::id()));
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", TEXT, &Default::default(), &mut no_file).unwrap().0;
        let section = config.pcp.as_ref().unwrap();
        let clock = Clock::start();
        let engines = engines::engines(&config, [1, 2], [3, 4], &Default::default(), None).unwrap();
        let workers = Workers::Waiting(Box::leak(engines.into_boxed_slice()), clock.now());
        let mut task = Task {
            server: Server::new(settings(&config, section), 1_000, 1, clock.now()),
            nat: WorkersNat::new(&config, workers),
            listeners: Vec::new(),
            file: KeptFile::new(&directory, "sixway"),
            leases: None,
            kept: None,
            has_address: true,
            clock,
            most: 100,
            seed: 1,
            faults: 0,
            view: Arc::default(),
            end: Arc::default(),
            wake: Wake::new().unwrap(),
        };
        let client = std::net::Ipv4Addr::new(192, 168, 1, 2);
        let (from, payload) = ((client, 40_000).into(), map(client));
        let arrival = Arrival { from, at: None, payload: &payload };
        task.server.handle(&arrival, &mut task.nat, clock.now()).unwrap();
        task.look(clock.now());
        let at = |port| Internal { address: client.into(), port };
        let mapped = task.nat.find(Transport::Tcp, at(80)).unwrap();
        assert!(task.server.epoch(clock.now()) >= 1_000);

        let mut runs = 0;
        task.keep_running(Faults::default(), |task| {
            runs += 1;
            if runs == 1 {
                // The NAT has made it, and the server has not noted it yet.
                let (transport, internal) = (Transport::Tcp, at(81));
                let (address, port, exactly, filters) = (None, 0, false, &[][..]);
                let companion = false;
                let wanted = Wanted { transport, internal, address, port, exactly, companion, filters };
                task.nat.open(&wanted).unwrap();
                panic!("of a test");
            }
            Ok(())
        });
        assert_eq!((runs, task.server.mappings().count()), (2, 1));
        let after = task.nat.find(Transport::Tcp, at(80)).unwrap();
        assert_eq!((after.external, after.kind), (mapped.external, ExistingKind::Explicit));
        assert_eq!(task.nat.find(Transport::Tcp, at(81)), None);
        assert!(task.server.epoch(clock.now()) < 1_000, "clients renew what may be missing");
        let row = task.view.row();
        assert!(row.waits.len() == 1 && row.waits[0].contains("panicked"), "{:?}", row.waits);
        assert!(row.counters.iter().any(|counter| counter.name == "faults" && counter.value == 1));
        // It is written again, with the Epoch Time.
        task.keep();
        assert!(task.file.read().unwrap().epoch < 1_000);
        // Also at the end, with what is new since the last look.
        let other = std::net::Ipv4Addr::new(192, 168, 1, 3);
        let (from, payload) = ((other, 40_000).into(), map(other));
        let arrival = Arrival { from, at: None, payload: &payload };
        task.server.handle(&arrival, &mut task.nat, clock.now()).unwrap();
        task.end.store(true, Ordering::Release);
        task.run().unwrap();
        assert_eq!(task.file.read().unwrap().mappings.len(), 2);
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// RFC 6887 §8.5: by these, the next server knows whether they are others.
    #[test]
    fn the_server_knows_the_addresses_of_the_pools() {
        let mut none = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", TEXT, &Default::default(), &mut none).unwrap().0;
        let of = settings(&config, config.pcp.as_ref().unwrap());
        assert_eq!(of.external, ["192.0.2.1/32".parse().unwrap()]);
        assert_eq!(of.external_address, Some("192.0.2.1".parse().unwrap()));
    }

    fn most(pool: &str, written: &str) -> u32 {
        let text = format!(
            "[gateway]\nipv4_address = \"198.51.100.254\"\n[[pool]]\nname = \"p\"\n{pool}\n[nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"p\"\n[pcp]\ninterfaces = [\"eth1\"]\n{written}"
        );
        let mut none = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", &text, &Default::default(), &mut none).unwrap().0;
        settings(&config, config.pcp.as_ref().unwrap()).max_mappings
    }

    /// A host with the maximum of mappings leaves ports for other hosts.
    #[test]
    fn half_of_the_pools_ports_are_left_by_mappings() {
        let one = "addresses = [\"192.0.2.1/32\"]\nports = \"20000-29999\"";
        assert_eq!(most(one, ""), 5_000);
        assert_eq!(most(one, "max_mappings = 100"), 100);
        let many = "addresses = [\"192.0.2.0/24\"]\nports = \"1024-65535\"";
        assert_eq!(most(many, "max_mappings = 70000"), 70_000);
    }
}
