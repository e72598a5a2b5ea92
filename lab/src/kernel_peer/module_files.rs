//! Which module files a guest loads: Debian's for its User-Mode Linux, by `modules.dep`, and the tunnel modules with 6rd that
//! `make peer` builds, because Debian's lack 6rd.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::command;
use crate::programs::own_build_folders;
use std::path::{Path, PathBuf};

/// Where Debian's package has them, one folder for each version.
const DEBIAN: &str = "/usr/lib/uml/modules";

/// Debian's modules with all that they need, in the order of loading; `instead` is a folder whose files of the same name are taken in
/// their place.
pub fn load_order(wanted: &[&str], instead: Option<&Path>) -> Result<Vec<PathBuf>> {
    let folder = Path::new(DEBIAN).join(version()?);
    let list = folder.join("modules.dep");
    let text = std::fs::read_to_string(&list).asking(|| format!("reading {}", list.display()))?;
    let mut order = Vec::new();
    for name in wanted {
        let files = with_what_it_needs(&text, name)
            .ok_or_else(|| Failure::Unexpected(format!("no module {name} in {}", list.display())))?;
        for file in files {
            let ours = instead.zip(Path::new(file).file_name()).map(|(folder, name)| folder.join(name));
            let file = ours.filter(|file| file.is_file()).unwrap_or_else(|| folder.join(file));
            if !order.contains(&file) {
                order.push(file);
            }
        }
    }
    Ok(order)
}

/// The folder with `sit` and `ip_tunnel` that know 6rd, for the installed User-Mode Linux; in the build's target folder.
pub fn with_six_rd() -> Option<PathBuf> {
    let version = version().ok()?;
    let mut folders = own_build_folders().into_iter().map(|folder| folder.join("sit-6rd").join(&version));
    folders.find(|folder| folder.join("sit.ko").is_file())
}

fn version() -> Result<String> {
    let mut uml = command("linux.uml")?;
    let said = uml.arg("--version").output().asking(|| "starting linux.uml".to_owned())?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// A module's file, behind those that it needs. `modules.dep` names the nearest first.
fn with_what_it_needs<'a>(dependencies: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let file = format!("{name}.ko");
    let line = dependencies.lines().find(|line| {
        line.split(':').next().and_then(|path| path.rsplit('/').next()).is_some_and(|last| last == file)
    })?;
    let (own, needed) = line.split_once(':')?;
    Some(needed.split_whitespace().rev().chain([own]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let list = "kernel/net/ipv4/tunnel4.ko:\n\
                    kernel/net/ipv6/sit.ko: kernel/net/ipv4/ip_tunnel.ko kernel/net/ipv6/ipv6.ko\n";
        let files = ["kernel/net/ipv6/ipv6.ko", "kernel/net/ipv4/ip_tunnel.ko", "kernel/net/ipv6/sit.ko"];
        assert_eq!(with_what_it_needs(list, "sit"), Some(files.to_vec()));
        assert_eq!(with_what_it_needs(list, "tunnel4"), Some(vec!["kernel/net/ipv4/tunnel4.ko"]));
        assert_eq!(with_what_it_needs(list, "it"), None);
    }
}
