//! What the previous process configured in the kernel, so that this one changes only the differences.

use super::kernel;
use super::proxy_neighbours;
use super::record::Record;
use super::route::RouteError;
use super::source_rules;
use crate::config::Reach;
use sixway_wire::{Prefix4, Prefix6};

/// Routes into the device, and what tunnels were given.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// IPv4 routes into the device.
    pub routes4: Vec<Prefix4>,
    /// IPv6 routes into it, and what tunnels need in addition.
    pub reach: Reach,
}

impl Inherited {
    /// Asks the kernel about the device of this index, and the record about the rest.
    pub fn of(device: u32, record: &Record) -> Result<Self, RouteError> {
        let mut addresses = kernel::addresses(device).map_err(failed("the device's addresses"))?;
        if let Some(found) = record.found_device() {
            addresses.retain(|address| !found.addresses.contains(address));
        }
        Ok(Self {
            routes4: kernel::routes4(device, record.route_mark()).map_err(failed("the IPv4 routes"))?,
            reach: Reach {
                routes: kernel::routes6(device, record.route_mark()).map_err(failed("the IPv6 routes"))?,
                addresses,
                unreachable: record.inherited_unreachable(),
                blackholes: record.inherited_blackholes(),
                link_addresses: record.inherited_addresses(),
                rules: record.inherited_rules(),
                proxies: record.added_proxies(),
            },
        })
    }

    /// Asks the kernel about everything.
    pub fn now(device: u32, record: &Record) -> Result<Self, RouteError> {
        let mut there = Self::of(device, record)?;
        let mark = record.route_mark();
        if !there.reach.unreachable.is_empty() {
            there.reach.unreachable = kernel::unreachable6(mark).map_err(failed("the unreachable routes"))?;
        }
        if !there.reach.blackholes.is_empty() {
            there.reach.blackholes = kernel::blackholes4(mark).map_err(failed("the blackhole routes"))?;
        }
        if !there.reach.rules.is_empty() {
            let rules = source_rules::present(&there.reach.rules, device, mark);
            there.reach.rules = rules.map_err(failed("the rules"))?;
        }
        there.reach.proxies =
            proxy_neighbours::present(&there.reach.proxies).map_err(failed("the proxy neighbour entries"))?;
        Ok(there)
    }

    /// Whether this prefix is routed into the device.
    pub fn has6(&self, prefix: Prefix6) -> bool {
        self.reach.routes.iter().any(|route| route.prefix == prefix)
    }
}

fn failed(what: &str) -> impl FnOnce(kernel::Refusal) -> RouteError {
    let what = what.to_owned();
    move |refusal| RouteError::Kernel(what, refusal.to_string())
}
