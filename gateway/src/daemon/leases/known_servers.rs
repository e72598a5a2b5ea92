//! The DHCP 4o6 servers of a host: those of the configuration, or of the DHCPv6 client's lease file (RFC 7341 §7.2).

use crate::config::HostEnd;
use crate::lease_text;
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
    seen: Option<Version>,
    /// The same of a file without the option, which may be half written.
    lacks: Option<Version>,
    /// What was last reported of it.
    told: Option<String>,
}

/// When a file was written, and its length.
type Version = (SystemTime, u64);

impl KnownServers {
    /// Those of a host.
    pub(super) fn new(end: &HostEnd) -> Self {
        let (now, file) = (end.servers.clone(), end.server_lease_file.clone());
        let mut made = Self { now, file, seen: None, lacks: None, told: None };
        made.look("the host's end");
        made
    }

    /// The servers to query: none while the lease lacks the option.
    pub(super) fn now(&self) -> &[Ipv6Addr] {
        &self.now
    }

    /// Whether the option was withdrawn, or never existed: the lease was read, and has none.
    pub(super) const fn are_withdrawn(&self) -> bool {
        self.now.is_empty() && self.seen.is_some()
    }

    /// Reads the file if it has changed. Returns whether the servers have changed. A file that is missing or cannot be read leaves those that are
    /// known, and one
    /// without the option until it is the same at the next look: it may be half written, and without servers a lease is given up.
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
        let (servers, trouble) = match lease_text::read(path).as_deref().map(servers_in) {
            Ok(Some(servers)) => (servers, None),
            Ok(None) if self.lacks != seen => {
                self.lacks = seen;
                return false;
            }
            Ok(None) => {
                let what = "no DHCP 4o6 Server Address option (number 88): no lease is taken";
                (Vec::new(), Some(what.to_owned()))
            }
            // It is tried again: permissions change without a new time.
            Err(error) => {
                let trouble = format!("{error}; the previous servers stay in use");
                self.tell(host, Some(trouble));
                return false;
            }
        };
        self.seen = seen;
        if trouble.is_none() && servers != self.now {
            tracing::info!("{host}: DHCP 4o6 servers {servers:?}");
        }
        self.tell(host, trouble);
        let changed = servers != self.now;
        self.now = servers;
        changed
    }

    /// Logs what is wrong with the file, once.
    fn tell(&mut self, host: &str, trouble: Option<String>) {
        if let (Some(what), Some(path)) = (trouble.as_ref().filter(|_| trouble != self.told), &self.file) {
            tracing::warn!("{host}: {}: {what}", path.display());
        }
        self.told = trouble;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &std::path::Path) -> KnownServers {
        KnownServers { now: Vec::new(), file: Some(path.into()), seen: None, lacks: None, told: None }
    }

    #[test]
    fn servers_follow_the_lease_and_without_the_option_there_are_none() {
        let path = std::env::temp_dir().join(format!("sixway-dhcp4o6-{}", std::process::id()));
        let _absent = fs::remove_file(&path);
        let mut known = of(&path);
        assert!(!known.look("host") && known.now().is_empty());
        fs::write(&path, "2001:db8::1\n").unwrap();
        assert!(known.look("host") && !known.look("host"));
        assert_eq!(known.now(), ["2001:db8::1".parse::<Ipv6Addr>().unwrap()]);
        fs::write(&path, "").unwrap();
        assert!(!known.look("host") && !known.are_withdrawn());
        fs::write(&path, "reason=BOUND6\n").unwrap();
        assert!(!known.look("host") && !known.are_withdrawn(), "it may be half written");
        assert!(known.look("host") && known.now().is_empty() && known.are_withdrawn());
        fs::write(&path, "new_dhcp6_dhcp4_o_dhcp6_server=2001:db8::2\n").unwrap();
        assert!(known.look("host"));
        fs::remove_file(&path).unwrap();
        assert!(!known.look("host"));
        assert_eq!(known.now(), ["2001:db8::2".parse::<Ipv6Addr>().unwrap()]);
        // RFC 7341 §7.2: an empty option.
        fs::write(&path, "new_dhcp6_dhcp4_o_dhcp6_server=\n").unwrap();
        assert!(known.look("host") && !known.are_withdrawn());
        assert_eq!(known.now(), ["ff02::1:2".parse::<Ipv6Addr>().unwrap()]);
        fs::remove_file(&path).unwrap();
    }

    /// Without servers, the lease is given up: that must not follow from a file that is being written, or that cannot be read.
    #[test]
    fn a_file_that_is_half_written_or_cannot_be_read_withdraws_nothing() {
        let path = std::env::temp_dir().join(format!("sixway-dhcp4o6-half-{}", std::process::id()));
        let _absent = fs::remove_dir(&path);
        fs::create_dir(&path).unwrap();
        let mut known = of(&path);
        assert!(!known.look("host") && !known.look("host") && !known.are_withdrawn(), "a directory");
        fs::remove_dir(&path).unwrap();
        let option = "new_dhcp6_dhcp4_o_dhcp6_server=2001:db8::1\n";
        fs::write(&path, option).unwrap();
        assert!(known.look("host"));
        for part in ["reason=REBIND6\n", "reason=REBIND6\nnew_ip6_address=2001:db8::7\n"] {
            fs::write(&path, part).unwrap();
            assert!(!known.look("host") && !known.are_withdrawn() && known.now().len() == 1);
        }
        fs::write(&path, format!("reason=REBIND6\nnew_ip6_address=2001:db8::7\n{option}")).unwrap();
        assert!(!known.look("host") && !known.are_withdrawn() && known.now().len() == 1);
        fs::remove_file(&path).unwrap();
    }
}
