//! The tunnels' settings in this host's kernel: set, changed, and removed. Routes into the device and addresses on it vanish with
//! it; the rest is recorded before it is done.

use super::blackholes;
use super::error::HostError;
use super::facts::addresses;
use super::kernel::{self, Network, Refusal, Route6};
use super::proxy_neighbours;
use super::record::{Record, RecordError};
use super::route::RouteError;
use super::route_mark::RouteMark;
use super::source_rules::{self, Recorded};
use crate::config::{LinkAddress, ProxyNeighbour, Reach, SourceRule, TunnelRoute};
use sixway_link::interface;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

/// The settings made so far.
#[derive(Debug, Default)]
pub(super) struct AppliedReach {
    present: Reach,
    /// The proxy neighbour entries that were made here; those present that others made are not among them.
    added: Vec<ProxyNeighbour>,
}

impl AppliedReach {
    /// The existing settings.
    pub(super) fn of(present: Reach) -> Self {
        let added = present.proxies.clone();
        Self { present, added }
    }

    /// Changes what is set to what is wanted: first what is new comes, then what is old goes. Every failure is returned; what
    /// failed is tried again the next time.
    pub(super) fn change(
        &mut self,
        wanted: &Reach,
        device: u32,
        record: &mut Record,
    ) -> Result<(), Vec<HostError>> {
        let mark = record.route_mark();
        let mut failed = Vec::new();
        failed.extend(self.forget_lost(record).map_err(HostError::Record).err());
        let note = |outcome: Result<(), HostError>, failed: &mut Vec<HostError>| {
            let done = outcome.is_ok();
            failed.extend(outcome.err());
            done
        };
        let new = |wanted: &[TunnelRoute], present: &[TunnelRoute]| -> Vec<TunnelRoute> {
            wanted.iter().filter(|one| !present.contains(one)).copied().collect()
        };
        for prefix in missing(&wanted.unreachable, &self.present.unreachable) {
            if note(unreachable(prefix, record), &mut failed) {
                self.present.unreachable.push(prefix);
            }
        }
        failed.extend(self.lead_nowhere(&missing(&wanted.blackholes, &self.present.blackholes), record));
        for address in missing(&wanted.addresses, &self.present.addresses) {
            if note(on_device(device, address), &mut failed) {
                self.present.addresses.push(address);
            }
        }
        for address in missing(&wanted.link_addresses, &self.present.link_addresses) {
            match on_link(&address, record) {
                Ok(true) => self.present.link_addresses.push(address),
                Ok(false) => {}
                Err(error) => failed.push(error),
            }
        }
        for route in new(&wanted.routes, &self.present.routes) {
            // One with another MTU is in its place.
            for old in self.present.routes.extract_if(.., |old| old.prefix == route.prefix) {
                let _ = Route6::Into(old.prefix, device, None).remove(mark);
            }
            if note(into_device(route, device, mark), &mut failed) {
                self.present.routes.push(route);
            }
        }
        for rule in missing(&wanted.rules, &self.present.rules) {
            if note(by_source(&rule, device, record), &mut failed) {
                self.present.rules.push(rule);
            }
        }
        if wanted.proxies != self.present.proxies {
            failed.extend(self.answer(&missing_proxies(&wanted.proxies, &self.present.proxies), record));
            self.present.proxies.sort_unstable();
        }
        self.remove_but(wanted, device, record, &mut failed);
        if failed.is_empty() { Ok(()) } else { Err(failed) }
    }

    /// IPv4 addresses on the device.
    pub(super) fn addresses4(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.present.addresses.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }

    /// What is no longer there, of routes, addresses on the device and rules.
    pub(super) fn missing(&self, there: &Reach) -> Reach {
        Reach {
            // One that now has another MTU is another program's.
            routes: missing(&self.present.routes, &there.routes),
            unreachable: missing(&self.present.unreachable, &there.unreachable),
            blackholes: missing(&self.present.blackholes, &there.blackholes),
            addresses: missing(&self.present.addresses, &there.addresses),
            rules: missing(&self.present.rules, &there.rules),
            link_addresses: Vec::new(),
            // Those of others are theirs.
            proxies: missing_proxies(&self.added, &there.proxies),
        }
    }

    /// The next change adds these routes again.
    pub(super) fn forget_routes(&mut self, lost: &Reach) {
        self.present.routes.retain(|route| !lost.routes.contains(route));
        self.present.unreachable.retain(|prefix| !lost.unreachable.contains(prefix));
        self.present.blackholes.retain(|prefix| !lost.blackholes.contains(prefix));
    }

    /// The same of addresses.
    pub(super) fn forget_addresses(&mut self, lost: &Reach) {
        self.present.addresses.retain(|address| !lost.addresses.contains(address));
    }

    /// The same of proxy neighbour entries.
    pub(super) fn forget_proxies(&mut self, lost: &Reach) {
        let lost: HashSet<&ProxyNeighbour> = lost.proxies.iter().collect();
        self.present.proxies.retain(|proxy| !lost.contains(proxy));
        self.added.retain(|proxy| !lost.contains(proxy));
    }

    /// Makes IPv4 destinations unreachable without the device.
    fn lead_nowhere(&mut self, new: &[Prefix4], record: &mut Record) -> Vec<HostError> {
        if new.is_empty() {
            return Vec::new();
        }
        if let Err(error) = record.blackholes(new) {
            return vec![HostError::Record(error)];
        }
        let mut failed = Vec::new();
        for (prefix, outcome) in new.iter().zip(blackholes::add(new, record.route_mark())) {
            match added(prefix, outcome) {
                Ok(()) => self.present.blackholes.push(*prefix),
                Err(error) => failed.push(error),
            }
        }
        failed
    }

    /// Answers ARP requests and neighbour solicitations for these addresses too. An entry that exists is another program's.
    fn answer(&mut self, new: &[ProxyNeighbour], record: &mut Record) -> Vec<HostError> {
        let kernels = |refusal: Refusal| {
            HostError::Route(RouteError::Kernel("proxy neighbours".into(), refusal.to_string()))
        };
        let there = match proxy_neighbours::present(new) {
            Ok(there) => there,
            Err(refusal) => return vec![kernels(refusal)],
        };
        let (make, mut failed) = (missing_proxies(new, &there), Vec::new());
        self.present.proxies.extend(there);
        if make.is_empty() {
            return failed;
        }
        if let Err(error) = record.proxies(&make) {
            return vec![HostError::Record(error)];
        }
        for (proxy, outcome) in proxy_neighbours::add(&make) {
            match outcome {
                Ok(()) => {
                    self.present.proxies.push(proxy.clone());
                    self.added.push(proxy);
                }
                // One reason for all, most likely.
                Err(refusal) if failed.is_empty() => failed.push(kernels(refusal)),
                Err(_) => {}
            }
        }
        failed
    }

    /// The same of rules.
    pub(super) fn forget_rules(&mut self, lost: &Reach) {
        self.present.rules.retain(|rule| !lost.rules.contains(rule));
    }

    /// Addresses on a link go when it is switched off, and with it when it is removed: they are given again when it is back.
    fn forget_lost(&mut self, record: &mut Record) -> Result<(), RecordError> {
        if self.present.link_addresses.is_empty() {
            return Ok(());
        }
        let there = addresses();
        // Not even `lo` has one: the kernel did not say.
        if there.is_empty() {
            return Ok(());
        }
        let is_there = |wanted: &LinkAddress| {
            let mut same = there.iter().filter(|own| own.interface == wanted.interface);
            same.any(|own| own.address == wanted.address)
        };
        for lost in self.present.link_addresses.extract_if(.., |wanted| !is_there(wanted)) {
            record.forget_link_address(&lost)?;
        }
        Ok(())
    }

    fn remove_but(&mut self, wanted: &Reach, device: u32, record: &mut Record, failed: &mut Vec<HostError>) {
        let present = &mut self.present;
        // What leads into the device before what is excepted.
        for rule in missing(&present.rules, &wanted.rules).iter().rev() {
            failed.extend(record.remove_rule(&Recorded::of(rule, device)).map_err(HostError::Record).err());
            present.rules.retain(|one| one != rule);
        }
        for route in missing(&present.routes, &wanted.routes) {
            let _ = Route6::Into(route.prefix, device, None).remove(record.route_mark());
            present.routes.retain(|one| *one != route);
        }
        for address in missing(&present.addresses, &wanted.addresses) {
            let _ = kernel::remove_address(device, address, kernel::whole(address));
            present.addresses.retain(|one| *one != address);
        }
        for address in missing(&present.link_addresses, &wanted.link_addresses) {
            failed.extend(record.remove_link_address(&address).map_err(HostError::Record).err());
            present.link_addresses.retain(|one| *one != address);
        }
        if present.proxies != wanted.proxies {
            let gone = missing_proxies(&present.proxies, &wanted.proxies);
            failed.extend(record.remove_proxies(&gone).map_err(HostError::Record).err());
            let gone: HashSet<&ProxyNeighbour> = gone.iter().collect();
            present.proxies.retain(|proxy| !gone.contains(proxy));
            self.added.retain(|proxy| !gone.contains(proxy));
        }
        let gone = missing(&present.blackholes, &wanted.blackholes);
        failed.extend(record.remove_blackholes(&gone).map_err(HostError::Record).err());
        present.blackholes.retain(|prefix| !gone.contains(prefix));
        for prefix in missing(&present.unreachable, &wanted.unreachable) {
            failed.extend(record.remove_unreachable(prefix).map_err(HostError::Record).err());
            present.unreachable.retain(|one| *one != prefix);
        }
    }
}

/// Those that the others do not have.
fn missing<T: Clone + PartialEq>(these: &[T], others: &[T]) -> Vec<T> {
    these.iter().filter(|one| !others.contains(one)).cloned().collect()
}

/// The same of many.
fn missing_proxies(these: &[ProxyNeighbour], others: &[ProxyNeighbour]) -> Vec<ProxyNeighbour> {
    let others: HashSet<&ProxyNeighbour> = others.iter().collect();
    these.iter().filter(|one| !others.contains(one)).cloned().collect()
}

fn into_device(route: TunnelRoute, device: u32, mark: RouteMark) -> Result<(), HostError> {
    let made = match route.is_last {
        true => Route6::LastInto(route.prefix, device, route.mtu),
        false => Route6::Into(route.prefix, device, route.mtu),
    };
    added(&route.prefix, made.add(mark))
}

fn unreachable(prefix: Prefix6, record: &mut Record) -> Result<(), HostError> {
    record.unreachable(prefix).map_err(HostError::Record)?;
    let outcome = Route6::Unreachable(prefix).add(record.route_mark());
    if outcome.is_err() {
        record.forget_unreachable(prefix).map_err(HostError::Record)?;
    }
    added(&prefix, outcome)
}

/// The device's table has its route before a rule leads there.
fn by_source(rule: &SourceRule, device: u32, record: &mut Record) -> Result<(), HostError> {
    let (recorded, mark) = (Recorded::of(rule, device), record.route_mark());
    record.rule(recorded.clone()).map_err(HostError::Record)?;
    let outcome = source_rules::route_all(rule, device, mark).and_then(|()| recorded.add(mark));
    if outcome.is_err() {
        record.remove_rule(&recorded).map_err(HostError::Record)?;
    }
    outcome.map_err(|refusal| {
        HostError::Route(RouteError::Kernel(format!("rule for {}", rule.from), refusal.to_string()))
    })
}

fn added(prefix: &impl ToString, outcome: Result<(), Refusal>) -> Result<(), HostError> {
    outcome.map_err(|refusal| {
        HostError::Route(match refusal {
            Refusal::Exists => RouteError::Exists(prefix.to_string()),
            refusal => RouteError::Kernel(format!("route to {}", prefix.to_string()), refusal.to_string()),
        })
    })
}

fn on_device(device: u32, address: IpAddr) -> Result<(), HostError> {
    match kernel::add_address(device, address, kernel::whole(address), Network::Nobody) {
        Ok(()) | Err(Refusal::Exists) => Ok(()),
        Err(refusal) => Err(HostError::Address(address.to_string(), refusal.to_string())),
    }
}

/// An address that the operator configured belongs to the operator. Returns whether it exists: a missing interface has none yet.
fn on_link(wanted: &LinkAddress, record: &mut Record) -> Result<bool, HostError> {
    let is_anycast = wanted.is_anycast();
    let refused = |what: String| match is_anycast {
        true => HostError::Anycast(wanted.address, what),
        false => {
            HostError::Address(format!("{}/{} on {}", wanted.address, wanted.length, wanted.interface), what)
        }
    };
    let network = if is_anycast { Network::Anycast } else { Network::OnLink };
    let Ok(index) = interface::index(&wanted.interface) else { return Ok(false) };
    record.link_address(wanted).map_err(HostError::Record)?;
    let outcome = kernel::add_address(index, wanted.address, wanted.length, network);
    if outcome.is_err() {
        record.forget_link_address(wanted).map_err(HostError::Record)?;
    }
    match outcome {
        Ok(()) | Err(Refusal::Exists) => Ok(true),
        Err(refusal) => Err(refused(refusal.to_string())),
    }
}
