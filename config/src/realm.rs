//! `[[realm]]`: a NAT44 for hosts behind interfaces of their own, whose addresses others may use as well (RFC 6888 REQ-2).

use serde::Serialize;

use crate::fault::{Place, Report};
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::nat44::{Nat44, Nat44Context};
use crate::nat64::Nat64;
use crate::section::Reader;

/// Routing tables of the kernel that have another purpose: default, main and local.
const TAKEN_TABLES: std::ops::RangeInclusive<u32> = 253..=255;

/// A realm, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Realm {
    /// Its TUN device.
    pub device: String,
    /// The number of its routing table.
    pub table: u32,
    /// Its NAT44.
    #[serde(flatten)]
    pub nat44: Nat44,
}

impl Realm {
    pub(crate) fn read(section: &Reader, context: Nat44Context) -> Option<Self> {
        let Nat44Context { device: main, realm, host, pools, taken, claims, report } = context;
        let name = section.value("name", &mut Report::default()).and_then(|v| v.text(&mut Report::default()));
        let device = read_device(section, (main, name.as_deref()), report);
        let table = section.value("table", report).and_then(|v| {
            let table: u32 = v.integer(report)?;
            if TAKEN_TABLES.contains(&table) {
                report.fault(
                    &v.place,
                    "is a table of the kernel (default, main or local); write another number",
                );
                return None;
            }
            Some(table)
        });
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
        let nat44 = nat44?;
        if nat44.interfaces.is_empty() {
            let key = format!("{}.interfaces", section.place().key).into();
            let place = Place { key, ..section.place().clone() };
            report.fault(&place, "is empty; write the interfaces of the inside hosts");
        }
        Some(Self { device: device?, table: table?, nat44 })
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
            if other.table == realm.table {
                fault(format!("table {} is already used", realm.table), Some(place));
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
