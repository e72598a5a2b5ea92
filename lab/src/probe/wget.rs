//! Fetches by `wget`.

use crate::failure::{Failure, Result};
use crate::namespace::command;
use crate::topology::Network;
use std::time::Duration;

/// Fetches all of these pages over one connection where the server lets it; octets of all bodies.
///
/// # Errors
/// wget is not installed, or a page does not come.
pub fn wget(network: &Network, from: &str, url: &str, times: usize) -> Result<u64> {
    wget_beside((network, from), url, times, 0)
}

/// The same next to others of this host, which have other numbers.
///
/// # Errors
/// As [`wget`].
pub fn wget_beside((network, from): (&Network, &str), url: &str, times: usize, number: usize) -> Result<u64> {
    let list = network.file(&format!("{from}.{number}.txt"), &format!("{url}\n").repeat(times))?;
    let pages = network.folder().join(format!("{from}.{number}.pages"));
    let mut wget = command("wget")?;
    wget.args(["-nv", "--no-proxy", "--tries=1", "--timeout=10", "-i"]).arg(list).arg("-O").arg(&pages);
    network.host(from)?.run(wget, Duration::from_secs(60))?.succeeded()?;
    let octets = std::fs::metadata(&pages);
    octets.map(|file| file.len()).map_err(|_| Failure::Unexpected("wget wrote nothing".to_owned()))
}
