//! `[[realm]]`: a NAT44 for hosts behind interfaces of their own; hosts elsewhere may have the same addresses (RFC 6888 REQ-2).

use serde::Serialize;

use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::nat44::{Nat44, Nat44Context};
use crate::nat64::Nat64;
use crate::section::{Reader, place_of};

/// Routing tables of the kernel with another purpose: default, main and local.
pub const KERNEL_TABLES: std::ops::RangeInclusive<u32> = 253..=255;

/// Where packets of inside hosts are routed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RealmRouting {
    /// The table of this number, for packets from the interfaces of the realm.
    Table(u32),
    /// The VRF of this name, for packets from its interfaces.
    Vrf(String),
}

/// A realm, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Realm {
    /// Its TUN device.
    pub device: String,
    /// Its routing table or VRF.
    #[serde(flatten)]
    pub routing: RealmRouting,
    /// Its NAT44.
    #[serde(flatten)]
    pub nat44: Nat44,
}

impl Realm {
    pub(crate) fn read(section: &Reader, context: Nat44Context) -> Option<Self> {
        let Nat44Context { device: main, realm, host, pools, taken, claims, report } = context;
        let name = section.value("name", &mut Report::default()).and_then(|v| v.text(&mut Report::default()));
        let device = read_device(section, (main, name.as_deref()), report);
        let routing = read_routing(section, host, report);
        let before = taken.len();
        let nat44 =
            Nat44::read(section, Nat44Context { device: main, realm, host, pools, taken, claims, report });
        if let Some((pool, place)) = taken.get(before)
            && pools.iter().any(|it| it.pool.as_ref().is_some_and(|it| it.name == *pool && it.shared))
        {
            let what =
                "is shared with this host, whose packets belong to no realm; use a pool that is not shared";
            report.fault(place, what);
        }
        let (device, routing, nat44) = (device?, routing?, nat44?);
        let place = place_of(section, "interfaces");
        let missing = || {
            let key = format!("{}.interfaces", section.place().key).into();
            Place { key, ..section.place().clone() }
        };
        match (&routing, nat44.interfaces.is_empty()) {
            (RealmRouting::Vrf(vrf), false) => {
                let what = format!(
                    "is not used with vrf; remove it, and let the interfaces belong to the VRF (ip link set {} master {vrf})",
                    nat44.interfaces.first().map_or("lan1", String::as_str)
                );
                report.fault(&place, what);
            }
            (RealmRouting::Table(_), true) => {
                report.fault(&missing(), "is empty; write the interfaces of the inside hosts");
            }
            (RealmRouting::Vrf(_), true) | (RealmRouting::Table(_), false) => {}
        }
        Some(Self { device, routing, nat44 })
    }
}

/// The routing table or the VRF: one of them.
fn read_routing(section: &Reader, host: &HostFacts, report: &mut Report) -> Option<RealmRouting> {
    let (table, vrf) = (section.value("table", report), section.value("vrf", report));
    match (table, vrf) {
        (Some(table), None) => {
            let number: u32 = table.integer(report)?;
            if KERNEL_TABLES.contains(&number) {
                let what = "is a table of the kernel (default, main or local); write another number";
                report.fault(&table.place, what);
                return None;
            }
            Some(RealmRouting::Table(number))
        }
        (None, Some(vrf)) => {
            let name = vrf.text(report)?;
            if !is_interface_name(&name) || name == "lo" {
                report.fault(&vrf.place, format!("\"{name}\" {NO_INTERFACE}"));
                return None;
            }
            if !host.interfaces.is_empty() && !host.interfaces.contains(&name) {
                let what = format!(
                    "VRF \"{name}\" does not exist; packets of inside hosts are not translated until it appears"
                );
                report.warn(&vrf.place, what);
            }
            Some(RealmRouting::Vrf(name))
        }
        (Some(table), Some(_)) => {
            report.fault(&table.place, "is not used with vrf: the VRF has its table; remove one of the two");
            None
        }
        (None, None) => {
            if !section.misspells(&["table", "vrf"]) {
                let key = format!("{}.table", section.place().key).into();
                let place = Place { key, ..section.place().clone() };
                report.fault(&place, "is missing; write table = 101, or vrf = \"name\"");
            }
            None
        }
    }
}

/// The device's name: as written, or from those of the main device and the realm.
fn read_device(
    section: &Reader,
    (main, name): (Option<&str>, Option<&str>),
    report: &mut Report,
) -> Option<String> {
    let (device, place) = match section.value("device", report) {
        Some(v) => (v.text(report)?, v.place),
        None => (format!("{}-{}", main?, name?), section.place().clone()),
    };
    if !is_interface_name(&device) || Some(&*device) == main || device.contains('%') {
        let what = if device.as_str() == main.unwrap_or_default() {
            "is the main device; write another name"
        } else {
            NO_INTERFACE
        };
        report.fault(&place, format!("device = \"{device}\" {what}"));
        return None;
    }
    Some(device)
}

/// What two realms must not have in common: the name, the device, the table or an interface. Nor do they share an interface with `[nat44]`.
pub(crate) fn check(
    realms: &[Realm],
    (nat64, main): (&[Nat64], Option<&Nat44>),
    written: &[Reader],
    report: &mut Report,
) {
    for (index, (realm, section)) in realms.iter().zip(written).enumerate() {
        let others = realms[..index].iter().zip(written);
        let mut fault = |what: String, other: Option<&Place>| {
            let there =
                other.map(|place| format!(" ({})", place.seen_from(section.place()))).unwrap_or_default();
            report.fault(section.place(), format!("{what}{there}; each realm has its own"));
        };
        for (other, place) in others.map(|(other, section)| (other, section.place())) {
            if other.nat44.name == realm.nat44.name {
                fault("another realm has this name".into(), Some(place));
            }
            if other.device == realm.device {
                fault(format!("device {} is already used", realm.device), Some(place));
            }
            match &realm.routing {
                RealmRouting::Table(table) if other.routing == realm.routing => {
                    fault(format!("table {table} is already used"), Some(place));
                }
                RealmRouting::Vrf(vrf) if other.routing == realm.routing => {
                    fault(format!("VRF {vrf} is already used"), Some(place));
                }
                RealmRouting::Table(_) | RealmRouting::Vrf(_) => {}
            }
            for shared in realm.nat44.interfaces.iter().filter(|it| other.nat44.interfaces.contains(it)) {
                fault(format!("interface {shared} is already used"), Some(place));
            }
        }
        if nat64.iter().any(|nat64| nat64.name == realm.nat44.name) {
            fault("a [nat64] has this name".into(), None);
        }
        let Some(main) = main else { continue };
        if main.name == realm.nat44.name {
            fault("[nat44] has this name".into(), None);
        }
        for shared in realm.nat44.interfaces.iter().filter(|it| main.interfaces.contains(it)) {
            fault(format!("interface {shared} is one of [nat44]"), None);
        }
    }
}
