//! The programs attached to interfaces, those that should be, and the replacement of one by the other.
//!
//! ```text
//!     the host, the tunnels: changed ─▶ chosen ── differs ──▶ prepared ─▶ loaded (1–2 s, elsewhere) ─▶ attached ─▶ as chosen?
//!                                         └ now wrong: nothing is forwarded until then                 └ no: again
//! ```

use super::choice::{ChosenPrograms, ProgramChoice};
use super::offered::rests;
use super::retry_timer::RetryTimer;
use crate::config::Surroundings;
use crate::daemon::fast_path_handle::FastPathHandle;
use crate::daemon::reduced_path_mtus::ReducedPathMtus;
use crate::fast_path::{Attached, Facts};
use sixway_fastpath::layout::Port;
use sixway_fastpath::rules::Offer;
use sixway_fastpath::{AttachPoint, FastPath, FastPathError, Loaded, Prepared};
use std::sync::Arc;
use std::time::Instant;

/// The programs of a running gateway.
pub(super) struct ProgramExchange<'c> {
    pub choice: ProgramChoice<'c>,
    pub now: Surroundings,
    pub facts: Facts,
    /// The programs that should be attached.
    pub chosen: ChosenPrograms,
    /// The current rules; `None`: a replacement failed halfway, and interfaces may differ.
    in_force: Option<Arc<Offer>>,
    /// The programs that the kernel is verifying.
    loading: Option<ChosenPrograms>,
    turn: RetryTimer,
    carried: Arc<FastPathHandle>,
    /// The programs pass every packet to the engine, because their rules have become wrong.
    halted: bool,
    narrow: ReducedPathMtus,
    /// The last failure to set path MTUs, so that it is logged once.
    trouble: Option<String>,
}

impl<'c> ProgramExchange<'c> {
    /// The chosen programs are attached; logs warnings about the host.
    pub fn new(
        choice: ProgramChoice<'c>,
        now: Surroundings,
        facts: Facts,
        chosen: ChosenPrograms,
        carried: Arc<FastPathHandle>,
    ) -> Self {
        let exchange = Self {
            choice,
            now,
            facts,
            in_force: Some(Arc::clone(&chosen.offer)),
            chosen,
            loading: None,
            turn: RetryTimer::default(),
            carried,
            halted: false,
            narrow: ReducedPathMtus::default(),
            trouble: None,
        };
        exchange.carried.set_resting(exchange.facts.ipsec);
        exchange.warn();
        exchange
    }

    /// Applies new facts about the host.
    pub fn learn(&mut self, facts: Facts) {
        let is_stricter = |port: &Port| {
            let before = self.facts.ports.iter().find(|it| it.ifindex == port.ifindex);
            before.is_some_and(|before| port.strict > before.strict)
        };
        let is_refused =
            |ifindex| facts.interfaces.iter().any(|it| it.ifindex == ifindex && it.refused.is_some());
        let is_wrong = facts.not_plain.is_some() && self.facts.not_plain.is_none()
            || facts.sources4.iter().any(|source| !self.facts.sources4.contains(source))
            || facts.sources6.iter().any(|source| !self.facts.sources6.contains(source))
            || facts.ports.iter().any(is_stricter)
            // Frames of a VLAN arrive on the interface below it.
            || self.facts.ports.iter().any(|port| port.vlan != 0 && is_refused(port.ifindex));
        let before = std::mem::replace(&mut self.facts, facts).ipsec;
        if before != self.facts.ipsec {
            self.apply_ipsec_policies();
        }
        self.choose(is_wrong || self.is_attached_where_refused());
    }

    /// Applies new addresses and tunnels.
    pub fn change(&mut self, now: &Surroundings) {
        self.now = now.clone();
        self.choose(true);
    }

    /// Chooses again. Programs with rules that became wrong pass all packets to the engine until they are replaced.
    fn choose(&mut self, is_wrong: bool) {
        match self.choice.choose(&self.now, &self.facts) {
            Ok(chosen) => self.chosen = chosen,
            Err(why) => {
                self.halt(is_wrong || self.halted);
                return tracing::error!("the fast path was not changed: {why}");
            }
        }
        if is_wrong && !self.is_all_there_will_be() {
            self.halt(true);
        }
        // Independently of the programs: packets must not be sent through a removed device. Refused changes are tried again with the
        // programs.
        let _ = self.carried.with(|fast_path| fast_path.set_devices(&self.facts.devices));
        self.turn.want(Instant::now());
    }

    /// Whether programs are attached to an interface that has become part of another, whose rules they would bypass, or similar.
    fn is_attached_where_refused(&self) -> bool {
        let refused =
            |ifindex| self.facts.interfaces.iter().any(|it| it.ifindex == ifindex && it.refused.is_some());
        let attached =
            self.carried.with(|fast_path| Ok(fast_path.attached().iter().any(|it| refused(it.ifindex))));
        matches!(attached, Ok(Some(true)))
    }

    /// Whether the attached programs, and any being loaded, are the chosen ones.
    fn is_all_there_will_be(&self) -> bool {
        if self.is_attached_where_refused() {
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

    /// Prepares the programs to load; [`Self::attach`] must follow. `None`: nothing to load.
    pub fn prepare(&mut self) -> Option<Prepared> {
        self.turn.begin();
        let ChosenPrograms { offer, interfaces, .. } = &self.chosen;
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
            // The attached programs may stay, or the fast path was removed.
            Ok(None) => self.settle(),
            Err(error) => self.failed(&error),
        }
        None
    }

    /// Attaches the loaded programs. Returns the attachments if they changed.
    pub fn attach(&mut self, loaded: Result<Loaded, FastPathError>) -> Option<Vec<Attached>> {
        let ChosenPrograms { offer, interfaces, .. } = self.loading.take()?;
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
                    tracing::info!("fast path attached: {}", self.carried.attached());
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

    /// The attached programs are the chosen ones.
    fn settle(&mut self) {
        if self.halted {
            self.halt(false);
        }
        if self.turn.worked() {
            tracing::info!("fast path restored");
        }
    }

    fn failed(&mut self, error: &FastPathError) {
        let then = match (self.halted, &self.in_force) {
            (true, _) => "passes all packets to the engine",
            (false, Some(_)) => "keeps its previous rules",
            (false, None) => "differs between interfaces",
        };
        match self.turn.failed(Instant::now()) {
            true => {
                tracing::error!("changing the fast path failed: it {then} until a retry succeeds: {error}")
            }
            false => tracing::debug!("retry failed; the fast path {then}: {error}"),
        }
    }

    /// Passes all packets to the engine, or stops doing so.
    fn halt(&mut self, halted: bool) {
        self.halted = halted;
        let enabled = !halted && self.facts.ipsec.is_none();
        // If it does not exist, it was ended.
        let _ = self.carried.with(|fast_path| {
            fast_path.control().enable(enabled);
            Ok(())
        });
    }

    /// IPsec policies came, or went.
    fn apply_ipsec_policies(&mut self) {
        self.halt(self.halted);
        self.carried.set_resting(self.facts.ipsec);
        match self.facts.ipsec {
            Some(why) => tracing::warn!("fast path: {}", rests(why)),
            None => tracing::info!("fast path resumed: no IPsec policy prevents it any longer"),
        }
    }

    /// Warns about packets that are forwarded and should not be, or the reverse.
    fn warn(&self) {
        self.carried.warnings().iter().for_each(|line| tracing::warn!("fast path: {line}"));
        self.facts.ipsec.iter().for_each(|why| tracing::warn!("fast path: {}", rests(why)));
    }

    /// Reduces the path MTUs to remote ends of tunnels as these ICMPv4 errors say, if they are credible.
    pub fn narrow(&mut self, errors: &[Arc<[u8]>]) {
        let (judge, now) = (&self.chosen.judge, Instant::now());
        let destinations = errors.iter().filter_map(|error| judge.narrow(error));
        let Some(all) = self.narrow.note(destinations, now) else { return };
        let set = self.carried.with(|fast_path| fast_path.set_narrow_paths(&all));
        if set.is_ok() {
            self.narrow.updated(now);
        }
        let trouble = set.err().map(|error| error.to_string());
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::error!(
                "the fast path may send packets larger than the path MTU of some tunnels: {what}"
            );
        }
        self.trouble = trouble;
    }
}

/// The interfaces that the programs should be attached to.
fn tried(fast_path: &FastPath) -> Vec<String> {
    let hung = fast_path.attached().iter().map(|it| it.interface.clone());
    let mut names: Vec<_> = hung.chain(fast_path.left_out().iter().map(|it| it.interface.clone())).collect();
    names.sort_unstable();
    names
}

/// Whether attached programs still are, and unusable interfaces are unchanged: a recreated interface has another index.
fn all_there(fast_path: &FastPath) -> bool {
    let number = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    fast_path.attached().iter().all(|it| number(&it.interface) == Some(it.ifindex))
        && fast_path.left_out().iter().all(|it| number(&it.interface) == it.ifindex)
}

/// Where the programs are attached, for the keeper.
pub(super) fn hooked(fast_path: &FastPath) -> Vec<Attached> {
    let hooked =
        |it: &sixway_fastpath::Attached| Attached { ifindex: it.ifindex, xdp: it.place == AttachPoint::Xdp };
    fast_path.attached().iter().map(hooked).collect()
}
