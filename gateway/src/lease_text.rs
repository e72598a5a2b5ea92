//! What a DHCPv6 client, or its hook, wrote of its lease.

use crate::regular_file;
use sixway_control::dhcpv6_lease::LEASE_SIZE;
use std::io::{self, Read as _};
use std::path::Path;

/// The file as text; octets that are not UTF-8 are in no value.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut octets = Vec::new();
    regular_file::open(path)?.take(LEASE_SIZE as u64).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}
