//! The NSEC and NSEC3 records of one message, asked together.

use super::super::fault::{Fault, info};
use super::super::limits::Work;
use super::super::signature;
use super::super::zone::Zone;
use super::denied::{Denied, NoDs};
use super::nsec::{self, Nsec};
use super::nsec3::Nsec3s;
use crate::reply::Rrset;

/// NSEC (RFC 4034 §4).
const NSEC: u16 = 47;
/// NSEC3 (RFC 5155 §3).
const NSEC3: u16 = 50;

/// The NSEC and NSEC3 records of a message that its zone has signed.
#[derive(Debug)]
pub(in crate::validator) struct Proofs<'a> {
    nsecs: Vec<Nsec<'a>>,
    nsec3s: Nsec3s<'a>,
    /// They hold no longer than this, in seconds from now.
    pub(in crate::validator) bound: u32,
    /// Why some do not count, if so.
    fault: Fault,
}

impl<'a> Proofs<'a> {
    /// Takes those of the zone.
    ///
    /// # Errors
    /// When it would be too much work. A record with a wrong signature does not count as a proof, and does no harm otherwise.
    pub(in crate::validator) fn gather(
        authority: &'a [Rrset],
        zone: &'a Zone,
        wall: u64,
        work: &mut Work,
    ) -> Result<Self, Fault> {
        let fault = Fault::Bogus(info::NSEC_MISSING);
        let mut proofs = Self { nsecs: Vec::new(), nsec3s: Nsec3s::of(&zone.name.0), bound: u32::MAX, fault };
        for set in authority.iter().filter(|set| matches!(set.rtype, NSEC | NSEC3)) {
            match signature::verify(set, zone, wall, work) {
                // An expanded wildcard has no place in the zone's order.
                Ok(signed) if signed.expanded.is_none() => proofs.admit(set, signed.bound.min(set.ttl)),
                Ok(_) => {}
                Err(Fault::Exhausted) => return Err(Fault::Exhausted),
                Err(fault) => proofs.fault = fault,
            }
        }
        Ok(proofs)
    }

    fn admit(&mut self, set: &'a Rrset, bound: u32) {
        self.bound = self.bound.min(bound);
        for rdata in &set.rdatas {
            match set.rtype {
                NSEC => self.nsecs.extend(Nsec::read(&set.owner.0, rdata)),
                _ => self.nsec3s.admit(&set.owner.0, rdata),
            }
        }
    }

    /// That the name does not exist, nor a wildcard that matches it (RFC 4035 §5.4, RFC 5155 §8.4).
    pub(in crate::validator) fn name_error(&self, name: &[u8], work: &mut Work) -> Result<Denied, Fault> {
        if nsec::name_error(&self.nsecs, name) {
            return Ok(Denied::Surely);
        }
        self.nsec3s.name_error(name, work)?.ok_or(self.fault)
    }

    /// That the name has no records of the type (RFC 4035 §5.4, RFC 5155 §8.5 to 8.7).
    pub(in crate::validator) fn no_data(
        &self,
        name: &[u8],
        qtype: u16,
        work: &mut Work,
    ) -> Result<Denied, Fault> {
        if nsec::no_data(&self.nsecs, name, qtype) {
            return Ok(Denied::Surely);
        }
        self.nsec3s.no_data(name, qtype, work)?.ok_or(self.fault)
    }

    /// That nothing is nearer to the name than the wildcard below its last labels (RFC 4035 §5.3.4, RFC 5155 §8.8).
    pub(in crate::validator) fn nothing_nearer(
        &self,
        name: &[u8],
        labels: usize,
        work: &mut Work,
    ) -> Result<Denied, Fault> {
        if nsec::nothing_nearer(&self.nsecs, name, labels) {
            return Ok(Denied::Surely);
        }
        self.nsec3s.nothing_nearer(name, labels, work)?.ok_or(self.fault)
    }

    /// That the name has no DS record, and what it is (RFC 4035 §5.2, RFC 5155 §8.6 and 8.9).
    pub(in crate::validator) fn no_ds(&self, name: &[u8], work: &mut Work) -> Result<NoDs, Fault> {
        if let Some(found) = nsec::no_ds(&self.nsecs, name) {
            return Ok(found);
        }
        self.nsec3s.no_ds(name, work)?.ok_or(self.fault)
    }
}
