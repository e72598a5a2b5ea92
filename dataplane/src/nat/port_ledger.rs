//! A record of the allocated ports, kept outside this process.

use super::protocol::NatProtocol;
use super::sides::Outside;
use sixway_wire::Endpoint4;

/// Records which outside endpoints dynamic bindings have. Its methods are called between packets and must not block. Saying twice that an
/// endpoint is bound, or released, changes nothing.
pub trait PortLedger: Send {
    /// Another handle to the same ledger: each translator has one of its own.
    fn handle(&self) -> Box<dyn PortLedger>;

    /// The endpoint belongs to a binding, or is in quarantine.
    fn bound(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>);

    /// It is free again.
    fn released(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>);
}
