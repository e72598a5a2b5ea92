//! Links: where packets come from and go to.
//!
//! A link carries whole IP packets, never Ethernet frames, and may carry super-frames: one set of headers for many TCP
//! or UDP segments. The gateway's own link is a TUN device ([`tun`]). Tunnel packets for the host's own addresses come through
//! [`raw`] sockets where they are not steered into the TUN device, and the ICMP errors about ours through [`path_errors`].
//! [`neighbour_discovery`] carries router solicitations and advertisements, [`udp`] the datagrams of servers. [`pcap`] replays and records; [`memory`] and
//! [`fault`] serve tests.
//!
//! Unsafe code (system calls) lives in this crate, each block with its reason.

pub mod checksum;
mod clock;
pub mod counters;
pub mod fault;
pub mod interface;
pub mod memory;
pub mod neighbour_discovery;
pub mod path_errors;
pub mod pcap;
pub mod queue_discipline;
pub mod raw;
pub mod segmentation;
pub mod shared_file;
mod syscall;
pub mod sysctl;
pub mod tun;
pub mod udp;
mod wake;

pub use clock::Clock;
pub use counters::LinkCounters;
pub use fault::{Faults, Faulty};
pub use memory::Memory;
pub use neighbour_discovery::NeighbourDiscovery;
pub use path_errors::PathErrors;
pub use pcap::Pcap;
pub use raw::{RawTunnel, TunnelSender};
pub use shared_file::SharedFile;
pub use tun::{Abilities, BlockMap, Persistence, Steering, Tun, TunConfig, TunQueue};
pub use udp::{UdpExchange, UdpServer};
pub use wake::Wake;

use sixway_dataplane::Frame;
use std::io;
use std::os::fd::BorrowedFd;

/// What packets come through. A link never waits: who has nothing to do polls [`Link::poll_fd`].
pub trait Link {
    /// Receives packets into the frames, from the first on, and returns how many were filled: none when nothing waits.
    /// Fewer than `frames` need not mean that the link is empty; a link may end a batch early so that its octets stay in
    /// the processor's cache.
    ///
    /// # Errors
    /// What the kernel said, with the call that failed; the link is of no further use (its device is gone).
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize>;

    /// Sends one packet. The frame's octets may be changed on the way (a checksum finished) and are of no use afterwards.
    /// A packet that the link had no room for, or that the kernel refused, is gone and counted in [`LinkCounters`].
    ///
    /// # Errors
    /// As for [`Link::receive`].
    fn send(&mut self, frame: &mut Frame) -> io::Result<()>;

    /// Sends what the link collected, if it collects: to be called after each batch.
    ///
    /// # Errors
    /// As for [`Link::receive`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What becomes readable when packets wait; `None` for a link that is no file.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What this link counted.
    fn counters(&self) -> &LinkCounters;
}
