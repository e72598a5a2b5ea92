//! Attaching the steering program to a device.

use super::block_map::BlockMap;
use super::program::steering_program;
use super::queue_choice::Steering;
use crate::syscall::{annotate, ioctl};
use crate::tun::ebpf::load;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attaches the steering program to the device of this queue. Returns the map of block owners that the program reads.
///
/// # Errors
/// The kernel's error of BPF_MAP_CREATE, BPF_PROG_LOAD or TUNSETSTEERINGEBPF; the device then spreads flows by its own hash.
pub(in crate::tun) fn attach(queue: BorrowedFd<'_>, steering: &Steering) -> io::Result<BlockMap> {
    let blocks = BlockMap::new(steering)?;
    let program = load(&steering_program(steering, &blocks), c"sixway_steering")?;
    let mut fd = program.as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads an int. The device keeps the program when our file of it is closed.
    unsafe { ioctl(queue, libc::TUNSETSTEERINGEBPF, &mut fd) }
        .map_err(|error| annotate(error, "TUNSETSTEERINGEBPF"))?;
    Ok(blocks)
}
