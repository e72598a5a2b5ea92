//! From the start to the end of a gateway.

use super::backend::Gateway;
use super::dns64::Dns64;
use super::error::RunError;
use super::facts::Facts;
use super::ground::{Doors, Ground};
use super::signals::{Signals, Told};
use super::start::Start;
use super::threads::Threads;
use super::{log, offload, pool_keeper, serve, takeover};
use crate::admin::Backend;
use crate::config::Config;
use crate::host;
use crate::show::plural;
use crate::view::Device;
use sixway_link::Tun;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::channel;

/// Packets for control protocols that wait.
const CONTROL: usize = 256;

/// How a gateway ends.
enum End {
    /// It is to end, or has to.
    Whole(Result<(), RunError>),
    /// Another process goes on.
    MakingWay,
    /// This process goes on as another.
    Anew,
}

/// Runs a gateway until it is told to end by a signal (SIGTERM, SIGINT; SIGHUP if it has no fast path), or another process takes over.
///
/// # Errors
/// It could not start, or ended by itself; everything was put back.
pub fn run(start: &Start<'_>) -> Result<(), RunError> {
    let started = Instant::now();
    Signals::hold().map_err(|error| RunError::Io("signals".into(), error))?;
    log::start(start.config.gateway.log, start.config.gateway.log_format);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::Io("runtime".into(), error))?;
    let end = runtime.block_on(live(start, started));
    // A name that the DNS is still being asked for must not hold the end up.
    runtime.shutdown_background();
    match end {
        Err(error) | Ok(End::Whole(Err(error))) => Err(error),
        Ok(End::Whole(Ok(())) | End::MakingWay) => Ok(()),
        Ok(End::Anew) => {
            let error = takeover::become_anew();
            // What cannot be put back is in the state file for the next.
            let _ = host::clear_up(start.directory, &start.config.gateway.name);
            Err(RunError::Takeover(format!("the gateway ends: it cannot be started anew: {error}")))
        }
    }
}

async fn live(start: &Start<'_>, started: Instant) -> Result<End, RunError> {
    let config = start.config;
    // Before anything is changed: from here on, a signal ends the gateway in order.
    let mut signals = Signals::open().map_err(|error| RunError::Io("signals".into(), error))?;
    let Some((mut ground, engines, tun)) = Ground::lay(start, &mut signals).await? else {
        return Ok(End::Whole(Ok(())));
    };
    let device = tun.as_ref().map(|tun| device(config, tun));
    let doors = Doors::open(config, &mut ground.host).await?;
    let (control, mut controlled) = channel(CONTROL);
    let queues = tun.map_or_else(Default::default, |tun| (tun.queues, tun.blocks));
    let mut threads = Threads::start(engines, queues, ground.clock, &control)?;
    let mut dns64 = ground.begin(config, &mut threads)?;
    let facts = ground.facts(config, device);
    say_ready(&facts, threads.posts.len(), &ground.lines(dns64.as_ref()).await, started, &doors.socket);
    let gateway = Gateway::new(facts, threads.posts.clone(), dns64.as_ref().map(Dns64::view));
    let gateway = Arc::new(gateway.with_fast_path(ground.carried()));
    let Ground { host, tunnels, pools, keeper, offload, seed, .. } = &mut ground;
    let offload = offload.as_ref();
    let end = tokio::select! {
        end = told(&mut signals, start, *seed, &gateway) => end,
        () = gateway.asked_to_leave() => End::MakingWay,
        error = threads.first_end() => End::Whole(Err(RunError::Worker(error))),
        error = keep(&mut dns64) => End::Whole(Err(RunError::Dns64(error))),
        () = serve::admin(doors.admin, Arc::clone(&gateway)) => End::Whole(Ok(())),
        () = serve::metrics(doors.metrics, Arc::clone(&gateway)) => End::Whole(Ok(())),
        () = gateway.watch() => End::Whole(Ok(())),
        () = pool_keeper::keep(pools, &gateway) => End::Whole(Ok(())),
        () = tunnels.keep(host, &gateway, &mut controlled, offload) => End::Whole(Ok(())),
        () = offload::keep(keeper, offload) => End::Whole(Ok(())),
    };
    if let Some(dns64) = &mut dns64 {
        dns64.stop();
    }
    match end {
        End::MakingWay | End::Anew => ground.leave(start, gateway, &mut threads).await?,
        End::Whole(_) => ground.end(gateway, &mut threads).await,
    }
    Ok(end)
}

/// Lives until a DNS thread ends by itself; says why.
async fn keep(dns64: &mut Option<Dns64<'_>>) -> String {
    match dns64 {
        Some(dns64) => dns64.keep().await,
        None => std::future::pending().await,
    }
}

fn device(config: &Config, tun: &Tun) -> Device {
    Device {
        name: tun.name.clone(),
        mtu: config.tun.mtu.into(),
        queues: tun.queues.len(),
        super_frames: tun.abilities.to_string(),
    }
}

/// The lines that a person sees at the start; `further`: what, and how it is.
fn say_ready(facts: &Facts, workers: usize, further: &[(&str, String)], started: Instant, socket: &Path) {
    let device = facts.device.as_ref().map(|device| {
        let queues = plural(device.queues as u64, "queue");
        let workers = plural(workers as u64, "worker");
        format!(" · {workers} · {} up (super-frames: {}; {queues})", device.name, device.super_frames)
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
    // Where nobody reads, there is nobody to tell.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Waits for a signal that ends the gateway, or makes it begin anew.
async fn told(signals: &mut Signals, start: &Start<'_>, seed: [u64; 2], gateway: &Gateway) -> End {
    let ending = |name: &str| {
        tracing::info!("{name}: ending");
        End::Whole(Ok(()))
    };
    loop {
        match signals.next().await {
            Told::End(name) => return ending(name),
            Told::HungUp if start.config.fast_path.is_none() => return ending("SIGHUP"),
            Told::HungUp => {}
        }
        let Some(config) = takeover::reloaded(start) else { continue };
        // Nobody carries the packets of the engines between two processes: what takes long is done before.
        tokio::select! {
            name = signals.end() => return ending(name),
            () = offload::leave_ahead(&config, seed) => {}
        }
        if let Some(why) = takeover::loses_flows_to(start, &config).await {
            tracing::info!("SIGHUP: flows are taken back from the fast path: {why}");
            if let Err(error) = Backend::end_fast_path(gateway).await {
                tracing::error!("not reloaded: sessions on the fast path would be lost: {error}");
                continue;
            }
        }
        // The file may be another by now, and there is no way back from the process that reads it next.
        if takeover::reloaded(start).is_some() {
            tracing::info!("SIGHUP: beginning anew");
            return End::Anew;
        }
    }
}
