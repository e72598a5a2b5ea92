//! `sixway reload`: reloads the configuration, shows what would change, keeps it or returns to the previous one.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::{failure, only_socket};
use crate::admin::{Client, MAX_LIMIT};
use crate::config::Config;
use crate::reload::{Effect, changes};
use crate::show::plural;
use crate::view::{Page, ReloadRow, SessionRow, Status};
use crate::{daemon, event_log, host};
use clap::Args;
use sixway_dataplane::nat::NotAdopted;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the gateway may take until it answers again.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(50);
/// Sessions that a dry run looks at, at most.
const SESSIONS: usize = 1_000_000;

/// The arguments of `sixway reload`.
#[derive(Debug, Args)]
pub(super) struct ReloadArguments {
    /// Say what would change and which sessions would end; nothing is changed.
    #[arg(long, conflicts_with_all = ["confirm", "keep", "roll_back"])]
    dry_run: bool,
    /// Return to the previous configuration unless `sixway reload --keep` comes within this number of seconds.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["keep", "roll_back"])]
    confirm: Option<u64>,
    /// Keep the reloaded configuration.
    #[arg(long, conflicts_with = "roll_back")]
    keep: bool,
    /// Return to the configuration before the last reload, while that is on trial.
    #[arg(long)]
    roll_back: bool,
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &ReloadArguments) -> Result<(), Failure> {
    let socket = match &arguments.socket {
        Some(path) => path.clone(),
        None => only_socket(Path::new(RUN_DIRECTORY))?,
    };
    let client = Client::new(&socket);
    if arguments.keep {
        client.post::<()>("/v1/reload/keep", &[]).map_err(failure)?;
        say("The reloaded configuration is kept.");
        return Ok(());
    }
    let before: Status = client.get("/v1/status", &[]).map_err(failure)?;
    if arguments.roll_back {
        client.delete::<()>("/v1/reload", &[]).map_err(failure)?;
        wait(&[client], &before)?;
        say("The previous configuration is in force again.");
        return Ok(());
    }
    let file = Path::new(&before.config_file);
    let (config, _) =
        Config::load(file, &host::host_facts()).map_err(|faults| Failure::Wrong(faults.to_string()))?;
    if arguments.dry_run {
        return dry_run(&client, &before, &config);
    }
    let confirm = arguments.confirm.map(|seconds| seconds.to_string());
    client.post::<()>("/v1/reload", &[("confirm", confirm)]).map_err(failure)?;
    let after = wait(&[client, Client::new(&config.gateway.admin_socket)], &before)?;
    report(&after.reload.unwrap_or_default())
}

/// Waits until the gateway answers again.
pub(super) fn wait(sockets: &[Client], before: &Status) -> Result<Status, Failure> {
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        let answers = sockets.iter().filter_map(|client| client.get::<Status>("/v1/status", &[]).ok());
        let mut anew = answers.filter(|now| now.started_milliseconds != before.started_milliseconds);
        if let Some(status) = anew.next() {
            return Ok(status);
        }
        std::thread::sleep(STEP);
    }
    let seconds = PATIENCE.as_secs();
    Err(Failure::Failed(format!(
        "the gateway has not answered for {seconds} s since the reload; read its log"
    )))
}

fn report(reload: &ReloadRow) -> Result<(), Failure> {
    if reload.state == "rolled back" {
        let why = reload.reason.as_deref().unwrap_or("no reason is known");
        return Err(Failure::Failed(format!("rolled back to the previous configuration: {why}")));
    }
    let (all, kept) = (reload.sessions, reload.sessions_kept);
    match reload.in_process {
        true => {
            say("reloaded without a restart: the cache of the DNS64, all connections and sessions continue")
        }
        false => say(&format!("reloaded: {kept} of {} of the engine continue", plural(all, "session"))),
    }
    if let (true, Some(seconds)) = (reload.state == "awaits confirmation", reload.seconds_left) {
        say(&format!(
            "keep it with `sixway reload --keep`; otherwise the previous configuration returns in {seconds} s"
        ));
    }
    Ok(())
}

fn dry_run(client: &Client, status: &Status, config: &Config) -> Result<(), Failure> {
    let running: serde_json::Value = client.get("/v1/config", &[]).map_err(failure)?;
    daemon::check_reload(&status.name, config).map_err(Failure::Wrong)?;
    let new = serde_json::to_value(config).unwrap_or_default();
    let changes = changes(&running, &new);
    if changes.is_empty() {
        say("No key changes.");
    }
    let width = changes.iter().map(|change| change.key.len()).max().unwrap_or(0);
    for change in &changes {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".into());
        say(&format!("{:width$}  {} → {}", change.key, text(&change.old), text(&change.new)));
    }
    if config.dns64.is_some() && daemon::stays_in_process(&changes) {
        say(match changes.as_slice() {
            [] => "The cache of the DNS64, all connections and sessions continue.",
            _ => "The DNS64 changes without a restart: its cache, all connections and sessions continue.",
        });
        say("Nothing was changed.");
        return Ok(());
    }
    say(&sessions(client, &running, config)?);
    if let Some(why) = daemon::flows_lost(&running, config) {
        say(&format!("fast path: its sessions move to the engine first: {why}"));
    }
    for line in event_log::faults_of(config) {
        say(&format!("event log: {line}"));
    }
    say("Nothing was changed.");
    Ok(())
}

/// The effect on the sessions, in a line.
fn sessions(client: &Client, running: &serde_json::Value, config: &Config) -> Result<String, Failure> {
    let mut effect = Effect::of(running, config, &host::surroundings()).map_err(Failure::Failed)?;
    let (mut seen, mut cursor) = (0, None);
    let total = loop {
        let query = [("limit", Some(MAX_LIMIT.to_string())), ("cursor", cursor)];
        let page: Page<SessionRow> = client.get("/v1/sessions", &query).map_err(failure)?;
        effect.add(&page.rows);
        seen += page.rows.len();
        match page.next {
            Some(next) if seen < SESSIONS => cursor = Some(next),
            Some(_) | None => break page.total,
        }
    };
    let part = if (seen as u64) < total { format!(" (of {total}, as a sample)") } else { String::new() };
    let all = plural(seen as u64, "session");
    let mut text = format!("{} of {all}{part} continue", effect.continued());
    for (why, count) in effect.ended() {
        text.push_str(&format!("; {count} would end: {why}"));
    }
    if effect.ended().iter().any(|(why, _)| *why == NotAdopted::PortNotGiven) {
        text.push_str("\nAddresses that are drained first end no session: sixway pool drain NAME PREFIX");
    }
    Ok(text)
}
