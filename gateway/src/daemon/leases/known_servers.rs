//! The DHCP 4o6 servers of a host: those of the configuration, or of what the DHCPv6 client wrote of its lease (RFC 7341 §7.2).

use crate::config::HostEnd;
use crate::daemon::lease_text;
use sixway_control::dhcp4o6::servers_in;
use std::fs;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::SystemTime;

/// The servers.
#[derive(Debug)]
pub(super) struct KnownServers {
    now: Vec<Ipv6Addr>,
    file: Option<PathBuf>,
    /// When the file was written that was read, and its length.
    seen: Option<(SystemTime, u64)>,
    /// What was told of it.
    told: bool,
}

impl KnownServers {
    /// Those of a host.
    pub(super) fn new(end: &HostEnd) -> Self {
        let (now, file) = (end.servers.clone(), end.server_lease_file.clone());
        let mut made = Self { now, file, seen: None, told: false };
        made.look("the host's end");
        made
    }

    /// Whom to ask: nobody while the lease lacks the option.
    pub(super) fn now(&self) -> &[Ipv6Addr] {
        &self.now
    }

    /// Whether the option was withdrawn, or never there: the lease was read, and has none.
    pub(super) const fn are_withdrawn(&self) -> bool {
        self.now.is_empty() && self.seen.is_some()
    }

    /// Reads the file if it has changed. Whether the servers are others. A file that is missing leaves those that are known.
    pub(super) fn look(&mut self, host: &str) -> bool {
        let Some(path) = &self.file else { return false };
        let Ok(metadata) = fs::metadata(path) else { return false };
        if metadata.len() == 0 {
            // It is being written.
            return false;
        }
        let seen = metadata.modified().ok().map(|time| (time, metadata.len()));
        if seen.is_some() && seen == self.seen {
            return false;
        }
        self.seen = seen;
        let (path, found) = (path.display(), lease_text::read(path));
        let (servers, trouble) = match found.as_deref().map(servers_in) {
            Ok(Some(servers)) if servers.is_empty() => {
                (servers, Some("the option is empty, and multicast is not supported".to_owned()))
            }
            Ok(Some(servers)) => (servers, None),
            Ok(None) => (Vec::new(), Some("no DHCP 4o6 Server Address option (number 88)".to_owned())),
            Err(error) => {
                tracing::warn!("{host}: {path}: {error}; the previous servers stay in use");
                return false;
            }
        };
        match &trouble {
            Some(what) if !self.told => tracing::warn!("{host}: {path}: {what}: no lease is taken"),
            Some(_) => {}
            None if servers != self.now => tracing::info!("{host}: DHCP 4o6 servers {servers:?}"),
            None => {}
        }
        self.told = trouble.is_some();
        let changed = servers != self.now;
        self.now = servers;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_follow_the_lease_and_without_the_option_there_are_none() {
        let path = std::env::temp_dir().join(format!("sixway-dhcp4o6-{}", std::process::id()));
        let _absent = fs::remove_file(&path);
        let mut known = KnownServers { now: Vec::new(), file: Some(path.clone()), seen: None, told: false };
        assert!(!known.look("host") && known.now().is_empty());
        fs::write(&path, "2001:db8::1\n").unwrap();
        assert!(known.look("host") && !known.look("host"));
        assert_eq!(known.now(), ["2001:db8::1".parse::<Ipv6Addr>().unwrap()]);
        fs::write(&path, "").unwrap();
        assert!(!known.look("host") && !known.are_withdrawn());
        fs::write(&path, "reason=BOUND6\n").unwrap();
        assert!(known.look("host") && known.now().is_empty() && known.are_withdrawn());
        fs::write(&path, "new_dhcp6_dhcp4_o_dhcp6_server=2001:db8::2\n").unwrap();
        assert!(known.look("host"));
        fs::remove_file(&path).unwrap();
        assert!(!known.look("host"));
        assert_eq!(known.now(), ["2001:db8::2".parse::<Ipv6Addr>().unwrap()]);
    }
}
