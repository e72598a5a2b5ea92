//! The owner of a network: the process that created it, so that networks of killed processes can be found.

use crate::failure::{Asking as _, Result};
use std::path::{Path, PathBuf};

/// Names of networks' folders begin with this.
pub(super) const FOLDER: &str = "sixway-lab-";

/// A network whose process no longer exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The suffix of its names.
    pub suffix: String,
    /// The process that made it.
    pub owner: u32,
}

/// Networks whose processes no longer exist.
pub fn stale() -> Vec<Stale> {
    let Ok(folders) = std::fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
    let of_folder = |folder: std::fs::DirEntry| {
        let suffix = folder.file_name().to_str()?.strip_prefix(FOLDER)?.to_owned();
        let note = std::fs::read_to_string(file(&folder.path())).ok()?;
        let (owner, start) = note.trim().split_once(' ')?;
        let owner = owner.parse().ok()?;
        // Numbers of processes are used again; together with the start they are not.
        (start_of(owner).as_deref() != Some(start)).then_some(Stale { suffix, owner })
    };
    folders.flatten().filter_map(of_folder).collect()
}

/// Notes that this process made the network of a folder.
pub(super) fn own(folder: &Path) -> Result<()> {
    let id = std::process::id();
    let path = file(folder);
    let note = format!("{id} {}\n", start_of(id).unwrap_or_default());
    std::fs::write(&path, note).asking(|| format!("writing {}", path.display()))
}

/// The network outlives this process.
pub(super) fn disown(folder: &Path) {
    std::fs::remove_file(file(folder)).ok();
}

fn file(folder: &Path) -> PathBuf {
    folder.join("owner")
}

/// When a process started, in ticks since the machine did.
fn start_of(id: u32) -> Option<String> {
    let said = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // A name may have blanks and brackets in it.
    let (_, after_name) = said.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_stale_when_its_process_is_gone() {
        let id = std::process::id();
        let [ours, other] = ["0a0a01", "0a0a02"].map(|suffix| {
            let folder = std::env::temp_dir().join(format!("{FOLDER}{suffix}-{id}"));
            std::fs::create_dir_all(&folder).unwrap();
            folder
        });
        own(&ours).unwrap();
        // The same number, another process.
        std::fs::write(file(&other), format!("{id} 1\n")).unwrap();
        let found: Vec<_> = stale().into_iter().filter(|stale| stale.owner == id).collect();
        disown(&other);
        let after = stale().into_iter().filter(|stale| stale.owner == id).count();
        [ours, other].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        assert_eq!(found, [Stale { suffix: format!("0a0a02-{id}"), owner: id }]);
        assert_eq!(after, 0);
    }
}
