//! The lease file of a DHCP client or of its hook.

use crate::regular_file;
use sixway_control::dhcpv6_lease::LEASE_SIZE;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The file as text; octets that are not UTF-8 are in no value.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut octets = Vec::new();
    regular_file::open(path)?.take(LEASE_SIZE as u64).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// The last octets of the file, this many at most: what was appended last counts.
pub(crate) fn end_of(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most as u64)))?;
    let mut octets = Vec::new();
    file.take(most as u64).read_to_end(&mut octets)?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_file_the_end_is_read() {
        let path = std::env::temp_dir().join(format!("sixway-lease-end-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        assert_eq!(end_of(&path, 4).unwrap(), b"6789");
        assert_eq!(end_of(&path, 20).unwrap(), b"0123456789");
        std::fs::remove_file(&path).unwrap();
        assert!(end_of(&path, 4).is_err());
    }
}
