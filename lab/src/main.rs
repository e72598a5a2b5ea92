//! `sixway-lab`: the demonstration and the benchmarks.

use clap::{Parser, Subcommand};
use sixway_lab::device::DeviceOptions;
use sixway_lab::results::Machine;
use sixway_lab::{
    bench, demo, failure::Failure, impair, interrupt, programs, rootless, run as laboratory, topology,
};
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
    /// Show hosts of each kind behind `sixway up` that reach servers of each kind, and other mechanisms
    Demo {
        /// Keep the network at the end (also: KEEP=1)
        #[arg(long)]
        keep: bool,
        /// Show sixway's log
        #[arg(long)]
        trace: bool,
        /// Show the site alone, without the further ways
        #[arg(long)]
        site: bool,
    },
    /// Measure, and print tables of figures with their targets
    Bench(bench::Options),
    /// List the experiments and the devices under test, with what they need
    List {
        #[command(flatten)]
        #[allow(missing_docs, reason = "a comment would become text of the command line")]
        devices: DeviceOptions,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Run experiments, most of them from papers, and write a report; an interrupted run is resumed
    #[command(alias = "experiment")]
    Run(laboratory::Options),
    /// Write the report of a run again (HTML, Markdown, CSV, JSON), from the data in its folder
    Report {
        /// The run's folder; of published results, run.json and data.csv are enough
        folder: PathBuf,
        /// Another folder for the report
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Compare two runs, cell by cell
    Compare {
        /// The folder of the first run
        first: PathBuf,
        /// The folder of the second run, which is judged
        second: PathBuf,
        /// Fail if a value of the second run is worse by more than this factor, and the difference exceeds the noise
        #[arg(long, value_name = "FACTOR")]
        fail_above: Option<f64>,
    },
    /// Remove a network that `demo --keep` left, by the suffix of its names, or all whose process was killed
    Remove {
        /// Six hexadecimal digits
        #[arg(required_unless_present = "stale")]
        suffix: Option<String>,
        /// Networks whose process no longer exists
        #[arg(long, conflicts_with = "suffix")]
        stale: bool,
    },
    /// Run the process of an impaired link
    #[command(hide = true)]
    Impair(impair::Options),
    /// Print the Debian packages of required programs that are not installed
    Deps,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let out = match &command {
        Command::Run(options) => Some(options.out.clone()),
        _ => None,
    };
    // It comes first: a process with several threads cannot do it.
    let entered = if wants_user_namespace(&command) { rootless::enter() } else { Ok(()) };
    let done = entered.and_then(|()| interrupt::watch()).and_then(|()| run(command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => {
            eprintln!("{}", laboratory::interrupted(out.as_deref()));
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
        Command::Demo { keep, trace, site } => {
            must_be_root()?;
            let keep = keep || std::env::var("KEEP").is_ok_and(|value| value == "1");
            demo::run(demo::Options { keep, trace, site })
        }
        Command::Bench(options) => bench::run(&options),
        Command::List { devices, json } => {
            devices.apply()?;
            let list = if json { laboratory::list_as_json } else { laboratory::list };
            print!("{}", list(&Machine::of_a_run())?);
            Ok(())
        }
        Command::Run(options) => {
            print!("{}", laboratory::run(&options)?);
            Ok(())
        }
        Command::Report { folder, out } => {
            print!("{}", laboratory::report(&folder, out.as_deref())?);
            Ok(())
        }
        Command::Compare { first, second, fail_above } => {
            let outcome = laboratory::comparison(&first, &second, fail_above)?;
            print!("{}", outcome.text);
            outcome.failed.map_or(Ok(()), |why| Err(Failure::Unexpected(why)))
        }
        Command::Remove { suffix, stale } => {
            must_be_root()?;
            remove(match stale {
                true => topology::stale().into_iter().map(|network| network.suffix).collect(),
                false => Vec::from_iter(suffix),
            })
        }
        Command::Impair(options) => impair::run(&options),
        Command::Deps => {
            programs::missing_packages().into_iter().for_each(|package| println!("{package}"));
            Ok(())
        }
    }
}

/// Removes networks: one that cannot be removed keeps none of the others.
fn remove(suffixes: Vec<String>) -> Result<(), Failure> {
    let (mut removed, mut failed) = (0, Vec::new());
    for suffix in suffixes {
        match topology::remove(&suffix) {
            Ok(namespaces) => removed += namespaces,
            Err(failure) => failed.push(failure.to_string()),
        }
    }
    println!("{removed} namespaces removed");
    if failed.is_empty() { Ok(()) } else { Err(Failure::Unexpected(failed.join("\n"))) }
}

/// Users other than root get a user namespace in which they are root.
fn wants_user_namespace(command: &Command) -> bool {
    match command {
        Command::Run(options) => options.rootless || !nix::unistd::geteuid().is_root(),
        Command::Demo { .. } => !nix::unistd::geteuid().is_root(),
        _ => false,
    }
}

fn must_be_root() -> Result<(), Failure> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(Failure::Unexpected("network namespaces need root: run it with sudo".to_owned())),
    }
}
