//! Fetches by `wget`.

use crate::failure::{Failure, Result};
use crate::namespace::command;
use crate::process::Finished;
use crate::topology::Network;
use std::path::PathBuf;
use std::time::Duration;

/// How it ends if a page did not come for a failure of the network, or for an answer that was an error.
const LOST: [i32; 2] = [4, 8];
/// How long it may take for all of its pages.
const LIMIT: Duration = Duration::from_secs(120);

/// Fetches all of these pages over one connection where the server lets it; octets of all bodies.
///
/// # Errors
/// wget is not installed, or a page does not come.
pub fn wget(network: &Network, from: &str, url: &str, times: usize) -> Result<u64> {
    let (run, pages) = run((network, from), url, times, (0, LIMIT))?;
    run?.succeeded()?;
    let octets = std::fs::metadata(&pages);
    octets.map(|file| file.len()).map_err(|_| Failure::Unexpected("wget wrote nothing".to_owned()))
}

/// The same next to others of this host, which have other numbers. Pages that do not come are lost: their octets are missing.
///
/// # Errors
/// wget is not installed, or fails in another way.
pub fn wget_beside(from: (&Network, &str), url: &str, times: usize, number: usize) -> Result<u64> {
    wget_within(from, url, times, (number, LIMIT))
}

fn wget_within(
    from: (&Network, &str),
    url: &str,
    times: usize,
    (number, limit): (usize, Duration),
) -> Result<u64> {
    let (run, pages) = run(from, url, times, (number, limit))?;
    match run {
        // It was ended: what had not come is lost.
        Err(Failure::TimedOut(_)) => {}
        Ok(finished) if finished.status.code().is_some_and(|code| LOST.contains(&code)) => {}
        finished => drop(finished?.succeeded()?),
    }
    Ok(std::fs::metadata(&pages).map_or(0, |file| file.len()))
}

/// How it ended, and the file of all bodies.
fn run(
    (network, from): (&Network, &str),
    url: &str,
    times: usize,
    (number, limit): (usize, Duration),
) -> Result<(Result<Finished>, PathBuf)> {
    let list = network.file(&format!("{from}.{number}.txt"), &format!("{url}\n").repeat(times))?;
    let pages = network.folder().join(format!("{from}.{number}.pages"));
    let mut wget = command("wget")?;
    wget.args(["-nv", "--no-proxy", "--tries=1", "--timeout=10", "-i"]).arg(list).arg("-O").arg(&pages);
    Ok((network.host(from)?.run(wget, limit), pages))
}
