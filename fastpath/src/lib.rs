//! eBPF programs beside the engine. They never decide: take them away, and everything works as before, slower.
//!
//! [`Steering`] takes tunnel packets for the host's own addresses, and what comes to ports of theirs that a translator shares, to the
//! gateway's TUN device: `bpf/steer.bpf.c`.
//!
//! [`FastPath`] repeats in the kernel what the engine has decided: `bpf/fastpath.bpf.c`, in the driver (XDP) and at tc ingress.
//!
//! ```text
//!     rules (constants) ─▶ programs ◀─ replaced at once by another configuration's
//!     FlowTable ◀─ FastPathWriter ◀─ engine      ┐
//!     Control  ◀─ generation, heartbeat, on/off  ├ mapped memory: no system calls
//!     NextHops ─▶ whom to probe                  ┘
//! ```
//!
//! `build.rs` compiles the programs with clang. Built without the feature `ebpf`, attaching fails and says so.

mod adoption;
#[cfg(feature = "ebpf")]
mod ahead;
#[cfg(feature = "ebpf")]
mod attach;
#[cfg(feature = "ebpf")]
mod bpf;
#[cfg(feature = "ebpf")]
mod bpf_mount;
#[cfg(feature = "ebpf")]
mod choose;
mod control;
mod counts;
mod error;
#[cfg(feature = "ebpf")]
mod fast_path;
#[cfg(not(feature = "ebpf"))]
#[path = "fast_path_without_ebpf.rs"]
mod fast_path;
mod fault;
mod flows;
mod hash;
pub mod layout;
mod memory;
mod next_hops;
mod own_address;
#[cfg(feature = "ebpf")]
mod patience;
#[cfg(feature = "ebpf")]
mod pin_path;
#[cfg(feature = "ebpf")]
mod pins;
#[cfg(feature = "ebpf")]
mod probe;
#[cfg(feature = "ebpf")]
mod programs;
pub mod rules;
mod settings;
mod slots;
#[cfg(feature = "ebpf")]
mod steering;
#[cfg(not(feature = "ebpf"))]
#[path = "without_ebpf.rs"]
mod steering;
#[cfg(feature = "ebpf")]
pub mod test_run;
mod ticks;
mod writer;

pub use adoption::Adopted;
#[cfg(feature = "ebpf")]
pub use ahead::Ahead;
pub use control::Control;
pub use counts::{CAUSES, Cause, Counts};
pub use error::SteeringError;
#[cfg(not(feature = "ebpf"))]
pub use fast_path::{Ahead, gateways, remove_all};
pub use fast_path::{FastPath, Loaded, Opened, Prepared, slots, unusable};
pub use fault::FastPathError;
pub use flows::FlowTable;
pub use next_hops::{Neighbour, NextHops};
pub use own_address::{OwnAddress, RANGES};
#[cfg(feature = "ebpf")]
pub use patience::patiently;
#[cfg(feature = "ebpf")]
pub use pins::{gateways, remove_all};
#[cfg(feature = "ebpf")]
pub use probe::can_decap_gso;
#[cfg(feature = "ebpf")]
pub use programs::{TC_OBJECT, XDP_OBJECT};
pub use settings::{Attached, Found, LeftOut, Mode, Place, Rules, Settings, Table};
pub use slots::Slots;
pub use steering::Steering;
pub use writer::FastPathWriter;

/// The name of the fast path's program in the driver, as `bpftool prog` shows it.
pub const XDP_PROGRAM: &str = "sixway_xdp";

/// The name of the fast path's program at tc ingress.
pub const TC_PROGRAM: &str = "sixway_tc";

/// The steering program's name in the kernel: `bpftool prog`, `tc filter show` and `bpftool net` show it.
pub const PROGRAM: &str = "sixway_steer";

/// The most local addresses that are steered; the program's map has room for so many.
pub const ADDRESSES: usize = 1_024;

/// What steering took to the TUN device since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets, a super-frame as one.
    pub packets: u64,
    /// Their octets, outer IPv4 header included.
    pub octets: u64,
}

/// How the steering program hangs at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A TCX link (Linux 6.6): it goes with the process, even one that is killed.
    Tcx,
    /// A filter of the clsact queueing discipline: it stays behind a process that is killed, until
    /// [`Steering::remove_leftovers`].
    Clsact,
}
