//! The folder of objects that outlive the process: a BPF file system, mounted if necessary.

use crate::bpf_mount::{is_bpf, mount};
use crate::error::FastPathError;
use crate::mount_lock::turn;
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Makes sure that a BPF file system is mounted: creates the folder and mounts one if it is missing or empty. While the returned file is
/// open the file system cannot be unmounted.
///
/// # Errors
/// It has other contents, or the kernel does not mount it.
pub(crate) fn ensure(path: &Path) -> Result<File, FastPathError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| FastPathError::PinPath {
            path: path.into(),
            why: format!("make the folder that it is in: {error}"),
        })?;
    }
    let _turn = turn(path);
    // A gateway that ends at this moment may remove folder and mount between the two steps.
    there_or_mounted(path).or_else(|_| there_or_mounted(path))
}

fn there_or_mounted(path: &Path) -> Result<File, FastPathError> {
    let wrong = |why: String| FastPathError::PinPath { path: path.into(), why };
    let said = |doing: &'static str| move |error: io::Error| wrong(format!("{doing}: {error}"));
    if path.exists() && !path.is_dir() {
        return Err(wrong("not a directory; set another pin_path".into()));
    }
    let made = make_folder(path).map_err(said("make the folder"))?;
    let folder = File::open(path).map_err(said("look at it"))?;
    if is_bpf(&folder).map_err(said("look at it"))? {
        return Ok(folder);
    }
    let mut entries = std::fs::read_dir(path).map_err(said("look into it"))?;
    if entries.next().is_some() {
        return Err(wrong("not a BPF file system and not empty; set another pin_path".into()));
    }
    mount(path, made).map_err(said("mount a BPF file system"))?;
    let folder = File::open(path).map_err(said("look at it"))?;
    match is_bpf(&folder).map_err(said("look at it"))? {
        true => Ok(folder),
        false => Err(wrong("no BPF file system could be mounted there".into())),
    }
}

/// Creates a folder that only the owner can access. Returns whether it did not exist.
fn make_folder(path: &Path) -> io::Result<bool> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        result => result.map(|()| true),
    }
}

/// A gateway's folder. A BPF file system takes no names with a dot; they and other rare characters are written in hexadecimal.
pub(crate) fn folder(pin_path: &Path, gateway: &str) -> PathBuf {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    let spell = |octet| if plain(octet) { char::from(octet).to_string() } else { format!("={octet:02x}") };
    pin_path.join(gateway.bytes().map(spell).collect::<String>())
}

/// The gateway whose folder has this name; `None`: not a gateway's folder.
pub(crate) fn gateway(folder: &str) -> Option<String> {
    let mut pieces = folder.split('=');
    let mut octets = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        octets.extend(rest.bytes());
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_a_folder_whatever_it_is_called() {
        let path = Path::new("/run/sixway/bpf");
        assert_eq!(folder(path, "sixway0"), path.join("sixway0"));
        assert_eq!(folder(path, "a.b/ü"), path.join("a=2eb=2f=c3=bc"));
    }

    #[test]
    fn the_gateway_of_a_folder_is_the_one_that_has_it() {
        for name in ["sixway0", "a.b/ü", "a=b", "=", ".x", ""] {
            let folder = folder(Path::new("/"), name);
            let folder = folder.strip_prefix("/").unwrap().to_str().unwrap();
            assert_eq!(gateway(folder).as_deref(), Some(name), "{folder}");
        }
        for strange in ["a=", "a=2", "a=zz", "a=2ü", "=ff"] {
            assert_eq!(gateway(strange), None, "{strange}");
        }
    }

    #[test]
    fn a_folder_with_other_contents_is_left_alone() {
        let path = std::env::temp_dir().join(format!("sixway-pins-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "").unwrap();
        let error = ensure(&path).unwrap_err().to_string();
        std::fs::remove_dir_all(&path).unwrap();
        assert!(error.contains("not empty"), "{error}");
    }

    #[test]
    fn a_file_as_pin_path_is_the_only_error() {
        let path = std::env::temp_dir().join(format!("sixway-pins-file-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let error = ensure(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("not a directory; set another pin_path"), "{error}");
    }
}
