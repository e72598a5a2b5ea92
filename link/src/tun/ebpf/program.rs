//! Loading a program that a TUN device runs: a socket filter.

use super::assembler::Instruction;
use super::bpf::{self, Command};
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

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

/// Hands a program to the kernel's verifier. `name`: at most 15 octets, for those who list programs.
///
/// # Errors
/// The kernel's error of BPF_PROG_LOAD.
pub fn load(program: &[Instruction], name: &CStr) -> io::Result<OwnedFd> {
    let mut octets = [0; 16];
    for (to, from) in octets.iter_mut().zip(name.to_bytes().iter().take(15)) {
        *to = *from;
    }
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
        name: octets,
    };
    // SAFETY: the attributes are those of this command, and what they point to outlives the call.
    unsafe { bpf::open(Command::ProgramLoad, &attributes) }
}
