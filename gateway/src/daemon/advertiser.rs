//! Router advertisements on the links of this host (RFC 4861 §6.2): a task for each.

use crate::view::{AdvertisedRow, RouterAdvertisementRow};
use crate::worker::Clock;
use sixway_control::Instant;
use sixway_control::neighbour_discovery::Received;
use sixway_control::router_advert::{Heard, Link, RouterAdvert, Settings, StalePrefix};
use sixway_link::{NeighbourDiscovery, interface};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::readable::Readable;

/// How often the interface is checked, and tried again if it does not exist.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum time for final advertisements: MIN_DELAY_BETWEEN_RAS (RFC 4861 §10) and a margin.
const FAREWELL: Duration = Duration::from_millis(3_500);
/// The longest message that is read; a jumbo frame's.
const ROOM: usize = 9_216;
/// Messages read between two looks at the time.
const AT_ONCE: usize = 64;

/// A command to the task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    /// Advertise these settings.
    Say(Box<Settings>),
    /// It is to end.
    End,
}

/// The advertisements on one interface.
pub(super) struct Advertiser {
    wish: watch::Sender<Wish>,
    state: Arc<Mutex<AdvertiserState>>,
    task: JoinHandle<()>,
}

/// The state of a task for others.
#[derive(Default)]
struct AdvertiserState {
    row: RouterAdvertisementRow,
    /// The prefixes that hosts may still use.
    believed: Vec<StalePrefix>,
}

impl Advertiser {
    /// Starts advertising, and deprecates prefixes of an earlier run that are not configured now.
    pub(super) fn start(
        interface: &str,
        settings: Settings,
        promised: Vec<StalePrefix>,
        seed: u64,
        clock: Clock,
    ) -> Self {
        let (wish, wishes) = watch::channel(Wish::Say(Box::new(settings)));
        let row = row(interface, None, clock.now());
        let state = Arc::new(Mutex::new(AdvertiserState { row, believed: promised.clone() }));
        let task = Task {
            interface: interface.to_owned(),
            seed,
            clock,
            wishes,
            state: Arc::clone(&state),
            told: None,
            promised,
        };
        Self { wish, state, task: tokio::spawn(task.run()) }
    }

    /// Advertises other settings.
    pub(super) fn say(&self, settings: Settings) {
        let wish = Wish::Say(Box::new(settings));
        self.wish.send_if_modified(|before| {
            let changed = *before != wish;
            *before = wish;
            changed
        });
    }

    /// How it goes.
    pub(super) fn row(&self) -> RouterAdvertisementRow {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).row.clone()
    }

    /// The prefixes that hosts may still use.
    pub(super) fn believed(&self) -> Vec<StalePrefix> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).believed.clone()
    }

    /// Starts sending final advertisements.
    pub(super) fn end(&self) {
        self.wish.send_replace(Wish::End);
    }

    /// Ends without final advertisements: another process continues.
    pub(super) fn leave(self) {
        self.task.abort();
    }

    /// Waits until they were sent, with a timeout.
    pub(super) async fn ended(self) {
        let handle = self.task.abort_handle();
        if timeout(FAREWELL, self.task).await.is_err() {
            handle.abort();
        }
    }
}

struct Task {
    interface: String,
    seed: u64,
    clock: Clock,
    wishes: watch::Receiver<Wish>,
    state: Arc<Mutex<AdvertiserState>>,
    /// The prefixes advertised by an earlier run.
    promised: Vec<StalePrefix>,
    /// The last problem logged, so that it is logged once.
    told: Option<String>,
}

impl Task {
    async fn run(mut self) {
        // Advertise again when the interface returns.
        let mut router: Option<RouterAdvert> = None;
        loop {
            match self.open(&mut router) {
                Ok(socket) => {
                    let Some(router) = &mut router else { return };
                    match self.advertise(router, socket).await {
                        Ok(()) => return,
                        Err(error) => self.trouble(&error.to_string()),
                    }
                }
                Err(error) => self.trouble(&error),
            }
            self.show(router.as_ref(), false);
            tokio::select! {
                () = sleep(LOOK) => {}
                changed = self.wishes.changed() => {
                    if changed.is_err() || *self.wishes.borrow() == Wish::End {
                        return;
                    }
                }
            }
        }
    }

    fn open(&mut self, router: &mut Option<RouterAdvert>) -> Result<Readable<NeighbourDiscovery>, String> {
        let link = self.link().map_err(|error| error.to_string())?;
        let socket = NeighbourDiscovery::open(&self.interface).map_err(|error| error.to_string())?;
        let settings = self.settings();
        let now = self.clock.now();
        let outcome = match router {
            Some(router) => router.set_link(now, link).and_then(|()| router.set_settings(now, settings)),
            None => RouterAdvert::new(link, settings, self.seed, now).map(|mut new| {
                new.add_stale_prefixes(now, self.promised.drain(..));
                *router = Some(new);
            }),
        };
        outcome.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        Readable::new(socket).map_err(|error| error.to_string())
    }

    /// The settings to advertise. A host that does not forward is not a default router (RFC 4861 §6.2.5).
    fn settings(&self) -> Settings {
        let wished = match &*self.wishes.borrow() {
            Wish::Say(settings) => (**settings).clone(),
            Wish::End => Settings::default(),
        };
        match forwards() {
            true => wished,
            false => Settings { router_lifetime: Some(0), ..wished },
        }
    }

    fn link(&self) -> io::Result<Link> {
        Ok(Link::Multicast {
            address: interface::link_local(&self.interface)?,
            link_layer: interface::ethernet_address(&self.interface)?,
            mtu: interface::mtu(&self.interface)?.try_into().unwrap_or(u16::MAX),
        })
    }

    /// Advertises until the end. An error means that the interface was removed or is down.
    async fn advertise(
        &mut self,
        router: &mut RouterAdvert,
        mut socket: Readable<NeighbourDiscovery>,
    ) -> io::Result<()> {
        if self.told.take().is_some() {
            tracing::info!("{}: router advertisements resumed", self.interface);
        }
        let mut look = tokio::time::interval(LOOK);
        loop {
            self.transmit(router, &mut socket)?;
            self.show(Some(router), true);
            if router.is_over() {
                return Ok(());
            }
            let wait = router.poll_timeout().map(|at| at.since(self.clock.now()));
            tokio::select! {
                () = sleep(wait.unwrap_or(LOOK)) => {}
                ready = socket.ready() => {
                    let mut ready = ready?;
                    if self.receive(router, &ready.get_inner().0)? {
                        ready.clear_ready();
                    }
                }
                changed = self.wishes.changed() => self.obey(router, changed.is_err()),
                _ = look.tick() => {
                    let (now, link, settings) = (self.clock.now(), self.link()?, self.settings());
                    if let Err(faults) = router.set_link(now, link).and_then(|()| router.set_settings(now, settings)) {
                        self.trouble(&faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
                    }
                }
            }
        }
    }

    fn obey(&mut self, router: &mut RouterAdvert, orphaned: bool) {
        if orphaned || *self.wishes.borrow() == Wish::End {
            return router.shut_down();
        }
        if let Err(faults) = router.set_settings(self.clock.now(), self.settings()) {
            self.trouble(&faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        }
    }

    fn transmit(
        &mut self,
        router: &mut RouterAdvert,
        socket: &mut Readable<NeighbourDiscovery>,
    ) -> io::Result<()> {
        while let Some(sent) = router.poll_transmit(self.clock.now()) {
            if let Err(error) = socket.get_mut().send(&sent.message, sent.destination) {
                match error.kind() {
                    // The host left, or a queue is full: it will solicit again.
                    io::ErrorKind::WouldBlock | io::ErrorKind::HostUnreachable => {
                        tracing::debug!("{}: {error}", self.interface);
                    }
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Reads the pending messages. Returns whether those were all.
    fn receive(&mut self, router: &mut RouterAdvert, socket: &NeighbourDiscovery) -> io::Result<bool> {
        let mut buffer = [0; ROOM];
        for _ in 0..AT_ONCE {
            let Some(message) = socket.receive(&mut buffer)? else { return Ok(true) };
            let Some(octets) = buffer.get(..message.length) else { continue };
            let received = Received {
                source: message.source,
                destination: message.destination,
                hop_limit: message.hop_limit,
                outer_source: None,
                message: octets,
            };
            match router.handle_message(self.clock.now(), &received) {
                Ok(Heard::Router(inconsistencies)) => {
                    inconsistencies.iter().for_each(|found| tracing::warn!("{}: {found}", self.interface));
                }
                Ok(Heard::Solicitation | Heard::Neighbour | Heard::TooMany | Heard::NotForUs) => {}
                Err(malformed) => tracing::debug!("{}: {}: {malformed}", self.interface, message.source),
            }
        }
        Ok(false)
    }

    /// Says a trouble once.
    fn trouble(&mut self, what: &str) {
        if self.told.as_deref() != Some(what) {
            tracing::warn!(
                "{}: not sending router advertisements until this is resolved: {what}",
                self.interface
            );
            self.told = Some(what.to_owned());
        }
    }

    fn show(&self, router: Option<&RouterAdvert>, advertises: bool) {
        let mut row = row(&self.interface, router, self.clock.now());
        if !advertises {
            row.state = self.told.clone().unwrap_or_else(|| "waits".into());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.row = row;
        if let Some(router) = router {
            state.believed = router.believed_prefixes(self.clock.now()).collect();
        }
    }
}

/// Whether this host forwards IPv6; true if the kernel does not tell.
fn forwards() -> bool {
    let value = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding");
    value.map_or(true, |value| value.trim() != "0")
}

/// What is state of an advertising interface.
pub(super) fn row(link: &str, router: Option<&RouterAdvert>, now: Instant) -> RouterAdvertisementRow {
    let Some(router) = router else {
        return RouterAdvertisementRow {
            link: link.into(),
            state: "waits".into(),
            ..RouterAdvertisementRow::default()
        };
    };
    let (settings, counters) = (router.settings(), router.counters());
    let live = settings.prefixes.iter().map(|prefix| AdvertisedRow {
        prefix: prefix.prefix.to_string(),
        valid_seconds: prefix.valid,
        preferred_seconds: prefix.preferred,
        deprecated: false,
    });
    let stale = router.stale_prefixes().iter().map(|stale| AdvertisedRow {
        prefix: stale.prefix.to_string(),
        valid_seconds: 0,
        preferred_seconds: 0,
        deprecated: stale.until > now,
    });
    RouterAdvertisementRow {
        link: link.into(),
        state: "advertises".into(),
        source: Some(router.source().to_string()),
        router_lifetime_seconds: settings.router_lifetime(),
        prefixes: live.chain(stale).collect(),
        routes: settings.routes.iter().map(|route| route.prefix.to_string()).collect(),
        rdnss: settings.dns_servers.iter().map(ToString::to_string).collect(),
        pref64: settings.pref64.first().map(|entry| entry.prefix.to_string()),
        multicast: counters.multicast,
        unicast: counters.unicast,
        neighbours: counters.neighbours,
        solicitations: counters.solicitations,
        solicitations_dropped: counters.too_many,
        malformed: counters.malformed,
        inconsistencies: counters.inconsistencies,
    }
}
