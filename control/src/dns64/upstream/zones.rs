//! Which upstreams are asked about a name: the longest match decides.

use super::super::answer::rtype;
use super::super::settings::Upstream;
use arrayvec::ArrayVec;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// RFC 1035 §2.3.4: the longest name, in octets.
const LONGEST_NAME: usize = 255;

/// For each zone that is named in the settings, the upstreams that are asked about names at and below it.
#[derive(Debug)]
pub(super) struct Zones {
    by_name: HashMap<Box<[u8]>, Box<[usize]>, FixedState>,
}

impl Zones {
    pub(super) fn new(upstreams: &[Upstream], seed: u64) -> Self {
        let mut by_name: HashMap<Box<[u8]>, Vec<usize>, _> =
            HashMap::with_hasher(FixedState::with_seed(seed));
        for (at, upstream) in upstreams.iter().enumerate() {
            let names = upstream.names.iter().map(|name| name.0.to_ascii_lowercase().into_boxed_slice());
            let root = upstream.names.is_empty().then(|| Box::from([0]));
            for zone in names.chain(root) {
                let members = by_name.entry(zone).or_default();
                if !members.contains(&at) {
                    members.push(at);
                }
            }
        }
        let boxed = by_name.into_iter().map(|(zone, members)| (zone, members.into_boxed_slice()));
        let mut zones = Self { by_name: HashMap::with_hasher(FixedState::with_seed(seed)) };
        zones.by_name.extend(boxed);
        zones
    }

    /// The upstreams for a question. DS records belong to the parent zone (RFC 4035 §2.4), so its upstreams are queried for them, if there are any.
    pub(super) fn asked(&self, name: &[u8], qtype: u16) -> &[usize] {
        let parent = name.first().and_then(|length| name.get(1 + usize::from(*length)..));
        let parent = parent.filter(|parent| qtype == rtype::DS && !parent.is_empty());
        match parent.map(|parent| self.members(parent)) {
            Some(members) if !members.is_empty() => members,
            Some(_) | None => self.members(name),
        }
    }

    /// Whether those that are queried about a question are there for all names without an upstream of their own.
    pub(super) fn is_for_all_names(&self, name: &[u8], qtype: u16) -> bool {
        let for_all = self.by_name.get([0].as_slice());
        for_all.is_some_and(|members| core::ptr::eq(members.as_ref(), self.asked(name, qtype)))
    }

    /// The upstreams for a name in wire form, upper or lower case; none for an invalid name.
    fn members(&self, name: &[u8]) -> &[usize] {
        let only_root = self.by_name.len() == 1 && self.by_name.contains_key([0].as_slice());
        let mut lower = ArrayVec::<u8, LONGEST_NAME>::new();
        if name.last() != Some(&0) || lower.try_extend_from_slice(name).is_err() {
            return &[];
        }
        if only_root {
            return &self.by_name[[0].as_slice()];
        }
        lower.make_ascii_lowercase();
        let mut rest = lower.as_slice();
        loop {
            if let Some(members) = self.by_name.get(rest) {
                return members;
            }
            let Some(shorter) = rest.first().and_then(|length| rest.get(1 + usize::from(*length)..)) else {
                return &[];
            };
            if rest[0] == 0 {
                return &[];
            }
            rest = shorter;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::Wire;
    use super::*;

    fn upstream(names: &[&[u8]]) -> Upstream {
        Upstream { names: names.iter().map(|name| Wire(Box::from(*name))).collect(), datagrams: true }
    }

    #[test]
    fn the_longest_match_decides_in_any_case() {
        let all = [
            upstream(&[]),
            upstream(&[b"\x03lan\0"]),
            upstream(&[b"\x01a\x03lan\0", b"\x03LAN\0"]),
            upstream(&[b"\0"]),
        ];
        let zones = Zones::new(&all, 7);
        let of = |name: &[u8]| zones.members(name).to_vec();
        assert_eq!(of(b"\x03www\x07example\0"), [0, 3]);
        assert_eq!(of(b"\0"), [0, 3]);
        assert_eq!(of(b"\x03lan\0"), [1, 2]);
        assert_eq!(of(b"\x01b\x03LaN\0"), [1, 2]);
        assert_eq!(of(b"\x01b\x01A\x03lan\0"), [2]);
        assert_eq!(of(b"\x04xlan\0"), [0, 3]);
    }

    #[test]
    fn ds_records_are_asked_of_those_above() {
        let all = [upstream(&[]), upstream(&[b"\x03lan\0"])];
        let zones = Zones::new(&all, 7);
        assert_eq!(zones.asked(b"\x03LAN\0", rtype::DS), [0]);
        assert_eq!(zones.asked(b"\x03lan\0", rtype::DNSKEY), [1]);
        assert_eq!(zones.asked(b"\x01a\x03lan\0", rtype::DS), [1]);
        assert_eq!(zones.asked(b"\0", rtype::DS), [0]);
        let alone = Zones::new(&all[1..], 7);
        assert_eq!(alone.asked(b"\x03lan\0", rtype::DS), [0], "nobody is there for the zone above");
        assert!(alone.asked(b"\x3fa", rtype::DS).is_empty() && alone.asked(b"", rtype::DS).is_empty());
    }

    #[test]
    fn a_name_outside_all_zones_and_what_is_not_a_name_have_no_upstream() {
        let zones = Zones::new(&[upstream(&[b"\x03lan\0"])], 7);
        for name in [b"\x03www\0".as_slice(), b"\0", b"", b"\x3fab\0", &[0; 256], b"\x03lan"] {
            assert!(zones.members(name).is_empty(), "{name:?}");
        }
        assert_eq!(Zones::new(&[], 7).members(b"\0"), [0_usize; 0]);
        assert_eq!(Zones::new(&[upstream(&[])], 7).members(b"\x03www\0"), [0]);
    }
}
