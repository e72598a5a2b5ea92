//! The configuration: TOML in, a typed and checked [`Config`] out, or every fault at once.
//!
//! ```text
//!     document  the text, its lines, TOML's own errors      schema   every section and key, their kinds and defaults
//!     section   one table, key by key against the schema    value    one value, read as its kind
//!     gateway · pool · shared_pool · nat64 · siit · translation           what the sections become
//!     six_to_four · six_rd · configured_tunnel · isatap · encapsulation · local_address · outer_end · tunnels · router_advertisement
//!     fast_path what the kernel carries on by itself
//!     dns64     what it becomes, and what a resolver is told
//!     other     mechanisms that need no more than a section and routes
//!     claims    who claims which addresses                  routes   what is routed into the device
//! ```

mod advertise;
mod claims;
mod configured_tunnel;
pub mod dns64;
mod document;
mod encapsulation;
mod engine;
mod engine_tunnels;
mod fast_path;
mod fault;
mod gateway;
mod host;
mod isatap;
mod load;
mod local_address;
mod nat64;
mod other;
mod outer_end;
mod pool;
mod ports;
mod reach;
mod router_advertisement;
mod routes;
mod schema;
mod section;
mod shared_pool;
mod siit;
mod six_rd;
mod six_to_four;
mod surroundings;
mod text;
mod translation;
mod tunnels;
mod untracked;
mod value;

#[cfg(test)]
mod tests;

pub use configured_tunnel::{ConfiguredTunnel, Remote};
pub use encapsulation::{Ecn, Encapsulation, OuterFragments, TunnelMtu};
pub use fast_path::{FAST_PATH_INTERFACES, FastPath, FastPathMode};
pub use fault::{Faults, Place, Remark, Warning, write_aligned};
pub use gateway::{Fragments, Gateway, LogFormat, LogLevel, Tun};
pub use host::{HostAddress, HostFacts, KernelTunnel};
pub use isatap::{Isatap, IsatapRole};
pub use load::Config;
pub use local_address::{LocalAddress, LocalSource};
pub use nat64::{Filtering, Nat64, Static, StaticProtocol, Timeouts};

pub use other::{Other, Others};
pub use pool::Pool;
pub use ports::Ports;
pub use reach::{LinkAddress, Reach, SourceRule, TunnelRoute};
pub use router_advertisement::{
    AdvertisedPrefix, AdvertisedRoute, Lifetime, Pref64, RouterAdvertisement, RouterPreference,
};
pub use routes::{Route, RouteChoice};
pub use schema::tables;
pub use shared_pool::SHARED_RANGES;
pub use siit::{EamRoutes, EamRow, Hairpinning, Mappings, Siit};
pub use six_rd::{SixRd, SixRdRole};
pub use six_to_four::{NativeSources, SixToFour, SixToFourRole};
pub use surroundings::{Learnt, Surroundings};
pub use translation::{HeaderByte, Translation, UdpZeroChecksum};
pub use tunnels::{Steering, Tunnels};
pub use untracked::Untracked;
