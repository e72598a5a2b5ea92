//! The owners of the port blocks, in a map that the steering program reads.

use super::queue_choice::Steering;
use crate::tun::ebpf::{self, Command, bpf};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

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
    /// The kernel's error of BPF_MAP_CREATE or BPF_MAP_UPDATE_ELEM.
    pub fn new(steering: &Steering) -> io::Result<Self> {
        let map = Self(Arc::new(ebpf::array(size_of::<u32>() as u32, steering.blocks(), 0)?));
        for block in 0..steering.blocks() {
            map.set(block, steering.first_owner(block))?;
        }
        Ok(map)
    }

    /// Changes the owner of a block.
    ///
    /// # Errors
    /// The kernel's error of BPF_MAP_UPDATE_ELEM.
    pub fn set(&self, block: u32, worker: u8) -> io::Result<()> {
        let (key, value) = (block, u32::from(worker));
        let attributes = MapUpdate {
            map: self.0.as_raw_fd() as u32,
            key: std::ptr::from_ref(&key) as u64,
            value: std::ptr::from_ref(&value) as u64,
            flags: 0,
        };
        // SAFETY: the attributes are those of this command; key and value outlive the call, four octets each as the map's are.
        unsafe { bpf::bpf(Command::MapUpdateElement, &attributes) }.map(drop)
    }

    /// The map's number in this process, for a program that is about to be loaded.
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
