//! The program under test, and the admin socket of a gateway in a network.

use crate::failure::{Failure, Result};
use crate::topology::Network;
use std::path::PathBuf;

/// Path of the gateway's binary: `$SIXWAY`, or next to this one, the optimised build first.
pub fn sixway() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SIXWAY") {
        return Ok(path.into());
    }
    let here = std::env::current_exe().unwrap_or_default();
    let folders = || here.ancestors().skip(1);
    let optimised = folders().map(|folder| folder.join("release/sixway"));
    optimised
        .chain(folders().map(|folder| folder.join("sixway")))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Unexpected("sixway is not built: cargo build --release".to_owned()))
}

/// The admin socket of the gateway on this host of the network.
pub fn socket(network: &Network, host: &str) -> PathBuf {
    network.folder().join(format!("sixway-{host}.sock"))
}
