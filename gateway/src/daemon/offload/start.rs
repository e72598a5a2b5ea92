//! How a fast path starts: read the host's links, open the maps of the previous process, turn its flows into sessions, load the programs,
//! and attach them to the interfaces.

use super::choice::{ChosenPrograms, ProgramChoice, interfaces};
use super::exchange::{ProgramExchange, hooked};
use super::keep::Offload;
use crate::config::{Config, FastPathMode, Surroundings};
use crate::daemon::error::RunError;
use crate::daemon::fast_path_handle::FastPathHandle;
use crate::daemon::takeover::Refused;
use crate::fast_path::{Attached, Facts, Keeper, Maps, UsedHop};
use crate::host::Host;
use crate::show::plural;
use crate::worker::Clock;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::NotAdopted;
use sixway_fastpath::{
    Ahead, Control, FastPath, FastPathError, FastPathWriter, FlowTable, Found, NextHops, Settings,
};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the kernel may take to list the links.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maps, once they exist.
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

/// Preloads programs while another process still runs the gateway. `None`: the configuration has no fast path that could be
/// continued with, or errors are reported at the start.
pub(in crate::daemon) async fn load_ahead(
    config: &Config,
    seed: [u64; 2],
    now: &Surroundings,
) -> Option<Ahead> {
    let tun = sixway_link::interface::index(&config.tun.name).ok()?;
    let choice = ProgramChoice::of(config, seed, tun)?;
    let (_keeper, facts) = look(&choice, Arc::new(Later::default())).await.ok()?;
    let settings = choice.settings(&choice.choose(now, &facts).ok()?);
    let loaded = tokio::task::spawn_blocking(move || Ahead::load(&settings)).await.ok()?;
    loaded.unwrap_or_else(|error| {
        tracing::debug!("the programs could not be preloaded: {error}");
        None
    })
}

/// The same for the process after re-execution: the programs are pinned next to the maps.
pub(in crate::daemon) async fn leave_ahead(config: &Config, seed: [u64; 2]) {
    let ahead = load_ahead(config, seed, &crate::host::surroundings()).await;
    if let Some(Err(error)) = ahead.map(Ahead::leave) {
        tracing::debug!("the programs could not be left for the next process: {error}");
    }
}

/// The arguments for starting a fast path.
pub(in crate::daemon) struct FastPathStart<'a, 'c> {
    pub config: &'c Config,
    pub seed: [u64; 2],
    pub now: &'a Surroundings,
    pub clock: Clock,
    /// Programs that were loaded before, if any were.
    pub ahead: Option<Ahead>,
}

/// The outcome of the start of the fast path.
pub(in crate::daemon) enum Begun<'c> {
    /// It runs.
    Running(Box<Offload<'c>>, Keeper),
    /// There is none; why not, if the configuration asks for one.
    Without(Option<String>),
}

/// Starts the fast path if it is configured. Flows of the previous process become sessions of the engines. Without it the gateway continues, unless the configuration requires it.
///
/// # Errors
/// It is required by the configuration and cannot be started.
pub(in crate::daemon) async fn begin<'c>(
    begin: FastPathStart<'_, 'c>,
    engines: &mut [Engine],
    host: &mut Host,
) -> Result<Begun<'c>, RunError> {
    let Some(choice) = ProgramChoice::of(begin.config, begin.seed, host.device()) else {
        if host.is_successor() {
            // Persistent objects of a previous process do not outlive this one.
            host.keep_to_itself().map_err(RunError::Host)?;
        }
        return Ok(Begun::Without(None));
    };
    host.keep_for_successor().map_err(RunError::Host)?;
    match start(choice, begin, engines).await {
        Ok((offload, keeper)) => Ok(Begun::Running(Box::new(offload), keeper)),
        Err(why) => {
            go_without(choice, engines, host)?;
            if choice.wanted.is_demanded() {
                let mend = "resolve this, or set fastpath.mode = \"auto\" to run without it";
                return Err(RunError::FastPath(format!("the fast path cannot be started: {why}; {mend}")));
            }
            tracing::warn!("the fast path cannot be started, the engine forwards all packets: {why}");
            Ok(Begun::Without(Some(why)))
        }
    }
}

/// Takes away what was begun.
fn go_without(choice: ProgramChoice<'_>, engines: &mut [Engine], host: &mut Host) -> Result<(), RunError> {
    engines.iter_mut().for_each(Engine::clear_fast_path);
    let (pin_path, name) = (&choice.wanted.pin_path, &choice.config.gateway.name);
    if let Err(error) = sixway_fastpath::remove_all(pin_path, name) {
        tracing::debug!("{error}");
    }
    host.keep_to_itself().map_err(RunError::Host)
}

async fn start<'c>(
    choice: ProgramChoice<'c>,
    begin: FastPathStart<'_, 'c>,
    engines: &mut [Engine],
) -> Result<(Offload<'c>, Keeper), String> {
    let maps = Arc::new(Later::default());
    let (keeper, facts) = look(&choice, Arc::clone(&maps) as Arc<dyn Maps>).await?;
    let chosen = choice.choose(begin.now, &facts)?;
    let failed = |error: FastPathError| error.to_string();
    let mut flows = Flows { engines, clock: begin.clock, packets: choice.wanted.packets };
    let mut fast_path = load(&choice.settings(&chosen), begin.ahead, &mut flows).map_err(failed)?;
    // It exists from here on.
    let _ = maps.0.set((Arc::clone(fast_path.control()), Arc::clone(fast_path.next_hops())));
    attach(&mut fast_path, &facts, &chosen).map_err(failed)?;
    keeper.set_attached(hooked(&fast_path));
    let carried = Arc::new(FastPathHandle::new(fast_path, choice.capacity()));
    let exchange = ProgramExchange::new(choice, begin.now.clone(), facts, chosen, Arc::clone(&carried));
    Ok((Offload::new(exchange, carried), keeper))
}

/// The keeper and the present state of the host, with the ports of the interfaces that will be chosen.
async fn look(choice: &ProgramChoice<'_>, maps: Arc<dyn Maps>) -> Result<(Keeper, Facts), String> {
    let mut keeper = Keeper::start(choice.tun, maps).map_err(|error| format!("netlink: {error}"))?;
    let mut facts = next_facts(&mut keeper).await?;
    let names = interfaces(choice.wanted, &facts.interfaces);
    if names.is_empty() {
        return Ok((keeper, facts));
    }
    let xdp = choice.wanted.mode == FastPathMode::Xdp;
    let meant = facts.interfaces.iter().filter(|it| names.contains(&it.name));
    keeper.set_attached(meant.map(|it| Attached { ifindex: it.ifindex, xdp }).collect());
    while facts.ports.is_empty() {
        facts = next_facts(&mut keeper).await?;
    }
    Ok((keeper, facts))
}

async fn next_facts(keeper: &mut Keeper) -> Result<Facts, String> {
    let facts = tokio::time::timeout(PATIENCE, keeper.next()).await.ok().flatten();
    facts.ok_or_else(|| "the kernel does not list the links".to_owned())
}

/// Opens the maps, or makes them, and loads the programs, if they are not already; the engines' flows are in the table then.
fn load(settings: &Settings, ahead: Option<Ahead>, flows: &mut Flows<'_>) -> Result<FastPath, FastPathError> {
    let opened = FastPath::open(settings)?.with(ahead);
    if let Some(table) = opened.table() {
        // Flows that the configuration does not have end here, and not after the kernel has verified the programs.
        flows.adopt(table);
    }
    let fast_path = opened.load(settings)?;
    if *fast_path.found() != Found::Kept {
        flows.connect(fast_path.table());
    }
    if let Found::Replaced(why) = fast_path.found() {
        tracing::warn!("flows of the previous process are lost and its programs were removed: {why}");
    }
    Ok(fast_path)
}

/// Attaches the programs to the interfaces, and lets them forward.
fn attach(fast_path: &mut FastPath, facts: &Facts, chosen: &ChosenPrograms) -> Result<(), FastPathError> {
    fast_path.set_devices(&facts.devices)?;
    // Otherwise path MTUs that the previous process had learnt would never expire.
    fast_path.set_narrow_paths(&[])?;
    fast_path.attach(&chosen.interfaces)?;
    fast_path.control().bump();
    fast_path.control().enable(facts.ipsec.is_none());
    Ok(())
}

/// The engines, whose flows are to be in the table.
struct Flows<'a> {
    engines: &'a mut [Engine],
    clock: Clock,
    /// Packets after which a flow is offloaded.
    packets: u32,
}

impl Flows<'_> {
    /// The engines offload to this table.
    fn connect(&mut self, table: &Arc<FlowTable>) -> FastPathWriter {
        let writer = FastPathWriter::new(Arc::clone(table), self.clock.now());
        for engine in self.engines.iter_mut() {
            engine.set_fast_path(Box::new(writer.clone()), self.packets);
        }
        writer
    }

    /// Flows that the programs carry without sessions become sessions of the engines that own them; others are removed.
    fn adopt(&mut self, table: &Arc<FlowTable>) {
        let (writer, mut refused) = (self.connect(table), Refused::default());
        let adopted = table.adopt(|handle, flow, halves| {
            let (usage, now) = (writer.used(halves), self.clock.now());
            let mut outcome = Err(NotAdopted::NoTranslator);
            Engine::unite(self.engines, flow.mechanism, [(flow.inside, flow.protocol, flow.outside)]);
            for engine in self.engines.iter_mut() {
                outcome = engine.adopt(flow, handle, &usage, now);
                if !matches!(outcome, Err(NotAdopted::OtherWorker)) {
                    break;
                }
            }
            if let Err(why) = outcome {
                tracing::debug!("flow of {} with {} ended: {why}", flow.inside.0, flow.remote);
                refused.add(why, 1);
            }
            outcome.is_ok()
        });
        refused.add(NotAdopted::NoTranslator, adopted.gone.into());
        let ended = [adopted.refused, adopted.gone, adopted.strays].map(u64::from).iter().sum::<u64>();
        tracing::info!("{} continue in the fast path, {ended} ended", plural(adopted.kept.into(), "flow"));
        refused.tell("flow");
    }
}
