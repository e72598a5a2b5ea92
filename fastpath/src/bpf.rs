//! bpf(2) calls that aya does not wrap.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_LINK_DETACH: libc::c_long = 34;

fn bpf(command: libc::c_long, attributes: &mut [u64]) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are read as the command has them, each pointer in them is valid for the call; the kernel takes what it does not
    // know for zero.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Opens a pinned map, program or link.
///
/// # Errors
/// It does not exist, or is of another kind.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let fd = bpf(BPF_OBJ_GET, &mut [name.as_ptr() as u64, 0, 0])?;
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Detaches a link even if other processes have it open (Linux 5.9).
///
/// # Errors
/// It is not a link, or its interface no longer exists.
pub(crate) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    bpf(BPF_LINK_DETACH, &mut [fd_of(link)]).map(|_| ())
}

/// Puts an element into a map.
///
/// # Errors
/// The map is full. The caller has compared key and value sizes with the map's.
pub(crate) fn update(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    let attributes = &mut [fd_of(map), key.as_ptr() as u64, value.as_ptr() as u64, 0];
    bpf(BPF_MAP_UPDATE_ELEM, attributes).map(|_| ())
}

/// A descriptor in the first 32 bits, which the kernel reads, whatever the order of octets.
fn fd_of(fd: BorrowedFd<'_>) -> u64 {
    let [a, b, c, d] = fd.as_raw_fd().to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}
