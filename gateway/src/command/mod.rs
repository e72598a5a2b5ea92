//! The command line: what `sixway` understands. Exit status 0: done; 1: it failed; 2: the request was wrong.

mod dns64;
mod fast_path;
mod show;
mod six_rd;

use crate::config::{Config, Warning, write_aligned};
use crate::{daemon, host};
use clap::{Args, Parser, Subcommand, ValueEnum};
use dns64::Dns64Command;
use fast_path::FastPathCommand;
use six_rd::SixRdCommand;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where a running gateway keeps its socket and what it must put back: a file of each for every gateway, by name.
pub const RUN_DIRECTORY: &str = "/run/sixway";

/// One gateway for every way between IPv4 and IPv6.
#[derive(Debug, Parser)]
#[command(name = "sixway", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway until a signal ends it.
    Run(RunArguments),
    /// Check a configuration and touch nothing.
    Check(ConfigArguments),
    /// Put back what gateways left behind that ended suddenly.
    Cleanup,
    /// Look at a running gateway.
    Show(ShowArguments),
    /// Compute 6rd prefixes and addresses; nothing needs to run.
    #[command(subcommand)]
    SixRd(SixRdCommand),
    /// What the kernel carries on by itself.
    #[command(subcommand)]
    Fastpath(FastPathCommand),
    /// Change what a running DNS64 keeps.
    #[command(subcommand)]
    Dns64(Dns64Command),
}

/// What `sixway run` takes.
#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Take over from the process that runs this gateway: sessions go on, and what the kernel carries on is not interrupted.
    #[arg(long)]
    takeover: bool,
}

/// What `sixway run` and `sixway check` take.
#[derive(Debug, Args)]
struct ConfigArguments {
    /// The configuration file.
    #[arg(short, long, value_name = "FILE", default_value = "/etc/sixway/sixway.toml")]
    config: PathBuf,
}

/// What `sixway show` takes.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// What to look at; nothing: the gateway in a few lines.
    kind: Option<ShowKind>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Only with this inside endpoint: ADDRESS, PREFIX/LENGTH or [ADDRESS]:PORT.
    #[arg(long)]
    inside: Option<String>,
    /// Only with this outside endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    outside: Option<String>,
    /// Only with this remote endpoint: ADDRESS, PREFIX/LENGTH or ADDRESS:PORT.
    #[arg(long)]
    remote: Option<String>,
    /// Only with this port or ICMP identifier on any side.
    #[arg(long)]
    port: Option<u16>,
    /// Only of this protocol: tcp, udp or icmp.
    #[arg(long)]
    protocol: Option<String>,
    /// At most so many rows.
    #[arg(long, default_value_t = 1_000)]
    limit: usize,
    /// The gateway's socket, if it is not the only one in /run/sixway.
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShowKind {
    /// Inside endpoints and the outside endpoints they have.
    Bindings,
    /// Who talks to whom.
    Sessions,
    /// Every counter.
    Counters,
    /// Why packets were dropped.
    Drops,
    /// 6rd domains and the prefixes that are delegated in them.
    SixRd,
    /// What hosts on the links are told.
    RouterAdvertisements,
    /// The DNS64: its upstreams, what became of queries, what is kept.
    Dns64,
    /// What the kernel carries on by itself, and what it leaves to the engine.
    Fastpath,
    /// The configuration in force.
    Config,
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It failed: exit status 1.
    Failed(String),
    /// The request was wrong: exit status 2.
    Wrong(String),
}

/// Runs the command that `arguments` (the program's name first) ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) => {
            let asked_for_help = !error.use_stderr();
            // Where nobody reads, there is nobody to tell.
            let _ = error.print();
            return if asked_for_help { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    let outcome = match &line.command {
        Command::Run(arguments) => load(&arguments.config.config).and_then(|config| {
            let start = daemon::Start {
                config: &config,
                file: &arguments.config.config,
                directory: Path::new(RUN_DIRECTORY),
                takeover: arguments.takeover,
            };
            daemon::run(&start).map_err(|error| Failure::Failed(error.to_string()))
        }),
        Command::Check(arguments) => load(&arguments.config).map(|config| check(&config)),
        Command::Cleanup => cleanup(),
        Command::Show(arguments) => show::run(arguments),
        Command::SixRd(command) => six_rd::run(command),
        Command::Fastpath(command) => fast_path::run(command),
        Command::Dns64(command) => dns64::run(command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(what)) => complain(&what, 1),
        Err(Failure::Wrong(what)) => complain(&what, 2),
    }
}

/// The configuration without faults; its warnings are told.
fn load(path: &Path) -> Result<Config, Failure> {
    let (config, warnings) = Config::load(path, &crate::host::host_facts())
        .map_err(|faults| Failure::Wrong(faults.to_string()))?;
    warn(&warnings);
    Ok(config)
}

fn warn(warnings: &[Warning]) {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_aligned(&mut text, warnings);
    for line in text.lines() {
        // Where nobody reads, there is nobody to tell.
        let _ = writeln!(io::stderr(), "warning: {line}");
    }
}

/// There are no faults. What a start would say of the fast path is remarked upon, for nothing is wrong with it.
fn check(config: &Config) {
    for line in daemon::left_to_the_engine(config) {
        // Where nobody reads, there is nobody to tell.
        let _ = writeln!(io::stderr(), "remark: fast path: {line}");
    }
    say("No faults.");
}

fn cleanup() -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (name, outcome) in host::leftovers(Path::new(RUN_DIRECTORY)) {
        match outcome {
            Ok(left) => say(&format!("{name}: {left}")),
            Err(host::RecordError::Taken { .. }) => say(&format!("{name} runs and is left alone")),
            Err(error) => failed.push(error.to_string()),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
}

fn say(what: &str) {
    // Where nobody reads, there is nobody to tell.
    let _ = writeln!(io::stdout(), "{what}");
}

fn complain(what: &str, status: u8) -> ExitCode {
    // Where nobody reads, there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}", what.trim_end());
    ExitCode::from(status)
}
