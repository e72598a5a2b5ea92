//! Links: receive and send packets.
//!
//! A link carries whole IP packets, never Ethernet frames, and may carry GSO packets: one set of headers for many TCP
//! or UDP segments. The gateway's own link is a TUN device ([`tun`]). Tunnel packets for the host's own addresses come through
//! [`raw`] sockets where they are not steered into the TUN device, and the ICMP errors about ours through [`path_errors`].
//! [`neighbour_discovery`] carries router solicitations and advertisements, [`udp`] the datagrams of servers. [`pcap`] replays and records; [`memory`] and
//! [`fault`] serve tests.
//!
//! Unsafe code (system calls) lives in this crate, each block with its reason.

pub mod checksum;
mod child_signals;
mod clock;
pub mod counters;
pub mod fault;
pub mod interface;
mod link;
mod listeners;
pub mod memory;
mod name_service;
pub mod neighbour_discovery;
pub mod path_errors;
pub mod pcap;
mod privileges;
mod process_handle;
pub mod queue_discipline;
pub mod raw;
pub mod segmentation;
pub mod shared_file;
mod syscall;
pub mod sysctl;
pub mod tun;
pub mod udp;
mod wake;

pub use child_signals::with_no_signal_blocked;
pub use clock::Clock;
pub use counters::LinkCounters;
pub use fault::{Faults, Faulty};
pub use link::{BATCH_OCTETS, Link};
pub use listeners::{Listeners, Listens};
pub use memory::Memory;
pub use name_service::resolve_without_modules;
pub use neighbour_discovery::NeighbourDiscovery;
pub use path_errors::PathErrors;
pub use pcap::Pcap;
pub use privileges::{Duty, give_up};
pub use process_handle::ProcessHandle;
pub use raw::{PacketSender, PacketSender6, RawTunnel, SharedPort, TunnelSender};
pub use shared_file::SharedFile;
pub use tun::{Abilities, BlockMap, OverloadFilter, Persistence, Steering, Tun, TunConfig, TunQueue};
pub use udp::{UdpExchange, UdpServer, UdpTunnel, UdpTunnelSender};
pub use wake::Wake;
