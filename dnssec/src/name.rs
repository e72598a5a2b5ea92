//! Names in wire form, lower case, uncompressed.

use crate::wire::Wire;
use std::cmp::Ordering;

/// The root.
pub(crate) const ROOT: &[u8] = &[0];

/// The name, its parent, and so on to the root.
pub(crate) fn upwards(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(name), |name| parent(name))
}

/// Without its first label; the root has no parent.
pub(crate) fn parent(name: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*name.first()?);
    if length == 0 { None } else { name.get(length + 1..) }
}

/// Labels, without the root's.
pub(crate) fn count(name: &[u8]) -> usize {
    upwards(name).count() - 1
}

/// Its last labels; the whole of it if it has no more.
pub(crate) fn last(name: &[u8], labels: usize) -> &[u8] {
    let surplus = count(name).saturating_sub(labels);
    upwards(name).nth(surplus).unwrap_or(ROOT)
}

/// Whether it is the zone's apex or below.
pub(crate) fn is_within(name: &[u8], zone: &[u8]) -> bool {
    name.len() >= zone.len() && upwards(name).any(|above| above == zone)
}

/// Whether it is below, and not the same.
pub(crate) fn is_below(name: &[u8], other: &[u8]) -> bool {
    name.len() > other.len() && is_within(name, other)
}

/// The nearest name that both are within.
pub(crate) fn shared<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    upwards(a).find(|above| is_within(b, above)).unwrap_or(ROOT)
}

/// RFC 4034 §6.1: canonical order, from the last label to the first.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b): (Vec<_>, Vec<_>) = (upwards(a).map(label).collect(), upwards(b).map(label).collect());
    a.iter().rev().cmp(b.iter().rev())
}

/// The first label, without its length.
fn label(name: &[u8]) -> &[u8] {
    let length = name.first().map_or(0, |length| usize::from(*length));
    name.get(1..=length).unwrap_or_default()
}

/// Whether its first label is an asterisk.
pub(crate) fn is_wildcard(name: &[u8]) -> bool {
    name.starts_with(b"\x01*")
}

/// The wildcard right below it; `None` if that is too long for a name.
pub(crate) fn wildcard(name: &[u8]) -> Option<Wire> {
    let whole = [b"\x01*", name].concat();
    (whole.len() <= 255).then(|| Wire(whole.into()))
}

/// Its copy in lower case.
pub(crate) fn lower(name: &[u8]) -> Wire {
    // Lengths of labels are below 64, and so no letters.
    Wire(name.to_ascii_lowercase().into())
}

/// RFC 6672 §2.2: what a DNAME record at `owner` makes of a name below it; `None` if that is too long.
pub(crate) fn renamed(name: &[u8], owner: &[u8], target: &[u8]) -> Option<Wire> {
    let kept = name.get(..name.len().checked_sub(owner.len())?)?;
    let whole = [kept, target].concat();
    (whole.len() <= 255).then(|| Wire(whole.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From presentation form, without escapes.
    fn wire(text: &str) -> Vec<u8> {
        let labels = text.split('.').filter(|label| !label.is_empty());
        let mut name: Vec<u8> =
            labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
        name.push(0);
        name
    }

    #[test]
    fn names_are_in_the_order_of_rfc_4034() {
        let sorted =
            ["example", "a.example", "yljkjljk.a.example", "z.a.example", "zabc.a.example", "z.example"];
        for pair in sorted.windows(2) {
            assert_eq!(compare(&wire(pair[0]), &wire(pair[1])), Ordering::Less, "{pair:?}");
        }
        assert_eq!(compare(&wire("a."), &wire("a")), Ordering::Equal);
    }

    #[test]
    fn a_name_is_within_another_by_labels_and_not_by_letters() {
        assert!(is_within(&wire("www.example"), &wire("example")));
        assert!(is_within(&wire("example"), &wire("example")));
        assert!(is_within(&wire("example"), ROOT));
        assert!(!is_within(&wire("badexample"), &wire("example")));
        assert!(!is_within(b"\x0awww\x07example\0", &wire("example")), "the octets end alike");
        assert!(!is_below(&wire("example"), &wire("example")));
    }

    #[test]
    fn names_are_cut_and_joined_at_labels() {
        assert_eq!(last(&wire("a.b.c"), 2), wire("b.c"));
        assert_eq!(last(&wire("a.b.c"), 9), wire("a.b.c"));
        assert_eq!(shared(&wire("a.b.c"), &wire("x.b.c")), wire("b.c"));
        assert_eq!(
            renamed(&wire("a.b.c"), &wire("b.c"), &wire("d")).map(|name| name.0.to_vec()),
            Some(wire("a.d"))
        );
        assert_eq!(count(&wire("a.b.c")), 3);
    }
}
