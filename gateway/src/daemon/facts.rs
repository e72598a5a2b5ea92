//! Facts that do not change while a gateway runs.

use crate::config::{Config, Pool, StaticRules};
use crate::view::Device;
use sixway_dataplane::mechanism::table::Kind;
use sixway_wire::{Prefix4, Prefix6};

/// Above the configuration as a file.
const CONFIG_HEADER: &str = "# The configuration in force, with every default. Private keys are in the files that are named here, and are not printed.\n";

/// What does not change while the gateway runs.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The gateway's name.
    pub name: String,
    /// Its device; `None`: it needs none.
    pub device: Option<Device>,
    /// Its mechanisms, in the order of the workers' tables.
    pub mechanisms: Vec<Mechanism>,
    /// The static bindings that each stateful mechanism allows, in the order of the mechanisms.
    pub translators: Vec<Translator>,
    /// Where metrics are served.
    pub metrics: Option<String>,
    /// Links with router advertisements, and a summary of these.
    pub advertised: Vec<(String, String)>,
    /// Tunnels with a name as remote end, and the networks that it may resolve to; empty: any.
    pub named_remotes: Vec<(String, Vec<Prefix4>)>,
    /// B4s, and the networks of their AFTRs; empty: any.
    pub b4s: Vec<(String, Vec<Prefix6>)>,
    /// Why there is no fast path although the configuration asks for one.
    pub without_fast_path: Option<String>,
    /// The configuration in force.
    pub config: serde_json::Value,
    /// The same as a configuration file.
    pub config_text: String,
}

/// What static bindings of a stateful mechanism may be.
#[derive(Clone, Debug)]
pub struct Translator {
    /// Its prefix, if it has one.
    pub prefix: Option<Prefix6>,
    /// Whether its inside hosts are behind softwires (RFC 6333): then each is named with its B4.
    pub has_softwires: bool,
    /// The prefixes of its inside hosts, if these have IPv4 addresses.
    pub inside4: Option<Vec<Prefix4>>,
    /// Its pool.
    pub pool: Pool,
    /// Whether subscribers' addresses and ports follow from the configuration (RFC 7422).
    pub is_deterministic: bool,
}

impl Translator {
    /// The same, to check a binding by.
    pub fn rules(&self) -> StaticRules<'_> {
        StaticRules { prefix: self.prefix, inside4: self.inside4.as_deref(), pool: Some(&self.pool) }
    }
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

/// The configuration in force as a file.
pub(super) fn config_text(config: &Config) -> String {
    format!("{CONFIG_HEADER}{config}")
}
