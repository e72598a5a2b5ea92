//! A record of the ports that are given, kept by whoever outlives the process.

use super::protocol::NatProtocol;
use super::sides::Outside;
use core::fmt;
use sixway_wire::Endpoint4;
use std::sync::{Arc, Mutex, PoisonError};

/// Is told which outside endpoints dynamic bindings have. Its methods are called between packets and must not block. Saying twice that an
/// endpoint is bound, or released, changes nothing.
pub trait PortLedger: Send {
    /// The endpoint belongs to a binding, or is in quarantine.
    fn bound(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>);

    /// It is free again.
    fn released(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>);
}

/// The ledger that the translators of one engine share; there may be none.
#[derive(Clone, Default)]
pub(crate) struct SharedLedger(Option<Arc<Mutex<Box<dyn PortLedger>>>>);

impl SharedLedger {
    pub(crate) fn new(ledger: Box<dyn PortLedger>) -> Self {
        Self(Some(Arc::new(Mutex::new(ledger))))
    }

    #[inline]
    pub(super) fn bound(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(ledger) = &self.0 {
            ledger.lock().unwrap_or_else(PoisonError::into_inner).bound(protocol, outside);
        }
    }

    #[inline]
    pub(super) fn released(&self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        if let Some(ledger) = &self.0 {
            ledger.lock().unwrap_or_else(PoisonError::into_inner).released(protocol, outside);
        }
    }
}

impl fmt::Debug for SharedLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedLedger")
    }
}
