//! What a DHCPv6 client, or its hook, wrote of its lease.

use nix::fcntl::OFlag;
use sixway_control::dhcpv6_lease::LEASE_SIZE;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The file as text; octets that are not UTF-8 are in no value. What is not a regular file could block the daemon.
pub(in crate::daemon) fn read(path: &Path) -> io::Result<String> {
    let mut octets = Vec::new();
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    file.take(LEASE_SIZE as u64).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}
