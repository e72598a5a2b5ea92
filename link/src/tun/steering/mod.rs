//! Queue steering: the kernel puts a packet into the queue of the worker that owns its state, so that workers rarely hand packets over to
//! each other.
//!
//! A TUN device calls an eBPF program to choose the queue (TUNSETSTEERINGEBPF, Linux 4.16). The program follows the ownership that
//! the NAT deals out: packets from inside hosts by a keyed hash of their source's prefix, IPv4 packets to a pool by the block of their
//! destination port or ICMP identifier, which it looks up in a map of the blocks' owners, other IPv4 packets by their addresses. It may be wrong (static bindings, ICMP errors, fragments, a
//! block that moves): then the worker hands the packet over.

mod attach;
mod block_map;
mod program;
mod queue_choice;

pub(super) use attach::attach;

pub use block_map::BlockMap;
pub use program::steering_program;
pub use queue_choice::Steering;
