//! The path of a packet: parse, classify, prepare, decide, execute, and once more if the result is ours.
//!
//! ```text
//!     batch    strides, cut into runs of packets of one mechanism      path   one packet: decided, executed, counted
//!     walk     packets processed alone: ICMP errors, fragments, further passes, frames from another worker
//!     whole    fragments that wait for their packet                    owner  whose a packet is
//!     tunnel_addresses  IPv6-in-IPv4 tunnels by local address         pair_ends  other tunnels by both ends
//!     tunnel_errors  ICMP errors from tunnel paths                     path_news  those that other workers learn
//!     own_tunnels    tunnels behind our own NAT44                     port_owner  whose a packet to an address of several mechanisms is
//!     fast_path      sessions for the fast path                        generated  probes and answers
//!     softwire_ends  IPv4 behind many remote ends                      softwires  what an AFTR's need in addition
//!     udp_ends       tunnels in UDP by local endpoint                  in_udp  their packets
//!     realms         hosts behind devices of their own                 in_realms  their packets
//! ```

mod assembly;
mod batch;
mod bounds;
mod build_context;
mod config;
mod entry;
mod fast_path;
mod generated;
mod in_realms;
mod in_udp;
mod inheritance;
mod inside4;
mod original;
mod overload;
mod own_tunnels;
mod owner;
mod pair_ends;
mod path;
mod path_error_judge;
mod path_news;
mod port_owner;
mod realms;
mod slot;
mod softwire_ends;
mod softwires;
mod tunnel_addresses;
mod tunnel_errors;
mod udp_ends;
mod walk;
mod whole;

pub use assembly::Engine;
pub use bounds::MAX_PASSES;
pub use config::{EngineConfig, TunnelConfig};
pub use fast_path::PACKETS_BEFORE_OFFLOAD;
pub use inheritance::SessionEnds;
pub use path_error_judge::PathErrorJudge;
