//! The fast path of a running gateway: begun before the workers, kept as the host and the tunnels change, ended or left behind.
//!
//! Begun: what the host's links are, programs for them, flows of the gateway before made sessions again, then the programs at the
//! interfaces. Changed: an entry or a rule is gone before what it stands for is; programs are exchanged before the engines learn of other
//! tunnels.

use super::carried::Carried;
use super::narrow_paths::NarrowPaths;
use super::run::RunError;
use crate::config::{Config, FastPath as Wanted, FastPathMode, Surroundings};
use crate::fast_path::{Attached, Facts, Interface, Keeper, Maps, UsedHop};
use crate::host::Host;
use crate::show::plural;
use crate::worker::Clock;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::NotAdopted;
use sixway_fastpath::rules::{Mechanism, Offer, Surroundings as Around};
use sixway_fastpath::{
    Control, FastPath, FastPathError, FastPathWriter, FlowTable, Found, Mode, NextHops, Place, Settings,
};
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long the kernel may take to say what links there are.
const PATIENCE: Duration = Duration::from_secs(5);

/// What keeps the programs' view of the host.
pub(super) struct Offload<'c> {
    config: &'c Config,
    wanted: &'c Wanted,
    seed: [u64; 2],
    tun: u32,
    now: Surroundings,
    facts: Facts,
    interfaces: Vec<String>,
    /// The rules in force.
    offer: Offer,
    narrow: NarrowPaths,
    carried: Arc<Carried>,
    /// What was refused, so that it is told once.
    trouble: Option<String>,
    /// The programs pass everything on, for what they would do is wrong by now.
    halted: bool,
}

/// The maps, as soon as there are some.
#[derive(Default)]
struct Later(OnceLock<(Arc<Control>, Arc<NextHops>)>);

impl Maps for Later {
    fn beat(&self) {
        self.0.get().iter().for_each(|(control, _)| control.beat());
    }

    fn bump(&self) {
        self.0.get().iter().for_each(|(control, _)| control.bump());
    }

    fn in_use(&self) -> Vec<UsedHop> {
        let Some((_, next_hops)) = self.0.get() else { return Vec::new() };
        let hop = |it: sixway_fastpath::Neighbour| UsedHop {
            ifindex: it.ifindex,
            address: it.address,
            mac: it.mac,
            idle: it.idle,
        };
        next_hops.in_use().into_iter().map(hop).collect()
    }

    fn free(&self, idle: Duration) {
        if let Some((_, next_hops)) = self.0.get() {
            next_hops.free(idle);
        }
    }
}

/// What a fast path is begun with.
pub(super) struct Begin<'a, 'c> {
    pub config: &'c Config,
    pub seed: [u64; 2],
    pub now: &'a Surroundings,
    pub clock: Clock,
}

impl<'c> Offload<'c> {
    /// Begins, if the configuration wants it: flows of the gateway before are sessions of the engines then, and packets are carried on.
    /// Where it cannot be had the gateway goes on without, unless it is demanded.
    ///
    /// # Errors
    /// It is demanded, and cannot be had.
    pub(super) async fn begin(
        begin: Begin<'_, 'c>,
        engines: &mut [Engine],
        host: &mut Host,
    ) -> Result<Option<(Self, Keeper)>, RunError> {
        let wanted = begin.config.fast_path.as_ref().filter(|_| begin.config.is_offloaded());
        let Some(wanted) = wanted else {
            if host.is_heir() {
                // What a gateway before this one had meant to outlive it does not outlive this one.
                host.keep_to_itself().map_err(RunError::Host)?;
            }
            return Ok(None);
        };
        host.bequeath().map_err(RunError::Host)?;
        match Self::start(&begin, wanted, engines, host.device()).await {
            Ok(begun) => Ok(Some(begun)),
            Err(why) => {
                engines.iter_mut().for_each(Engine::clear_fast_path);
                if let Err(error) = sixway_fastpath::remove_all(&wanted.pin_path, &begin.config.gateway.name)
                {
                    tracing::debug!("{error}");
                }
                host.keep_to_itself().map_err(RunError::Host)?;
                if wanted.is_demanded() {
                    let mend =
                        "mend it, or write fastpath.mode = \"auto\", with which the gateway goes on without";
                    return Err(RunError::FastPath(format!("there is no fast path: {why}; {mend}")));
                }
                tracing::warn!("there is no fast path, the engine carries everything: {why}");
                Ok(None)
            }
        }
    }

    async fn start(
        begin: &Begin<'_, 'c>,
        wanted: &'c Wanted,
        engines: &mut [Engine],
        tun: u32,
    ) -> Result<(Self, Keeper), String> {
        let maps = Arc::new(Later::default());
        let mut keeper = Keeper::start(tun, Arc::clone(&maps) as Arc<dyn Maps>)
            .map_err(|error| format!("netlink: {error}"))?;
        let facts = first_facts(&mut keeper, wanted).await?;
        let interfaces = chosen(wanted, &facts.interfaces);
        let around = around(begin.config, wanted, tun, &facts);
        let offer = offer(begin.config, begin.seed, begin.now, &around)?;
        let settings = Settings {
            pin_path: wanted.pin_path.clone(),
            gateway: begin.config.gateway.name.clone(),
            mode: mode(wanted),
            clsact: false,
            capacity: wanted.flows(begin.config.sessions()),
            interfaces: interfaces.clone(),
            rules: offer.rules.clone(),
        };
        let failed = |error: FastPathError| error.to_string();
        let opened = FastPath::open(&settings).map_err(failed)?;
        if let Some(table) = opened.table() {
            // What the configuration does not have ends here, and not when the kernel has gone through the programs.
            adopt(table, engines, begin.clock, wanted.packets);
        }
        let mut fast_path = opened.load(&settings).map_err(failed)?;
        if *fast_path.found() != Found::Kept {
            connect(fast_path.table(), engines, begin.clock, wanted.packets);
        }
        if let Found::Replaced(why) = fast_path.found() {
            tracing::warn!("flows of a gateway before this one are lost, and its programs removed: {why}");
        }
        // It is there from here on.
        let _ = maps.0.set((Arc::clone(fast_path.control()), Arc::clone(fast_path.next_hops())));
        fast_path.set_devices(&facts.devices).map_err(failed)?;
        // What the process before had learnt nobody would forget.
        fast_path.set_narrow_paths(&[]).map_err(failed)?;
        fast_path.attach(&interfaces).map_err(failed)?;
        fast_path.control().bump();
        fast_path.control().enable(true);
        keeper.set_attached(hooked(fast_path.attached()));
        let carried = Arc::new(Carried::new(fast_path, settings.capacity));
        let offload = Self {
            config: begin.config,
            wanted,
            seed: begin.seed,
            tun,
            now: begin.now.clone(),
            facts,
            interfaces,
            offer,
            narrow: NarrowPaths::default(),
            carried,
            trouble: None,
            halted: false,
        };
        Ok((offload, keeper))
    }

    /// What it carries, for who shows it.
    pub(super) fn carried(&self) -> &Arc<Carried> {
        &self.carried
    }

    /// Lives with what becomes of the host's links, as the keeper says. Returns what the keeper is to know.
    pub(super) async fn learn(&mut self, facts: Facts) -> Option<Vec<Attached>> {
        let is_wrong = facts.not_plain.is_some() && self.facts.not_plain.is_none();
        self.facts = facts;
        self.interfaces = chosen(self.wanted, &self.facts.interfaces);
        self.refresh(is_wrong).await
    }

    /// Other addresses and tunnels from now on; to be called before the engines know of them.
    pub(super) async fn change(&mut self, now: &Surroundings) {
        self.now = now.clone();
        self.refresh(true).await;
    }

    /// Less fits on the paths to these ends of tunnels than was thought; to be called each second too, for those of which that is forgotten.
    pub(super) fn narrow(&mut self, destinations: impl Iterator<Item = Ipv4Addr>) {
        let Some(all) = self.narrow.note(destinations, Instant::now()) else { return };
        let set = self.carried.with(|fast_path| fast_path.set_narrow_paths(&all));
        if set.is_ok() {
            self.narrow.told();
        }
        self.tell(set.map(drop));
    }

    /// Exchanges the programs if they are to be others. What hangs where, if that has changed. Programs of rules that are wrong by now pass
    /// everything on until they are exchanged.
    async fn refresh(&mut self, is_wrong: bool) -> Option<Vec<Attached>> {
        let around = around(self.config, self.wanted, self.tun, &self.facts);
        let offer = match offer(self.config, self.seed, &self.now, &around) {
            Ok(offer) => offer,
            Err(why) => {
                tracing::error!("the fast path stays as it was: {why}");
                return None;
            }
        };
        if is_wrong && !same(&offer, &self.offer) {
            self.halt(true);
        }
        match self.exchange(&offer).await {
            Ok(hung) => {
                self.offer = offer;
                if self.halted {
                    self.halt(false);
                }
                if hung.is_some() {
                    tracing::info!("fast path: {} from now on", self.carried.places());
                    self.carried.left_out().iter().for_each(|line| tracing::warn!("fast path: {line}"));
                }
                self.trouble = None;
                hung
            }
            Err(error) => {
                self.tell(Err(error));
                None
            }
        }
    }

    /// Where programs hang that were exchanged; `None`: those that are there may stay, or there is no fast path any more.
    async fn exchange(&self, offer: &Offer) -> Result<Option<Vec<Attached>>, FastPathError> {
        let (devices, interfaces) = (&self.facts.devices, &self.interfaces);
        let same_rules = same(offer, &self.offer);
        let prepared = self.carried.with(|fast_path| {
            fast_path.set_devices(devices)?;
            if same_rules && tried(fast_path) == *interfaces && all_there(fast_path) {
                return Ok(None);
            }
            fast_path.prepare(&offer.rules, interfaces).map(Some)
        })?;
        let Some(prepared) = prepared.flatten() else { return Ok(None) };
        // The kernel takes a second or two: neither who asks what is carried nor anybody else waits for it.
        let Ok(loaded) = tokio::task::spawn_blocking(|| prepared.load()).await else { return Ok(None) };
        let loaded = loaded?;
        self.carried.with(|fast_path| {
            fast_path.exchange(loaded, interfaces)?;
            fast_path.control().bump();
            Ok(hooked(fast_path.attached()))
        })
    }

    /// The engine carries everything from now on, or what the programs know of no longer.
    fn halt(&mut self, halted: bool) {
        self.halted = halted;
        // It was ended if it is not there.
        let _ = self.carried.with(|fast_path| {
            fast_path.control().enable(!halted);
            Ok(())
        });
    }

    fn tell(&mut self, outcome: Result<(), FastPathError>) {
        let trouble = outcome.err().map(|error| error.to_string());
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            let then = if self.halted { "passes everything to the engine" } else { "stays as it was" };
            tracing::error!("the fast path {then}: {what}");
        }
        self.trouble = trouble;
    }

    /// What the operator is told at the start: where packets are carried on, and what is left to the engine.
    pub(super) fn lines(&self) -> Vec<String> {
        let flows = crate::show::count(self.carried.capacity().into());
        let pins = self.wanted.pin_path.join(&self.config.gateway.name);
        let mut lines = vec![format!("{} · {flows} flows · pins {}", self.carried.places(), pins.display())];
        lines.extend(self.facts.interfaces.iter().filter_map(|it| {
            let why = it.refused.as_ref().filter(|_| wants(self.wanted, it))?;
            Some(format!("not {}: {why}", it.name))
        }));
        lines.extend(self.carried.left_out());
        lines.extend(
            self.offer.unoffered.iter().map(|it| format!("not {}: {}", self.name(it.mechanism), it.why)),
        );
        lines
    }

    fn name(&self, mechanism: Mechanism) -> String {
        let named = |name: Option<&String>| name.cloned().unwrap_or_default();
        match mechanism {
            Mechanism::Nat64(index) => named(self.config.nat64.get(index).map(|it| &it.name)),
            Mechanism::Siit(index) => named(self.config.siit.get(index).map(|it| &it.name)),
            Mechanism::Tunnel(index) => {
                let tunnels = self.config.tunnels(&self.now);
                tunnels.get(index).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
            }
        }
    }
}

/// Lives with what the keeper says, for ever.
pub(super) async fn keep(keeper: &mut Option<Keeper>, offload: Option<&Mutex<Offload<'_>>>) {
    if let (Some(keeper), Some(offload)) = (keeper, offload) {
        while let Some(facts) = keeper.next().await {
            if let Some(attached) = offload.lock().await.learn(facts).await {
                keeper.set_attached(attached);
            }
        }
        tracing::error!(
            "the fast path no longer learns of changes: what it knows is asked for again each second"
        );
    }
    std::future::pending().await
}

/// Whether an interface is one of those that are meant.
fn wants(wanted: &Wanted, interface: &Interface) -> bool {
    wanted.interfaces.is_empty() || wanted.interfaces.contains(&interface.name)
}

/// The interfaces that the programs are to hang at.
fn chosen(wanted: &Wanted, there: &[Interface]) -> Vec<String> {
    let usable = there.iter().filter(|it| it.refused.is_none() && wants(wanted, it));
    let mut names: Vec<String> = usable.map(|it| it.name.clone()).collect();
    names.sort_unstable();
    names.truncate(crate::config::FAST_PATH_INTERFACES);
    names
}

/// The first facts, with the ports of the interfaces that will be chosen.
async fn first_facts(keeper: &mut Keeper, wanted: &Wanted) -> Result<Facts, String> {
    let late = || "the kernel does not say what links there are".to_owned();
    let facts = tokio::time::timeout(PATIENCE, keeper.next()).await.ok().flatten().ok_or_else(late)?;
    let names = chosen(wanted, &facts.interfaces);
    if names.is_empty() {
        return Ok(facts);
    }
    let xdp = wanted.mode == FastPathMode::Xdp;
    let meant = facts.interfaces.iter().filter(|it| names.contains(&it.name));
    keeper.set_attached(meant.map(|it| Attached { ifindex: it.ifindex, xdp }).collect());
    loop {
        let facts = tokio::time::timeout(PATIENCE, keeper.next()).await.ok().flatten().ok_or_else(late)?;
        if !facts.ports.is_empty() {
            return Ok(facts);
        }
    }
}

fn around(config: &Config, wanted: &Wanted, tun: u32, facts: &Facts) -> Around {
    let shortest = |of: fn(&crate::config::Timeouts) -> Duration| {
        config.nat64.iter().map(|nat64| of(&nat64.timeouts)).min().map_or(0, ticks)
    };
    Around {
        tun,
        tun_mtu: config.tun.mtu,
        ports: facts.ports.clone(),
        not_plain: facts.not_plain.clone(),
        idle_tcp: shortest(|timeouts| timeouts.tcp_est),
        idle_udp: shortest(|timeouts| timeouts.udp_default),
        absence: ticks(wanted.absence),
    }
}

/// A duration in the programs' ticks; they wrap after 52 days.
fn ticks(time: Duration) -> u32 {
    let ticks = time.as_nanos() >> sixway_fastpath::layout::TICK_SHIFT;
    u32::try_from(ticks).unwrap_or(u32::MAX).min(u32::MAX / 2)
}

fn offer(config: &Config, seed: [u64; 2], now: &Surroundings, around: &Around) -> Result<Offer, String> {
    let engines = config.engines(seed, now);
    engines.first().map(|engine| Offer::of(engine, around)).ok_or_else(|| "there is no engine".to_owned())
}

fn same(one: &Offer, other: &Offer) -> bool {
    one.rules.config.octets() == other.rules.config.octets() && one.rules.tables == other.rules.tables
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

fn hooked(attached: &[sixway_fastpath::Attached]) -> Vec<Attached> {
    attached.iter().map(|it| Attached { ifindex: it.ifindex, xdp: it.place == Place::Xdp }).collect()
}

fn mode(wanted: &Wanted) -> Mode {
    match wanted.mode {
        FastPathMode::Auto | FastPathMode::Off => Mode::Auto,
        FastPathMode::Tc => Mode::Tc,
        FastPathMode::Xdp => Mode::Xdp,
    }
}

/// The engines offload to this table.
fn connect(table: &Arc<FlowTable>, engines: &mut [Engine], clock: Clock, packets: u32) -> FastPathWriter {
    let writer = FastPathWriter::new(Arc::clone(table), clock.now());
    for engine in engines.iter_mut() {
        engine.set_fast_path(Box::new(writer.clone()), packets);
    }
    writer
}

/// Flows that the programs carry without sessions are sessions again, of the engines that own them; others are taken out.
fn adopt(table: &Arc<FlowTable>, engines: &mut [Engine], clock: Clock, packets: u32) {
    let writer = connect(table, engines, clock, packets);
    let adopted = table.adopt(|handle, flow, halves| {
        let (usage, now) = (writer.used(halves), clock.now());
        let mut outcome = Err(NotAdopted::NoTranslator);
        for engine in engines.iter_mut() {
            outcome = engine.adopt(flow, handle, &usage, now);
            if !matches!(outcome, Err(NotAdopted::OtherWorker)) {
                break;
            }
        }
        if let Err(why) = outcome {
            tracing::debug!("a flow of {} with {} ends: {why}", flow.inside.0, flow.remote);
        }
        outcome.is_ok()
    });
    let ended = u64::from(adopted.refused) + u64::from(adopted.strays);
    tracing::info!("{} go on in the fast path, {ended} ended", plural(adopted.kept.into(), "flow"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_must_not_be_used_and_those_that_are_not_meant_are_left_out() {
        let there = |name: &str, refused: Option<&str>| Interface {
            ifindex: 1,
            name: name.into(),
            refused: refused.map(Into::into),
        };
        let all = [there("eth1", None), there("eth0", None), there("eth2", Some("a part of br0"))];
        let text =
            |interfaces: &str| format!("[siit]\nprefix = \"2001:db8:64::/96\"\n[fastpath]\n{interfaces}\n");
        let wanted = |interfaces: &str| {
            let parsed = Config::parse("f", &text(interfaces), &Default::default(), &mut |_| {
                Err(std::io::ErrorKind::NotFound.into())
            });
            parsed.unwrap().0.fast_path.unwrap()
        };
        assert_eq!(chosen(&wanted(""), &all), ["eth0", "eth1"]);
        assert_eq!(chosen(&wanted("interfaces = [\"eth1\", \"eth2\", \"eth9\"]"), &all), ["eth1"]);
    }
}
