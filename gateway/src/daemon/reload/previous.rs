//! The file with the previous configuration. It exists while a new configuration is on trial. The new process learns of it by an
//! environment variable, so that a manual start of the gateway never uses an old file.

use crate::config::{Config, Faults, Sources, Warning};
use crate::host;
use crate::reload_pause::ReloadPause;
use crate::view::ReloadRow;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable with the path of the file; set when a process executes itself again.
pub(in crate::daemon) const PREVIOUS: &str = "SIXWAY_PREVIOUS";

/// The previous configuration, and the conditions of the new one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    /// Its text.
    pub sources: Sources,
    /// The text of the configuration that follows it; `None`: what is in the file. A reload for the address of a pool is not one for the
    /// file's sake, which may be half written.
    #[serde(default)]
    pub following: Option<Sources>,
    /// Within this number of seconds the new one is to be confirmed; `None`: it is kept if it works.
    pub confirm_seconds: Option<u64>,
    /// Why the gateway returned to the previous configuration; `None`: the new one is on trial.
    pub rolled_back: Option<String>,
    /// How the gateway was.
    pub before: Before,
    /// How long the next reload waits that an address of this host causes.
    #[serde(default)]
    pub(in crate::daemon) pause: ReloadPause,
}

/// How the gateway was before a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Packets a second that passed.
    pub packets_per_second: f64,
    /// An upstream of the DNS64 answered.
    pub upstream_answered: bool,
}

impl Previous {
    /// Where the file is.
    pub(in crate::daemon) fn path(directory: &Path, name: &str) -> PathBuf {
        directory.join(format!("{name}.previous"))
    }

    /// The file that was passed to this process; `None`: it is a start.
    pub fn of_this_process() -> Option<(PathBuf, Self)> {
        let path = PathBuf::from(std::env::var_os(PREVIOUS)?);
        Self::read(&path).map(|previous| (path, previous))
    }

    /// The previous configuration.
    ///
    /// # Errors
    /// The host has changed, and the configuration does not fit it.
    pub fn config(&self) -> Result<(Config, Vec<Warning>), Faults> {
        self.sources.config(&host::host_facts())
    }

    /// The text that the new process reads; `None`: what is in the file.
    pub fn text(&self) -> Option<&Sources> {
        match self.rolled_back {
            Some(_) => Some(&self.sources),
            None => self.following.as_ref(),
        }
    }

    /// Whether the new configuration is on trial.
    pub fn is_on_trial(&self) -> bool {
        self.rolled_back.is_none()
    }

    pub(in crate::daemon) fn confirm(&self) -> Option<Duration> {
        self.confirm_seconds.map(Duration::from_secs)
    }

    /// What `show` says of it.
    pub(in crate::daemon) fn row(&self) -> ReloadRow {
        let state = match (&self.rolled_back, self.confirm_seconds) {
            (Some(_), _) => "rolled back",
            (None, Some(_)) => "awaits confirmation",
            (None, None) => "on trial",
        };
        ReloadRow { state: state.into(), reason: self.rolled_back.clone(), ..ReloadRow::default() }
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    }

    /// Writes the file atomically. Only its owner may read it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let aside = path.with_extension("previous-new");
        let _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        let written = file.write_all(serde_json::to_string(self)?.as_bytes());
        let outcome = written.and_then(|()| fs::rename(&aside, path));
        if outcome.is_err() {
            let _ = fs::remove_file(&aside);
        }
        outcome
    }

    /// Rolls back: the file has the reason, for the next process of the gateway. It is rewritten as a whole: another program may have
    /// removed it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn return_for(&self, path: &Path, why: &str) -> io::Result<()> {
        Self { rolled_back: Some(why.into()), ..self.clone() }.write(path)
    }

    /// The same, by the file alone, which exists as long as something is on trial.
    ///
    /// # Errors
    /// It is not on trial, or the kernel refused.
    pub fn roll_back(path: &Path, why: &str) -> io::Result<()> {
        match Self::read(path) {
            Some(previous) if previous.is_on_trial() => previous.return_for(path, why),
            Some(_) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_given_is_read_instead_of_the_file_and_of_what_failed_the_previous_one() {
        let text = |text: &str| Sources { text: text.into(), ..Sources::default() };
        let of_file = Previous { sources: text("a"), ..Previous::default() };
        assert_eq!(of_file.text(), None);
        let given = Previous { following: Some(text("b")), ..of_file };
        assert_eq!(given.text(), Some(&text("b")));
        let back = Previous { rolled_back: Some("why".into()), ..given };
        assert_eq!(back.text(), Some(&text("a")));
    }

    #[test]
    fn a_file_that_was_removed_does_not_keep_from_going_back() {
        let path = std::env::temp_dir().join(format!("sixway-previous-gone-{}", std::process::id()));
        Previous::default().return_for(&path, "why").unwrap();
        assert_eq!(Previous::read(&path).unwrap().rolled_back.as_deref(), Some("why"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn who_goes_back_says_why_and_goes_back_once() {
        let path = std::env::temp_dir().join(format!("sixway-previous-{}", std::process::id()));
        let previous = Previous { confirm_seconds: Some(60), ..Previous::default() };
        assert_eq!(previous.row().state, "awaits confirmation");
        previous.write(&path).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        Previous::roll_back(&path, "port 53 is in use").unwrap();
        let back = Previous::read(&path).unwrap();
        assert_eq!(back.row().reason.unwrap(), "port 53 is in use");
        assert!(back.config().is_err(), "an empty text is no configuration");
        assert!(Previous::roll_back(&path, "again").is_err());
        fs::remove_file(&path).unwrap();
        assert!(Previous::roll_back(&path, "nothing").is_err());
    }
}
