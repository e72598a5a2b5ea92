//! `[dns64]`: AAAA records for IPv4-only names (RFC 6147).

mod bounds;
mod clients;
mod connections;
mod context;
mod dnssec;
mod domain_name;
mod listening;
mod networks;
mod pem;
mod pref64;
mod prefixes;
mod reverse;
mod rule;
mod section;
mod settings;
mod upstream;
mod upstreams;

pub use bounds::{Bounds, Stale};
pub use clients::ClientSettings;
pub use connections::{Connections, ThreadsBy};
pub(crate) use context::Dns64Context;
pub use dnssec::{CheckingDisabled, Dnssec, DnssecOk, ValidatingClients};
pub use domain_name::Name;
pub use listening::Listening;
pub use networks::Networks;
pub(crate) use prefixes::Translators;
pub use reverse::Reverse;
pub use rule::{ARecords, Over, Rule, Synthesis};
pub use section::{Dns64, Ipv4OnlyArpa, SpecialNames, SynthesisedTtl};
pub use upstream::{Transport, Upstream};
pub use upstreams::Upstreams;
