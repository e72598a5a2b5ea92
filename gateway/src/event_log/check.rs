//! Whether the sinks of a log could be opened. Nothing is changed.

use super::file_access::{FileAccess, probe, refused};
use super::{servers, tls};
use crate::config::{Config, EventLog};

/// What cannot be opened of the log of a configuration, and what mends it. A running gateway has such a sink as one that is away.
pub fn faults_of(config: &Config) -> Vec<String> {
    config.event_log.as_ref().map(|log| faults(log, &config.gateway.name)).unwrap_or_default()
}

pub(super) fn faults(config: &EventLog, gateway: &str) -> Vec<String> {
    let file = config.file.iter().filter_map(|file| {
        let opened = FileAccess::of(file).and_then(|_| probe(&file.path));
        opened.err().map(|error| refused("log.file", &file.path, &error))
    });
    let spools = servers::spools(config, gateway).into_iter().filter_map(|path| {
        let error = probe(&path).err()?;
        Some(refused("log.spool", &path, &error))
    });
    let secured = config.syslog.iter().filter_map(|syslog| {
        let name = syslog.name.as_ref()?;
        let error = tls::client(name, syslog.ca.as_deref()).err()?;
        Some(format!("log.syslog: {}: {error}", syslog.server))
    });
    file.chain(spools).chain(secured).collect()
}
