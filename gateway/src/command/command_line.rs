//! The command line of `sixway` and its dispatch.

use super::configuration_file::{named_or_default, named_or_running};
use super::dns64::{self, Dns64Command};
use super::doctor;
use super::down::{self, DownArguments};
use super::ds_lite::{self, DsLiteCommand};
use super::edit::{self, BindingCommand, LeaseCommand, SessionCommand, SubscriberCommand};
use super::failure::Failure;
use super::fast_path::{self, FastPathCommand};
use super::generate::{self, GenerateArguments};
use super::nat::{self, NatCommand};
use super::output::{complain, say};
use super::pool::{self, PoolCommand};
use super::reload::{self, ReloadArguments};
use super::run_directory::RUN_DIRECTORY;
use super::run_gateway;
use super::show;
use super::show_arguments::ShowArguments;
use super::six_rd::{self, SixRdCommand};
use super::support::{self, SupportArguments};
use super::trace::{self, ReplayArguments, TraceArguments};
use super::up::{self, UpArguments};
use super::warnings::warn;
use crate::config::{Config, LogFormat};
use crate::{daemon, event_log, host};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// IPv4/IPv6 gateway: NAT64, SIIT, DNS64, NPTv6 and tunnels.
#[derive(Debug, Parser)]
#[command(name = "sixway", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway until SIGTERM or SIGINT; SIGHUP reloads the configuration.
    Run(RunArguments),
    /// Make this box the gateway of a LAN until a signal or `sixway down`: NAT44, IPv6, router advertisements, a packet filter.
    Up(UpArguments),
    /// End a gateway that `sixway up` started, and restore the host if it was killed.
    Down(DownArguments),
    /// Check a configuration file without changing anything.
    Check(ConfigArguments),
    /// Find out why the gateway does not work on this host, without changing anything: routes, forwarding, ports, packet filter, upstreams.
    Doctor(DoctorArguments),
    /// The part of `doctor` that runs in a separate network namespace.
    #[command(hide = true)]
    DoctorProbe,
    /// Read the configuration of a running gateway again; sessions continue. A configuration that fails is rolled back.
    Reload(ReloadArguments),
    /// Restore the host settings that crashed gateways left behind.
    Cleanup,
    /// Show the state of a running gateway.
    Show(ShowArguments),
    /// Add or end a binding of a running gateway.
    #[command(subcommand)]
    Binding(BindingCommand),
    /// End a session of a running gateway.
    #[command(subcommand)]
    Session(SessionCommand),
    /// End the bindings of a subscriber of a running gateway.
    #[command(subcommand)]
    Subscriber(SubscriberCommand),
    /// End a lease of a running 4over6 concentrator.
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Drain, add or remove addresses of a pool of a running gateway.
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Show what the gateway does with a packet, and why; nothing is sent or changed.
    Trace {
        /// The configuration file [default: /etc/sixway/sixway.toml, or the only one there].
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        packet: TraceArguments,
    },
    /// Process the packets of a capture with the gateway's engine, and write the results to another capture.
    Replay {
        /// The configuration file [default: /etc/sixway/sixway.toml, or the only one there].
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        files: ReplayArguments,
    },
    /// Write the data for a bug report to a text file: versions, configuration, state, and output of this host's programs.
    Support(SupportArguments),
    /// Search the event log of NAT64 and NAT44.
    #[command(subcommand)]
    Nat(NatCommand),
    /// Compute 6rd prefixes and addresses; no running gateway is needed.
    #[command(subcommand)]
    SixRd(SixRdCommand),
    /// Change the AFTR of a running B4 of DS-Lite.
    #[command(subcommand)]
    DsLite(DsLiteCommand),
    /// Manage the fast path, which forwards packets in the kernel.
    #[command(subcommand)]
    Fastpath(FastPathCommand),
    /// Change the cache of a running DNS64.
    #[command(subcommand)]
    Dns64(Dns64Command),
    /// Write man pages and shell completions, for packages.
    #[command(hide = true)]
    Generate(GenerateArguments),
}

/// The arguments of `sixway run`.
#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Take over from the running process of this gateway: sessions continue, and the fast path is not interrupted.
    #[arg(long)]
    takeover: bool,
}

/// The arguments of `sixway run` and `sixway check`.
#[derive(Debug, Args)]
struct ConfigArguments {
    /// The configuration file, as with --config.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The configuration file [default: /etc/sixway/sixway.toml, or the only one there].
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The arguments of `sixway doctor`.
#[derive(Debug, Args)]
struct DoctorArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl ConfigArguments {
    fn path(&self) -> Result<PathBuf, Failure> {
        named_or_default(self.named())
    }

    fn running(&self) -> Result<PathBuf, Failure> {
        named_or_running(self.named())
    }

    fn named(&self) -> Option<&Path> {
        self.file.as_deref().or(self.config.as_deref())
    }
}

/// Parses `arguments` (the program's name first) and runs the command.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) => {
            let asked_for_help = !error.use_stderr();
            // If the output is closed, no one can be notified.
            let _ = error.print();
            return if asked_for_help { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    let outcome = match &line.command {
        Command::Run(arguments) => arguments
            .config
            .path()
            .and_then(|path| run_gateway::run(&path, arguments.takeover, &AtomicBool::new(false)))
            .map(drop),
        Command::Up(arguments) => up::run(arguments),
        Command::Down(arguments) => down::run(arguments),
        Command::Check(arguments) => {
            arguments.path().and_then(|path| load(&path)).map(|config| check(&config))
        }
        Command::Doctor(arguments) => {
            let config = arguments.config.running().and_then(|path| load(&path));
            config.and_then(|config| doctor::run(&config, arguments.json))
        }
        Command::DoctorProbe => match crate::doctor::probe::act() {
            Ok(text) => {
                say(&text);
                Ok(())
            }
            Err(error) => Err(Failure::Failed(error)),
        },
        Command::Reload(arguments) => reload::run(arguments),
        Command::Cleanup => cleanup(),
        Command::Binding(command) => edit::binding(command),
        Command::Session(command) => edit::session(command),
        Command::Subscriber(command) => edit::subscriber(command),
        Command::Lease(command) => edit::lease(command),
        Command::Pool(command) => pool::run(command),
        Command::Show(arguments) => show::run(arguments),
        Command::Trace { config, packet } => {
            load_quietly(config.as_deref()).and_then(|config| trace::run(packet, &config))
        }
        Command::Replay { config, files } => {
            load_quietly(config.as_deref()).and_then(|config| trace::run_replay(files, &config))
        }
        Command::Support(arguments) => support::run(arguments),
        Command::Nat(command) => nat::run(command),
        Command::SixRd(command) => six_rd::run(command),
        Command::DsLite(command) => ds_lite::run(command),
        Command::Fastpath(command) => fast_path::run(command),
        Command::Dns64(command) => dns64::run(command),
        Command::Generate(arguments) => generate::run(arguments, CommandLine::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(what)) => complain(&what, 1),
        Err(Failure::Wrong(what)) => complain(&what, 2),
    }
}

/// Loads the configuration and prints its warnings.
fn load(path: &Path) -> Result<Config, Failure> {
    let (config, warnings) =
        Config::load(path, &host::host_facts()).map_err(|faults| Failure::Wrong(faults.to_string()))?;
    warn(&warnings, LogFormat::Text);
    Ok(config)
}

/// The same without its warnings: `sixway check` prints them.
fn load_quietly(named: Option<&Path>) -> Result<Config, Failure> {
    let loaded = Config::load(&named_or_default(named)?, &host::host_facts());
    loaded.map(|(config, _)| config).map_err(|faults| Failure::Wrong(faults.to_string()))
}

/// There are no faults. Messages of a start about the fast path are notes.
fn check(config: &Config) {
    for line in daemon::left_to_the_engine(config) {
        // If the output is closed, no one can be notified.
        let _ = writeln!(io::stderr(), "note: fast path: {line}");
    }
    for line in event_log::faults_of(config) {
        let _ = writeln!(io::stderr(), "warning: event log: {line}");
    }
    for it in config.exposed() {
        let line = match it.restrict {
            Some(how) => format!("warning: {} is open to any host: {}; {how}", it.name, it.what),
            None => format!("note: {}: {}", it.name, it.what),
        };
        let _ = writeln!(io::stderr(), "{line}");
    }
    say("No errors.");
}

fn cleanup() -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (name, outcome) in host::leftovers(Path::new(RUN_DIRECTORY)) {
        match outcome {
            Ok(left) => say(&format!("{name}: {left}")),
            Err(host::RecordError::Taken { .. }) => say(&format!("{name} is running: left unchanged")),
            Err(error) => failed.push(error.to_string()),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
}
