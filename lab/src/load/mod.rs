//! The load generators: many small UDP packets from one thread, sent by `sendmmsg`, frames made in the kernel, and sockets and options that the
//! standard library does not offer. The lab's only unsafe code is here.

#![allow(unsafe_code, reason = "system calls that have no safe wrapper; each block says why it is sound")]

mod echo;
mod flood;
mod frames;
mod option;
mod outcome;
mod raw_socket;

pub use echo::{EchoSweep, From};
pub use flood::{Flood, Train, flood, thread_cpu};
pub use frames::{Answer, Frames, Pattern, Redirector, Sink, SinkCounts, compile};
pub use option::{Pmtu, path_mtu_discovery, segment_size, without_checksum};
pub use outcome::{Gaps, Histogram, LOST_AFTER, Load, Outcome, Pace, ThreadCost, Until, histogram};
pub use raw_socket::{discard_all, icmpv6_socket, tunnel_socket};
