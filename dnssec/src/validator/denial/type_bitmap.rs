//! The types that exist at a name, as NSEC and NSEC3 records tell them.

use super::denied::NoDs;

/// NS.
const NS: u16 = 2;
/// CNAME.
const CNAME: u16 = 5;
/// SOA.
const SOA: u16 = 6;
/// DNAME.
const DNAME: u16 = 39;
/// DS.
const DS: u16 = 43;
/// QTYPE=*.
const ANY: u16 = 255;

/// A type bit map (RFC 4034 §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types<'a>(pub(super) &'a [u8]);

impl Types<'_> {
    /// Whether the type exists.
    pub(super) fn has(self, rtype: u16) -> bool {
        let [window, low] = rtype.to_be_bytes();
        let mut rest = self.0;
        while let Some((&[number, length], blocks)) = rest.split_first_chunk() {
            let Some((map, later)) = blocks.split_at_checked(usize::from(length)) else { return false };
            if number == window {
                let octet = map.get(usize::from(low / 8)).copied().unwrap_or(0);
                return octet & (0x80 >> (low % 8)) != 0;
            }
            rest = later;
        }
        false
    }

    /// The parent's side of a delegation.
    pub(super) fn is_delegation(self) -> bool {
        self.has(NS) && !self.has(SOA)
    }

    /// RFC 6840 §4.1: whether the record may not be used for names below its owner.
    pub(super) fn hides_what_is_below(self) -> bool {
        self.is_delegation() || self.has(DNAME)
    }

    /// Whether there is nothing to answer a question for the type with; of DS records the parent's side of a delegation knows, of all others
    /// the child's (RFC 4035 §5.4, RFC 6840 §4.3 and 4.4).
    pub(super) fn lack(self, qtype: u16) -> bool {
        if qtype == ANY {
            return self.0.is_empty();
        }
        let right_side = if qtype == DS { !self.has(SOA) } else { !self.is_delegation() };
        right_side && !self.has(qtype) && !self.has(CNAME)
    }

    /// What their owner is, seen from the zone above; `None` if there is a DS record, or if it is the zone below that speaks.
    pub(super) fn without_ds(self) -> Option<NoDs> {
        if self.has(DS) || self.has(SOA) {
            return None;
        }
        Some(if self.has(NS) { NoDs::Delegation } else { NoDs::Name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_from_the_example_of_rfc_4034() {
        // §4.3: A MX RRSIG NSEC TYPE1234.
        let map = [&[0, 6, 0x40, 0x01, 0, 0, 0, 3, 4, 27][..], &[0; 26], &[0x20]].concat();
        let types = Types(&map);
        let all: Vec<u16> = (0..=u16::MAX).filter(|rtype| types.has(*rtype)).collect();
        assert_eq!(all, [1, 15, 46, 47, 1234]);
    }

    #[test]
    fn a_bit_map_that_is_cut_has_nothing_more() {
        assert!(!Types(&[0, 6, 0x40]).has(1));
        assert!(!Types(&[0]).has(1));
    }

    #[test]
    fn a_name_with_a_cname_record_lacks_nothing() {
        // CNAME RRSIG NSEC, and then without CNAME.
        assert!(!Types(&[0, 6, 0x04, 0, 0, 0, 0, 3]).lack(1));
        assert!(Types(&[0, 6, 0, 0, 0, 0, 0, 3]).lack(1));
    }

    #[test]
    fn each_side_of_a_delegation_speaks_of_its_own_types() {
        let (parent, child) = (Types(&[0, 1, 0x20]), Types(&[0, 1, 0x22]));
        assert!(parent.lack(DS) && !child.lack(DS));
        assert!(!parent.lack(1) && child.lack(1));
        assert!(!child.lack(ANY) && Types(&[]).lack(ANY));
    }
}
