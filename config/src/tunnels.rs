//! `[tunnels]`, and checks of all tunnels together: which tunnel a packet belongs to, and which packets the kernel would take first.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use serde::Serialize;

use crate::configured_tunnel::{ConfiguredTunnel, Remote};
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::interface_name::{InterfaceList, read_interfaces};
use crate::isatap::Isatap;
use crate::local_address::{LocalAddress, LocalSource};
use crate::pool::ReadPool;
use crate::section::Reader;
use crate::six_rd::SixRd;
use crate::six_to_four::SixToFour;
use crate::word::words;

words! {
    /// Whether protocol 41 is steered into the device.
    Steering {
        /// Where the kernel allows it.
        Auto = "auto",
        /// It must be.
        On = "on",
        /// It comes through raw sockets.
        Off = "off",
    }
}

/// `[tunnels]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tunnels {
    /// Whether protocol 41 is steered.
    pub steering: Steering,
    /// The interfaces from which it is steered; empty: those that have the tunnels' addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

impl Tunnels {
    pub(crate) fn read(
        section: &Reader,
        (device, tunnels): (Option<&str>, &[TunnelSummary]),
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<Self> {
        let steering = section.value("steering", report).and_then(|v| v.word(report));
        let interfaces = match section.value("interfaces", report) {
            None => Some(Vec::new()),
            Some(v) => {
                let list = InterfaceList {
                    device,
                    host,
                    refused: "is this host's own: tunnel packets do not arrive on it; write the interface that they arrive on",
                    until: "nothing is steered until it appears",
                };
                let elsewhere = |name: &str| {
                    let holders = holders_but(name, tunnels)?;
                    let what = "remove it, unless their packets arrive on it";
                    Some(format!(
                        "\"{name}\" has none of the tunnels' addresses, which are on {holders}; {what}"
                    ))
                };
                read_interfaces(v, list, elsewhere, report)
            }
        };
        Some(Self { steering: steering?, interfaces: interfaces? })
    }
}

/// Reports shared pools where nothing may be steered.
pub(crate) fn check_shared_pools(pools: &[ReadPool], tunnels: Option<&Tunnels>, report: &mut Report) {
    if tunnels.is_none_or(|tunnels| tunnels.steering != Steering::Off) {
        return;
    }
    for read in pools.iter().filter(|read| read.pool.as_ref().is_some_and(|pool| pool.shared)) {
        let place = Place { key: format!("{}.shared", read.place.key).into(), ..read.place.clone() };
        let what = "without steering this host's own stack would take the packets";
        report.fault(&place, format!("{what}; write tunnels.steering = \"auto\""));
    }
}

/// The interfaces that have the tunnels' addresses, if they are known and do not include this one. A packet for an address on `lo`
/// comes by any.
fn holders_but(name: &str, tunnels: &[TunnelSummary]) -> Option<String> {
    let holders: Option<BTreeSet<&str>> = tunnels.iter().map(|seen| seen.local.holder.as_deref()).collect();
    let holders = holders.filter(|all| !(all.is_empty() || all.contains(name) || all.contains("lo")))?;
    Some(holders.into_iter().collect::<Vec<_>>().join(", "))
}

/// How the packets of a tunnel are distinguished from those of other tunnels with the same local end.
#[derive(Clone, Debug, PartialEq)]
enum Mark {
    /// By their outer source.
    Remote(Remote),
    /// By 6to4 addresses inside.
    SixToFour,
    /// By addresses of the domain inside; domains do not overlap.
    SixRd,
    /// By ISATAP addresses inside, link-local ones among them.
    Isatap,
}

/// The known data about one tunnel for the checks of all.
pub(crate) struct TunnelSummary {
    place: Place,
    name: String,
    local: LocalAddress,
    mark: Mark,
    ipv6_address: Option<Ipv6Addr>,
}

impl TunnelSummary {
    pub fn six_to_four(it: &SixToFour, place: &Place) -> Self {
        Self::of(&it.name, &it.local, Mark::SixToFour, place)
    }

    pub fn six_rd(it: &SixRd, place: &Place) -> Self {
        Self::of(&it.name, &it.local, Mark::SixRd, place)
    }

    pub fn isatap(it: &Isatap, place: &Place) -> Self {
        Self::of(&it.name, &it.local, Mark::Isatap, place)
    }

    pub fn configured(it: &ConfiguredTunnel, place: &Place) -> Self {
        let mark = Mark::Remote(it.remote.clone());
        Self { ipv6_address: it.ipv6_address, ..Self::of(&it.name, &it.local, mark, place) }
    }

    fn of(name: &str, local: &LocalAddress, mark: Mark, place: &Place) -> Self {
        Self { place: place.clone(), name: name.into(), local: local.clone(), mark, ipv6_address: None }
    }

    fn shares_its_end_with(&self, other: &Self) -> bool {
        match (&self.local.source, &other.local.source) {
            (LocalSource::Interface(one), LocalSource::Interface(two)) => one == two,
            (_, _) => self.local.found.is_some() && self.local.found == other.local.found,
        }
    }
}

/// Reports tunnels whose packets could not be distinguished, and duplicate names.
pub(crate) fn check_together(tunnels: &[TunnelSummary], report: &mut Report) {
    for (index, later) in tunnels.iter().enumerate() {
        for earlier in &tunnels[..index] {
            let there = earlier.place.seen_from(&later.place);
            let of = &earlier.place.key;
            if earlier.name == later.name {
                let what =
                    format!("{of} ({there}) already has the name {}; choose a different name", later.name);
                report.fault(&later.place, what);
            }
            if let Some(address) = later.ipv6_address.filter(|_| later.ipv6_address == earlier.ipv6_address) {
                let key = format!("{}.ipv6_address", later.place.key).into();
                let place = Place { key, ..later.place.clone() };
                let what = "an address can be used only once; remove one";
                report.fault(&place, format!("{address} is already used by {of} ({there}): {what}"));
            }
            if let Some(why) =
                clash(&earlier.mark, &later.mark).filter(|_| later.shares_its_end_with(earlier))
            {
                let what = format!("its packets cannot be distinguished from those of {of} ({there}): {why}");
                report.fault(&later.place, what);
            }
        }
    }
}

fn clash(one: &Mark, two: &Mark) -> Option<String> {
    use Mark::{Isatap, Remote, SixRd, SixToFour};
    let elsewhere = "give one of them another address of this host";
    match (one, two) {
        (Remote(one), Remote(two)) if one == two => Some(format!(
            "both have the same two ends; write one [[tunnel]] with all prefixes, or {elsewhere}"
        )),
        (SixToFour, SixToFour) => {
            Some(format!("both are 6to4 with the same address; remove one, or {elsewhere}"))
        }
        (Isatap, Isatap) => {
            Some(format!("both are ISATAP with the same address; remove one, or {elsewhere}"))
        }
        (Remote(_) | SixToFour | SixRd | Isatap, _) => None,
    }
}

/// Reports tunnel devices of the kernel that take protocol 41 for an address of ours. With steering, packets pass by a device that
/// is down; without, the kernel's module alone answers them all with "port unreachable".
pub(crate) fn check_kernel(
    tunnels: &[TunnelSummary],
    steering: Steering,
    host: &HostFacts,
    report: &mut Report,
) {
    for device in &host.tunnels {
        let ours = |seen: &&TunnelSummary| {
            device.local.is_none() || seen.local.found.is_none() || device.local == seen.local.found
        };
        let Some(seen) = tunnels.iter().find(ours) else { continue };
        let whose = device.local.map_or_else(|| "any address".to_owned(), |local| local.to_string());
        let remove = device.how_to_remove();
        let what = format!("{}, a tunnel device of the kernel, takes protocol 41 for {whose}", device.name);
        if device.up || steering == Steering::Off {
            report.fault(&seen.place, format!("{what}; remove it: {remove}"));
        } else {
            let then = "it has no effect while it is down and protocol 41 is steered";
            report.warn(&seen.place, format!("{what}; {then}; to remove it: {remove}"));
        }
    }
}
