//! Loading the steering program, and attaching it to a device.

use super::assembler::Instruction;
use super::block_map::BlockMap;
use super::bpf::{self, Command};
use super::program::steering_program;
use super::queue_choice::Steering;
use crate::syscall::{annotate, ioctl};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;

/// The beginning of union bpf_attr as BPF_PROG_LOAD reads it; the kernel takes what is missing for zeroes.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Attaches the steering program to the device of this queue. Returns the map of block owners that the program reads.
///
/// # Errors
/// The kernel's error of BPF_MAP_CREATE, BPF_PROG_LOAD or TUNSETSTEERINGEBPF; the device then spreads flows by its own hash.
pub(in crate::tun) fn attach(queue: BorrowedFd<'_>, steering: &Steering) -> io::Result<BlockMap> {
    let blocks = BlockMap::new(steering)?;
    let program = load(&steering_program(steering, &blocks))?;
    let mut fd = program.as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads an int. The device keeps the program when our file of it is closed.
    unsafe { ioctl(queue, libc::TUNSETSTEERINGEBPF, &mut fd) }
        .map_err(|error| annotate(error, "TUNSETSTEERINGEBPF"))?;
    Ok(blocks)
}

/// Hands a program to the kernel's verifier.
///
/// # Errors
/// The kernel's error of BPF_PROG_LOAD.
pub fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = ProgramLoad {
        kind: BPF_PROG_TYPE_SOCKET_FILTER,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"sixway_steering\0",
    };
    // SAFETY: the attributes are those of this command, and what they point to outlives the call.
    unsafe { bpf::open(Command::ProgramLoad, &attributes) }
}
