//! From the start to the end of a gateway.

use super::dns64::Dns64;
use super::dns64_reload::{Dns64Reload, Dns64Reloads};
use super::environment::{ApiSockets, Environment};
use super::error::RunError;
use super::facts::Facts;
use super::gateway::Gateway;
use super::lifecycle::{Ended, Ending, Reloads};
use super::pcp::PcpServer;
use super::reload::Previous;
use super::signals::Signals;
use super::start::Start;
use super::teredo_server::TeredoServer;
use super::threads::Threads;
use super::{
    child_processes, dns64_kept, lease_keeper, log, log_listing, offload, pool_keeper, serve, service,
    takeover,
};
use crate::config::Config;
use crate::host;
use crate::show::plural;
use crate::view::Device;
use sixway_link::{Listeners, Tun};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::mpsc::{self, channel};

/// Packets for control protocols that wait.
const CONTROL: usize = 256;

/// Runs a gateway until a signal stops it (SIGTERM, SIGINT), or another process takes over. SIGHUP reloads the configuration.
///
/// # Errors
/// It could not start, or failed; the host was restored.
pub fn run(start: &Start<'_>) -> Result<Ended, RunError> {
    let started = Instant::now();
    Signals::hold().map_err(|error| RunError::Io("signals".into(), error))?;
    log::start(start.config.gateway.log, start.config.gateway.log_format);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::Io("runtime".into(), error))?;
    child_processes::reap_all();
    takeover::keep_sessions(start);
    let mut listeners = Listeners::default();
    let end = runtime.block_on(live(start, started, &mut listeners));
    // A pending DNS lookup must not delay the end.
    runtime.shutdown_background();
    let previous = Previous::path(start.directory, &start.config.gateway.name);
    let error = match end {
        Ok(Ending::Whole(Ok(()))) => return Ok(Ended::Stopped),
        Ok(Ending::TakenOver) => return Ok(Ended::TakenOver),
        Ok(Ending::ReExecute) => "the gateway stopped".to_owned(),
        Err(error) | Ok(Ending::Whole(Err(error))) => {
            if !rolls_back(start, &error, false) {
                if start.previous.is_some() {
                    put_back(start);
                }
                return Err(error);
            }
            error.to_string()
        }
    };
    let again = takeover::re_execute(&previous, &listeners);
    put_back(start);
    Err(RunError::Takeover(format!("{error}; it could not be restarted: {again}")))
}

/// Restores what was left for a next process that does not come. What fails stays in the state file.
fn put_back(start: &Start<'_>) {
    let _ = host::clear_up(start.directory, &start.config.gateway.name);
}

/// Whether the previous configuration returns because of this: while another one is on trial, `in_process` or since the start.
fn rolls_back(start: &Start<'_>, error: &RunError, in_process: bool) -> bool {
    let file = Previous::path(start.directory, &start.config.gateway.name);
    let rolls_back =
        (start.previous.is_some() || in_process) && Previous::roll_back(&file, &error.to_string()).is_ok();
    if rolls_back {
        tracing::error!("the reloaded configuration failed: {error}");
    }
    rolls_back
}

/// `listeners`: sockets that this process keeps when it executes itself again.
async fn live(start: &Start<'_>, started: Instant, listeners: &mut Listeners) -> Result<Ending, RunError> {
    let config = start.config;
    // Before anything is changed: from here on, a signal ends the gateway in order.
    let mut signals = Signals::open().map_err(|error| RunError::Io("signals".into(), error))?;
    let Some((mut environment, engines, tun)) = Environment::set_up_all(start, &mut signals).await? else {
        return Ok(Ending::Whole(Ok(())));
    };
    let device = tun.as_ref().map(|tun| device(config, tun));
    let sockets = ApiSockets::open(config, &mut environment.host).await?;
    let (control, mut controlled) = channel(CONTROL);
    let mut queues = tun.map_or_else(Default::default, |tun| (tun.queues, tun.blocks));
    // Behind those of the main device, of which each worker has one at least.
    queues.0.extend(environment.host.take_realm_queues());
    let mut threads =
        Threads::start(engines, queues, (environment.clock, config.gateway.busy_poll), &control)?;
    let (mut dns64, mut teredo, pcp) = environment.begin(start, &mut threads)?;
    let facts = environment.facts(config, device);
    dns64_kept::forget(start);
    say_ready(
        &facts,
        threads.posts.len(),
        &environment.lines(config, dns64.as_ref()).await,
        started,
        &sockets.socket,
    );
    takeover::forget_sessions(start);
    environment.host.started();
    start.ready.store(true, Ordering::Relaxed);
    service::ready();
    let gateway = Gateway::new(facts, threads.posts.clone(), dns64.as_ref().map(Dns64::view));
    let gateway = gateway.with_teredo_server(teredo.as_ref().map(TeredoServer::view));
    let gateway = gateway.with_pcp(pcp.as_ref().map(PcpServer::view));
    let gateway =
        gateway.with_event_log(environment.event_log.clone()).with_leases(environment.leases.clone());
    let gateway = Arc::new(gateway.with_fast_path(environment.carried()).with_config_file(start.file));
    let Environment { host, tunnels, pools, keeper, offload, seed, sessions, .. } = &mut environment;
    let (dns64_reloads, mut dns64_reloaded) = Dns64Reloads::new();
    let reloads = Reloads::new(start, *seed, &gateway, *sessions, dns64_reloads);
    let offload = offload.as_ref();
    let end = tokio::select! {
        end = reloads.wait(&mut signals) => end,
        () = gateway.asked_to_leave() => Ending::TakenOver,
        error = threads.first_end() => Ending::Whole(Err(RunError::Worker(error))),
        error = keep(&mut dns64, &gateway, &mut dns64_reloaded) => Ending::Whole(Err(RunError::Dns64(error))),
        error = serve_teredo(&mut teredo) => Ending::Whole(Err(RunError::Teredo(error))),
        () = serve::admin(sockets.admin, Arc::clone(&gateway)) => Ending::Whole(Ok(())),
        () = serve::metrics(sockets.metrics, Arc::clone(&gateway)) => Ending::Whole(Ok(())),
        () = gateway.watch() => Ending::Whole(Ok(())),
        () = pool_keeper::keep(pools, &gateway) => Ending::Whole(Ok(())),
        () = tunnels.keep(host, &gateway, &mut controlled, offload) => Ending::Whole(Ok(())),
        () = log_listing::keep(&gateway) => Ending::Whole(Ok(())),
        () = offload::keep(keeper, offload) => Ending::Whole(Ok(())),
        () = lease_keeper::keep(&gateway) => Ending::Whole(Ok(())),
    };
    let on_trial = gateway.is_on_trial();
    let end = match end {
        // The other workers' sessions continue.
        Ending::Whole(Err(error)) if rolls_back(start, &error, on_trial) => Ending::ReExecute,
        end => end,
    };
    let name = &config.gateway.name;
    match (&mut dns64, &end) {
        (Some(dns64), Ending::Whole(_)) => dns64.stop(),
        (Some(dns64), Ending::ReExecute | Ending::TakenOver) => {
            let left = dns64.leave();
            dns64_kept::keep(start.directory, name, &left);
            *listeners = left.listeners;
        }
        (None, _) => {}
    }
    drop(teredo);
    // It leaves its file before the next process reads it.
    drop(pcp);
    match &end {
        Ending::Whole(_) => service::stopping(),
        Ending::ReExecute => service::reloading(),
        // Its successor is the main process.
        Ending::TakenOver => {}
    }
    match end {
        Ending::TakenOver => {
            // Before the lock is released: the next process reads them then.
            dns64_kept::pass(start.directory, name, listeners);
            environment.leave(start, gateway, &mut threads).await?;
        }
        Ending::ReExecute => environment.leave_to_itself(start, gateway, &mut threads).await,
        Ending::Whole(_) => environment.end(gateway, &mut threads).await,
    }
    Ok(end)
}

/// Runs until a DNS thread fails; returns why.
async fn keep(
    dns64: &mut Option<Dns64>,
    gateway: &Gateway,
    reloads: &mut mpsc::Receiver<Dns64Reload>,
) -> String {
    match dns64 {
        Some(dns64) => dns64.keep(gateway, reloads).await,
        None => std::future::pending().await,
    }
}

/// Runs until the thread of the Teredo server fails; returns why.
async fn serve_teredo(teredo: &mut Option<TeredoServer>) -> String {
    match teredo {
        Some(teredo) => teredo.keep().await,
        None => std::future::pending().await,
    }
}

fn device(config: &Config, tun: &Tun) -> Device {
    Device {
        name: tun.name.clone(),
        mtu: config.tun.mtu.into(),
        queues: tun.queues.len(),
        gso: tun.abilities.to_string(),
    }
}

/// The lines printed at the start; `further`: titles and texts.
fn say_ready(facts: &Facts, workers: usize, further: &[(&str, String)], started: Instant, socket: &Path) {
    let device = facts.device.as_ref().map(|device| {
        let queues = plural(device.queues as u64, "queue");
        let workers = plural(workers as u64, "worker");
        format!(" · {workers} · {} up (GSO: {}; {queues})", device.name, device.gso)
    });
    let device = device.unwrap_or_default();
    let mut text = format!("sixway {} · {}{device}\n", env!("CARGO_PKG_VERSION"), facts.name);
    for mechanism in &facts.mechanisms {
        text.push_str(&format!("  {:<12}  {}\n", mechanism.name, mechanism.serves));
    }
    for (what, how) in further {
        text.push_str(&format!("  {what:<12}  {how}\n"));
    }
    for (link, says) in &facts.advertised {
        text.push_str(&format!("  {:<12}  router on {link} · {says}\n", "advertises"));
    }
    let metrics = facts.metrics.as_ref().map_or_else(String::new, |url| format!(" · metrics {url}"));
    let milliseconds = started.elapsed().as_millis();
    text.push_str(&format!("ready in {milliseconds} ms · admin {}{metrics}\n", socket.display()));
    // If the output is closed, no one can be notified.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}
