//! The validation of one answer: where its links stand, then whether they are proven.

use super::delegation::Judge;
use super::denial::{Denied, Proofs};
use super::fault::{Fault, info};
use super::limits::Work;
use super::links::{self, Claim, Link, SOA};
use super::signature;
use super::walk::{Standing, Stop, Trail, Walk, WalkContext};
use super::zone::Zone;
use crate::lookup::Lookup;
use crate::reply::Reply;
use crate::security::Security;
use crate::verdict::Verdict;

/// RRSIG and SIG records are never signed.
const SIGNATURES: [u16; 2] = [24, 46];

/// An answer under validation.
#[derive(Debug)]
pub(super) struct AnswerValidation {
    reply: Reply,
    links: Vec<Link>,
    /// Of the first links; the others' are to be found yet.
    standings: Vec<Standing>,
    trail: Trail,
    work: Work,
}

/// How well a link is proven.
enum Proven {
    /// For this number of seconds.
    Surely(u32),
    /// As well as may be without signatures; the INFO-CODE says why.
    Insecurely(Option<u16>),
}

impl AnswerValidation {
    /// An answer to be validated; or what can be said of it immediately.
    pub(super) fn new(reply: Reply, qname: &[u8], qtype: u16) -> Result<Self, Verdict> {
        if !matches!(reply.rcode, 0 | 3) {
            return Err(Verdict::fails(Fault::Unanswered, None));
        }
        if SIGNATURES.contains(&qtype) {
            return Err(Verdict::insecure(None));
        }
        let links = links::links(&reply, qname, qtype).map_err(|fault| Verdict::fails(fault, None))?;
        Ok(Self { reply, links, standings: Vec::new(), trail: Trail::new(), work: Work::default() })
    }

    /// Goes on with what is known; else says what must be looked up first.
    pub(super) fn validate(&mut self, around: &mut WalkContext<'_>) -> Result<Verdict, Lookup> {
        let verdict = self.go_on(around)?;
        Ok(Verdict { checks: self.work.checked(), ..verdict })
    }

    fn go_on(&mut self, around: &mut WalkContext<'_>) -> Result<Verdict, Lookup> {
        while let Some(link) = self.links.get(self.standings.len()) {
            let mut walk = Walk { around, trail: &mut self.trail, work: &mut self.work };
            match walk.to(&link.subject.0, link.signer.as_ref().map(|signer| &*signer.0)) {
                Ok(standing) => self.standings.push(standing),
                Err(Stop::Wants(lookup)) => return Err(lookup),
                Err(Stop::Fails(fault, blamed)) => return Ok(Verdict::fails(fault, blamed)),
            }
        }
        Ok(self.judge(around.now.wall).unwrap_or_else(|fault| Verdict::fails(fault, None)))
    }

    /// The verdict of the worst link, once the zone of each is known.
    fn judge(&mut self, wall: u64) -> Result<Verdict, Fault> {
        let mut verdict = Verdict::secure();
        let mut judge = Judge { wall, work: &mut self.work };
        for (link, standing) in self.links.iter().zip(&self.standings) {
            let proven = match standing {
                Standing::Signed(zone) => proven(&self.reply, &link.claim, zone, &mut judge)?,
                Standing::Insecure(why) => Proven::Insecurely(*why),
            };
            verdict.lower(proven);
        }
        Ok(verdict)
    }
}

fn proven(reply: &Reply, claim: &Claim, zone: &Zone, judge: &mut Judge<'_>) -> Result<Proven, Fault> {
    let (name, qtype) = match claim {
        Claim::Records(place) => return records(reply, *place, zone, judge),
        Claim::NameError(name) => (name, None),
        Claim::NoData(name, qtype) => (name, Some(*qtype)),
    };
    let bound = apex(reply, zone, judge)?;
    let proofs = Proofs::gather(&reply.authority, zone, judge.wall, judge.work)?;
    let denied = match qtype {
        None => proofs.name_error(&name.0, judge.work)?,
        Some(qtype) => proofs.no_data(&name.0, qtype, judge.work)?,
    };
    Ok(as_denied(denied, bound.min(proofs.bound)))
}

fn records(reply: &Reply, place: usize, zone: &Zone, judge: &mut Judge<'_>) -> Result<Proven, Fault> {
    let set = reply.answer.get(place).ok_or(Fault::Bogus(info::BOGUS))?;
    let signed = signature::verify(set, zone, judge.wall, judge.work)?;
    let Some(labels) = signed.expanded else { return Ok(Proven::Surely(signed.bound)) };
    let proofs = Proofs::gather(&reply.authority, zone, judge.wall, judge.work)?;
    let denied = proofs.nothing_nearer(&set.owner.0, labels, judge.work)?;
    Ok(as_denied(denied, signed.bound.min(proofs.bound)))
}

/// The SOA record of a negative answer says how long it may be kept (RFC 2308 §5), and so must be signed too.
fn apex(reply: &Reply, zone: &Zone, judge: &mut Judge<'_>) -> Result<u32, Fault> {
    let Some(set) = reply.authority.iter().find(|set| set.rtype == SOA) else { return Ok(u32::MAX) };
    let signed = signature::verify(set, zone, judge.wall, judge.work)?;
    if signed.expanded.is_some() { Err(Fault::Bogus(info::BOGUS)) } else { Ok(signed.bound) }
}

fn as_denied(denied: Denied, bound: u32) -> Proven {
    match denied {
        Denied::Surely => Proven::Surely(bound),
        Denied::OptOut => Proven::Insecurely(None),
        Denied::Iterations => Proven::Insecurely(Some(info::ITERATIONS)),
    }
}

impl Verdict {
    fn secure() -> Self {
        Self { security: Security::Secure, extended_error: None, ttl_bound: None, blamed: None, checks: 0 }
    }

    fn insecure(why: Option<u16>) -> Self {
        Self { security: Security::Insecure, extended_error: why, ttl_bound: None, blamed: None, checks: 0 }
    }

    fn fails(fault: Fault, blamed: Option<Lookup>) -> Self {
        let security = match fault {
            Fault::Bogus(_) | Fault::Exhausted => Security::Bogus,
            Fault::Unanswered => Security::Indeterminate,
        };
        Self { security, extended_error: Some(fault.extended_error()), ttl_bound: None, blamed, checks: 0 }
    }

    /// With one more link.
    fn lower(&mut self, link: Proven) {
        match link {
            Proven::Surely(bound) => {
                self.ttl_bound = Some(self.ttl_bound.map_or(bound, |least| least.min(bound)));
            }
            Proven::Insecurely(why) => {
                self.security = Security::Insecure;
                self.extended_error = self.extended_error.or(why);
            }
        }
    }
}
