//! The DNS64 of a gateway: its threads and streams, who may ask, and what is said of it.

use super::anchors::AnchorKeeper;
use super::dns64_plan::{access, facts, plan};
use super::run::RunError;
use crate::admin::{AdminError, AnchorRow, CountedRow, Dns64Row, Flush, Flushed};
use crate::config::Config;
use crate::dns64::streams::{Around, Event, StreamFault, StreamSettings, StreamView, Streams};
use crate::dns64::{Facts, Message, Posts, Rates, Service, Unanswered, row};
use crate::host::{addresses, addresses_now};
use crate::worker::Clock;
use sixway_control::dns64::{Access, Wire};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often this host's addresses are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The DNS64, as the admin API sees it.
#[derive(Debug)]
pub struct Dns64View {
    posts: Posts,
    facts: Facts,
    rates: Mutex<Rates>,
    streams: StreamView,
    /// Trust anchors, and what the operator should look at.
    trust: Mutex<(Vec<AnchorRow>, Vec<String>)>,
}

impl Dns64View {
    /// Takes a sample of the counters.
    pub(super) async fn sample(&self) {
        if let Ok(report) = self.posts.report().await {
            self.rates().add(Instant::now(), &report);
        }
    }

    /// All that is shown of it.
    pub(super) async fn row(&self) -> Result<Dns64Row, AdminError> {
        let report = self.posts.report().await.map_err(busy)?;
        let event = |event: &Event| CountedRow {
            name: event.name().into(),
            help: event.help().into(),
            value: self.streams.of(*event),
        };
        let (anchors, warnings) = lock(&self.trust).clone();
        Ok(Dns64Row {
            anchors,
            warnings,
            connections: self.streams.connections() as u64,
            streams: Event::ALL.iter().map(event).collect(),
            ..row(&self.facts, &report, &self.rates())
        })
    }

    /// Forgets answers.
    pub(super) async fn flush(&self, flush: &Flush) -> Result<Flushed, AdminError> {
        let name = which(flush).map_err(AdminError::BadRequest)?;
        let answers = self.posts.flush(&name).await.map_err(busy)?;
        Ok(Flushed { answers: answers as u64 })
    }

    fn rates(&self) -> MutexGuard<'_, Rates> {
        lock(&self.rates)
    }

    /// Tells all threads something.
    pub(super) fn tell(&self, message: impl Fn() -> Message) {
        for post in self.posts.all() {
            if let Err(error) = post.send(message()) {
                tracing::error!("DNS64: {error}");
            }
        }
    }

    /// Takes note of the trust anchors, and of what is wrong with them.
    pub(super) fn see_trust(&self, anchors: Vec<AnchorRow>, warnings: Vec<String>) {
        *lock(&self.trust) = (anchors, warnings);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy(error: Unanswered) -> AdminError {
    AdminError::Busy(error.to_string())
}

/// The name that is to be forgotten, the root for all; else what is wrong.
fn which(flush: &Flush) -> Result<Wire, String> {
    match (&flush.name, flush.all) {
        (None, Some(true)) => Ok(Wire([0].into())),
        (Some(name), None | Some(false)) => wire(name),
        (Some(_), Some(true)) => Err("name and all cannot stand together".into()),
        (None, None | Some(false)) => Err("name is missing; or all=true".into()),
    }
}

/// A name in lower-case wire form; else what is wrong with it.
fn wire(text: &str) -> Result<Wire, String> {
    use domain::base::name::{Name, ToName};
    let name: Name<Vec<u8>> = text.parse().map_err(|error| format!("{text:?} is no domain name: {error}"))?;
    Ok(Wire(name.to_canonical_name::<Vec<u8>>().into_octets().into()))
}

/// The DNS64 while the gateway runs.
#[derive(Debug)]
pub(super) struct Dns64<'c> {
    config: &'c Config,
    /// Before the threads, which it asks: it ends first.
    streams: Option<Streams>,
    service: Service,
    view: Arc<Dns64View>,
    anchors: Option<AnchorKeeper>,
    /// Who may ask.
    access: Access,
}

impl<'c> Dns64<'c> {
    /// Starts it, if the configuration has one.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) fn start(config: &'c Config, clock: Clock) -> Result<Option<Self>, RunError> {
        let Some(dns64) = &config.dns64 else { return Ok(None) };
        let (believed, anchors) = AnchorKeeper::load(dns64, clock).map_err(RunError::Dns64)?;
        let access = access(config, &addresses());
        let Some(plan) = plan(config, access.clone(), believed) else { return Ok(None) };
        let facts = facts(config, &plan);
        // What was started ends when it is dropped.
        let (service, queries) =
            Service::start(plan, clock).map_err(|error| RunError::Dns64(error.to_string()))?;
        let posts = service.posts().clone();
        let around = Around { posts: posts.clone(), access: access.clone(), queries };
        let streams = Streams::start(&StreamSettings::of(dns64), around).map_err(refused)?;
        let rates = Mutex::new(Rates::new(Instant::now()));
        let view = Dns64View { posts, facts, rates, streams: streams.view(), trust: Mutex::default() };
        Ok(Some(Self { config, streams: Some(streams), service, view: Arc::new(view), anchors, access }))
    }

    /// What the admin API sees.
    pub(super) fn view(&self) -> Arc<Dns64View> {
        Arc::clone(&self.view)
    }

    /// What it serves, in a few words.
    pub(super) async fn serves(&self) -> String {
        self.view.row().await.map_or_else(|_| self.view.facts.serves.clone(), |row| row.serves)
    }

    /// Lives until a thread ends by itself; says why.
    pub(super) async fn keep(&mut self) -> String {
        let mut second = tokio::time::interval(LOOK);
        let (streams, view) = (self.service.streams(), Arc::clone(&self.view));
        let mut anchors = self.anchors.take();
        let mut follow = std::pin::pin!(async {
            match &mut anchors {
                Some(anchors) => anchors.keep(&streams, &view).await,
                None => std::future::pending().await,
            }
        });
        loop {
            tokio::select! {
                error = self.service.first_end() => return error,
                () = &mut follow => {}
                _ = second.tick() => self.each_second().await,
            }
        }
    }

    async fn each_second(&mut self) {
        self.service.look_for_addresses();
        // Where the kernel does not say what addresses there are, who might ask still may.
        if let Some(addresses) = addresses_now() {
            self.admit(access(self.config, &addresses));
        }
        self.view.sample().await;
    }

    fn admit(&mut self, now: Access) {
        if self.access == now {
            return;
        }
        if let Some(streams) = &self.streams {
            streams.set_access(now.clone());
        }
        self.service.set_access(now.clone());
        self.access = now;
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        drop(self.streams.take());
        self.service.stop();
    }
}

fn refused(fault: StreamFault) -> RunError {
    RunError::Dns64(match &fault {
        StreamFault::Listen(address, error) if error.kind() == io::ErrorKind::PermissionDenied => format!(
            "sixway needs CAP_NET_BIND_SERVICE to listen at {address} (TCP): ports below 1024 are reserved. Run it as root, or: \
             setcap cap_net_bind_service+ep $(command -v sixway)"
        ),
        fault => fault.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_forgotten_is_named_one_way() {
        let flush = |name: Option<&str>, all| which(&Flush { name: name.map(Into::into), all });
        assert_eq!(flush(Some("WWW.example"), None).unwrap().0[..], *b"\x03www\x07example\x00");
        assert_eq!(flush(Some("example."), Some(false)).unwrap().0[..], *b"\x07example\x00");
        assert_eq!(flush(None, Some(true)).unwrap().0[..], *b"\x00");
        for (name, all) in [(None, None), (None, Some(false)), (Some("a"), Some(true)), (Some("a..b"), None)]
        {
            assert!(flush(name, all).is_err(), "{name:?} {all:?}");
        }
    }
}
