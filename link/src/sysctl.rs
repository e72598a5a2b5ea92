//! Kernel settings under `/proc/sys` that are changed temporarily and restored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A changed setting; dropping it restores the previous value.
#[must_use = "dropping it restores the setting at once"]
#[derive(Debug)]
pub struct Sysctl {
    path: PathBuf,
    before: Option<String>,
}

impl Sysctl {
    /// Writes `value` to a file under `/proc/sys` and remembers what it held.
    ///
    /// # Errors
    /// Reading or writing failed; the message names the path and which of both.
    pub fn set(path: impl Into<PathBuf>, value: &str) -> io::Result<Self> {
        let path = path.into();
        let before = read(&path)?;
        if before == value {
            return Ok(Self { path, before: None });
        }
        write(&path, value)?;
        Ok(Self { path, before: Some(before) })
    }

    /// Which file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it held before; `None` when it already held the value wanted, so that nothing is to be restored.
    pub fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// Restores the previous value. A file that no longer exists (its device was removed) needs nothing.
    ///
    /// # Errors
    /// Writing failed; the message names the path.
    pub fn restore(mut self) -> io::Result<()> {
        self.put_back()
    }

    /// Leaves the setting as it is, also at the end: for settings of a device that vanishes with them.
    pub fn keep(mut self) {
        self.before = None;
    }

    fn put_back(&mut self) -> io::Result<()> {
        match self.before.take() {
            Some(before) if self.path.exists() => write(&self.path, &before),
            _ => Ok(()),
        }
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        // A failure cannot be reported from `drop`; call `restore` to see it.
        let _ = self.put_back();
    }
}

/// What a file under `/proc/sys` holds, without the line's end.
///
/// # Errors
/// The message names the path.
pub fn read(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(value) => Ok(value.trim_end().to_owned()),
        Err(error) => Err(io::Error::new(error.kind(), format!("read {}: {error}", path.display()))),
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value).map_err(|error| {
        io::Error::new(error.kind(), format!("write \"{value}\" to {}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, value: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("sixway-sysctl-{}-{name}", std::process::id()));
        fs::write(&path, value).unwrap();
        path
    }

    #[test]
    fn a_setting_is_put_back_when_its_guard_is_dropped() {
        let path = file("drop", "1\n");
        let guard = Sysctl::set(&path, "0").unwrap();
        assert_eq!((guard.before(), read(&path).unwrap().as_str()), (Some("1"), "0"));
        drop(guard);
        assert_eq!(read(&path).unwrap(), "1");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_setting_that_was_right_already_is_not_touched_at_the_end() {
        let path = file("same", "0\n");
        let guard = Sysctl::set(&path, "0").unwrap();
        fs::write(&path, "2").unwrap();
        guard.restore().unwrap();
        assert_eq!(read(&path).unwrap(), "2");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_setting_that_does_not_exist_is_an_error_that_names_it() {
        let error = Sysctl::set("/proc/sys/net/no/such", "0").unwrap_err();
        assert!(error.to_string().contains("read /proc/sys/net/no/such"), "{error}");
    }
}
