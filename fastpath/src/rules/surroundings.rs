//! What the programs must know in addition to the engine's configuration.

use crate::layout::Port;
use crate::slots::Slots;

/// What the programs must know in addition to the engine's configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Index of the TUN device.
    pub tun: u32,
    /// Its MTU in octets.
    pub tun_mtu: u16,
    /// The interfaces that packets come in by; at most [`PORTS`].
    pub ports: Vec<Port>,
    /// UnofferedReason the kernel's routes cannot be remembered by the destination alone; `None`: they can.
    pub not_plain: Option<String>,
    /// Ticks after which an idle TCP flow's packets are left to the engine.
    pub idle_tcp: u32,
    /// The same of UDP.
    pub idle_udp: u32,
    /// Ticks without a heartbeat after which everything is passed to the kernel.
    pub absence: u32,
    /// The slots of translators whose flows the previous process may have left.
    pub slots: Slots,
}
