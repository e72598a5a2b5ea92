//! Trust anchors (RFC 4033 §2) and negative trust anchors (RFC 7646).

use super::digest::{self, ExpectedKey};
use crate::anchor::Anchor;
use crate::name;
use crate::wire::Wire;

/// Both kinds.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    anchors: Vec<Anchor>,
    insecure: Vec<Wire>,
}

impl Anchors {
    pub(super) fn new(anchors: Vec<Anchor>, insecure: Vec<Wire>) -> Self {
        Self { anchors, insecure }
    }

    /// The anchored zone nearest above a name, or the name itself; `None` if there is none, or a negative anchor is as near.
    pub(super) fn nearest(&self, to: &[u8]) -> Option<&Wire> {
        let anchored =
            self.anchors.iter().map(|anchor| &anchor.zone).filter(|zone| name::is_within(to, &zone.0));
        let nearest = anchored.max_by_key(|zone| zone.0.len())?;
        let nearer = |zone: &&Wire| zone.0.len() >= nearest.0.len() && name::is_within(to, &zone.0);
        self.insecure.iter().find(nearer).is_none().then_some(nearest)
    }

    /// What the keys of an anchored zone are known by; else why that cannot be understood.
    pub(super) fn of(&self, zone: &[u8]) -> Result<Vec<ExpectedKey>, u16> {
        digest::anchored(
            self.anchors.iter().filter(|anchor| *anchor.zone.0 == *zone).map(|anchor| &anchor.key),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::AnchorKey;

    fn wire(name: &[u8]) -> Wire {
        Wire(name.into())
    }

    fn anchored(zone: &[u8]) -> Anchor {
        Anchor { zone: wire(zone), key: AnchorKey::Ds([0, 1, 13, 2, 9].into()) }
    }

    #[test]
    fn of_anchors_of_both_kinds_the_nearest_decides() {
        let (root, lan, inner) = (b"\0", b"\x03lan\0", b"\x02in\x03lan\0");
        let anchors = Anchors::new(vec![anchored(root), anchored(inner)], vec![wire(lan)]);
        assert_eq!(anchors.nearest(b"\x03com\0"), Some(&wire(root)));
        assert_eq!(anchors.nearest(lan), None);
        assert_eq!(anchors.nearest(b"\x01a\x03lan\0"), None);
        assert_eq!(anchors.nearest(b"\x01a\x02in\x03lan\0"), Some(&wire(inner)));
    }

    #[test]
    fn a_negative_anchor_wins_where_both_are() {
        let anchors = Anchors::new(vec![anchored(b"\0")], vec![wire(b"\0")]);
        assert_eq!(anchors.nearest(b"\x03com\0"), None);
        assert_eq!(Anchors::new(Vec::new(), Vec::new()).nearest(b"\0"), None);
    }
}
