//! What hangs at the interfaces, what is to hang there, and the way from one to the other.
//!
//! ```text
//!     the host, the tunnels: changed ─▶ chosen ── differs ──▶ prepared ─▶ loaded (1–2 s, elsewhere) ─▶ hung ─▶ as chosen?
//!                                         └ wrong by now: nothing is forwarded until then                 └ no: again
//! ```

use super::choice::{Choice, Chosen};
use super::offered::rests;
use super::turn::Turn;
use crate::config::Surroundings;
use crate::daemon::carried::Carried;
use crate::daemon::narrow_paths::NarrowPaths;
use crate::fast_path::{Attached, Facts};
use sixway_fastpath::layout::Port;
use sixway_fastpath::rules::Offer;
use sixway_fastpath::{AttachPoint, FastPath, FastPathError, Loaded, Prepared};
use std::sync::Arc;
use std::time::Instant;

/// The programs of a running gateway.
pub(super) struct Exchange<'c> {
    pub choice: Choice<'c>,
    pub now: Surroundings,
    pub facts: Facts,
    /// What is to hang.
    pub chosen: Chosen,
    /// What hangs; `None`: an exchange failed on its way, and some may be others.
    in_force: Option<Arc<Offer>>,
    /// What the kernel is going through.
    loading: Option<Chosen>,
    turn: Turn,
    carried: Arc<Carried>,
    /// The programs pass everything on, for what they would do is wrong by now.
    halted: bool,
    narrow: NarrowPaths,
    /// What was refused of the narrow paths, so that it is told once.
    trouble: Option<String>,
}

impl<'c> Exchange<'c> {
    /// What is chosen hangs; what should not be as it is there is told.
    pub fn new(
        choice: Choice<'c>,
        now: Surroundings,
        facts: Facts,
        chosen: Chosen,
        carried: Arc<Carried>,
    ) -> Self {
        let exchange = Self {
            choice,
            now,
            facts,
            in_force: Some(Arc::clone(&chosen.offer)),
            chosen,
            loading: None,
            turn: Turn::default(),
            carried,
            halted: false,
            narrow: NarrowPaths::default(),
            trouble: None,
        };
        exchange.carried.set_resting(exchange.facts.ipsec);
        exchange.warn();
        exchange
    }

    /// The host is like this from now on.
    pub fn learn(&mut self, facts: Facts) {
        let is_stricter = |port: &Port| {
            let before = self.facts.ports.iter().find(|it| it.ifindex == port.ifindex);
            before.is_some_and(|before| port.strict > before.strict)
        };
        let is_refused =
            |ifindex| facts.interfaces.iter().any(|it| it.ifindex == ifindex && it.refused.is_some());
        let is_wrong = facts.not_plain.is_some() && self.facts.not_plain.is_none()
            || facts.ports.iter().any(is_stricter)
            // Frames of a VLAN come in by what is below it.
            || self.facts.ports.iter().any(|port| port.vlan != 0 && is_refused(port.ifindex));
        let before = std::mem::replace(&mut self.facts, facts).ipsec;
        if before != self.facts.ipsec {
            self.heed_policies();
        }
        self.choose(is_wrong || self.hangs_where_it_must_not());
    }

    /// The addresses and tunnels are these from now on.
    pub fn change(&mut self, now: &Surroundings) {
        self.now = now.clone();
        self.choose(true);
    }

    /// Chooses anew. Programs of rules that are wrong by now pass everything on until they are exchanged.
    fn choose(&mut self, is_wrong: bool) {
        match self.choice.choose(&self.now, &self.facts) {
            Ok(chosen) => self.chosen = chosen,
            Err(why) => {
                self.halt(is_wrong || self.halted);
                return tracing::error!("the fast path stays as it was: {why}");
            }
        }
        if is_wrong && !self.is_all_there_will_be() {
            self.halt(true);
        }
        // Whatever comes of the programs: results must not leave by a device that is gone. What is refused is tried again with them.
        let _ = self.carried.with(|fast_path| fast_path.set_devices(&self.facts.devices));
        self.turn.want(Instant::now());
    }

    /// Whether programs hang at an interface that has become a part of another, whose rules they pass by, or the like.
    fn hangs_where_it_must_not(&self) -> bool {
        let refused =
            |ifindex| self.facts.interfaces.iter().any(|it| it.ifindex == ifindex && it.refused.is_some());
        let hangs =
            self.carried.with(|fast_path| Ok(fast_path.attached().iter().any(|it| refused(it.ifindex))));
        matches!(hangs, Ok(Some(true)))
    }

    /// Whether what hangs is as chosen, and so is what may hang in a moment.
    fn is_all_there_will_be(&self) -> bool {
        if self.hangs_where_it_must_not() {
            return false;
        }
        let is_chosen = |offer: &Offer| offer.rules.make_the_same(&self.chosen.offer.rules);
        self.in_force.as_ref().is_some_and(|it| is_chosen(it))
            && self.loading.as_ref().is_none_or(|it| is_chosen(&it.offer))
    }

    /// When an exchange is to be tried; not while the kernel goes through programs.
    pub fn due(&self) -> Option<Instant> {
        self.turn.due().filter(|_| self.loading.is_none())
    }

    /// Prepares the programs that are to hang; [`Self::hang`] has to follow. `None`: there is nothing to be loaded.
    pub fn prepare(&mut self) -> Option<Prepared> {
        self.turn.begin();
        let Chosen { offer, interfaces, .. } = &self.chosen;
        let is_in_force = self.in_force.as_ref().is_some_and(|it| it.rules.make_the_same(&offer.rules));
        let prepared = self.carried.with(|fast_path| {
            fast_path.set_devices(&self.facts.devices)?;
            if is_in_force && tried(fast_path) == *interfaces && all_there(fast_path) {
                return Ok(None);
            }
            fast_path.prepare(&offer.rules, interfaces).map(Some)
        });
        match prepared.map(Option::flatten) {
            Ok(Some(prepared)) => {
                self.loading = Some(self.chosen.clone());
                return Some(prepared);
            }
            // Those that are there may stay, or there is no fast path any more.
            Ok(None) => self.settle(),
            Err(error) => self.failed(&error),
        }
        None
    }

    /// Hangs what was loaded. What hangs where, if that has changed.
    pub fn hang(&mut self, loaded: Result<Loaded, FastPathError>) -> Option<Vec<Attached>> {
        let Chosen { offer, interfaces, .. } = self.loading.take()?;
        let hung = loaded.and_then(|loaded| {
            self.in_force = None;
            self.carried.with(|fast_path| {
                fast_path.exchange(loaded, &interfaces)?;
                fast_path.control().bump();
                Ok(hooked(fast_path))
            })
        });
        match hung {
            Ok(hung) => {
                self.in_force = Some(offer);
                // Others may be wanted meanwhile.
                if self.turn.due().is_none() {
                    self.settle();
                }
                if hung.is_some() {
                    tracing::info!("fast path: {} from now on", self.carried.places());
                    self.carried.left_out().iter().for_each(|line| tracing::warn!("fast path: {line}"));
                    self.warn();
                }
                hung
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// What hangs is as chosen.
    fn settle(&mut self) {
        if self.halted {
            self.halt(false);
        }
        if self.turn.worked() {
            tracing::info!("the fast path is as it is to be again");
        }
    }

    fn failed(&mut self, error: &FastPathError) {
        let then = match (self.halted, &self.in_force) {
            (true, _) => "passes everything to the engine",
            (false, Some(_)) => "stays as it was",
            (false, None) => "is not everywhere as it is to be",
        };
        match self.turn.failed(Instant::now()) {
            true => tracing::error!("the fast path {then} until it can be changed: {error}"),
            false => tracing::debug!("the fast path still {then}: {error}"),
        }
    }

    /// The engine carries everything from now on, or what the programs know of no longer.
    fn halt(&mut self, halted: bool) {
        self.halted = halted;
        let enabled = !halted && self.facts.ipsec.is_none();
        // It was ended if it is not there.
        let _ = self.carried.with(|fast_path| {
            fast_path.control().enable(enabled);
            Ok(())
        });
    }

    /// IPsec policies came, or went.
    fn heed_policies(&mut self) {
        self.halt(self.halted);
        self.carried.set_resting(self.facts.ipsec);
        match self.facts.ipsec {
            Some(why) => tracing::warn!("fast path: {}", rests(why)),
            None => tracing::info!("fast path: no IPsec policy is in the way any more; it carries on again"),
        }
    }

    /// What is carried on and should not be, or is not and should be.
    fn warn(&self) {
        self.carried.warnings().iter().for_each(|line| tracing::warn!("fast path: {line}"));
        self.facts.ipsec.iter().for_each(|why| tracing::warn!("fast path: {}", rests(why)));
    }

    /// Less fits on the paths to ends of tunnels than was thought, if these ICMPv4 errors are to be believed.
    pub fn narrow(&mut self, errors: &[Arc<[u8]>]) {
        let (judge, now) = (&self.chosen.judge, Instant::now());
        let destinations = errors.iter().filter_map(|error| judge.narrow(error));
        let Some(all) = self.narrow.note(destinations, now) else { return };
        let set = self.carried.with(|fast_path| fast_path.set_narrow_paths(&all));
        if set.is_ok() {
            self.narrow.told(now);
        }
        let trouble = set.err().map(|error| error.to_string());
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::error!("the fast path sends what is too large for some paths: {what}");
        }
        self.trouble = trouble;
    }
}

/// The interfaces that the programs were to hang at.
fn tried(fast_path: &FastPath) -> Vec<String> {
    let hung = fast_path.attached().iter().map(|it| it.interface.clone());
    let mut names: Vec<_> = hung.chain(fast_path.left_out().iter().map(|it| it.interface.clone())).collect();
    names.sort_unstable();
    names
}

/// Whether what hangs still hangs, and what could not be used is what it was: an interface that is made anew has another number.
fn all_there(fast_path: &FastPath) -> bool {
    let number = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    fast_path.attached().iter().all(|it| number(&it.interface) == Some(it.ifindex))
        && fast_path.left_out().iter().all(|it| number(&it.interface) == it.ifindex)
}

/// Where the programs hang, for the keeper.
pub(super) fn hooked(fast_path: &FastPath) -> Vec<Attached> {
    let hooked =
        |it: &sixway_fastpath::Attached| Attached { ifindex: it.ifindex, xdp: it.place == AttachPoint::Xdp };
    fast_path.attached().iter().map(hooked).collect()
}
