//! eBPF programs in front of the engine. They repeat decisions and never make them: without them everything works the same, only slower.
//!
//! [`Steering`] takes tunnel packets for the host's own addresses, and packets to ports of theirs that a translator shares, to the
//! gateway's TUN device: `bpf/steer.bpf.c`.
//!
//! [`FastPath`] repeats in the kernel what the engine has decided: `bpf/fastpath.bpf.c`, in the driver (XDP) and at tc ingress.
//!
//! ```text
//!     rules (constants) ─▶ programs ◀─ replaced atomically by another configuration's
//!     FlowTable ◀─ FastPathWriter ◀─ engine      ┐
//!     Control  ◀─ generation, heartbeat, on/off  ├ mapped memory: no system calls
//!     NextHops ─▶ whom to probe                  ┘
//! ```
//!
//! `build.rs` compiles the programs with clang. Without the feature `ebpf`, attaching fails with an error.

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
mod flows;
mod half_open_share;
mod hash;
#[cfg(feature = "ebpf")]
mod inherited;
#[cfg(feature = "ebpf")]
mod interface;
mod kernel_error;
pub mod layout;
mod memory;
#[cfg(feature = "ebpf")]
mod mount_lock;
mod next_hops;
#[cfg(feature = "ebpf")]
mod patience;
#[cfg(feature = "ebpf")]
mod pin_path;
#[cfg(feature = "ebpf")]
mod pins;
#[cfg(feature = "ebpf")]
mod probe;
mod program_names;
#[cfg(feature = "ebpf")]
mod programs;
pub mod rules;
mod settings;
mod slots;
#[cfg(feature = "ebpf")]
mod stamp;
mod steering;
#[cfg(feature = "ebpf")]
pub mod test_run;
mod ticks;
#[cfg(not(feature = "ebpf"))]
mod without_ebpf;
mod writer;

pub use adoption::Adopted;
#[cfg(feature = "ebpf")]
pub use ahead::Ahead;
pub use control::Control;
pub use counts::{CAUSES, Cause, Counts};
pub use error::FastPathError;
#[cfg(feature = "ebpf")]
pub use fast_path::{FastPath, Loaded, Opened, Prepared};
pub use flows::FlowTable;
#[cfg(feature = "ebpf")]
pub use inherited::{slots, unusable};
pub use next_hops::{Neighbour, NextHops};
#[cfg(feature = "ebpf")]
pub use patience::patiently;
#[cfg(feature = "ebpf")]
pub use pins::{gateways, remove_all};
#[cfg(feature = "ebpf")]
pub use probe::can_decap_gso;
pub use program_names::{TC_PROGRAM, XDP_PROGRAM};
#[cfg(feature = "ebpf")]
pub use programs::{TC_OBJECT, XDP_OBJECT};
pub use settings::{AttachPoint, Attached, Found, LeftOut, Mode, Rules, Settings, Table};
pub use slots::Slots;
#[cfg(feature = "ebpf")]
pub use steering::Steering;
pub use steering::{
    ADDRESSES, Hook, INNER_INTERFACES, InsideHosts, OwnAddress, RANGES, STEERING_PROGRAM, SteeringError,
    Taken,
};
#[cfg(not(feature = "ebpf"))]
pub use without_ebpf::{
    Ahead, FastPath, Loaded, Opened, Prepared, Steering, gateways, remove_all, slots, unusable,
};
pub use writer::FastPathWriter;
