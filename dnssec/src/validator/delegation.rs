//! From one zone to the next below: DS records, or the proof that there are none, and DNSKEY records (RFC 4035 §5.2 and 5.3).

use super::denial::{Denied, NoDs, Proofs};
use super::digest::{self, ExpectedKey};
use super::fault::{Fault, info};
use super::limits::Work;
use super::signature::{self, Signed};
use super::zone::{self, Zone};
use crate::name;
use crate::reply::{Reply, Rrset};
use crate::wire::Wire;
use std::sync::Arc;

/// DS.
pub(super) const DS: u16 = 43;
/// DNSKEY.
pub(super) const DNSKEY: u16 = 48;
/// CNAME.
const CNAME: u16 = 5;
/// DNAME.
const DNAME: u16 = 39;

/// What is between a signed zone and what is below one of its names.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// A signed zone begins there; these are its keys.
    Signed(Arc<Zone>),
    /// A signed zone begins there; its keys are not known yet, but by these marks.
    Delegated(Arc<[ExpectedKey]>),
    /// A zone begins there that is not signed, or not so that it could be verified: the INFO-CODE says why.
    Insecure(Option<u16>),
    /// Nothing: it is a name within the zone.
    Inside,
    /// Nothing, and there is nothing below it either.
    Nothing,
}

/// What was found, and for how many seconds it holds.
pub(super) type Found = (Cut, u32);

/// A proof found at a given time.
pub(super) struct Judge<'a> {
    /// Unix time.
    pub(super) wall: u64,
    /// What is left of the work.
    pub(super) work: &'a mut Work,
}

/// What the answer to a question for DS records of `child` says; no zone begins between `zone` and it.
pub(super) fn delegation(
    reply: &Reply,
    child: &[u8],
    zone: &Zone,
    judge: &mut Judge<'_>,
) -> Result<Found, Fault> {
    if !matches!(reply.rcode, 0 | 3) {
        return Err(Fault::Unanswered);
    }
    let find =
        |owner: &[u8], rtype| reply.answer.iter().find(|set| *set.owner.0 == *owner && set.rtype == rtype);
    if let Some(set) = find(child, DS) {
        return delegated(set, zone, judge);
    }
    // Names at DNAME records may be renamed further up, up to the zone's apex.
    let above = name::upwards(child).skip(1).take_while(|above| name::is_within(above, &zone.name.0));
    if let Some(set) = above.into_iter().find_map(|above| find(above, DNAME)) {
        let signed = signature::verify(set, zone, judge.wall, judge.work)?;
        return match signed.expanded {
            None => Ok((Cut::Nothing, signed.bound.min(set.ttl))),
            Some(_) => Err(Fault::Bogus(info::BOGUS)),
        };
    }
    if let Some(set) = find(child, CNAME) {
        return alias(reply, set, zone, judge);
    }
    undelegated(reply, child, zone, judge)
}

fn delegated(set: &Rrset, zone: &Zone, judge: &mut Judge<'_>) -> Result<Found, Fault> {
    let signed = signature::verify(set, zone, judge.wall, judge.work)?;
    if signed.expanded.is_some() {
        return Err(Fault::Bogus(info::BOGUS));
    }
    let cut = digest::meant(&set.rdatas)
        .map_or_else(|why| Cut::Insecure(Some(why)), |ds| Cut::Delegated(ds.into()));
    Ok((cut, signed.bound.min(set.ttl)))
}

/// A name with a CNAME record is not a delegation; if a wildcard made it, the name does not exist, which must be proven.
fn alias(reply: &Reply, set: &Rrset, zone: &Zone, judge: &mut Judge<'_>) -> Result<Found, Fault> {
    let Signed { expanded, bound } = signature::verify(set, zone, judge.wall, judge.work)?;
    let bound = bound.min(set.ttl);
    let Some(labels) = expanded else { return Ok((Cut::Inside, bound)) };
    let proofs = Proofs::gather(&reply.authority, zone, judge.wall, judge.work)?;
    let cut = match proofs.nothing_nearer(&set.owner.0, labels, judge.work)? {
        Denied::Surely => Cut::Nothing,
        Denied::OptOut => Cut::Insecure(None),
        Denied::Iterations => Cut::Insecure(Some(info::ITERATIONS)),
    };
    Ok((cut, bound.min(proofs.bound)))
}

fn undelegated(reply: &Reply, child: &[u8], zone: &Zone, judge: &mut Judge<'_>) -> Result<Found, Fault> {
    let proofs = Proofs::gather(&reply.authority, zone, judge.wall, judge.work)?;
    let cut = match proofs.no_ds(child, judge.work)? {
        NoDs::Delegation | NoDs::OptOut => Cut::Insecure(None),
        NoDs::Iterations => Cut::Insecure(Some(info::ITERATIONS)),
        NoDs::Name => Cut::Inside,
        NoDs::Nothing => Cut::Nothing,
    };
    Ok((cut, proofs.bound))
}

/// The keys of a zone that is known by marks: one of the keys that are meant must have signed them all.
pub(super) fn keys(
    reply: &Reply,
    apex: &[u8],
    meant: &[ExpectedKey],
    judge: &mut Judge<'_>,
) -> Result<Found, Fault> {
    if !matches!(reply.rcode, 0 | 3) {
        return Err(Fault::Unanswered);
    }
    let missing = Fault::Bogus(info::DNSKEY_MISSING);
    let set = reply.answer.iter().find(|set| *set.owner.0 == *apex && set.rtype == DNSKEY).ok_or(missing)?;
    let (trusted, other): (Vec<_>, Vec<_>) =
        zone::keys(&set.rdatas).into_iter().partition(|key| meant.iter().any(|meant| meant.is(apex, key)));
    if trusted.is_empty() {
        return Err(missing);
    }
    let signed = signature::verify_with(set, apex, &trusted, judge.wall, judge.work)?;
    let zone = Zone { name: Wire(apex.into()), keys: trusted.into_iter().chain(other).collect() };
    Ok((Cut::Signed(Arc::new(zone)), signed.bound.min(set.ttl)))
}
