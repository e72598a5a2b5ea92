//! The mappings of a NAT46 in a file that outlives the process: clients continue to use addresses that they got from it.
//!
//! The next process reads the file, writes a new one, and renames it to the old name.

use crate::config::Config;
use crate::show::plural;
use crate::worker::Clock;
use sixway_dataplane::mechanism::nat46::{Mappings, Words};
use sixway_link::SharedFile;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The end of a file's name until it replaces the previous file; the process ID follows.
const FRESH: &str = "mappings-new-";

/// The file as words.
#[derive(Debug)]
struct MappingFile(SharedFile);

impl Words for MappingFile {
    fn words(&self) -> &[AtomicU32] {
        self.0.words()
    }
}

/// The table of all workers and of the DNS threads.
#[derive(Debug)]
pub(super) struct KeptMappings {
    table: Arc<Mappings>,
    path: PathBuf,
    /// Its file until it has its final name; `None`: it is only in memory.
    fresh: Option<PathBuf>,
}

impl KeptMappings {
    /// An empty table, if the configuration has a NAT46. The running process is not disturbed.
    ///
    /// # Errors
    /// What cannot be.
    pub(super) fn create(config: &Config, directory: &Path, seed: [u64; 2]) -> Result<Option<Self>, String> {
        let Some(settings) = config.mapping_settings() else { return Ok(None) };
        let path = directory.join(format!("{}.mappings", config.gateway.name));
        // Each process has a file of its own: one that is started by mistake must not replace the file of one that takes over.
        let fresh = path.with_extension(format!("{FRESH}{}", std::process::id()));
        remove_abandoned(directory, &format!("{}.{FRESH}", config.gateway.name));
        // Addresses that this process cannot continue rest in its file, too, for later processes.
        let words = match SharedFile::open(&path) {
            Ok(other) => Mappings::words_after(&settings, &MappingFile(other), Clock::start().now()),
            Err(_) => Mappings::words(&settings),
        };
        let file = fs::create_dir_all(directory).and_then(|()| SharedFile::create(&fresh, words));
        let (table, fresh) = match file {
            Ok(file) => (Mappings::new(settings, Box::new(MappingFile(file)), seed), Some(fresh)),
            Err(error) => {
                tracing::warn!(
                    "{}: {error}: after a restart, NAT46's addresses may represent other servers than before; make the directory writable",
                    fresh.display()
                );
                (Mappings::in_memory(settings, seed), None)
            }
        };
        let table = Arc::new(table.map_err(|fault| fault.to_string())?);
        Ok(Some(Self { table, path, fresh }))
    }

    /// The table.
    pub(super) const fn table(&self) -> &Arc<Mappings> {
        &self.table
    }

    /// Continues the mappings of the previous process, which has ended.
    pub(super) fn settle(mut self, clock: Clock) {
        if let Ok(file) = SharedFile::open(&self.path) {
            let kept = self.table.restore(&MappingFile(file), clock.now());
            if kept.kept + kept.ended > 0 {
                let (kept, ended) = (plural(kept.kept, "NAT46 mapping"), kept.ended);
                tracing::info!("kept {kept}; addresses of {ended} others are resting");
            }
        }
        if let Some(fresh) = self.fresh.take()
            && let Err(error) = fs::rename(&fresh, &self.path)
        {
            tracing::warn!("{}: {error}: NAT46's mappings are lost at the next restart", self.path.display());
        }
    }
}

/// Removes files of processes that ended while they started.
fn remove_abandoned(directory: &Path, start: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(start)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for KeptMappings {
    /// The start failed: the previous process's file stays for the next one.
    fn drop(&mut self) {
        if let Some(fresh) = self.fresh.take() {
            let _ = fs::remove_file(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const TEXT: &str = "[gateway]\nipv4_address = \"192.0.2.254\"\n[nat46]\nclients = [\"10.0.0.0/8\"]\npool = \"192.168.46.0/24\"\nprefix = \"2001:db8:46::/96\"\n[dns64]\nlisten = [\"127.0.0.1:5353\"]\nupstream = [{ address = \"192.0.2.53\" }]\n";

    #[test]
    fn mappings_continue_after_a_sudden_end_and_a_start_that_fails_changes_nothing() {
        let directory = std::env::temp_dir().join(format!("sixway-mappings-{}", std::process::id()));
        let mut no_file = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let config = Config::parse("f", TEXT, &Default::default(), &mut no_file).unwrap().0;
        let create = || KeptMappings::create(&config, &directory, [1, 2]).unwrap().unwrap();
        let clock = Clock::start();
        // One process ended while it started, and another one is starting.
        fs::create_dir_all(&directory).unwrap();
        let (abandoned, other) = (
            directory.join(format!("sixway.{FRESH}{}", u32::MAX)),
            directory.join(format!("sixway.{FRESH}1")),
        );
        [&abandoned, &other].into_iter().for_each(|path| fs::write(path, "").unwrap());
        let first = create();
        assert!(!abandoned.exists() && other.exists());
        let table = Arc::clone(first.table());
        first.settle(clock);
        let (client, server) = (Ipv4Addr::new(10, 0, 0, 5), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        let address = table.map(client, server, 60, clock.now()).unwrap();
        let failed = create();
        drop(failed);
        assert!(!directory.join(format!("sixway.{FRESH}{}", std::process::id())).exists());
        // Killed: its table is not told.
        let second = create();
        let after = Arc::clone(second.table());
        second.settle(clock);
        assert_eq!(after.server_of(client, address, clock.now()), Some(server));
        assert!(
            Arc::strong_count(&after) == 1 && table.server_of(client, address, clock.now()) == Some(server)
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
