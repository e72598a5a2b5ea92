//! Proofs by NSEC records (RFC 4035 §5.4).

use super::denied::NoDs;
use super::type_bitmap::Types;
use crate::name;
use crate::wire::Wire;
use std::cmp::Ordering;

/// An NSEC record (RFC 4034 §4) that its zone has signed.
#[derive(Debug)]
pub(super) struct Nsec<'a> {
    owner: &'a [u8],
    /// In lower case.
    next: Wire,
    types: Types<'a>,
}

/// What an NSEC record says of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// These are its types.
    Exists,
    /// It has names below it, and no records.
    IsEmpty,
    /// It does not exist.
    IsNot,
}

impl<'a> Nsec<'a> {
    /// From RDATA in canonical form.
    pub(super) fn read(owner: &'a [u8], rdata: &'a [u8]) -> Option<Self> {
        let length = name::upwards(rdata_name(rdata)?).map(|above| usize::from(above[0]) + 1).sum();
        let (next, types) = rdata.split_at_checked(length)?;
        Some(Self { owner, next: name::lower(next), types: Types(types) })
    }

    fn says(&self, name: &[u8]) -> Option<Says> {
        if self.owner == name {
            return Some(Says::Exists);
        }
        if name::is_below(name, self.owner) && self.types.hides_what_is_below() {
            return None;
        }
        let after_owner = name::compare(self.owner, name) == Ordering::Less;
        let before_next = name::compare(name, &self.next.0) == Ordering::Less;
        // The last one leads back to the zone's apex.
        let is_last = name::compare(self.owner, &self.next.0) != Ordering::Less;
        if !after_owner || !(before_next || is_last) {
            return None;
        }
        let is_empty = name::is_below(&self.next.0, name);
        Some(if is_empty { Says::IsEmpty } else { Says::IsNot })
    }

    /// The nearest name above one that does not exist that does: it is above one of the neighbours, too.
    fn closest_encloser<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        let (a, b) = (name::shared(name, self.owner), name::shared(name, &self.next.0));
        if a.len() > b.len() { a } else { b }
    }
}

/// As much of RDATA as a name takes, and more, if there is one.
fn rdata_name(rdata: &[u8]) -> Option<&[u8]> {
    let mut rest = rdata;
    while let Some(above) = name::parent(rest) {
        rest = above;
    }
    (rest.first() == Some(&0)).then_some(rdata)
}

/// The closest encloser of a name that does not exist.
fn absent<'n>(nsecs: &[Nsec<'_>], name: &'n [u8]) -> Option<&'n [u8]> {
    let proof = nsecs.iter().find(|nsec| nsec.says(name) == Some(Says::IsNot))?;
    Some(proof.closest_encloser(name))
}

/// That neither the name nor a wildcard that matches it exists.
pub(super) fn name_error(nsecs: &[Nsec<'_>], name: &[u8]) -> bool {
    let Some(encloser) = absent(nsecs, name) else { return false };
    // A wildcard that is too long for a name cannot exist.
    name::wildcard(encloser).is_none_or(|wildcard| absent(nsecs, &wildcard.0).is_some())
}

/// That the name, or the wildcard that matches it, has nothing of the type.
pub(super) fn no_data(nsecs: &[Nsec<'_>], name: &[u8], qtype: u16) -> bool {
    if lacks(nsecs, name, qtype) {
        return true;
    }
    let wildcard = absent(nsecs, name).and_then(name::wildcard);
    wildcard.is_some_and(|wildcard| lacks(nsecs, &wildcard.0, qtype))
}

/// That the name exists, and has nothing of the type.
fn lacks(nsecs: &[Nsec<'_>], name: &[u8], qtype: u16) -> bool {
    nsecs.iter().any(|nsec| match nsec.says(name) {
        Some(Says::Exists) => nsec.types.lack(qtype),
        Some(Says::IsEmpty) => true,
        Some(Says::IsNot) | None => false,
    })
}

/// That the name does not exist, and that its closest encloser has this number of labels.
pub(super) fn nothing_nearer(nsecs: &[Nsec<'_>], name: &[u8], labels: usize) -> bool {
    absent(nsecs, name).is_some_and(|encloser| name::count(encloser) == labels)
}

/// What a name without a DS record is.
pub(super) fn no_ds(nsecs: &[Nsec<'_>], name: &[u8]) -> Option<NoDs> {
    nsecs.iter().find_map(|nsec| match nsec.says(name)? {
        Says::Exists => nsec.types.without_ds(),
        Says::IsEmpty => Some(NoDs::Name),
        Says::IsNot => Some(NoDs::Nothing),
    })
}
