//! A pool as port blocks see it: ports of one block, and why a block stays with its worker.

use super::pool::{Pool, PoolSlot};
use super::port_plane::PortRange;
use super::protocol::NatProtocol;
use super::sides::Outside;
use sixway_wire::Endpoint4;

impl Pool {
    /// Takes a free port of a block at an address for a binding of an inside port; `None`: all are taken.
    pub(super) fn draw_of(
        &mut self,
        slot: PoolSlot,
        protocol: NatProtocol,
        block: u16,
        inside_port: u16,
    ) -> Option<Outside<Endpoint4>> {
        let random = self.random.draw();
        let parity = match protocol {
            NatProtocol::Udp => inside_port & 1,
            NatProtocol::Tcp | NatProtocol::Icmp => (random >> 32) as u16 & 1,
        };
        let size = self.ports_per_block;
        let plane = self.plane(slot, protocol);
        let port = plane.draw_of(block, size, parity, random as u32)?;
        if plane.free(PortRange::High) == 0 {
            self.available[protocol as usize][PortRange::High as usize].remove(slot.0);
        }
        self.took(slot, protocol, port);
        Some(Outside(Endpoint4::new(self.open[slot.0 as usize].address, port)))
    }

    /// Number of workers.
    pub(super) const fn workers(&self) -> u8 {
        self.workers
    }

    /// Whether this worker may give any port.
    pub(super) const fn has_any(&self) -> bool {
        self.owned > 0
    }

    /// Number of open addresses.
    pub(super) fn open_addresses(&self) -> u32 {
        self.open.len() as u32
    }

    /// A random number.
    pub(super) fn random(&mut self) -> u64 {
        self.random.draw()
    }
}
