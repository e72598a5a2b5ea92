//! Whether an RRset has a signature of its zone (RFC 4035 §5.3).

use super::fault::{Fault, info};
use super::limits::{KEYS_OF_A_TAG, Work};
use super::zone::{Key, Zone};
use crate::name;
use crate::reply::{Rrset, Rrsig};
use std::cmp::Ordering;

/// An RRset that its zone has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// It is an expansion of the wildcard below the name of its owner's last labels (this many); that nothing nearer exists is
    /// yet to be proven (RFC 4035 §5.3.4).
    pub(super) expanded: Option<usize>,
    /// It holds no longer than this, in seconds from now (RFC 4035 §5.3.3).
    pub(super) bound: u32,
}

/// Whether one of the zone's keys has signed the RRset.
///
/// # Errors
/// Says what is wrong with the signature that came nearest to being good.
pub(super) fn verify(set: &Rrset, zone: &Zone, wall: u64, work: &mut Work) -> Result<Signed, Fault> {
    verify_with(set, &zone.name.0, &zone.keys, wall, work)
}

/// Whether one of these keys, of the zone `signer`, has signed the RRset.
pub(super) fn verify_with(
    set: &Rrset,
    signer: &[u8],
    keys: &[Key],
    wall: u64,
    work: &mut Work,
) -> Result<Signed, Fault> {
    let mut fault = Fault::Bogus(info::RRSIGS_MISSING);
    for rrsig in &set.signatures {
        match judge(set, rrsig, signer, wall) {
            Ok(()) => {}
            Err(why) => {
                fault = why.unwrap_or(fault);
                continue;
            }
        }
        if made_by_one(set, rrsig, keys, work)? {
            return Ok(signed(set, rrsig, wall));
        }
        fault = Fault::Bogus(info::BOGUS);
    }
    Err(fault)
}

/// RFC 4035 §5.3.1, without the cryptography. The owner, class and type are the RRset's already. A signature of another zone does not
/// concern us, and is not reported.
fn judge(set: &Rrset, rrsig: &Rrsig, signer: &[u8], wall: u64) -> Result<(), Option<Fault>> {
    if *rrsig.signer.0 != *signer || !name::is_within(&set.owner.0, signer) {
        return Err(None);
    }
    if usize::from(rrsig.labels) > labels(&set.owner.0) {
        return Err(Some(Fault::Bogus(info::BOGUS)));
    }
    if later(wall, rrsig.expiration) {
        return Err(Some(Fault::Bogus(info::EXPIRED)));
    }
    if earlier(wall, rrsig.inception) {
        return Err(Some(Fault::Bogus(info::NOT_YET_VALID)));
    }
    Ok(())
}

/// RFC 4034 §3.1.3: the root and a leading asterisk do not count.
fn labels(owner: &[u8]) -> usize {
    name::count(owner) - usize::from(name::is_wildcard(owner))
}

/// RFC 4034 §3.1.5: times are compared as serial numbers (RFC 1982), and so continue after 2106.
fn compare(wall: u64, time: u32) -> Ordering {
    ((wall as u32).wrapping_sub(time) as i32).cmp(&0)
}

fn later(wall: u64, time: u32) -> bool {
    compare(wall, time) == Ordering::Greater
}

fn earlier(wall: u64, time: u32) -> bool {
    compare(wall, time) == Ordering::Less
}

/// Tags are not names: some keys with the same one are tried.
fn made_by_one(set: &Rrset, rrsig: &Rrsig, keys: &[Key], work: &mut Work) -> Result<bool, Fault> {
    let meant = |key: &&Key| key.tag == rrsig.key_tag && key.algorithm == rrsig.algorithm;
    let mut data = Vec::new();
    for key in keys.iter().filter(meant).take(KEYS_OF_A_TAG) {
        if data.is_empty() {
            data = signed_data(set, rrsig);
        }
        work.check()?;
        if key.signed(&data, &rrsig.signature) {
            return Ok(true);
        }
        work.failed()?;
    }
    Ok(false)
}

/// RFC 4035 §5.3.2: the RRSIG's RDATA without the signature, and each record in canonical form and order.
fn signed_data(set: &Rrset, rrsig: &Rrsig) -> Vec<u8> {
    let owner = match expanded(set, rrsig) {
        Some(labels) => [b"\x01*", name::last(&set.owner.0, labels)].concat(),
        None => set.owner.0.to_vec(),
    };
    let mut data = rrsig.head.to_vec();
    for rdata in &set.rdatas {
        data.extend_from_slice(&owner);
        data.extend_from_slice(&set.rtype.to_be_bytes());
        data.extend_from_slice(&[0, 1]);
        data.extend_from_slice(&rrsig.original_ttl.to_be_bytes());
        data.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        data.extend_from_slice(rdata);
    }
    data
}

fn expanded(set: &Rrset, rrsig: &Rrsig) -> Option<usize> {
    (usize::from(rrsig.labels) < labels(&set.owner.0)).then(|| usize::from(rrsig.labels))
}

fn signed(set: &Rrset, rrsig: &Rrsig, wall: u64) -> Signed {
    let left = rrsig.expiration.wrapping_sub(wall as u32);
    Signed { expanded: expanded(set, rrsig), bound: rrsig.original_ttl.min(left) }
}
