//! A dynamic pool of addresses that another NAT must hide, and a fast path that hides its packets from this host's own NAT.

use crate::config::Config;
use crate::fast_path::FastPath;
use crate::fault::{Place, Report};
use crate::private_networks::PRIVATE;
use crate::section::Reader;

/// The nftables table of the fast path excludes the pool's packets from connection tracking, and rules such as `masquerade` see tracked packets only.
/// Private addresses (RFC 1918) imply such a NAT; whether it is on this host is not known here.
pub(crate) fn check(config: &Config, siit: &[Reader], report: &mut Report) {
    let excludes = |fast_path: &FastPath| fast_path.is_on() && fast_path.notrack;
    if !config.fast_path.as_ref().is_some_and(excludes) {
        return;
    }
    for (translator, section) in config.siit.iter().zip(siit) {
        let private =
            translator.dynamic_pool.filter(|pool| PRIVATE.iter().any(|network| network.overlaps(*pool)));
        let Some(pool) = private else { continue };
        let place =
            Place { key: format!("{}.dynamic_pool", section.place().key).into(), ..section.place().clone() };
        report.warn(
            &place,
            format!(
                "{pool} is private, and with fastpath.notrack this host's masquerade sees none of its packets; \
                 set fastpath.notrack = false, or write a pool that is routed to this host"
            ),
        );
    }
}
