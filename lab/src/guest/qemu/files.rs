//! The guest's kernel, its modules, and the archive with the first program that runs in it.

use super::archive::Archive;
use crate::failure::{Asking as _, Failure, Result};
use crate::programs::own_build_folders;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FIRST: &str = include_str!("first.sh");

/// The files that the first program needs before it has the machine's files.
const FIRST_MODULES: [&str; 3] = ["virtio_pci", "virtiofs", "virtio_net"];

/// The environment variable with the folder of kernels that `make guest` unpacked, for a program that is not in the build's target folder.
pub const FOLDER: &str = "SIXWAY_LAB_GUEST";

/// A kernel that `make guest` unpacked.
pub struct Image {
    folder: PathBuf,
    version: String,
}

/// The version of the guest's kernel, if it is unpacked.
pub fn image_version() -> Option<String> {
    Image::find().map(|image| image.version)
}

/// The folder of the guest's kernel, if it is unpacked.
pub fn image_folder() -> Option<PathBuf> {
    Image::find().map(|image| image.folder)
}

/// Module files of the guest's kernel with all that they need, in an order in which they can be loaded.
///
/// # Errors
/// It is not unpacked, or has no such module.
pub fn module_files(names: &[&str]) -> Result<Vec<PathBuf>> {
    let image = Image::find();
    image.ok_or_else(|| Failure::Unexpected("there is no guest's kernel".to_owned()))?.modules(names)
}

/// Whether the guest's kernel has a module.
pub fn has_module(name: &str) -> bool {
    Image::find().is_some_and(|image| image.modules(&[name]).is_ok())
}

impl Image {
    /// The newest in the folder that [`FOLDER`] names, or else in a folder `guest` next to this program or above it in the build's target folder.
    pub fn find() -> Option<Self> {
        let folders: Vec<PathBuf> = match std::env::var_os(FOLDER) {
            Some(named) => vec![named.into()],
            None => own_build_folders().into_iter().map(|at| at.join("guest")).collect(),
        };
        let folders = folders.into_iter();
        let versions = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let complete = versions.map(|entry| entry.path()).filter(|path| path.join("complete").is_file());
        let folder = complete.max()?;
        let version = folder.file_name()?.to_str()?.to_owned();
        Some(Self { folder, version })
    }

    /// The kernel.
    pub fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// Module files with all that they need, in an order in which they can be loaded.
    ///
    /// # Errors
    /// The kernel has no such module.
    pub fn modules(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let folder = self.folder.join("lib/modules").join(&self.version);
        let list = folder.join("modules.dep");
        let text = std::fs::read_to_string(&list).asking(|| format!("reading {}", list.display()))?;
        let files = load_order(&text, wanted)
            .map_err(|missing| Failure::Unexpected(format!("no module {missing} in {}", list.display())))?;
        Ok(files.into_iter().map(|file| folder.join(file)).collect())
    }

    /// Writes the archive that the kernel unpacks as its first file system. `folder` is what the guest may write, and `init` the program there
    /// that it runs.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn first_files(&self, path: &Path, folder: &Path, init: &Path) -> Result<()> {
        let mut archive = Archive::default();
        for name in ["bin", "dev", "proc", "sys", "host", "seen", "modules"] {
            archive.folder(name);
        }
        archive.file("bin/busybox", &read(&self.folder.join("busybox"))?);
        for (number, module) in self.modules(&FIRST_MODULES)?.iter().enumerate() {
            archive.file(&format!("modules/{number:02}"), &read(module)?);
        }
        let first =
            format!("#!/bin/busybox sh\nFOLDER={}\nINIT={}\n{FIRST}", folder.display(), init.display());
        archive.file("init", first.as_bytes());
        std::fs::write(path, archive.finish()).asking(|| format!("writing {}", path.display()))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).asking(|| format!("reading {}", path.display()))
}

/// Files of `modules.dep`, each behind those that it needs. A line names all of them, so a module has more of them than any that it needs.
fn load_order<'a>(dependencies: &'a str, wanted: &[&str]) -> std::result::Result<Vec<&'a str>, String> {
    let mut needs = BTreeMap::new();
    let mut names = BTreeMap::new();
    for (file, needed) in dependencies.lines().filter_map(|line| line.split_once(':')) {
        needs.insert(file, needed.split_whitespace().collect::<Vec<_>>());
        let name = file.rsplit('/').next().and_then(|last| last.split('.').next());
        names.insert(name.unwrap_or(file), file);
    }
    let mut files = Vec::new();
    for name in wanted {
        let file = names.get(name).ok_or_else(|| (*name).to_owned())?;
        files.extend(needs.get(file).into_iter().flatten().copied().chain([*file]));
    }
    files.sort_unstable();
    files.dedup();
    files.sort_by_key(|file| needs.get(file).map_or(0, Vec::len));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_loaded_before_it_in_whatever_order_it_is_listed() {
        let list = "kernel/a/ring.ko:\nkernel/a/bus.ko: kernel/a/ring.ko\n\
                    kernel/b/net.ko: kernel/a/bus.ko kernel/a/ring.ko\nkernel/b/other.ko:\n";
        let order = load_order(list, &["net", "bus"]).unwrap();
        assert_eq!(order, ["kernel/a/ring.ko", "kernel/a/bus.ko", "kernel/b/net.ko"]);
        assert_eq!(load_order(list, &["no"]), Err("no".to_owned()));
    }
}
