//! Files that are replaced atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A crash leaves the old file or the new one.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    // Of this file and process: during a takeover two write.
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}.new-site", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(aside, path)
}
