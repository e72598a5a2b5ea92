//! Addresses that are in several pools, each with its own ports there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use sixway_wire::Prefix4;

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::nat44::Nat44;
use crate::pool::{Pool, ReadPool};
use crate::ports::{Ports, Range};
use crate::section::Reader;
use crate::shared_pool::SHARED_RANGES;

/// Addresses that two pools have, the one that was written earlier first.
type Common = BTreeMap<(usize, usize), BTreeSet<Prefix4>>;

/// Sets in the pools which of their addresses other pools have, too. Reports ports that two of them have.
pub(crate) fn divide(pools: &mut [ReadPool], host: &HostFacts, report: &mut Report) {
    let common = common(pools);
    for ((earlier, later), prefixes) in &common {
        let Some(prefix) = prefixes.first() else { continue };
        let pair = (&pools[*earlier], &pools[*later]);
        if is_shared_alike(pair, *prefix, host, report) {
            let address =
                if prefix.length() == 32 { prefix.address().to_string() } else { prefix.to_string() };
            check_pair(pair, &address, report);
        }
    }
    check_waiting(pools, report);
    for (one, other) in common.keys() {
        let prefixes = || common[&(*one, *other)].iter().copied();
        for index in [*one, *other] {
            pools[index].pool.iter_mut().for_each(|pool| pool.divided.extend(prefixes()));
        }
    }
    for pool in pools.iter_mut().filter_map(|read| read.pool.as_mut()) {
        pool.divided.sort_unstable();
        pool.divided.dedup();
    }
    check_ranges(pools, report);
}

/// Prefixes are nested or disjoint: in ascending order, those that contain the current one form a stack.
fn common(pools: &[ReadPool]) -> Common {
    let read = pools.iter().enumerate().filter_map(|(index, read)| Some((index, read.pool.as_ref()?)));
    let mut all: Vec<(Prefix4, usize)> =
        read.flat_map(|(index, pool)| pool.addresses.iter().map(move |prefix| (*prefix, index))).collect();
    all.sort_unstable();
    all.dedup();
    let (mut open, mut common) = (Vec::<(Prefix4, usize)>::new(), Common::new());
    for (prefix, index) in all {
        open.retain(|(wider, _)| wider.overlaps(prefix));
        for (_, other) in open.iter().filter(|(_, other)| *other != index) {
            common.entry((index.min(*other), index.max(*other))).or_default().insert(prefix);
        }
        open.push((prefix, index));
    }
    common
}

/// Whether both have the address in the same way.
fn is_shared_alike(
    (earlier, later): (&ReadPool, &ReadPool),
    prefix: Prefix4,
    host: &HostFacts,
    report: &mut Report,
) -> bool {
    let (Some(one), Some(other)) = (&earlier.pool, &later.pool) else { return false };
    let is_alike = one.shared == other.shared;
    let address = prefix.address();
    // For an address of this host, this is reported with the host's addresses.
    if !is_alike && !host.addresses.iter().any(|own| own.address == IpAddr::V4(address)) {
        let (shared, routed) = if one.shared { (one, other) } else { (other, one) };
        let what = format!(
            "{address} is shared with this host in pool {}, and not in pool {} (pool {} is at {}); write the same in both",
            shared.name,
            routed.name,
            one.name,
            earlier.place.seen_from(&later.place)
        );
        report.fault(&later.place, what);
    }
    is_alike
}

/// Pools that wait for the address of the same interface: their ports are compared before it comes.
fn check_waiting(pools: &[ReadPool], report: &mut Report) {
    let awaited = |read: &ReadPool| {
        read.pool.as_ref().filter(|pool| pool.addresses.is_empty()).and_then(|pool| pool.interface.clone())
    };
    for (number, later) in pools.iter().enumerate() {
        let Some(interface) = awaited(later) else { continue };
        for earlier in pools[..number].iter().filter(|earlier| awaited(earlier).as_ref() == Some(&interface))
        {
            check_pair((earlier, later), &interface, report);
        }
    }
}

/// `address`: what both have, as text.
fn check_pair((earlier, later): (&ReadPool, &ReadPool), address: &str, report: &mut Report) {
    let (Some(one), Some(other)) = (&earlier.pool, &later.pool) else { return };
    // Missing ports are reported already.
    let (Some(there), Some(place)) = (&earlier.ports, &later.ports) else { return };
    let Some(overlap) = one.ports.ranges().iter().find_map(|range| other.ports.overlap(range)) else {
        return;
    };
    let rest = other.ports.without(&one.ports);
    let mend = if rest.is_empty() {
        let [lower, upper] = one.ports.halves();
        format!("write ports = \"{lower}\" there and ports = \"{upper}\" here")
    } else {
        format!("write ports = \"{rest}\"")
    };
    let there = there.seen_from(place);
    let (range, name) = (Range(&overlap), &one.name);
    let what = format!("{range} of {address} overlaps the ports of pool {name} ({there})");
    report.fault(place, format!("{what}; {mend}, or use other addresses"));
}

/// Packets to an address of this host are steered for [`SHARED_RANGES`] ranges of ports, of all pools together.
fn check_ranges(pools: &[ReadPool], report: &mut Report) {
    let shared: Vec<(&ReadPool, &Pool)> = pools
        .iter()
        .filter_map(|read| Some((read, read.pool.as_ref().filter(|pool| pool.shared)?)))
        .collect();
    for (number, (read, last)) in shared.iter().enumerate() {
        if last.ports.ranges().len() > SHARED_RANGES {
            continue;
        }
        // The pools of an address, or of an interface that has none yet.
        let with = |is_there: &dyn Fn(&Pool) -> bool| {
            let before = shared[..number].iter().map(|(_, pool)| *pool).filter(|pool| is_there(pool));
            before.chain([*last]).collect::<Vec<&Pool>>()
        };
        let mut sets: Vec<(String, Vec<&Pool>)> = (last.divided.iter().map(|prefix| prefix.address()))
            .map(|address| (address.to_string(), with(&|pool| pool.holds(address))))
            .collect();
        if let Some(interface) = last.interface.as_ref().filter(|_| last.addresses.is_empty()) {
            sets.push((interface.clone(), with(&|pool| pool.interface.as_ref() == Some(interface))));
        }
        let count = |all: &[&Pool]| Ports::union(all.iter().map(|pool| &pool.ports)).ranges().len();
        let Some((address, all)) = sets.iter().find(|(_, all)| count(all) > SHARED_RANGES) else { continue };
        let (names, count) = (all.iter().map(|pool| &*pool.name).collect::<Vec<_>>().join(", "), count(all));
        let what = format!(
            "the pools {names} have {count} ranges of ports of {address}: packets can be steered for at most {SHARED_RANGES}; choose adjacent ranges for the pools"
        );
        report.fault(read.ports.as_ref().unwrap_or(&read.place), what);
    }
}

/// Reports NAT44s that would both take packets without ports to the same address. `sections`: of [nat44], and of the realms.
pub(crate) fn check_portless(config: &Config, sections: &[Reader], report: &mut Report) {
    let takers: Vec<(&Nat44, &Pool, &Place)> = (config.nat44s().zip(sections))
        .filter_map(|(nat44, section)| Some((nat44, config.pool(&nat44.pool)?, section.place())))
        .filter(|(nat44, pool, _)| !pool.shared && takes_portless(nat44))
        .collect();
    for (number, (nat44, pool, place)) in takers.iter().enumerate() {
        let both = |other: &&(&Nat44, &Pool, &Place)| common_address(pool, other.1).is_some();
        let Some((other, others, there)) = takers[..number].iter().find(both) else { continue };
        let address = common_address(pool, others).map(|address| address.to_string()).unwrap_or_default();
        let there = there.seen_from(place);
        let what = format!(
            "packets of protocols without ports (GRE, ESP, 41, 4) to {address} can belong to one translator only, and {} translates them ({there})",
            other.name
        );
        let mend = match nat44.static_bindings.portless.is_empty() {
            true => "write max_portless_sessions = 0",
            false => "write max_portless_sessions = 0, without static bindings of such protocols",
        };
        report.fault(place, format!("{what}; {mend}, or use other addresses"));
    }
}

fn takes_portless(nat44: &Nat44) -> bool {
    nat44.portless.sessions > 0 || !nat44.static_bindings.portless.is_empty()
}

/// The first address that is in both.
fn common_address(one: &Pool, other: &Pool) -> Option<Ipv4Addr> {
    let is_others = |prefix: &&Prefix4| other.divided.contains(prefix);
    one.divided
        .iter()
        .filter(is_others)
        .map(|prefix| prefix.address())
        .find(|it| one.holds(*it) && other.holds(*it))
}
