//! Files in a folder in which others may have put links: none of them is followed.

use crate::failure::{Asking as _, Result};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file so that it exists as a whole or not at all. A link of its name is replaced.
///
/// # Errors
/// The folder cannot be written.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let number = RandomState::new().build_hasher().finish();
    let new = path.with_extension(format!("{number:016x}.new"));
    let created = File::options().write(true).create_new(true).open(&new);
    let mut file = created.asking(|| format!("creating {}", new.display()))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| std::fs::rename(&new, path));
    if renamed.is_err() {
        std::fs::remove_file(&new).ok();
    }
    renamed.asking(|| format!("writing {}", path.display()))
}

/// Opens a file to read it and to add to its end; it is created if it does not exist.
///
/// # Errors
/// It is a link, or cannot be opened.
pub fn open_to_append(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.read(true).append(true).create(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).asking(|| format!("opening {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_replaced_when_a_file_is_written_and_refused_when_it_is_added_to() {
        let folder = std::env::temp_dir().join(format!("sixway-lab-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [canary, link] = ["canary", "run.json"].map(|name| folder.join(name));
        std::fs::write(&canary, "unchanged").unwrap();
        symlink(&canary, &link).unwrap();
        let appended = open_to_append(&link).map(drop);
        write_whole(&link, "new").unwrap();
        open_to_append(&link).unwrap().write_all(b" and more").unwrap();
        let is_link = std::fs::symlink_metadata(&link).unwrap().is_symlink();
        let texts = [&canary, &link].map(|path| std::fs::read_to_string(path).unwrap());
        let files = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(appended.is_err() && !is_link);
        assert_eq!(texts, ["unchanged", "new and more"]);
        assert_eq!(files, 2, "nothing is left of the writing");
    }
}
