//! The translators' ports of the public address; the others remain the box's own.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Ports below are left to services.
const LOWEST: u16 = 20_000;
/// Ranges of one address that packets can be steered for are eight, of all translators together.
const RANGES: usize = 6;
const RANGES_ABOVE: usize = 2;
/// Fewer ports than this are not worth a range.
const SMALLEST: usize = 64;

/// A translator's ports.
type Part = Vec<RangeInclusive<u16>>;

/// Ports for the NAT44 and for the NAT64: the first between those of services and those of the box's own connections
/// (`net.ipv4.ip_local_port_range`), the second above. At none of them a program listens. Where there are too few below, the NAT44
/// has those above.
pub(super) fn free(local: Option<&RangeInclusive<u16>>, listening: &BTreeSet<u16>) -> (Part, Part) {
    // The kernel's own values.
    let local = local.cloned().unwrap_or(32_768..=60_999);
    let below = LOWEST..=local.start().saturating_sub(1);
    let above = local.end().saturating_add(1)..=u16::MAX;
    let part = |room: &RangeInclusive<u16>, ranges| largest(cut(room, listening), ranges);
    // If the box's own connections have the last port as well, that is left alone, and too little for a range.
    let above = part(&above, RANGES_ABOVE);
    if below.len() >= 4_096 { (part(&below, RANGES), above) } else { (above, Vec::new()) }
}

/// The parts of a range between these ports.
fn cut(room: &RangeInclusive<u16>, ports: &BTreeSet<u16>) -> Part {
    let mut parts = Vec::new();
    let mut from = u32::from(*room.start());
    let end = u32::from(*room.end()) + 1;
    let inside = ports.iter().filter(|port| room.contains(port)).map(|port| u32::from(*port));
    for port in inside.chain([end]) {
        if port > from {
            parts.push(from as u16..=(port - 1) as u16);
        }
        from = port + 1;
    }
    parts
}

/// The largest of them, in order.
fn largest(mut parts: Part, ranges: usize) -> Part {
    parts.retain(|part| part.len() >= SMALLEST);
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts.truncate(ranges);
    parts.sort_by_key(|part| *part.start());
    parts
}

/// In the syntax of the configuration.
pub(super) fn written(ports: &[RangeInclusive<u16>]) -> String {
    let parts: Vec<String> = ports.iter().map(|part| format!("{}-{}", part.start(), part.end())).collect();
    parts.join(",")
}

/// What [`written`] wrote.
pub(super) fn read(text: &str) -> Option<Part> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-')?;
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_avoid_the_boxs_own_connections_and_services() {
        let none = BTreeSet::new();
        assert_eq!(free(Some(&(32_768..=60_999)), &none), (vec![20_000..=32_767], vec![61_000..=65_535]));
        let services = BTreeSet::from([22, 25_565, 32_400, 32_767, 40_000, 65_535]);
        let expected = [20_000..=25_564, 25_566..=32_399, 32_401..=32_766];
        assert_eq!(free(Some(&(32_768..=60_999)), &services), (expected.to_vec(), vec![61_000..=65_534]));
        assert_eq!(free(Some(&(1_024..=49_151)), &none), (vec![49_152..=65_535], Vec::new()));
        assert_eq!(free(Some(&(1_024..=65_535)), &none), (Vec::new(), Vec::new()));
        assert_eq!(written(&expected), "20000-25564,25566-32399,32401-32766");
        assert_eq!(read(&written(&expected)).as_deref(), Some(&expected[..]));
        assert_eq!(read("x"), None);
    }

    #[test]
    fn the_largest_ranges_are_taken_if_there_are_too_many() {
        let services: BTreeSet<u16> = (21_000..32_000).step_by(1_000).collect();
        let (ranges, _) = free(Some(&(32_768..=60_999)), &services);
        assert_eq!(ranges.len(), RANGES);
        assert!(ranges.iter().all(|range| services.iter().all(|port| !range.contains(port))));
        // A host with a service at every port has none left.
        assert_eq!(free(None, &(0..=u16::MAX).collect()), (Vec::new(), Vec::new()));
    }
}
