//! The 6rd domains of the system's DHCPv4 client: OPTION_6RD in the lease files of dhclient and dhcpcd.
//!
//! systemd-networkd does not store this option.

use crate::lease_text;
use sixway_control::option_6rd::{LEASE_FILE_SIZE, SixRdOffer};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders of dhclient's files: in Debian, in Red Hat, and with NetworkManager.
const DHCLIENT: [&str; 3] = ["var/lib/dhcp", "var/lib/dhclient", "var/lib/NetworkManager"];
/// Folders of dhcpcd's files: of version 9 and later, and of earlier ones.
const DHCPCD: [&str; 2] = ["var/lib/dhcpcd", "var/lib/dhcpcd5"];
/// Maximum files of a directory that are read.
const MOST_FILES: usize = 64;

/// A provider's 6rd domain, and the interface with the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedSixRd {
    /// The interface.
    pub interface: String,
    /// The domain in the lease.
    pub offer: SixRdOffer,
}

/// The domains in the lease files of these interfaces, below this root; that of the newest file is the last. Leases may have ended.
pub(super) fn offers(root: &Path, interfaces: &[String]) -> Vec<LeasedSixRd> {
    let mut found: Vec<(Option<SystemTime>, LeasedSixRd)> = Vec::new();
    let mut add = |path: &Path, interface: &String, offer: Option<SixRdOffer>| {
        let written = fs::metadata(path).and_then(|about| about.modified()).ok();
        found.extend(offer.map(|offer| (written, LeasedSixRd { interface: interface.clone(), offer })));
    };
    for path in DHCLIENT.iter().flat_map(|directory| files(&root.join(directory), "dhclient")) {
        let Ok(octets) = lease_text::end_of(&path, LEASE_FILE_SIZE) else { continue };
        let text = String::from_utf8_lossy(&octets);
        for interface in interfaces {
            add(&path, interface, SixRdOffer::in_dhclient_leases(&text, interface));
        }
    }
    for path in DHCPCD.iter().flat_map(|directory| files(&root.join(directory), "")) {
        let Some(interface) = interfaces.iter().find(|name| is_dhcpcds(&path, name)) else { continue };
        let Ok(octets) = lease_text::end_of(&path, LEASE_FILE_SIZE) else { continue };
        add(&path, interface, SixRdOffer::in_message(&octets));
    }
    found.sort_by_key(|(written, _)| *written);
    found.into_iter().map(|(_, offered)| offered).collect()
}

/// The lease files in a directory whose names have this prefix.
fn files(directory: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && (name.ends_with(".leases") || name.ends_with(".lease"))
    });
    paths.take(MOST_FILES).collect()
}

/// `eth0.lease`, with a wireless network `wlan0-NAME.lease`; before version 9 `dhcpcd-eth0.lease`.
fn is_dhcpcds(path: &Path, interface: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix("dhcpcd-").unwrap_or(&name);
    let rest = name.strip_prefix(interface).and_then(|rest| rest.strip_suffix(".lease"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn leases(address: &str) -> String {
        format!(
            "lease {{\n  interface \"eth0\";\n  fixed-address {address};\n  option unknown-212 8:20:20:1:d:b8:0:0:0:0:0:0:0:0:0:0:0:0:a:0:0:1;\n}}\n"
        )
    }

    #[test]
    fn leases_are_found_where_the_clients_of_distributions_keep_them() {
        let root = std::env::temp_dir().join(format!("sixway-6rd-leases-{}", std::process::id()));
        let write = |path: &str, octets: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, octets).unwrap();
        };
        let mut message = vec![0; 236];
        (message[0], message[19]) = (2, 9);
        message.extend([99, 130, 83, 99, 212, 22, 8, 32, 0x20, 1, 0x0d, 0xb8]);
        message.extend([0; 12]);
        message.extend([10, 0, 0, 1, 255]);
        write("var/lib/dhcp/dhclient.eth0.leases", leases("10.0.0.7").as_bytes());
        write("var/lib/NetworkManager/dhclient-4c41-eth0.lease", leases("10.0.0.8").as_bytes());
        write("var/lib/dhcpcd/eth0.lease", &message);
        write("var/lib/dhcpcd/eth0.lease6", &message);
        write("var/lib/dhcpcd/eth01.lease", &message);
        write("var/lib/dhcp/other.leases", leases("10.0.0.6").as_bytes());
        let found = offers(&root, &["eth0".into(), "eth1".into()]);
        let mut addresses: Vec<_> =
            found.iter().map(|it| (it.interface.as_str(), it.offer.address)).collect();
        addresses.sort();
        let expected =
            [[0, 0, 0, 9], [10, 0, 0, 7], [10, 0, 0, 8]].map(|octets| ("eth0", Ipv4Addr::from(octets)));
        assert_eq!(addresses, expected);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(offers(&root, &["eth0".into()]), []);
    }

    #[test]
    fn a_file_of_dhcpcd_is_known_by_its_interface() {
        let is = |name: &str| is_dhcpcds(Path::new(name), "wlan0");
        assert!(is("wlan0.lease") && is("wlan0-home.lease") && is("dhcpcd-wlan0.lease"));
        assert!(!is("wlan01.lease") && !is("wlan0.leases") && !is("eth0.lease"));
    }
}
