//! Loading the program of the overload filter, and attaching it to a device.

use super::program::{Senders, filter_program};
use super::table::OverloadFilter;
use crate::syscall::{annotate, ioctl};
use crate::tun::ebpf::load;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// TUNSETFILTEREBPF, `_IOR('T', 225, int)`: the number after that of TUNSETSTEERINGEBPF.
const TUNSETFILTEREBPF: libc::Ioctl = libc::TUNSETSTEERINGEBPF + 1;

/// Attaches the program to the device of this queue. Returns the filters, one for each queue in order.
///
/// # Errors
/// The kernel's error of BPF_MAP_CREATE, mmap, BPF_PROG_LOAD or TUNSETFILTEREBPF.
pub(in crate::tun) fn attach(
    queue: BorrowedFd<'_>,
    senders: Senders,
    queues: u16,
) -> io::Result<Vec<OverloadFilter>> {
    if std::fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|offsets| has_own_time(&offsets)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "programs do not know the time of this namespace",
        ));
    }
    let (program, filters) = loaded(senders, queues)?;
    set(queue, program.as_raw_fd())?;
    Ok(filters)
}

/// The program for a device with this many queues, and the filters.
///
/// # Errors
/// The kernel's error of BPF_MAP_CREATE, mmap or BPF_PROG_LOAD.
pub fn loaded(senders: Senders, queues: u16) -> io::Result<(OwnedFd, Vec<OverloadFilter>)> {
    let (map, filters) = OverloadFilter::tables(queues)?;
    let program = filter_program(senders, queues, map.as_raw_fd());
    Ok((load(&program, c"sixway_overload")?, filters))
}

/// Detaches the program of an earlier process.
///
/// # Errors
/// The kernel's error of TUNSETFILTEREBPF.
pub(in crate::tun) fn detach(queue: BorrowedFd<'_>) -> io::Result<()> {
    set(queue, -1)
}

fn set(queue: BorrowedFd<'_>, mut program: libc::c_int) -> io::Result<()> {
    // SAFETY: TUNSETFILTEREBPF reads an int. The device keeps the program when our file of it is closed.
    unsafe { ioctl(queue, TUNSETFILTEREBPF, &mut program) }
        .map_err(|error| annotate(error, "TUNSETFILTEREBPF"))
}

/// Whether CLOCK_MONOTONIC is another one here than in the kernel's programs (time_namespaces(7)).
fn has_own_time(offsets: &str) -> bool {
    let offset = |line: &str| {
        line.strip_prefix("monotonic").is_some_and(|words| words.split_whitespace().any(|it| it != "0"))
    };
    offsets.lines().any(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_is_known_by_its_offset() {
        assert!(!has_own_time("monotonic           0         0\nboottime            0         0\n"));
        assert!(!has_own_time("monotonic           0         0\nboottime       172800         0\n"));
        assert!(has_own_time("monotonic      172800         0\nboottime            0         0\n"));
        assert!(has_own_time("monotonic           0        10\n"));
    }
}
