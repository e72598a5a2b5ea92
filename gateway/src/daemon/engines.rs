//! From the configuration to the workers' engines.

use crate::config::{Config, Surroundings};
use sixway_dataplane::engine::Engine;
use std::io::{self, Read};

/// An engine for each worker, with tables of their own and the same configuration.
///
/// # Errors
/// What cannot be. The configuration was checked, so that this is a disagreement of ours.
pub(super) fn engines(config: &Config, seed: [u64; 2], now: &Surroundings) -> Result<Vec<Engine>, String> {
    let engines = config.engines(seed, now);
    engines.iter().map(|config| Engine::new(config).map_err(|fault| fault.to_string())).collect()
}

/// Randomness that nobody can guess.
///
/// # Errors
/// The kernel gave none.
pub(super) fn seed() -> io::Result<[u64; 2]> {
    let mut octets = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    let number = u128::from_ne_bytes(octets);
    Ok([number as u64, (number >> 64) as u64])
}
