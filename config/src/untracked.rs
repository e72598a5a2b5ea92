//! Which packets the host's connection tracking must leave alone, as plain data: those of flows that the fast path may carry, and those
//! that are steered. It would see some packets of such a flow and not others.

use std::net::{Ipv4Addr, Ipv6Addr};

use sixway_wire::{Prefix4, Prefix6};

use crate::config::Config;
use crate::nat64::ReversePath;
use crate::ports::Ports;
use crate::route::{Route, aggregated};
use crate::surroundings::Surroundings;

/// More destinations than this are not listed: the kernel's routes are asked instead.
const MAX_DESTINATIONS: usize = 4_096;

/// Packets that are not tracked, in addition to everything that enters or leaves the device on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untracked {
    /// Whether anything is untracked: there may be checks of sources alone.
    pub is_any: bool,
    /// IPv6 destinations whose packets need a route back to their source, and whether by the interface that they came in by.
    pub reverse_path: Vec<(Prefix6, bool)>,
    /// IPv4 destinations.
    pub v4: Vec<Prefix4>,
    /// IPv6 destinations.
    pub v6: Vec<Prefix6>,
    /// IPv4: whatever is routed into the device, too.
    pub routed4: bool,
    /// IPv6: whatever is routed into the device, too.
    pub routed6: bool,
    /// Packets of NAT44's inside hosts, which are routed into the device whatever their destination.
    pub inside4: Option<UntrackedInside>,
    /// Pools whose packets stay tracked, since masquerading behind them is usual. The fast path does not carry them.
    pub tracked: Vec<Prefix4>,
    /// Whether IPv6 packets of tunnels stay tracked: those from and into the device, but for `v6`. A stateful packet filter then knows what was asked for.
    pub tracks_tunnels: bool,
    /// This host's addresses at which tunnels end: protocol 41 to them and from them.
    pub ends: Vec<Ipv4Addr>,
    /// This host's addresses that are shared, and the ports of them that are the gateway's. The host's own stack must not see them.
    pub shared: Vec<(Ipv4Addr, Ports)>,
    /// The address of a Teredo client, whose packets stay tracked.
    pub client: Option<Ipv6Addr>,
    /// Whether nothing comes to it that no connection asked for.
    pub guards_client: bool,
}

/// Inside hosts of a NAT44.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntrackedInside {
    /// Their prefixes.
    pub sources: Vec<Prefix4>,
    /// Destinations on the way to which nothing is translated.
    pub except: Vec<Prefix4>,
    /// Interfaces by which their packets come in; empty: any.
    pub interfaces: Vec<String>,
}

impl Config {
    /// What is not tracked. `None`: everything may be tracked, because no packet of a tracked flow takes another path.
    pub fn untracked(&self, offloads: bool, now: &Surroundings) -> Option<Untracked> {
        let shared = self.shared_ports();
        let checked = self.nat64.iter().filter_map(|nat64| match nat64.reverse_path {
            ReversePath::Strict => Some((nat64.prefix.prefix(), true)),
            ReversePath::Loose => Some((nat64.prefix.prefix(), false)),
            ReversePath::Off => None,
        });
        let reverse_path: Vec<_> = checked.collect();
        let client = self.others.teredo_client.first().and_then(|client| client.in_use(now));
        let guards_client = client.is_some() && self.others.teredo_client.iter().any(|it| it.firewall);
        if !self.needs_device() || !offloads && shared.is_empty() {
            let is_needed = !reverse_path.is_empty() || guards_client;
            return is_needed.then(|| Untracked {
                reverse_path,
                client,
                guards_client,
                ..Untracked::default()
            });
        }
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for route in self.routes() {
            match route {
                Route::V4(prefix) => v4.push(prefix),
                Route::V6(prefix) => v6.push(prefix),
            }
        }
        for nat64 in &self.nat64 {
            v6.push(nat64.prefix.prefix());
        }
        v4.extend(self.used_pools().filter(|pool| !pool.shared).flat_map(|pool| &pool.addresses));
        for siit in &self.siit {
            v6.extend(siit.prefix.map(|prefix| prefix.prefix()));
            v4.extend(siit.mappings.iter().map(|(ipv4, _)| ipv4));
            v6.extend(siit.mappings.iter().map(|(_, ipv6)| ipv6));
        }
        let tracks_tunnels =
            !offloads && self.has_tunnels() && self.others.is_empty() && self.siit.is_empty();
        if !tracks_tunnels {
            v6.extend(self.reach(now).routes.iter().map(|route| route.prefix));
        }
        let mut ends: Vec<Ipv4Addr> =
            self.tunnels(now).iter().filter_map(|(_, tunnel)| tunnel.local()).collect();
        ends.sort_unstable();
        ends.dedup();
        // The operator's own routes may be any.
        let own_routes = !self.tun.routes.auto;
        let (v4, routed4) = listed(v4, |prefix| prefix.length() == 0);
        let (v6, routed6) = listed(v6, |prefix| prefix.length() == 0);
        Some(Untracked {
            is_any: true,
            reverse_path,
            v4,
            v6,
            routed4: routed4 || own_routes,
            routed6: !tracks_tunnels && (routed6 || own_routes),
            inside4: self.nat44.as_ref().map(|nat44| UntrackedInside {
                sources: nat44.inside.clone(),
                except: nat44.inside.iter().chain(&nat44.except).copied().collect(),
                interfaces: nat44.interfaces.clone(),
            }),
            tracked: self.siit.iter().filter_map(|siit| siit.dynamic_pool).collect(),
            tracks_tunnels,
            ends,
            shared,
            client,
            guards_client,
        })
    }
}

/// The fewest prefixes, without those that are everything; whether the kernel's routes have to be asked for the rest.
fn listed<P: crate::route::Join>(mut prefixes: Vec<P>, is_all: fn(&P) -> bool) -> (Vec<P>, bool) {
    let before = prefixes.len();
    prefixes.retain(|prefix| !is_all(prefix));
    let all = prefixes.len() < before;
    let fewest = aggregated(prefixes);
    if fewest.len() > MAX_DESTINATIONS { (Vec::new(), true) } else { (fewest, all) }
}
