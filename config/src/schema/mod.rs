//! Every section and key of the configuration: what is read, what is checked for unknown keys, and the tables of
//! `docs/configuration.md` come from this one list.

mod advertisement_keys;
mod dns64_keys;
mod ds_lite_keys;
mod four_over_six_keys;
mod key;
mod keys;
mod log_keys;
mod mechanism_keys;
mod nat44_keys;
mod pcp_keys;
mod realm_keys;
mod sections;
mod stateful_keys;
mod teredo_client_keys;
mod teredo_keys;
mod teredo_server_keys;
mod tunnel_keys;

pub(crate) use advertisement_keys::{ADVERTISED_PREFIX, ADVERTISED_ROUTE, ROUTER_ADVERTISEMENT};
pub(crate) use dns64_keys::{DNS64, DNSSEC, RULE, UPSTREAM};
pub(crate) use ds_lite_keys::{
    AFTR_KEYS, AFTR_SUBSCRIBER_KEYS, B4_KEYS, DS_LITE, DS_LITE_PORT_TIMEOUT, DS_LITE_STATIC, DS_LITE_TIMEOUTS,
};
pub(crate) use four_over_six_keys::{FOUR_OVER_SIX, FOUR_OVER_SIX_NAMES, FOUR_OVER_SIX_STATIC};
pub(crate) use key::{Absent, Key, Kind, NO_LIMIT, Section, Times};
pub(crate) use keys::{
    EAM, FASTPATH, FRAGMENTS, GATEWAY, LEAST_FLOWS, NAT64, POOL, PORT_TIMEOUT, SIIT, STATIC, TIMEOUTS, TUN,
};
pub(crate) use log_keys::{LOG, LOG_FILE, LOG_IPFIX, LOG_SYSLOG};
pub(crate) use mechanism_keys::{IP_IN_IP, NAT46, NAT46_STATIC, NPT66};
pub(crate) use nat44_keys::{NAT44, NAT44_PORT_TIMEOUT, NAT44_STATIC, NAT44_TIMEOUTS};
pub(crate) use pcp_keys::PCP;
pub(crate) use realm_keys::REALM;
pub(crate) use sections::SECTIONS;
pub use sections::tables;
pub(crate) use teredo_client_keys::{TEREDO_CLIENT, TEREDO_CLIENT_SERVER};
pub(crate) use teredo_keys::TEREDO_RELAY;
pub(crate) use teredo_server_keys::{TEREDO_SERVER, TEREDO_SERVER_CLIENT};
pub(crate) use tunnel_keys::{ISATAP, SIX_RD, SIX_TO_FOUR, TUNNEL, TUNNELS};
