//! Arrays in the kernel that programs read and write.

use super::bpf::{self, Command};
use std::io;
use std::os::fd::OwnedFd;

const BPF_MAP_TYPE_ARRAY: u32 = 2;
/// The array can be mapped into a process (Linux 5.5).
pub(in crate::tun) const BPF_F_MMAPABLE: u32 = 1 << 10;

/// The beginning of union bpf_attr as BPF_MAP_CREATE reads it; the kernel takes what is missing for zeroes.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// An array of this many elements, all zero, of this many octets each.
///
/// # Errors
/// The kernel's error of BPF_MAP_CREATE.
pub(in crate::tun) fn array(octets: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    let attributes = MapCreate { kind: BPF_MAP_TYPE_ARRAY, key_size: 4, value_size: octets, entries, flags };
    // SAFETY: the attributes are those of this command, without pointers.
    unsafe { bpf::open(Command::MapCreate, &attributes) }
}
