//! The lease file of a Kea DHCPv4 server (memfile, CSV): its leases become bindings. The host of a lease is its hardware address, if that is an IPv6
//! address of one of the clients: our own hosts write the end of their tunnel there.

use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The largest file that is read, in octets.
const LARGEST: u64 = 256 << 20;

/// A file that is watched.
#[derive(Debug)]
pub(super) struct KeaFile {
    path: PathBuf,
    /// Inode, length and time of the last change when it was read.
    seen: (u64, u64, i64, i64),
}

impl KeaFile {
    /// Watches a file.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.into(), seen: (0, 0, 0, 0) }
    }

    /// Its text, if it has changed. One that does not exist is empty.
    ///
    /// # Errors
    /// It cannot be read, or is too large.
    pub(super) fn changed(&mut self) -> io::Result<Option<String>> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let seen = (found.ino(), found.len(), found.mtime(), found.mtime_nsec());
        if seen == self.seen {
            return Ok(None);
        }
        if found.len() > LARGEST {
            return Err(io::Error::other("is too large for a lease file"));
        }
        let text = String::from_utf8_lossy(&fs::read(&self.path)?).into_owned();
        self.seen = seen;
        Ok(Some(text))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The bindings that a lease file describes at a time, in seconds since 1970, and when each ends. The last row of an address counts.
pub(super) fn bindings(text: &str, clients: &[Prefix6], now: u64) -> BTreeMap<Ipv4Addr, (Binding, u64)> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (Some(address), Some(hardware), Some(expire), Some(state)) =
        (place("address"), place("hwaddr"), place("expire"), place("state"))
    else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default();
        let Ok(ipv4) = field(address).parse::<Ipv4Addr>() else { continue };
        let until = field(expire).parse().unwrap_or(0);
        let host = host(field(hardware)).filter(|host| clients.iter().any(|prefix| prefix.contains(*host)));
        // State 0 is an assigned lease.
        match host.filter(|_| field(state) == "0" && until > now) {
            Some(host) => {
                let binding = Binding { ipv4: Prefix4::holding(ipv4, 32), host, local: 0 };
                all.insert(ipv4, (binding, until));
            }
            None => drop(all.remove(&ipv4)),
        }
    }
    all
}

/// A hardware address of sixteen octets.
fn host(text: &str) -> Option<Ipv6Addr> {
    let octets: Option<Vec<u8>> = text.split(':').map(|octet| u8::from_str_radix(octet, 16).ok()).collect();
    let octets: [u8; 16] = octets?.try_into().ok()?;
    Some(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context
192.0.2.17,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:01,ff:00,3600,2000,1,0,0,,0,
192.0.2.18,20:01:0d:b9:00:0a:00:00:00:00:00:00:00:00:00:01,ff:00,3600,2000,1,0,0,,0,
192.0.2.19,02:00:00:00:00:01,,3600,2000,1,0,0,,0,
192.0.2.20,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:02,,3600,2000,1,0,0,,0,
192.0.2.20,20:01:0d:b8:00:0a:00:00:00:00:00:00:00:00:00:02,,3600,900,1,0,0,,2,
";

    #[test]
    fn assigned_leases_of_clients_are_bindings_until_they_end() {
        let clients = ["2001:db8::/32".parse().unwrap()];
        let found = bindings(FILE, &clients, 1_000);
        let hosts: Vec<(String, String)> =
            found.iter().map(|(ipv4, (binding, _))| (ipv4.to_string(), binding.host.to_string())).collect();
        assert_eq!(hosts, [("192.0.2.17".to_owned(), "2001:db8:a::1".to_owned())]);
        assert!(bindings(FILE, &clients, 2_000).is_empty());
    }

    #[test]
    fn what_is_cut_or_mangled_is_no_binding_and_nothing_worse() {
        let clients = ["::/0".parse().unwrap()];
        for length in 0..FILE.len() {
            bindings(&FILE[..length], &clients, 1_000);
            bindings(&FILE[length..], &clients, 1_000);
        }
        assert!(bindings("", &clients, 0).is_empty() && bindings("a,b\n1,2\n", &clients, 0).is_empty());
    }
}
