//! DNS64: Sixway and its peers before the same zones, each held to what is written of it.

mod clients;
mod crowding;
mod differential;
mod generated;
mod table;
mod upstreams;

use crate::Interop;
use sixway_lab::dns64::{Running, Server, Tree};
use sixway_lab::failure::{Asking as _, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Seed of the generated zones.
const SEED: u64 = 6_147;

/// All tests.
pub fn tests() -> Vec<Interop> {
    [table::TESTS, differential::TESTS, generated::TESTS, clients::TESTS, upstreams::TESTS, crowding::TESTS]
        .concat()
}

/// Programs that every test here needs, and the resolver's.
macro_rules! programs {
    ($program:literal) => {
        &["nsd", "taskset", "dnssec-keygen", "dnssec-signzone", $program]
    };
}
use programs;

/// A resolver that validates, before about a thousand names of all kinds.
fn start(server: Server) -> Result<(Running, Tree)> {
    let tree = generated()?;
    Ok((server.start(&tree)?, tree))
}

/// The zones.
fn generated() -> Result<Tree> {
    Tree::of_all_kinds(&Folder::create()?.0, 1_000, SEED)
}

/// Where zones are signed.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sixway-lab-zones-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).asking(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
