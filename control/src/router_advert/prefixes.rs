//! The advertised prefixes, and stale ones: a removed prefix is deprecated for as long as a host may still use
//! it (RFC 9096 §3.5).

use super::settings::AdvertisedPrefix;
use crate::neighbour_discovery::PrefixInformation;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Prefix6;

/// Maximum stale prefixes that are advertised; beyond it the one that ends soonest is dropped.
pub const MAX_STALE: usize = 16;

/// A prefix that is no longer advertised: it is deprecated with both lifetimes 0 and its flags unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalePrefix {
    /// The prefix.
    pub prefix: Prefix6,
    /// L, as it was.
    pub on_link: bool,
    /// A, as it was.
    pub autonomous: bool,
    /// When no host can use it any more: its valid lifetime, from the time of its removal.
    pub until: Instant,
}

#[derive(Clone, Debug)]
struct Entry {
    prefix: AdvertisedPrefix,
    /// Until when the advertisements that were sent promise it; `None` if none was.
    promised: Option<Instant>,
}

impl Entry {
    fn valid_until(&self, now: Instant) -> Instant {
        now + Duration::from_secs(u64::from(self.prefix.lifetimes(now).0))
    }

    /// The stale prefix that remains when it is removed; `None` if no host can know of it.
    fn stale(&self, now: Instant) -> Option<StalePrefix> {
        let until = self.promised?.max(self.valid_until(now));
        let AdvertisedPrefix { prefix, on_link, autonomous, .. } = self.prefix;
        Some(StalePrefix { prefix, on_link, autonomous, until })
    }
}

/// Live and stale prefixes.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefixes {
    live: Vec<Entry>,
    stale: Vec<StalePrefix>,
}

impl Prefixes {
    pub(super) fn new(prefixes: &[AdvertisedPrefix]) -> Self {
        let live = prefixes.iter().map(|prefix| Entry { prefix: *prefix, promised: None }).collect();
        Self { live, stale: Vec::new() }
    }

    /// Takes a new list; what was advertised and is not in it goes stale, what was stale and is in it lives again.
    pub(super) fn replace(&mut self, now: Instant, prefixes: &[AdvertisedPrefix]) {
        let fresh = Self::new(prefixes).live;
        for old in core::mem::replace(&mut self.live, fresh) {
            match self.live.iter_mut().find(|entry| entry.prefix.prefix == old.prefix.prefix) {
                Some(entry) => entry.promised = old.promised,
                None => {
                    if let Some(stale) = old.stale(now) {
                        self.add_stale(now, stale);
                    }
                }
            }
        }
        let live = &self.live;
        self.stale.retain(|old| !live.iter().any(|entry| entry.prefix.prefix == old.prefix));
    }

    /// Tells of a prefix that an earlier life of the router advertised, unless it is advertised again.
    pub(super) fn add_stale(&mut self, now: Instant, stale: StalePrefix) {
        self.expire(now);
        self.stale.retain(|old| old.prefix != stale.prefix);
        if stale.until <= now || self.live.iter().any(|entry| entry.prefix.prefix == stale.prefix) {
            return;
        }
        self.stale.push(stale);
        if self.stale.len() > MAX_STALE {
            let first = self.stale.iter().enumerate().min_by_key(|(_, stale)| stale.until).map(|(at, _)| at);
            first.map(|at| self.stale.remove(at));
        }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.stale.retain(|stale| stale.until > now);
    }

    /// An advertisement left with all of them.
    pub(super) fn mark_advertised(&mut self, now: Instant) {
        for entry in &mut self.live {
            entry.promised = entry.promised.max(Some(entry.valid_until(now)));
        }
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &AdvertisedPrefix> {
        self.live.iter().map(|entry| &entry.prefix)
    }

    pub(super) fn stale(&self) -> &[StalePrefix] {
        &self.stale
    }

    /// The prefixes that would be stale if the router ended now: all that hosts may use.
    pub(super) fn believed(&self, now: Instant) -> impl Iterator<Item = StalePrefix> {
        let live = self.live.iter().filter_map(move |entry| entry.stale(now));
        live.chain(self.stale.iter().copied().filter(move |stale| stale.until > now))
    }

    /// The options, live ones first.
    pub(super) fn information(&self, now: Instant) -> impl Iterator<Item = PrefixInformation> {
        let live = self.live().map(move |entry| {
            let (valid, preferred) = entry.lifetimes(now);
            PrefixInformation {
                prefix: entry.prefix,
                on_link: entry.on_link,
                autonomous: entry.autonomous,
                valid,
                preferred,
            }
        });
        let stale = self.stale.iter().filter(move |stale| stale.until > now).map(|stale| PrefixInformation {
            prefix: stale.prefix,
            on_link: stale.on_link,
            autonomous: stale.autonomous,
            valid: 0,
            preferred: 0,
        });
        live.chain(stale)
    }
}
