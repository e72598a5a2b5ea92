//! The owner of a network: the process that created it, so that networks of killed processes can be found.

use crate::failure::{Asking as _, Result};
use nix::unistd::geteuid;
use std::fs::{DirEntry, File};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Names of networks' folders begin with this.
pub(super) const FOLDER: &str = "sixway-lab-";

/// Octets of a note at most.
const LONGEST: u64 = 64;

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
    let of_folder = |folder: DirEntry| {
        let suffix = folder.file_name().to_str()?.strip_prefix(FOLDER)?.to_owned();
        let note = if is_suffix(&suffix) { note_of(&folder)? } else { return None };
        let (owner, start) = note.trim().split_once(' ')?;
        let owner = owner.parse().ok()?;
        // Numbers of processes are used again; together with the start they are not.
        (start_of(owner).as_deref() != Some(start)).then_some(Stale { suffix, owner })
    };
    folders.flatten().filter_map(of_folder).collect()
}

/// Whether names can end in this: six hexadecimal digits.
pub(super) fn is_suffix(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|octet| octet.is_ascii_hexdigit())
}

/// The note in a folder of this user. Every user may create folders of such names, with a link, a pipe or a file without end in them.
fn note_of(folder: &DirEntry) -> Option<String> {
    let about = folder.metadata().ok()?;
    if !about.is_dir() || about.uid() != geteuid().as_raw() {
        return None;
    }
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = options.open(file(&folder.path())).ok()?;
    if !opened.metadata().ok()?.is_file() {
        return None;
    }
    let mut note = String::new();
    opened.take(LONGEST + 1).read_to_string(&mut note).ok()?;
    (note.len() as u64 <= LONGEST).then_some(note)
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
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    fn folder_of(number: u32) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{FOLDER}{number:06x}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// What a folder's note says if it is this, made in place of a file.
    fn note_that_is(number: u32, made: impl FnOnce(&Path)) -> Option<String> {
        let path = folder_of(number | 0xc0_0000);
        made(&file(&path));
        let name = path.file_name().map(std::ffi::OsStr::to_owned);
        let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        let entry = entries.into_iter().find(|entry| Some(entry.file_name()) == name).unwrap();
        let note = note_of(&entry);
        std::fs::remove_dir_all(&path).unwrap();
        note
    }

    #[test]
    fn a_note_is_a_short_file_in_a_folder_of_this_user() {
        let id = std::process::id();
        let written = |text: String| note_that_is(id, |path| std::fs::write(path, text).unwrap());
        assert_eq!(written("1 1".to_owned()).as_deref(), Some("1 1"));
        assert_eq!(written("1".repeat(65)), None);
        let zeros = note_that_is(id, |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap());
        let pipe = |path: &Path| mkfifo(path, Mode::S_IRWXU).unwrap();
        assert_eq!([zeros, note_that_is(id, pipe)], [None, None]);
        if geteuid().is_root() {
            // A user namespace may not have another user.
            let mut has_another = false;
            let of_another = |path: &Path| {
                std::fs::write(path, "1 1").unwrap();
                has_another = std::os::unix::fs::chown(path.parent().unwrap(), Some(65_534), None).is_ok();
            };
            let note = note_that_is(id, of_another);
            assert_eq!(note.is_none(), has_another, "{note:?}");
        }
    }

    #[test]
    fn a_network_is_stale_when_its_process_is_gone() {
        let id = std::process::id();
        // A process's number has 22 bits at most.
        let [ours, other, odd] = [id, id | 0x40_0000, id | 0x80_0000].map(folder_of);
        own(&ours).unwrap();
        // The same number, another process.
        std::fs::write(file(&other), format!("{id} 1\n")).unwrap();
        std::fs::write(file(&odd), format!("{id} 1\n")).unwrap();
        let renamed = odd.with_extension("zz");
        std::fs::rename(&odd, &renamed).unwrap();
        let found: Vec<_> = stale().into_iter().filter(|stale| stale.owner == id).collect();
        disown(&other);
        let after = stale().into_iter().filter(|stale| stale.owner == id).count();
        [ours, other, renamed].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        assert_eq!(found, [Stale { suffix: format!("{:06x}", id | 0x40_0000), owner: id }]);
        assert_eq!(after, 0);
    }
}
