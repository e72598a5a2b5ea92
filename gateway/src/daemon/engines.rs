//! From the configuration to the workers' engines.

use crate::config::{Config, Surroundings};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::nat46::Mappings;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the secret survives a restart of this host.
const LASTING: &str = "/var/lib/sixway";

/// An engine for each worker, with tables of their own and the same configuration; they share the mappings of a NAT46.
///
/// # Errors
/// What is impossible. The configuration was checked, so this is an internal error.
pub(super) fn engines(
    config: &Config,
    seed: [u64; 2],
    worker_key: [u64; 2],
    now: &Surroundings,
    mappings: Option<&Arc<Mappings>>,
) -> Result<Vec<Engine>, String> {
    let engines = config.engines(seed, now).into_iter().map(|mut config| {
        for other in &mut config.others {
            if let MechanismConfig::Nat46(nat46) = other {
                nat46.table = mappings.cloned();
            }
        }
        EngineConfig { worker_key, ..config }
    });
    engines.map(|config| Engine::new(&config).map_err(|fault| fault.to_string())).collect()
}

/// The secret that assigns subscribers to workers: that of the previous process, so that its sessions can continue, or a new one.
///
/// # Errors
/// The kernel gave no randomness.
pub(super) fn worker_key(directory: &Path, config: &Config) -> io::Result<[u64; 2]> {
    let kept = key_files(directory, config).iter().find_map(|path| std::fs::read(path).ok());
    match kept.and_then(|octets| <[u8; 16]>::try_from(octets).ok()) {
        Some(octets) => Ok(words(octets)),
        None => seed(),
    }
}

/// Keeps that secret for the next process. Called when the device exists, so that a process that may not create it leaves nothing behind.
pub(super) fn keep_worker_key(directory: &Path, config: &Config, key: [u64; 2]) {
    key_files(directory, config).iter().for_each(|path| keep_in(path, key));
}

fn keep_in(path: &Path, key: [u64; 2]) {
    let octets = (u128::from(key[0]) | u128::from(key[1]) << 64).to_ne_bytes();
    if std::fs::read(path).is_ok_and(|kept| kept == octets) {
        return;
    }
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(&octets)
    });
    if let Err(error) = written {
        tracing::warn!(
            "{}: {error}: sessions may be lost at the next restart; make the directory writable",
            path.display()
        );
    }
}

/// Mappings by PCP outlive a restart of this host: their ports are those of a host's worker, so that the secret must outlive it, too.
fn key_files(directory: &Path, config: &Config) -> Vec<PathBuf> {
    let lasting = config.pcp.is_some().then_some(Path::new(LASTING));
    let name = format!("{}.workers", config.gateway.name);
    [directory].into_iter().chain(lasting).map(|directory| directory.join(&name)).collect()
}

fn words(octets: [u8; 16]) -> [u64; 2] {
    let number = u128::from_ne_bytes(octets);
    [number as u64, (number >> 64) as u64]
}

/// Unpredictable randomness.
///
/// # Errors
/// The kernel gave none.
pub(super) fn seed() -> io::Result<[u64; 2]> {
    let mut octets = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(words(octets))
}
