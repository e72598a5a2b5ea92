//! The configuration: a TOML file becomes a checked [`Config`], or a list of all faults in it.
//!
//! ```text
//!     text · word · route · unicast · interface_name · …     words, prefixes and names, read and written
//!     schema                  every section and key, their kinds and defaults
//!     document                the text, its lines, TOML's own errors
//!     value · section         one value read as its kind; one table, key by key against the schema
//!     gateway · pool · nat64 · nat44 · siit · tunnels · dns64 · …    one file for each section: its values and its checks
//!     claims                  which section uses which addresses
//!     config                  all sections together
//!     load                    from the file to a config
//!     engine · engine_tunnels · advertise · reach · dns64_access    from a config to what the gateway runs with
//! ```

mod advertise;
mod alarm;
mod claims;
mod config;
mod configured_tunnel;
mod divided_pools;
pub mod dns64;
mod dns64_access;
mod dns64_check;
mod document;
mod domain_name;
mod ds_lite;
mod encapsulation;
mod engine;
mod engine_tunnels;
mod event_log;
mod exposed;
mod fast_path;
mod fault;
mod four_over_six;
mod gateway;
mod host;
mod host_prefixes;
mod inside;
mod interface_name;
mod ip_in_ip;
mod isatap;
mod leased_names;
mod limits;
mod load;
mod local_address;
mod mechanism;
mod mechanism_sections;
mod mechanisms;
mod nat44;
mod nat44_static;
mod nat46;
mod nat46_check;
mod nat64;
mod npt66;
mod outer_end;
mod own_tunnels;
mod pcp;
mod pool;
mod pool_draining;
mod port_blocks;
mod portless;
mod portless_tunnels;
mod ports;
mod private_networks;
mod reach;
mod realm;
mod route;
mod route_choice;
mod router_advertisement;
mod schema;
mod section;
mod shared_pool;
mod siit;
mod six_rd;
mod six_to_four;
mod source_rule;
mod sources;
mod static_binding;
mod static_rules;
mod surroundings;
mod teredo_check;
mod teredo_client;
mod teredo_relay;
mod teredo_server;
mod text;
mod timeouts;
mod tracked_pool;
mod translation;
mod translator_prefix;
mod tunnel_context;
mod tunnel_locals;
mod tunnels;
mod unicast;
mod untracked;
mod value;
mod word;

#[cfg(test)]
mod tests;

pub use alarm::AlarmThresholds;
pub use config::Config;
pub use configured_tunnel::{ConfiguredTunnel, Remote};
pub use ds_lite::{Aftr, AftrAt, B4, B4Local, DsLite, DsLiteRole, ROUTE_METRIC, SoftwireStatic};
pub use encapsulation::{Ecn, Encapsulation, OuterFragments, TunnelMtu};
pub use event_log::{
    EventLog, EventLogFile, Facility, IpfixCollector, LogTransport, LoggedEvent, SyslogServer,
};
pub use exposed::Exposed;
pub use fast_path::{FAST_PATH_INTERFACES, FastPath, FastPathMode};
pub use fault::{Faults, Place, Remark, Warning, write_aligned};
pub use four_over_six::{Concentrator, FourOverSix, FourOverSixEnd, FourOverSixRole, HostEnd, StaticLease};
pub use gateway::{Fragments, Gateway, LogFormat, LogLevel, Tun};
pub use host::{HostAddress, HostFacts, KernelTunnel};
pub use isatap::{Isatap, IsatapRole};
pub use leased_names::NamedHost;
pub use limits::{InsidePrefix, Subscribers};
pub use local_address::{LocalAddress, LocalSource};
pub use mechanism::Mechanism;
pub use mechanisms::Mechanisms;
pub use nat44::{Nat44, Nat44Timeouts};
pub use nat44_static::{Nat44Statics, PortlessStatic};
pub use nat46::{Nat46, StaticMapping};
pub use nat64::{Filtering, Nat64, NatProtocol, ReversePath};
pub use pcp::Pcp;
pub use pool::Pool;
pub use port_blocks::PortBlocks;
pub use portless::PortlessLimits;
pub use ports::Ports;
pub use reach::{LinkAddress, ProxyNeighbour, Reach, TunnelRoute};
pub use realm::{KERNEL_TABLES, Realm, RealmRouting};
pub use route::Route;
pub use route_choice::RouteChoice;
pub use router_advertisement::{
    AdvertisedPrefix, AdvertisedRoute, Lifetime, Pref64, RouterAdvertisement, RouterPreference,
};
pub use schema::tables;
pub use shared_pool::SHARED_RANGES;
pub use siit::{EamRoutes, EamRow, Hairpinning, Mappings, Siit};
pub use six_rd::{SixRd, SixRdRole};
pub use six_to_four::{NativeSources, SixToFour, SixToFourRole};
pub use source_rule::{Network, SourceRule};
pub use sources::Sources;
pub use static_binding::Static;
pub use static_rules::StaticRules;
pub use surroundings::{HostLease, Learnt, Surroundings};
pub use teredo_client::{TeredoClient, TeredoClientServer};
pub use teredo_relay::TeredoRelay;
pub use teredo_server::{Secret, TeredoServer, TeredoServerClient};
pub use timeouts::{OfPorts, Timeouts};
pub use translation::{HeaderByte, Translation, UdpZeroChecksum};
pub use tunnels::{Steering, Tunnels};
pub use untracked::{Untracked, UntrackedInside};
pub use word::Word;
