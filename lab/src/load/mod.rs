//! The load generators: many small UDP packets from one thread, sent by `sendmmsg`, frames made in the kernel, and sockets and options that the
//! standard library does not offer. The lab's only unsafe code is here.

#![allow(unsafe_code, reason = "system calls that have no safe wrapper; each block says why it is sound")]

mod account;
mod arrivals;
mod background;
mod batch;
mod bpf;
mod call;
pub mod clock;
mod connections;
mod echo;
mod ends;
mod flood;
mod frames;
mod histogram;
mod jitter;
mod live_sender;
mod option;
mod outcome;
mod pacer;
mod priority;
mod random;
mod raw_socket;
mod schedule;
mod stamp;
mod stamped_frames;
mod tcp;
mod udp;
mod variation;

pub use background::{Background, BackgroundReport};
pub use call::{CallReport, Calls};
pub use connections::{Connected, ConnectionEnds, ConnectionFrames, compile_connections};
pub use echo::{EchoSweep, From};
pub use ends::Ends;
pub use flood::{Flood, Train, flood, thread_cpu};
pub use frames::{Answer, Frames, Pattern, Redirector, Sink, SinkCounts, compile};
pub use jitter::Jitter;
pub use option::{Pmtu, path_mtu_discovery, segment_size, without_checksum};
pub use outcome::{Gaps, Histogram, LOST_AFTER, Load, Outcome, Pace, ThreadCost, Until, histogram};
pub use priority::{before_all_others, only_when_idle};
pub use random::Random;
pub use raw_socket::{discard_all, icmpv6_socket, tunnel_socket};
pub use stamp::{STAMP, Stamp};
pub use stamped_frames::{
    FRAMES_KNOWN, FlowState, FrameEnds, FrameStream, Stamped, StampedFrames, StampedSink, XdpResponder,
    compile_stamped, link_address, stamp_of,
};
pub use tcp::{HttpFetch, HttpServer, TRANSACTION_LIMIT, TcpBulk, TransactionKind, Transactions};
pub use udp::{Trip, UdpStream};
pub use variation::Variation;
