//! The DNS64 of a gateway: its threads, who may ask, and what is said of it.

use super::run::RunError;
use crate::admin::{AdminError, CountedRow, Dns64Row, Flush, Flushed};
use crate::config::{Config, Surroundings, addresses};
use crate::dns64::streams::{Around, Event, StreamFault, StreamSettings, StreamView, Streams};
use crate::dns64::{Facts, Plan, Posts, Rates, Report, Service, Unanswered, row};
use crate::worker::Clock;
use sixway_control::dns64::Wire;
use std::net::SocketAddr;
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
        Ok(Dns64Row {
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
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}

impl<'c> Dns64<'c> {
    /// Starts it, if the configuration has one.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) fn start(config: &'c Config, clock: Clock) -> Result<Option<Self>, RunError> {
        let Some(plan) = plan(config) else { return Ok(None) };
        let facts = facts(config, &plan);
        let (mut service, queries) =
            Service::start(plan, clock).map_err(|error| RunError::Dns64(error.to_string()))?;
        let posts = service.posts().clone();
        let around = Around { posts: posts.clone(), access: access(config), queries };
        let streams = streams(config, around).map_err(|fault| {
            service.stop();
            RunError::Dns64(fault.to_string())
        })?;
        let rates = Mutex::new(Rates::new(Instant::now()));
        let view = Dns64View { posts, facts, rates, streams: streams.view() };
        Ok(Some(Self { config, streams: Some(streams), service, view: Arc::new(view) }))
    }

    /// What the admin API sees.
    pub(super) fn view(&self) -> Arc<Dns64View> {
        Arc::clone(&self.view)
    }

    /// What it serves, in a few words.
    pub(super) async fn serves(&self) -> String {
        let healthy = self.view.posts.report().await.unwrap_or_else(|_| Report::default());
        row(&self.view.facts, &healthy, &self.view.rates()).serves
    }

    /// Lives until a thread ends by itself; says why.
    pub(super) async fn keep(&mut self) -> String {
        let mut second = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                error = self.service.first_end() => return error,
                _ = second.tick() => self.each_second().await,
            }
        }
    }

    async fn each_second(&mut self) {
        self.service.look_for_addresses();
        let access = access(self.config);
        if let Some(streams) = &self.streams {
            streams.set_access(access.clone());
        }
        self.service.set_access(access);
        self.view.sample().await;
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        drop(self.streams.take());
        self.service.stop();
    }
}

fn streams(config: &Config, around: Around) -> Result<Streams, StreamFault> {
    let settings = config.dns64.as_ref().map(StreamSettings::of).unwrap_or_default();
    Streams::start(&settings, around)
}

/// Who may ask at the moment.
fn access(config: &Config) -> sixway_control::dns64::Access {
    let addresses = addresses();
    config.dns64_access(&addresses, &Surroundings::of(&addresses))
}

fn plan(config: &Config) -> Option<Plan> {
    let dns64 = config.dns64.as_ref()?;
    let anchors = Vec::new();
    Some(Plan {
        settings: config.dns64_settings(access(config), anchors)?,
        threads: dns64.bounds.threads.into(),
        listen: dns64.listening.listen.clone(),
        upstreams: dns64.upstreams.iter().map(|upstream| upstream.endpoint()).collect(),
        names: dns64
            .upstreams
            .iter()
            .map(|it| format!("{} ({})", it.address, it.transport.as_str()))
            .collect(),
        query_log: dns64.query_log,
    })
}

fn facts(config: &Config, plan: &Plan) -> Facts {
    let Some(dns64) = &config.dns64 else { return Facts::default() };
    let listening = &dns64.listening;
    let with = |addresses: &[SocketAddr], what: &str| -> Vec<String> {
        addresses.iter().map(|address| format!("{address}{what}")).collect()
    };
    let mut places = with(&listening.listen, "");
    places.extend(with(&listening.listen_tls, " (tls)"));
    places.extend(with(&listening.listen_https, " (https)"));
    let prefixes: Vec<String> = dns64.prefixes.iter().map(|prefix| whose(config, *prefix)).collect();
    Facts {
        serves: format!("{} · {}", places.join(", "), prefixes.join(", ")),
        upstreams: plan.names.clone(),
        cache: dns64.bounds.cache,
        waiting: dns64.bounds.waiting.into(),
    }
}

/// A prefix, and the mechanism here that translates it.
fn whose(config: &Config, prefix: sixway_dataplane::translate::address::rfc6052::Rfc6052) -> String {
    let nat64 = config.nat64.iter().find(|it| it.prefix.prefix() == prefix.prefix()).map(|it| &it.name);
    let siit = || {
        let has =
            |own: &sixway_dataplane::translate::address::rfc6052::Rfc6052| own.prefix() == prefix.prefix();
        config.siit.iter().find(|it| it.prefix.as_ref().is_some_and(has)).map(|it| &it.name)
    };
    match nat64.or_else(siit) {
        Some(name) => format!("prefix {} from {name}", prefix.prefix()),
        None => format!("prefix {}", prefix.prefix()),
    }
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
