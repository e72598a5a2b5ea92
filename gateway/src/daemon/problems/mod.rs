//! Problems that need the operator's attention, each with a remedy. They follow from data that the gateway already has, so that a request
//! costs little. Each check is a pure function.

mod dns64;
mod event_log;
mod fast_path;
mod host;
mod pcp;
mod reload;
mod softwires;
mod teredo;
#[cfg(test)]
mod tests;
mod translators;

pub(super) use dns64::dns64;
pub(super) use event_log::event_log;
pub(super) use fast_path::fast_path;
pub(super) use host::{awaited, host, packet_filter, routers, vrfs};
pub(super) use pcp::pcp;
pub(super) use reload::reload;
pub(super) use softwires::{lease_files, silent_aftrs, unresolved_aftrs, waiting_b4s};
pub(super) use teredo::{teredo, teredo_server};
pub(super) use translators::{one_direction, pools, tables};
