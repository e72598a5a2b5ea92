//! What does not change while a gateway runs.

use crate::config::Pool;
use crate::view::Device;
use sixway_dataplane::mechanism::table::Kind;
use sixway_wire::{Prefix4, Prefix6};

/// What does not change while the gateway runs.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The gateway's name.
    pub name: String,
    /// Its device; `None`: it needs none.
    pub device: Option<Device>,
    /// Its mechanisms, in the order of the workers' tables.
    pub mechanisms: Vec<Mechanism>,
    /// Of each stateful mechanism, in their order, the prefix and the pool.
    pub translators: Vec<(Prefix6, Pool)>,
    /// Where metrics are served.
    pub metrics: Option<String>,
    /// Links with router advertisements, and a summary of these.
    pub advertised: Vec<(String, String)>,
    /// Tunnels whose remote is a name, and where it may lead; nowhere named: anywhere.
    pub named_remotes: Vec<(String, Vec<Prefix4>)>,
    /// Why there is no fast path although the configuration asks for one.
    pub without_fast_path: Option<String>,
    /// The configuration in force.
    pub config: serde_json::Value,
    /// The same as a configuration file.
    pub config_text: String,
}

/// A configured mechanism.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// What the configuration calls it.
    pub name: String,
    /// A summary of what it serves.
    pub serves: String,
    /// What it is.
    pub kind: Kind,
    /// Its pool of ports, if it has one.
    pub pool: Option<String>,
}
