//! A program tried on one frame by the kernel (`BPF_PROG_TEST_RUN`): nothing is sent.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const BPF_PROG_TEST_RUN: libc::c_long = 10;

/// `union bpf_attr`, as far as a test run uses it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    program: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// Runs the program on a frame. `context`: what stands in its `struct xdp_md` or `struct __sk_buff`. Returns what the program returned;
/// `out` is the frame then.
pub fn run(program: BorrowedFd<'_>, frame: &[u8], context: &[u32], out: &mut Vec<u8>) -> io::Result<u32> {
    out.resize(4_096, 0);
    let mut attributes = Attributes {
        program: program.as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_size_out: out.len() as u32,
        data_in: frame.as_ptr() as u64,
        data_out: out.as_mut_ptr() as u64,
        repeat: 1,
        context_size_in: size_of_val(context) as u32,
        context_in: context.as_ptr() as u64,
        ..Attributes::default()
    };
    // SAFETY: the buffers outlive the call, with their lengths; the kernel writes to `out` and to the attributes alone.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_TEST_RUN,
            std::ptr::from_mut(&mut attributes),
            size_of::<Attributes>(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    out.truncate(attributes.data_size_out as usize);
    Ok(attributes.result)
}
