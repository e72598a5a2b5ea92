//! `sixway-lab`: the demonstration and the benchmarks.

use clap::{Parser, Subcommand};
use sixway_lab::results::Machine;
use sixway_lab::{bench, demo, failure::Failure, interrupt, programs, run as laboratory, topology};
use std::path::PathBuf;
use std::process::ExitCode;

/// Demonstrates Sixway in network namespaces and measures it against other programs
#[derive(Parser)]
#[command(name = "sixway-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show an IPv6-only client that opens a page on an IPv4-only server through Sixway
    Demo {
        /// Keep the network at the end (also: KEEP=1)
        #[arg(long)]
        keep: bool,
        /// Show sixway's log
        #[arg(long)]
        trace: bool,
    },
    /// Measure, and print tables of figures with their targets
    Bench(bench::Options),
    /// List the experiments and the devices under test, with what they need
    List,
    /// Run experiments, most of them papers replayed, and write a report; an interrupted run is resumed
    #[command(alias = "experiment")]
    Run(laboratory::Options),
    /// Write the report of a run again, from what is stored in its folder
    Report {
        /// The run's folder
        folder: PathBuf,
    },
    /// Remove a network that `demo --keep` left, by the suffix of its names
    Remove {
        /// Six hexadecimal digits
        suffix: String,
    },
    /// Print the Debian packages of required programs that are not installed
    Deps,
}

fn main() -> ExitCode {
    let done = interrupt::watch().and_then(|()| run(Arguments::parse().command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => {
            eprintln!("interrupted; everything was removed");
            ExitCode::from(130)
        }
        Err(failure) => {
            eprintln!("sixway-lab: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo { keep, trace } => {
            must_be_root()?;
            let keep = keep || std::env::var("KEEP").is_ok_and(|value| value == "1");
            demo::run(demo::Options { keep, trace })
        }
        Command::Bench(options) => bench::run(&options),
        Command::List => {
            print!("{}", laboratory::list(&Machine::here())?);
            Ok(())
        }
        Command::Run(options) => {
            print!("{}", laboratory::run(&options)?);
            Ok(())
        }
        Command::Report { folder } => {
            print!("{}", laboratory::report(&folder)?);
            Ok(())
        }
        Command::Remove { suffix } => {
            must_be_root()?;
            let removed = topology::remove(&suffix)?;
            println!("{removed} namespaces removed");
            Ok(())
        }
        Command::Deps => {
            programs::missing_packages().into_iter().for_each(|package| println!("{package}"));
            Ok(())
        }
    }
}

fn must_be_root() -> Result<(), Failure> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(Failure::Unexpected("network namespaces need root: run it with sudo".to_owned())),
    }
}
