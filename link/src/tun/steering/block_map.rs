//! The owners of the port blocks, in a map that the steering program reads.

use super::Steering;
use crate::syscall::annotate;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_TYPE_ARRAY: u32 = 2;

/// The beginning of union bpf_attr as BPF_MAP_CREATE reads it; the kernel takes what is missing for zeroes.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// The beginning of union bpf_attr as BPF_MAP_UPDATE_ELEM reads it.
#[repr(C)]
struct MapUpdate {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The blocks' owners as the program knows them. Each worker may have a handle.
#[derive(Clone, Debug)]
pub struct BlockMap(Arc<OwnedFd>);

impl BlockMap {
    /// A map in which blocks have their first owners.
    ///
    /// # Errors
    /// What the kernel said to BPF_MAP_CREATE or BPF_MAP_UPDATE_ELEM.
    pub fn new(steering: Steering) -> io::Result<Self> {
        let attributes = MapCreate {
            kind: BPF_MAP_TYPE_ARRAY,
            key_size: 4,
            value_size: 4,
            entries: steering.blocks(),
            flags: 0,
        };
        // SAFETY: the attributes outlive the call, and the size is theirs.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_MAP_CREATE,
                std::ptr::from_ref(&attributes),
                size_of::<MapCreate>(),
            )
        };
        let fd = libc::c_int::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(annotate(io::Error::last_os_error(), "BPF_MAP_CREATE"));
        }
        // SAFETY: fd was just opened and belongs to nobody else.
        let map = Self(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) }));
        for block in 0..steering.blocks() {
            map.set(block, steering.first_owner(block))?;
        }
        Ok(map)
    }

    /// A block has another owner from now on.
    ///
    /// # Errors
    /// What the kernel said to BPF_MAP_UPDATE_ELEM.
    pub fn set(&self, block: u32, worker: u8) -> io::Result<()> {
        let (key, value) = (block, u32::from(worker));
        let attributes = MapUpdate {
            map: self.0.as_raw_fd() as u32,
            key: std::ptr::from_ref(&key) as u64,
            value: std::ptr::from_ref(&value) as u64,
            flags: 0,
        };
        // SAFETY: the attributes and what they point to outlive the call, the size is theirs, and key and value are four octets each as
        // the map's are.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_MAP_UPDATE_ELEM,
                std::ptr::from_ref(&attributes),
                size_of::<MapUpdate>(),
            )
        };
        if result < 0 {
            return Err(annotate(io::Error::last_os_error(), "BPF_MAP_UPDATE_ELEM"));
        }
        Ok(())
    }

    /// The map's number in this process, for a program that is about to be loaded.
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
