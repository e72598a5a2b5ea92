//! Executes what a mechanism decided, in place: headers, ports, checksums, hop limit, MSS; and fragments or segments packets that are too
//! large, if that is allowed.

mod composed;
pub mod decap;
pub mod echo;
mod encap;
pub mod icmp_error;
mod in_tunnels;
mod ip_in_ip;
mod job;
mod mss;
mod outer_header;
mod plain4;
mod renumber;
mod renumber4;
mod rewriter;
mod segments;
mod tcp;
mod transport;
mod v4_to_v6;
mod v6_to_v4;
mod work;

pub use rewriter::Rewriter;
pub use tcp::rewrite_tcp;
pub use work::{Editing, Edits, Executed, Pass, Renumbering, Translating, Tunnelling, Work};
