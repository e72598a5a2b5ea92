//! The names of the fast path's programs, as `bpftool prog` shows them.

/// The program in the driver (XDP).
pub const XDP_PROGRAM: &str = "sixway_xdp";

/// The program at tc ingress.
pub const TC_PROGRAM: &str = "sixway_tc";
