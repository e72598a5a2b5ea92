//! The folder of what outlives the process: a BPF file system, mounted if need be.

use crate::fault::FastPathError;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The kind of file system, as statfs says it: BPF_FS_MAGIC.
const BPF_FS: u64 = 0xcafe_4a11;

/// Makes sure that a BPF file system is there: makes the folder and mounts one if it is missing or empty.
///
/// # Errors
/// It has other contents, or the kernel does not mount it.
pub(crate) fn ensure(path: &Path) -> Result<(), FastPathError> {
    let wrong = |why: String| FastPathError::PinPath { path: path.into(), why };
    let said = |doing: &'static str| move |error: io::Error| wrong(format!("{doing}: {error}"));
    make_folder(path).map_err(said("make the folder"))?;
    if is_bpf(path).map_err(said("look at it"))? {
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path).map_err(said("look into it"))?;
    if entries.next().is_some() {
        return Err(wrong("is no BPF file system and not empty; write another pin_path".into()));
    }
    mount(path).map_err(said("mount a BPF file system"))?;
    match is_bpf(path).map_err(said("look at it"))? {
        true => Ok(()),
        false => Err(wrong("no BPF file system could be mounted there".into())),
    }
}

/// A folder of the owner's alone; its parents as usual.
fn make_folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn is_bpf(path: &Path) -> io::Result<bool> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: plain numbers, for which zero is a value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a statfs, valid for the call.
    if unsafe { libc::statfs(name.as_ptr(), &mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(found.f_type as u64 == BPF_FS)
}

fn mount(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: C strings that outlive the call.
    let result = unsafe {
        libc::mount(c"bpf".as_ptr(), name.as_ptr(), c"bpf".as_ptr(), flags, c"mode=0700".as_ptr().cast())
    };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A gateway's folder. A BPF file system takes no names with a dot; they and other rare characters are written in hexadecimal.
pub(crate) fn folder(pin_path: &Path, gateway: &str) -> PathBuf {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    let spell = |octet| if plain(octet) { char::from(octet).to_string() } else { format!("={octet:02x}") };
    pin_path.join(gateway.bytes().map(spell).collect::<String>())
}

/// The gateway whose folder has this name; `None`: none has.
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
}
