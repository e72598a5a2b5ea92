//! BPF file systems that gateways mount. The mount's source names it as ours, so that the last gateway to end unmounts it and no other
//! file system is unmounted.

use crate::mount_lock::turn;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// BPF_FS_MAGIC of statfs(2).
const BPF_FS: u64 = 0xcafe_4a11;

/// The source of a mount on a folder that existed.
const OURS: &str = "sixway";
/// The source of a mount on a folder that the gateway created.
const OURS_WITH_FOLDER: &str = "sixway-made";

/// Attempts to unmount a busy file system, and the time between them: 200 ms in all.
const TRIES: usize = 11;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Whether an open folder is one of a BPF file system.
pub(crate) fn is_bpf(folder: impl AsFd) -> io::Result<bool> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open file and a statfs, valid for the call.
    if unsafe { libc::fstatfs(folder.as_fd().as_raw_fd(), &mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(found.f_type as u64 == BPF_FS)
}

/// Mounts one that [`release`] unmounts; `made`: and then removes the folder.
pub(crate) fn mount(path: &Path, made: bool) -> io::Result<()> {
    let source = CString::new(if made { OURS_WITH_FOLDER } else { OURS })?;
    let name = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: C strings that outlive the call.
    let result = unsafe {
        libc::mount(source.as_ptr(), name.as_ptr(), c"bpf".as_ptr(), flags, c"mode=0700".as_ptr().cast())
    };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Unmounts a file system that a gateway mounted, if it is empty. The kernel refuses while a process has it open, as each gateway
/// that uses it does. A failure to unmount is harmless.
pub(crate) fn release(path: &Path) {
    let Ok(path) = path.canonicalize() else { return };
    let _turn = turn(&path);
    let made = match source(&path).as_deref() {
        Some(OURS) => false,
        Some(OURS_WITH_FOLDER) => true,
        _ => return,
    };
    if is_empty(&path) && unmount_patiently(&path).is_ok() && made {
        // It is not empty if something was put below the mount.
        let _ = std::fs::remove_dir(&path);
    }
}

/// Whether no gateway has pinned anything in it. Only the kernel's own files have a dot in their names: `maps.debug`, `progs.debug`.
fn is_empty(path: &Path) -> bool {
    let is_kernels = |name: OsString| name.as_bytes().contains(&b'.');
    let entries = std::fs::read_dir(path);
    entries.is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|entry| is_kernels(entry.file_name()))))
}

/// A child that another thread has just forked holds a copy of every open file until it calls execve(2), so the mount is busy for a moment.
fn unmount_patiently(path: &Path) -> io::Result<()> {
    let mut last = unmount(path);
    for _ in 1..TRIES {
        match &last {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(BETWEEN_TRIES);
                last = unmount(path);
            }
            _ => break,
        }
    }
    last
}

fn unmount(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a C string that outlives the call.
    let result = unsafe { libc::umount2(name.as_ptr(), libc::UMOUNT_NOFOLLOW) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The source of the mount at a folder; `None`: the folder is not a mount point.
fn source(path: &Path) -> Option<String> {
    let folder = File::open(path).ok()?;
    let place = format!("/proc/thread-self/fdinfo/{}", folder.as_raw_fd());
    let told = std::fs::read_to_string(place).ok()?;
    let mount = told.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().to_owned();
    let table = std::fs::read("/proc/thread-self/mountinfo").ok()?;
    source_in(&String::from_utf8_lossy(&table), &mount, path)
}

/// The source of a mount, by its number, if it is at this place: proc(5), `/proc/pid/mountinfo`.
fn source_in(table: &str, mount: &str, path: &Path) -> Option<String> {
    let line = table.lines().find(|line| line.split(' ').next() == Some(mount))?;
    let (place, source) = line.split_once(" - ")?;
    let is_there = plain(place.split(' ').nth(4)?) == path.as_os_str().as_bytes();
    is_there.then(|| source.split(' ').nth(1).map(str::to_owned))?
}

/// A path without the octal escapes (`\040`) of the mount table.
fn plain(written: &str) -> Vec<u8> {
    let mut pieces = written.split('\\');
    let mut path = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(3).unwrap_or((piece, ""));
        path.extend(u8::from_str_radix(digits, 8));
        path.extend(rest.bytes());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_says_whose_one_is() {
        let table = "22 1 8:1 / / rw,relatime - ext4 /dev/vda rw\n\
                     31 22 0:21 / /run/six\\040way/bpf rw,nosuid shared:4 master:1 - bpf sixway-made rw,mode=700\n\
                     32 31 0:22 / /run/six\\040way/bpf rw - bpf bpf rw\n";
        let source = |mount: &str, path: &str| source_in(table, mount, Path::new(path));
        assert_eq!(source("31", "/run/six way/bpf").as_deref(), Some(OURS_WITH_FOLDER));
        assert_eq!(source("32", "/run/six way/bpf").as_deref(), Some("bpf"), "another one above it");
        assert_eq!(source("22", "/run/six way/bpf"), None, "within something");
        assert_eq!(source("33", "/run/six way/bpf"), None);
    }
}
