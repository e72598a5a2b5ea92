//! `draining` of a `[[pool]]`: addresses that no further inside host gets.

use sixway_dataplane::nat::Draining;
use sixway_wire::Prefix4;

use crate::fault::Report;
use crate::section::Reader;
use crate::text;

/// More prefixes than these are not drained at a time.
const MOST: usize = Draining::MOST;

/// Reads the prefixes; each is a part of the pool. `None` if one is not. `addresses`: those of the pool, if they could be read;
/// `follows`: whether it has the address of an interface.
pub(crate) fn read(
    section: &mut Reader,
    addresses: Option<&[Prefix4]>,
    follows: bool,
    report: &mut Report,
) -> Option<Vec<Prefix4>> {
    let Some(value) = section.value("draining", report) else { return Some(Vec::new()) };
    let place = value.place.clone();
    let items = value.items();
    if !items.is_empty() && follows {
        report.fault(&place, "cannot be combined with interface: the pool has one address; remove draining");
        return None;
    }
    if items.len() > MOST {
        let what = format!(
            "contains {} prefixes; write at most {}",
            text::grouped(items.len() as u64),
            text::grouped(MOST as u64)
        );
        report.fault(&place, what);
        return None;
    }
    let (mut draining, mut is_whole) = (Vec::with_capacity(items.len()), true);
    for item in items {
        let Some(prefix) = item.prefix4(report) else {
            is_whole = false;
            continue;
        };
        let holds = |pool: &Prefix4| pool.length() <= prefix.length() && pool.overlaps(prefix);
        if addresses.is_some_and(|addresses| !addresses.iter().any(holds)) {
            report.fault(
                &item.place,
                format!("{prefix} is not a part of the pool; write a prefix within one of addresses"),
            );
            is_whole = false;
        }
        draining.push(prefix);
    }
    let rest = Draining::of(&draining).rest_of(addresses.unwrap_or_default());
    if is_whole && !draining.is_empty() && addresses.is_some() && rest.is_empty() {
        let what = "contains the whole pool: further hosts are refused; add other addresses to the pool";
        report.warn(&place, what);
    }
    is_whole.then_some(draining)
}
