//! bpf(2), as far as a TUN device's programs need it.

use crate::syscall::failed;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A command of bpf(2).
#[derive(Clone, Copy)]
pub(in crate::tun) enum Command {
    MapCreate = 0,
    MapUpdateElement = 2,
    ProgramLoad = 5,
}

impl Command {
    /// Its name in bpf(2), for errors.
    const fn name(self) -> &'static str {
        match self {
            Self::MapCreate => "BPF_MAP_CREATE",
            Self::MapUpdateElement => "BPF_MAP_UPDATE_ELEM",
            Self::ProgramLoad => "BPF_PROG_LOAD",
        }
    }
}

/// Calls bpf(2). The kernel takes the members of `union bpf_attr` behind `attributes` for zeroes.
///
/// # Safety
/// `T` must be the beginning of `union bpf_attr` as the command reads it; each pointer in it must be valid for the call.
pub(in crate::tun) unsafe fn bpf<T>(command: Command, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes outlive the call, and the size is theirs; the caller guarantees what they hold.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_long, std::ptr::from_ref(attributes), size_of::<T>())
    };
    if result < 0 { Err(failed(command.name())) } else { Ok(result) }
}

/// Calls bpf(2) with a command that returns a new descriptor.
///
/// # Safety
/// As for [`bpf`]; the command must return a descriptor.
pub(in crate::tun) unsafe fn open<T>(command: Command, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller guarantees the attributes.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened it for us; descriptors are ints.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}
