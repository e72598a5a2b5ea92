//! The list of all sections.

use super::advertisement_keys::{ADVERTISED_PREFIX, ADVERTISED_ROUTE, ROUTER_ADVERTISEMENT};
use super::dns64_keys::{DNS64, DNSSEC, RULE, UPSTREAM};
use super::ds_lite_keys::{DS_LITE, DS_LITE_PORT_TIMEOUT, DS_LITE_STATIC, DS_LITE_TIMEOUTS};
use super::four_over_six_keys::{FOUR_OVER_SIX, FOUR_OVER_SIX_NAMES, FOUR_OVER_SIX_STATIC};
use super::key::Section;
use super::keys::{EAM, FASTPATH, FRAGMENTS, GATEWAY, NAT64, POOL, SIIT, STATIC, TIMEOUTS, TUN};
use super::log_keys::{LOG, LOG_FILE, LOG_IPFIX, LOG_SYSLOG};
use super::mechanism_keys::{IP_IN_IP, NAT46, NAT46_STATIC, NPT66};
use super::nat44_keys::{NAT44, NAT44_STATIC, NAT44_TIMEOUTS};
use super::pcp_keys::PCP;
use super::realm_keys::REALM;
use super::teredo_client_keys::{TEREDO_CLIENT, TEREDO_CLIENT_SERVER};
use super::teredo_keys::TEREDO_RELAY;
use super::teredo_server_keys::{TEREDO_SERVER, TEREDO_SERVER_CLIENT};
use super::tunnel_keys::{ISATAP, SIX_RD, SIX_TO_FOUR, TUNNEL, TUNNELS};

/// Every section, in the order of the document.
pub(crate) static SECTIONS: [&Section; 47] = [
    &GATEWAY,
    &TUN,
    &POOL,
    &NAT64,
    &TIMEOUTS,
    &STATIC,
    &NAT44,
    &NAT44_TIMEOUTS,
    &NAT44_STATIC,
    &REALM,
    &SIIT,
    &EAM,
    &NAT46,
    &NAT46_STATIC,
    &NPT66,
    &SIX_TO_FOUR,
    &SIX_RD,
    &TUNNEL,
    &ISATAP,
    &TUNNELS,
    &IP_IN_IP,
    &DS_LITE,
    &DS_LITE_TIMEOUTS,
    &DS_LITE_PORT_TIMEOUT,
    &DS_LITE_STATIC,
    &FOUR_OVER_SIX,
    &FOUR_OVER_SIX_STATIC,
    &FOUR_OVER_SIX_NAMES,
    &TEREDO_RELAY,
    &TEREDO_CLIENT,
    &TEREDO_CLIENT_SERVER,
    &TEREDO_SERVER,
    &TEREDO_SERVER_CLIENT,
    &PCP,
    &ROUTER_ADVERTISEMENT,
    &ADVERTISED_PREFIX,
    &ADVERTISED_ROUTE,
    &DNS64,
    &UPSTREAM,
    &RULE,
    &DNSSEC,
    &LOG,
    &LOG_FILE,
    &LOG_SYSLOG,
    &LOG_IPFIX,
    &FRAGMENTS,
    &FASTPATH,
];

/// The tables of keys, by section name, as `docs/configuration.md` shows them.
pub fn tables() -> Vec<(&'static str, String)> {
    SECTIONS.iter().map(|section| (section.name, section.table())).collect()
}
