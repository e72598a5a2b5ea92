//! `[[pool]]`: outside IPv4 addresses and ports that inside hosts share.

use std::net::Ipv4Addr;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use sixway_wire::Prefix4;

use crate::alarm::AlarmThresholds;
use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::ports::Ports;
use crate::section::Reader;
use crate::unicast::is_unicast;
use crate::{pool_draining, shared_pool, text};

/// A pool, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// What mechanisms call it.
    pub name: String,
    /// Its addresses. With an interface, the interface's address when the configuration was read, or none yet.
    pub addresses: Vec<Prefix4>,
    /// The interface whose address it has.
    pub interface: Option<String>,
    /// The ports that bindings get.
    pub ports: Ports,
    /// Whether its addresses are this host's own.
    pub shared: bool,
    /// Whether this host answers ARP requests for its addresses.
    pub proxy_arp: bool,
    /// Addresses that are not given to further inside hosts.
    pub draining: Vec<Prefix4>,
    /// When its alarms are raised and cleared.
    pub alarm: AlarmThresholds,
    /// Those of its addresses that other pools have with other ports.
    pub divided: Vec<Prefix4>,
}

/// As it can be written in a file: with an interface, without the address that it has at the moment.
impl Serialize for Pool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        match &self.interface {
            Some(interface) => map.serialize_entry("interface", interface)?,
            None => {
                let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
                map.serialize_entry("addresses", &addresses)?;
            }
        }
        map.serialize_entry("ports", &self.ports.to_string())?;
        map.serialize_entry("shared", &self.shared)?;
        if self.proxy_arp {
            map.serialize_entry("proxy_arp", &self.proxy_arp)?;
        }
        if !self.draining.is_empty() {
            let draining: Vec<String> = self.draining.iter().map(ToString::to_string).collect();
            map.serialize_entry("draining", &draining)?;
        }
        map.serialize_entry("alarm_at", &self.alarm.at)?;
        map.serialize_entry("alarm_clear", &self.alarm.clear)?;
        map.end()
    }
}

/// A pool as it was read, and what is checked of it afterwards.
#[derive(Debug)]
pub(crate) struct ReadPool {
    /// Its name, as far as it could be read.
    pub name: Option<String>,
    pub place: Place,
    /// Where its ports are written; `None`: they are missing.
    pub ports: Option<Place>,
    /// The rest, if it has no fault.
    pub pool: Option<Pool>,
}

/// More addresses than this indicate a wrong prefix length.
const MAX_ADDRESSES: u64 = 65_536;

/// Each address takes an entry in the kernel's list of proxies, which it searches for every ARP request.
const MAX_PROXIES: u64 = 1_024;

impl Pool {
    /// How many addresses it has.
    pub fn address_count(&self) -> u64 {
        count(&self.addresses)
    }

    /// Whether the address belongs to it.
    pub fn holds(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether others have ports of an address: this host, or other pools.
    pub fn has_part_of(&self, address: Ipv4Addr) -> bool {
        self.shared || self.divided.iter().any(|prefix| prefix.contains(address))
    }

    pub(crate) fn read(
        section: &mut Reader,
        index: usize,
        host: &HostFacts,
        claims: &mut Claims,
        report: &mut Report,
    ) -> ReadPool {
        let name = section.value("name", report).and_then(|v| v.text(report));
        if let Some(name) = &name {
            section.rename(format!("pool.{name}"));
        }
        let shared = section.value("shared", report).and_then(|v| v.boolean(report));
        let written = section.value("addresses", report);
        let followed = section.value("interface", report);
        // If `shared` cannot be read, that is the fault, and it is not reported as missing.
        let is_shared = shared.unwrap_or(followed.is_some());
        let owner = if is_shared { Owner::Shared(index) } else { Owner::Pool(index) };
        if let (None, None) = (&written, &followed)
            && !section.misspells(&["addresses", "interface"])
        {
            let what = "has no address; write addresses = [\"192.0.2.0/28\"], or interface = \"eth0\" and shared = true";
            report.fault(section.place(), what);
        }
        if let (Some(_), Some(interface)) = (&written, &followed)
            && interface.text(report).is_some()
        {
            report.fault(&interface.place, "cannot be combined with addresses; remove one");
        }
        let interface = followed.filter(|_| written.is_none());
        let interface = interface.as_ref().map(|v| {
            let name = v.text(report)?;
            let found = shared_pool::address_of(&name, is_shared, &v.place, host, report)?;
            found.iter().for_each(|address| claims.v4(*address, owner.clone(), &v.place));
            Some((name, found))
        });
        let addresses = written.and_then(|v| {
            let place = v.place.clone();
            let addresses = read_addresses(v.items(), owner, claims, report)?;
            if addresses.is_empty() {
                report.fault(&place, "is empty; write the pool's addresses, such as [\"192.0.2.0/28\"]");
            }
            if count(&addresses) > MAX_ADDRESSES {
                report.fault(
                    &place,
                    format!(
                        "contains {} addresses; write at most {}",
                        text::grouped(count(&addresses)),
                        text::grouped(MAX_ADDRESSES)
                    ),
                );
                return None;
            }
            if is_shared {
                shared_pool::check_addresses(&addresses, &place, host, report);
            }
            Some(addresses)
        });
        let written = section.value("ports", report);
        let ports_at = written.as_ref().filter(|v| v.is_written() || !is_shared).map(|v| v.place.clone());
        let ports = written.and_then(|v| {
            let ports = v.ports(report)?;
            if is_shared {
                shared_pool::check_ports(&ports, &v, host, report);
            }
            match is_shared && !v.is_written() {
                // The missing ports are reported; no other port is compared with them.
                true => Ports::parse("1-65535").ok(),
                false => Some(ports),
            }
        });
        let (interface, addresses) = match interface {
            Some(followed) => followed.map(|(name, found)| (Some(name), Some(found))).unwrap_or_default(),
            None => (None, addresses),
        };
        let proxy_arp = read_proxy_arp(section, is_shared, addresses.as_deref(), report);
        let draining = pool_draining::read(section, addresses.as_deref(), interface.is_some(), report);
        let alarm = AlarmThresholds::read(section, report);
        let pool = match (&name, addresses, ports, shared, proxy_arp, draining, alarm) {
            (
                Some(name),
                Some(addresses),
                Some(ports),
                Some(shared),
                Some(proxy_arp),
                Some(draining),
                Some(alarm),
            ) => Some(Self {
                name: name.clone(),
                addresses,
                interface,
                ports,
                shared,
                proxy_arp,
                draining,
                alarm,
                divided: Vec::new(),
            }),
            (_, _, _, _, _, _, _) => None,
        };
        ReadPool { name, place: section.place().clone(), ports: ports_at, pool }
    }
}

/// Whether this host is to answer for the addresses. `None` if it cannot.
fn read_proxy_arp(
    section: &mut Reader,
    is_shared: bool,
    addresses: Option<&[Prefix4]>,
    report: &mut Report,
) -> Option<bool> {
    let value = section.value("proxy_arp", report)?;
    let wanted = value.boolean(report)?;
    if wanted && is_shared {
        report.fault(
            &value.place,
            "cannot be combined with shared: this host answers for its own addresses; remove one",
        );
        return None;
    }
    let held = addresses.map_or(0, count);
    if wanted && held > MAX_PROXIES {
        let what = format!(
            "answers for {} addresses at most, and the pool has {}; route the pool's prefixes to this host instead",
            text::grouped(MAX_PROXIES),
            text::grouped(held)
        );
        report.fault(&value.place, what);
        return None;
    }
    Some(wanted)
}

/// Reads IPv4 prefixes of unicast addresses and claims them. `None` if one cannot be read.
pub(crate) fn read_addresses(
    items: Vec<crate::value::Value>,
    owner: Owner,
    claims: &mut Claims,
    report: &mut Report,
) -> Option<Vec<Prefix4>> {
    let mut addresses = Vec::with_capacity(items.len());
    let mut whole = true;
    for item in items {
        let Some(prefix) = item.prefix4(report) else {
            whole = false;
            continue;
        };
        if !is_unicast(prefix.address()) || !is_unicast(prefix.last()) {
            report.fault(
                &item.place,
                format!("{prefix} contains addresses that are not unicast; write unicast addresses"),
            );
            whole = false;
            continue;
        }
        claims.v4(prefix, owner.clone(), &item.place);
        addresses.push(prefix);
    }
    whole.then_some(addresses)
}

fn count(addresses: &[Prefix4]) -> u64 {
    addresses.iter().map(|prefix| 1_u64 << (32 - prefix.length())).sum()
}
