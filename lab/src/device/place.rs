//! The place of a device.

use crate::topology::Network;
use std::sync::Arc;

/// A host of a network with the links that a device has there. The experiment has given it its addresses and routes.
#[derive(Clone)]
pub struct Place {
    /// The network. It ends with the last device or stage that holds it.
    pub network: Arc<Network>,
    /// The host on which the device runs.
    pub host: &'static str,
    /// Its links to clients, subscribers or tunnels.
    pub inside: Vec<&'static str>,
    /// Its links to the rest.
    pub outside: Vec<&'static str>,
    /// The CPU that belongs to the device, if it has one.
    pub core: Option<usize>,
}

impl Place {
    /// All its links.
    pub fn links(&self) -> impl Iterator<Item = &'static str> {
        self.inside.iter().chain(&self.outside).copied()
    }
}
