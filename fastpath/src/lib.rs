//! eBPF programs beside the engine. They never decide: take them away, and everything works as before, slower.
//!
//! [`Steering`] takes tunnel packets for the host's own addresses to the gateway's TUN device. The program is `bpf/steer.bpf.c`;
//! `build.rs` compiles it with clang. Built without the feature `ebpf`, attaching fails with [`SteeringError::NotBuilt`].

#[cfg(feature = "ebpf")]
mod adoption;
#[cfg(feature = "ebpf")]
mod control;
mod error;
#[cfg(feature = "ebpf")]
mod flows;
#[cfg(feature = "ebpf")]
mod hash;
pub mod layout;
#[cfg(feature = "ebpf")]
mod memory;
#[cfg(feature = "ebpf")]
mod steering;
#[cfg(not(feature = "ebpf"))]
#[path = "without_ebpf.rs"]
mod steering;
#[cfg(feature = "ebpf")]
mod ticks;
#[cfg(feature = "ebpf")]
mod writer;

#[cfg(feature = "ebpf")]
pub use adoption::Adopted;
#[cfg(feature = "ebpf")]
pub use control::Control;
pub use error::SteeringError;
#[cfg(feature = "ebpf")]
pub use flows::FlowTable;
pub use steering::Steering;
#[cfg(feature = "ebpf")]
pub use writer::FastPathWriter;

/// The program's name in the kernel: `bpftool prog`, `tc filter show` and `bpftool net` show it.
pub const PROGRAM: &str = "sixway_steer";

/// The most local addresses; the program's map has room for so many.
pub const ADDRESSES: usize = 1_024;

/// What steering took to the TUN device since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets, a super-frame as one.
    pub packets: u64,
    /// Their octets, outer IPv4 header included.
    pub octets: u64,
}

/// How a program hangs at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A TCX link (Linux 6.6): it goes with the process, even one that is killed.
    Tcx,
    /// A filter of the clsact queueing discipline: it stays behind a process that is killed, until
    /// [`Steering::remove_leftovers`].
    Clsact,
}
