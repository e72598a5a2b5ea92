//! What an answer claims, link by link: a chain of CNAME and DNAME records, and at its end records, or that there are none.

use super::delegation::DS;
use super::fault::{Fault, info};
use super::limits::MOST_LINKS;
use crate::name;
use crate::reply::{Reply, Rrset};
use crate::wire::Wire;

/// CNAME.
const CNAME: u16 = 5;
/// SOA.
pub(super) const SOA: u16 = 6;
/// DNAME (RFC 6672).
const DNAME: u16 = 39;
/// QTYPE=*.
const ANY: u16 = 255;
/// NXDOMAIN.
const NAME_ERROR: u8 = 3;

/// A claim, and its supposed signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) claim: Claim,
    /// The name whose zone must have signed it.
    pub(super) subject: Wire,
    /// The zone of the SOA record; without one, nothing is signed.
    pub(super) signer: Option<Wire>,
}

/// What is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The RRset at this place of the answer section.
    Records(usize),
    /// The name does not exist.
    NameError(Wire),
    /// The name has no records of the type.
    NoData(Wire, u16),
}

/// An answer that is being read.
struct Reading<'a> {
    reply: &'a Reply,
    links: Vec<Link>,
    used: Vec<bool>,
}

/// What an answer claims.
///
/// # Errors
/// When its answer section is not a chain, is too long, or has other records.
pub(super) fn links(reply: &Reply, qname: &[u8], qtype: u16) -> Result<Vec<Link>, Fault> {
    let mut reading = Reading { reply, links: Vec::new(), used: vec![false; reply.answer.len()] };
    let mut at = name::lower(qname);
    while let Some(next) = reading.follow(&at, qtype)? {
        at = next;
        if reading.links.len() > MOST_LINKS {
            return Err(Fault::Exhausted);
        }
    }
    if reading.used.iter().all(|used| *used) { Ok(reading.links) } else { Err(Fault::Bogus(info::BOGUS)) }
}

impl Reading<'_> {
    /// Reads what there is at a name; says where it leads if that is not the end.
    fn follow(&mut self, at: &Wire, qtype: u16) -> Result<Option<Wire>, Fault> {
        if let Some(target) = self.renamed(at)? {
            if qtype == CNAME || qtype == ANY && !self.is_there(&target) {
                return self.end();
            }
            return Ok(Some(target));
        }
        let wanted = |set: &Rrset| set.owner == *at && (set.rtype == qtype || qtype == ANY);
        let places: Vec<_> =
            (0..self.used.len()).filter(|place| wanted(&self.reply.answer[*place])).collect();
        if !places.is_empty() {
            places.into_iter().for_each(|place| self.claim(place));
            return self.end();
        }
        if let Some(place) = self.place(&at.0, CNAME) {
            self.claim(place);
            return self.target(place).map(Some);
        }
        self.deny(at, qtype);
        Ok(None)
    }

    /// There is what was asked for; so it cannot be said that there is not.
    fn end(&self) -> Result<Option<Wire>, Fault> {
        if self.reply.rcode == NAME_ERROR { Err(Fault::Bogus(info::BOGUS)) } else { Ok(None) }
    }

    /// RFC 6672 §5.3.1: the DNAME record above the name is signed; the CNAME record synthesised from it must match it.
    fn renamed(&mut self, at: &Wire) -> Result<Option<Wire>, Fault> {
        let found = name::upwards(&at.0).skip(1).find_map(|above| Some((above, self.place(above, DNAME)?)));
        let Some((owner, place)) = found else { return Ok(None) };
        let bogus = Fault::Bogus(info::BOGUS);
        let target = name::renamed(&at.0, owner, &self.target(place)?.0).ok_or(bogus)?;
        if let Some(made) = self.place(&at.0, CNAME) {
            if self.target(made)? != target {
                return Err(bogus);
            }
            self.used[made] = true;
        }
        // One DNAME record may serve several links; it is verified once.
        if !self.used[place] {
            self.claim(place);
        } else if self.links.len() < MOST_LINKS {
            let again = self.links.iter().find(|link| link.claim == Claim::Records(place)).cloned();
            self.links.extend(again);
        } else {
            return Err(Fault::Exhausted);
        }
        Ok(Some(target))
    }

    fn place(&self, owner: &[u8], rtype: u16) -> Option<usize> {
        self.reply.answer.iter().position(|set| *set.owner.0 == *owner && set.rtype == rtype)
    }

    fn is_there(&self, owner: &Wire) -> bool {
        self.reply.answer.iter().any(|set| set.owner == *owner)
    }

    /// Where a CNAME or DNAME record leads; there must be one only.
    fn target(&self, place: usize) -> Result<Wire, Fault> {
        match self.reply.answer.get(place).map(|set| &*set.rdatas) {
            Some([target]) => Ok(Wire(target.clone())),
            _ => Err(Fault::Bogus(info::BOGUS)),
        }
    }

    fn claim(&mut self, place: usize) {
        let set = &self.reply.answer[place];
        self.used[place] = true;
        let signers = set.signatures.iter().map(|rrsig| &rrsig.signer);
        let signer = nearest(&set.owner.0, set.rtype, signers).cloned();
        let subject = subject(&set.owner, set.rtype);
        self.links.push(Link { claim: Claim::Records(place), subject, signer });
    }

    /// The zone is the one whose SOA record is there; without one, that which signed the rest.
    fn deny(&mut self, at: &Wire, qtype: u16) {
        let authority = &self.reply.authority;
        let apexes = authority.iter().filter(|set| set.rtype == SOA).map(|set| &set.owner);
        let signers = authority.iter().flat_map(|set| &set.signatures).map(|rrsig| &rrsig.signer);
        let signer = nearest(&at.0, qtype, apexes).or_else(|| nearest(&at.0, qtype, signers)).cloned();
        let claim = if self.reply.rcode == NAME_ERROR {
            Claim::NameError(at.clone())
        } else {
            Claim::NoData(at.clone(), qtype)
        };
        self.links.push(Link { claim, subject: subject(at, qtype), signer });
    }
}

/// The name whose zone has the records of this type: DS records are the zone's above (RFC 4035 §2.4).
fn subject(owner: &Wire, rtype: u16) -> Wire {
    let above = if rtype == DS { name::parent(&owner.0) } else { None };
    above.map_or_else(|| owner.clone(), |above| Wire(above.into()))
}

/// The one of these zones that is nearest above the name, and may have its records of the type.
fn nearest<'a>(owner: &[u8], rtype: u16, zones: impl Iterator<Item = &'a Wire>) -> Option<&'a Wire> {
    let subject = subject(&Wire(owner.into()), rtype);
    zones.filter(|zone| name::is_within(&subject.0, &zone.0)).max_by_key(|zone| zone.0.len())
}
