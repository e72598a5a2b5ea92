//! The commit of a working tree, for a run's header.

use std::path::Path;
use std::process::Command;

/// Settings with which git starts no monitor and no hook of the tree's own configuration: the lab may run as root in a folder of another user.
const NO_PROGRAMS: [&str; 4] = ["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null"];

/// The commit of the working tree that has this folder, if it is in one.
pub(super) fn commit(folder: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args(NO_PROGRAMS).args(["describe", "--always", "--dirty", "--exclude=*"]).current_dir(folder);
    let said = git.output().ok()?;
    let commit = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (said.status.success() && !commit.is_empty()).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{installed, make_executable};

    #[test]
    fn a_monitor_that_a_tree_configures_is_not_started() {
        if !installed("git") {
            return;
        }
        let folder = std::env::temp_dir().join(format!("sixway-lab-commit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let git = |words: &[&str]| {
            let own = ["-c", "user.name=a", "-c", "user.email=a@example.net", "-c", "commit.gpgsign=false"];
            let mut git = Command::new("git");
            for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
                git.env_remove(name);
            }
            let status = git.args(own).args(words).current_dir(&folder).status().unwrap();
            assert!(status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "a"]);
        let (monitor, started) = (folder.join("monitor"), folder.join("started"));
        std::fs::write(&monitor, format!("#!/bin/sh\n: >'{}'\n", started.display())).unwrap();
        make_executable(&monitor).unwrap();
        git(&["config", "core.fsmonitor", &monitor.display().to_string()]);
        let commit = commit(&folder);
        let was_started = started.exists();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(commit.is_some_and(|it| it.len() >= 7));
        assert!(!was_started);
    }
}
