//! How the steering program is attached, and its counters.

/// The steering program's name in the kernel: `bpftool prog`, `tc filter show` and `bpftool net` show it.
pub const STEERING_PROGRAM: &str = "sixway_ingress";

/// What versions called it whose filters have no handle of their gateway.
#[cfg(feature = "ebpf")]
pub(super) const FORMER_NAME: &str = "sixway_steer";

/// How the steering program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A TCX link (Linux 6.6). The kernel removes it with the process, even one that is killed.
    Tcx,
    /// A filter of the clsact queueing discipline. It outlives a process that is killed, until
    /// [`Steering::remove_leftovers`](crate::Steering::remove_leftovers).
    Clsact,
}

/// What the steering program redirected to the TUN device since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets; a GSO packet counts once.
    pub packets: u64,
    /// Their octets, outer IPv4 header included.
    pub octets: u64,
}
