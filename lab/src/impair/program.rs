//! The path of the program with the process's subcommand.

use crate::failure::{Asking as _, Failure, Result};
use std::path::PathBuf;

/// `sixway-lab`: this program, or the one next to the folder of a test.
///
/// # Errors
/// It was not built.
pub fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().asking(|| "finding this program".to_owned())?;
    if own.file_name().is_some_and(|name| name == "sixway-lab") {
        return Ok(own);
    }
    let next = own.ancestors().skip(1).take(2).map(|folder| folder.join("sixway-lab"));
    next.into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Unexpected("sixway-lab is not built: cargo build -p sixway-lab".to_owned()))
}
