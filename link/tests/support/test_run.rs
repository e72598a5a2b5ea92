//! Packets through a program without a device: the kernel's BPF_PROG_TEST_RUN.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

const BPF_PROG_TEST_RUN: libc::c_long = 10;

/// The beginning of union bpf_attr as BPF_PROG_TEST_RUN reads and writes it.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    returned: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

/// What the program returns for a packet. The kernel takes an Ethernet header off before.
pub fn run(program: &OwnedFd, packet: &[u8]) -> io::Result<u32> {
    let mut data = vec![0; 12];
    data.extend([0x88, 0xb5]); // a type that the kernel does not look into
    data.extend_from_slice(packet);
    let mut attributes = TestRun {
        program: program.as_raw_fd() as u32,
        data_size_in: data.len() as u32,
        data_in: data.as_ptr() as u64,
        repeat: 1,
        ..TestRun::default()
    };
    let (pointer, size) = (std::ptr::from_mut(&mut attributes), size_of::<TestRun>());
    // SAFETY: the attributes and what they point to outlive the call, and the size is theirs.
    match unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, pointer, size) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(attributes.returned),
    }
}
