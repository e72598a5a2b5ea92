//! What the stateful translators, NAT64 and NAT44, share: a NAT ([`crate::nat::Engine`]) and rules of their own about addresses, and what
//! an operator, the fast path and another process do with it.

mod assistance;
mod assisted;
mod contract;
mod remotes;
mod translator;
mod verbs;
mod without_ports;

pub use contract::Stateful;
pub(crate) use remotes::Remotes;
pub use translator::{AddressPolicy, Translator};
pub use without_ports::{PortlessBindingRow, PortlessRow, WithoutPorts};
