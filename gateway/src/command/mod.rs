//! The command line: what `sixway` understands. Exit status 0: done; 1: it failed; 2: the request was wrong.

mod show;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
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
    /// Look at a running gateway.
    Show(ShowArguments),
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
        Command::Show(arguments) => show::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(what)) => complain(&what, 1),
        Err(Failure::Wrong(what)) => complain(&what, 2),
    }
}

fn complain(what: &str, status: u8) -> ExitCode {
    // Where nobody reads, there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}", what.trim_end());
    ExitCode::from(status)
}
