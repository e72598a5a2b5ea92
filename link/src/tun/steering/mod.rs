//! Steering: the kernel puts a packet into the queue of the worker that owns its state, so that workers need not hand
//! packets over to one another.
//!
//! A TUN device asks an eBPF program for the queue (TUNSETSTEERINGEBPF, Linux 4.16). The program follows the ownership that
//! the NAT deals out: IPv4 packets by the block of their destination port or ICMP identifier, which it looks up in a map of the
//! blocks' owners; IPv6 packets by a keyed hash of their source's prefix. It may be wrong (static bindings, ICMP errors, fragments, a
//! block that moves): then the worker hands the packet over.

mod map;
mod program;

use crate::syscall::{annotate, ioctl};
use sixway_dataplane::nat::Spread;
use sixway_wire::protocol;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use map::BlockMap;
pub use program::{Instruction, steering_program};

/// 2^64 divided by the golden ratio: spreads what differs in few bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which worker a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    /// Ports in a block; at least 1.
    pub ports_per_block: u16,
    /// How many workers, and queues; at least 1.
    pub workers: u8,
    /// How subscribers are spread over the workers.
    pub spread: Spread,
}

impl Steering {
    /// Blocks that the ports are cut into.
    pub fn blocks(self) -> u32 {
        u32::from(u16::MAX / self.ports_per_block.max(1)) + 1
    }

    /// The owner of a block until it moves: blocks are dealt out in stripes.
    pub fn first_owner(self, block: u32) -> u8 {
        (block % u32::from(self.workers.max(1))) as u8
    }

    /// The worker that the program chooses for a packet as long as no block has moved: the same in Rust.
    pub fn worker(self, packet: &[u8]) -> u8 {
        self.worker_by(packet, |block| self.first_owner(block))
    }

    /// The same where blocks have these owners.
    pub fn worker_by(self, packet: &[u8], owner: impl Fn(u32) -> u8) -> u8 {
        let workers = u64::from(self.workers.max(1));
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => match (outside_port(packet), chunk::<8>(packet, 12)) {
                (Reading::Port(port), _) => owner(u32::from(port / self.ports_per_block.max(1))),
                (Reading::NoPort, Some(addresses)) => share(u64::from_be_bytes(addresses), workers),
                (Reading::CutShort, _) | (Reading::NoPort, None) => 0,
            },
            Some(6) => self.worker_of_source(packet).unwrap_or(0),
            _ => 0,
        }
    }

    /// By the prefix of an IPv6 source; `None`: the packet ends before it does.
    fn worker_of_source(self, packet: &[u8]) -> Option<u8> {
        let words = self.spread.words().into_iter().filter(|(mask, _)| *mask != 0).count();
        let prefix = packet.get(8..8 + 4 * words)?;
        let mut source = [0; 16];
        source[..prefix.len()].copy_from_slice(prefix);
        Some(self.spread.worker(u128::from_be_bytes(source), self.workers.max(1)))
    }
}

/// Spreads `bits` over the workers.
const fn share(bits: u64, workers: u64) -> u8 {
    (((bits.wrapping_mul(SPREAD) >> 32) * workers) >> 32) as u8
}

/// What an IPv4 packet has for a destination port.
enum Reading {
    /// A port or the identifier of an ICMP echo message.
    Port(u16),
    /// A fragment, another ICMP message, another protocol.
    NoPort,
    /// The packet ends before it.
    CutShort,
}

fn outside_port(packet: &[u8]) -> Reading {
    let number = |at| {
        chunk::<2>(packet, at).map_or(Reading::CutShort, |octets| Reading::Port(u16::from_be_bytes(octets)))
    };
    let at = usize::from(packet[0] & 0x0f) * 4;
    let Some([high, low, _, transport]) = chunk::<4>(packet, 6) else { return Reading::CutShort };
    if u16::from_be_bytes([high, low]) & 0x3fff != 0 {
        return Reading::NoPort;
    }
    match transport {
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::DCCP | protocol::SCTP => {
            number(at + 2)
        }
        protocol::ICMPV4 => match packet.get(at) {
            Some(0 | 8) => number(at + 4),
            Some(_) => Reading::NoPort,
            None => Reading::CutShort,
        },
        _ => Reading::NoPort,
    }
}

fn chunk<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}

/// Makes the device of this queue ask the steering program. Returns the blocks' owners as the program knows them.
///
/// # Errors
/// What the kernel said to BPF_MAP_CREATE, BPF_PROG_LOAD or TUNSETSTEERINGEBPF; the device then spreads flows by its own hash.
pub(super) fn attach(queue: BorrowedFd<'_>, steering: Steering) -> io::Result<BlockMap> {
    let blocks = BlockMap::new(steering)?;
    let program = load(&steering_program(steering, &blocks))?;
    let mut fd = program.as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads an int. The device keeps the program when our file of it is closed.
    unsafe { ioctl(queue, libc::TUNSETSTEERINGEBPF, &mut fd) }
        .map_err(|error| annotate(error, "TUNSETSTEERINGEBPF"))?;
    Ok(blocks)
}

const BPF_PROG_LOAD: libc::c_long = 5;
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

/// Hands a program to the kernel's verifier.
///
/// # Errors
/// What the kernel said to BPF_PROG_LOAD.
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
    // SAFETY: the attributes and what they point to outlive the call, and the size is theirs.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, std::ptr::from_ref(&attributes), size_of::<ProgramLoad>())
    };
    let fd = libc::c_int::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(annotate(io::Error::last_os_error(), "BPF_PROG_LOAD"));
    }
    // SAFETY: fd was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
