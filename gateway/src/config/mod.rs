//! The configuration: TOML in, a typed and checked [`Config`] out, or every fault at once.
//!
//! ```text
//!     document  the text, its lines, TOML's own errors      schema   every section and key, their kinds and defaults
//!     section   one table, key by key against the schema    value    one value, read as its kind
//!     gateway · pool · nat64 · siit · translation           what the sections become
//!     claims    who claims which addresses                  routes   what is routed into the device
//! ```

mod claims;
mod document;
mod engine;
mod fault;
mod gateway;
mod host;
mod load;
mod nat64;
mod pool;
mod ports;
mod routes;
mod schema;
mod section;
mod siit;
mod text;
mod translation;
mod value;

#[cfg(test)]
mod tests;

pub use fault::{Faults, Place, Remark, Warning, write_aligned};
pub use gateway::{Fragments, Gateway, LogFormat, LogLevel, Tun};
pub use host::{HostAddress, HostFacts};
pub use load::Config;
pub use nat64::{Filtering, Nat64, Static, StaticProtocol, Timeouts};
pub use pool::Pool;
pub use ports::Ports;
pub use routes::{Route, RouteChoice};
pub use schema::tables;
pub use siit::{EamRoutes, EamRow, Hairpinning, Mappings, Siit};
pub use translation::{HeaderByte, Translation, UdpZeroChecksum};
