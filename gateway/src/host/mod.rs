//! What the gateway changes on its host, and how that is restored.
//! Every change that does not vanish with the device is written to a state file before it is made, so that
//! the next start after a crash, or `sixway cleanup`, can restore it.

mod blackholes;
mod capability;
mod device;
mod error;
mod facts;
mod firewall;
mod foreign_routes;
mod forwarding;
mod guard;
mod inherited;
mod kernel;
mod links;
mod masquerade;
mod namespace;
mod next_hops;
pub mod nft;
pub mod notrack;
mod program;
mod proxy_neighbours;
mod reach;
mod realm_rules;
mod realms;
mod record;
mod reserved_ports;
mod resolvers;
mod route;
mod route_lookup;
mod route_mark;
mod setting_name;
mod source_rules;
mod vrf;

pub use capability::{CAP_NET_ADMIN, has_capability};
pub use device::{Host, HostPlan};
pub use error::HostError;
pub use facts::{addresses, addresses_now, host_facts, surroundings, surroundings_now};
pub use firewall::{Obstacle, obstacles};
pub use foreign_routes::{ForeignRoute, foreign_routes6};
pub use forwarding::{Forwarding, device_settings, host_settings};
pub use guard::{Restored, RuleEvents, TcFilters, Watched};
pub use links::kernel_tunnels;
pub use masquerade::{Masquerade, masquerades, ports_left};
pub use next_hops::{SilentRouter, silent_routers};
pub use nft::NftError;
pub use notrack::remove as remove_table;
pub use program::run as run_program;
pub use realms::{RealmPlan, VrfTrouble};
pub use record::{
    Leftovers, Record, RecordError, RunningGateway, Successor, added_addresses, clear_up, leftovers, pinned,
    running,
};
pub use resolvers::resolv_conf;
pub use route::RouteError;
pub use route_lookup::{
    Hop, default_interfaces, default_interfaces6, hop, hop_if_told, native_ipv6, routes_ipv6_internet,
};
pub use vrf::{NoVrf, Vrf, members, vrf, vrf_with};
