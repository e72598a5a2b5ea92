//! Man pages and shell completions, made from the command line itself. For packages.

use super::failure::Failure;
use clap::{Args, Command, ValueEnum as _};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The arguments of `sixway generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArguments {
    /// The directory to write into: man/ and completions/.
    directory: PathBuf,
}

/// Writes them.
pub(super) fn run(arguments: &GenerateArguments, command: Command) -> Result<(), Failure> {
    let directory = &arguments.directory;
    write(directory, command).map_err(|error| Failure::Failed(format!("{}: {error}", directory.display())))
}

fn write(directory: &Path, mut command: Command) -> io::Result<()> {
    let (man, completions) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(command.clone(), man)?;
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut command, "sixway", &completions)?;
    }
    Ok(())
}
