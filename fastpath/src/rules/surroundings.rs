//! The data that the programs need in addition to the engine's configuration.

use crate::layout::Port;
use crate::slots::Slots;
use sixway_wire::{Prefix4, Prefix6};

/// The data that the programs need in addition to the engine's configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Index of the TUN device.
    pub tun: u32,
    /// Its MTU in octets.
    pub tun_mtu: u16,
    /// The interfaces that packets come in by; at most [`PORTS`].
    pub ports: Vec<Port>,
    /// Why the kernel's routes cannot be remembered by destination and ingress; `None`: they can.
    pub not_plain: Option<String>,
    /// Sources for which they can not: those of policy rules.
    pub sources4: Vec<Prefix4>,
    /// The same of IPv6.
    pub sources6: Vec<Prefix6>,
    /// Ticks after which an idle TCP flow's packets are left to the engine.
    pub idle_tcp: u32,
    /// The same of UDP.
    pub idle_udp: u32,
    /// The same of echo messages.
    pub idle_icmp: u32,
    /// SYNs of stateless mechanisms are forwarded too, past the packet filter; else they are left to the engine.
    pub forwards_syn: bool,
    /// Ticks without a heartbeat after which everything is passed to the kernel.
    pub absence: u32,
    /// The slots of translators whose flows the previous process may have left.
    pub slots: Slots,
}
