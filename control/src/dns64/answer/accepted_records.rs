//! Which records of a reply are accepted: the chain from the question's name, the records that it ends at, their signatures, and, of the
//! authority section, what belongs to the names of the chain. Everything else is out of bailiwick and ignored (RFC 5452 §6).

use super::bounds::Bounds;
use super::kind::Kind;
use super::part::Part;
use super::rcode::{NOERROR, NXDOMAIN};
use super::record::{Record, rtype};
use super::rejection::Rejection;
use super::reply::Reply;

use crate::dns64::key::Key;
use crate::dns64::name::{LONGEST_NAME, is_within, same};

/// Maximum length of a chain of CNAME records; longer ones count as endless.
pub const LONGEST_CHAIN: usize = 16;

/// Maximum signatures of a section that are considered: each is compared with each record, and an attacker could send 64 KiB of them.
const MOST_SIGNATURES: usize = 128;

/// Records by part, in the order in which they are written.
#[derive(Default)]
pub(super) struct AcceptedRecords {
    pub(super) parts: [Vec<Record>; Part::ALL.len()],
    /// The name at the chain's end.
    pub(super) target: Box<[u8]>,
    /// The zone that the upstream is responsible for.
    zone: Box<[u8]>,
    /// There are NS records: without other records the reply is a referral.
    refers: bool,
    /// How long, in seconds, a negative answer is cached because of a signed SOA record above the zone; the record itself is not stored.
    above: Option<u32>,
}

impl AcceptedRecords {
    pub(super) fn of(key: &Key, mut reply: Reply, bounds: &Bounds) -> Result<Self, Rejection> {
        let dnssec_ok = bounds.dnssec_ok;
        equalise(&mut reply.answer);
        equalise(&mut reply.authority);
        let above = key.name().len().saturating_sub(bounds.zone.into());
        let zone = &key.name()[above..];
        let mut accepted = Self { target: key.name().into(), zone: zone.into(), ..Self::default() };
        accepted.follow(key, &reply.answer)?;
        if dnssec_ok {
            accepted.keep_signatures(&reply.answer);
        }
        accepted.keep_authority(&reply.authority, dnssec_ok);
        Ok(accepted)
    }

    pub(super) fn part(&self, part: Part) -> &[Record] {
        &self.parts[part as usize]
    }

    fn put(&mut self, part: Part, record: Record) {
        self.parts[part as usize].push(record);
    }

    /// Goes from the question's name along CNAME and DNAME records to the queried records, or as far as the reply leads.
    fn follow(&mut self, key: &Key, answer: &[Record]) -> Result<(), Rejection> {
        let mut seen: Vec<Box<[u8]>> = Vec::new();
        loop {
            let name = self.target.clone();
            if seen.len() > LONGEST_CHAIN || seen.iter().any(|earlier| same(earlier, &name)) {
                return Err(Rejection::EndlessChain);
            }
            let Some(alias) = self.alias(key, answer, &name)? else { break };
            self.target = alias.data.clone();
            seen.push(name);
            self.put(Part::Chain, alias);
        }
        if self.part(Part::Data).is_empty() {
            let name = self.target.clone();
            let wanted = |record: &&Record| asks_for(key.qtype(), record.rtype) && same(&record.owner, &name);
            self.parts[Part::Data as usize] = answer.iter().filter(wanted).cloned().collect();
        }
        Ok(())
    }

    /// The CNAME record of the name, if there is one and CNAME is not the queried type.
    fn alias(&mut self, key: &Key, answer: &[Record], name: &[u8]) -> Result<Option<Record>, Rejection> {
        let at_name = |record: &&Record| same(&record.owner, name);
        let mut cnames = answer.iter().filter(at_name).filter(|record| record.rtype == rtype::CNAME);
        let cname = cnames.next();
        let is_asked = asks_for(key.qtype(), rtype::CNAME);
        let dname = answer.iter().find(|record| {
            record.rtype == rtype::DNAME && record.owner.len() < name.len() && is_within(name, &record.owner)
        });
        if let Some(dname) = dname {
            let made = under_dname(dname, name).ok_or(Rejection::Contradictory)?;
            if cname.is_some_and(|cname| !same(&cname.data, &made.data)) || cnames.next().is_some() {
                return Err(Rejection::Contradictory);
            }
            if !self.part(Part::Chain).contains(dname) {
                self.put(Part::Chain, dname.clone());
            }
            if is_asked {
                self.put(Part::Data, made);
                return Ok(None);
            }
            return Ok(Some(made));
        }
        let has_data = || answer.iter().filter(at_name).any(|record| asks_for(key.qtype(), record.rtype));
        match cname {
            Some(_) if cnames.next().is_some() => Err(Rejection::Contradictory),
            Some(cname) if !is_asked && !has_data() => Ok(Some(cname.clone())),
            _ => Ok(None),
        }
    }

    /// Signatures of the stored records of the answer section.
    fn keep_signatures(&mut self, answer: &[Record]) {
        let kept = |signature: &Record, part: Part| {
            let covers = |record: &Record| covers(signature, record);
            self.parts[part as usize].iter().any(covers)
        };
        let signatures = answer.iter().filter(|record| record.rtype == rtype::RRSIG).take(MOST_SIGNATURES);
        let wanted = signatures.filter(|record| kept(record, Part::Chain) || kept(record, Part::Data));
        let wanted = wanted.filter(|record| !self.part(Part::Data).contains(record)).cloned().collect();
        self.parts[Part::Signatures as usize] = wanted;
    }

    /// For a negative answer, the SOA record of the zone that the chain ends in; with DNSSEC, proofs and signatures. NS records are of no
    /// use to a client of this server, and would be used beyond the answer (RFC 2181 §5.4.1): they are not stored.
    fn keep_authority(&mut self, authority: &[Record], dnssec_ok: bool) {
        self.refers = authority.iter().any(|record| record.rtype == rtype::NS);
        let soa = authority.iter().find(|record| self.part(Part::Data).is_empty() && self.is_soa(record));
        // It is at the apex of the zone that signs it (RFC 4034 §3.1.7).
        let by_another = |soa: &&Record| {
            let signatures = authority.iter().filter(|record| covers(record, soa));
            signatures.filter_map(Record::signer).any(|signer| !same(signer, &soa.owner))
        };
        let soa = soa.filter(|soa| !by_another(soa));
        let zone: Vec<Record> =
            soa.and_then(|soa| self.within_its_zone(soa, authority)).into_iter().collect();
        if dnssec_ok {
            self.parts[Part::Proofs as usize] = self.proofs(authority, &zone);
        }
        self.parts[Part::Authority as usize] = zone;
    }

    /// Whether this is the SOA record of a zone that the chain's end is in.
    fn is_soa(&self, record: &Record) -> bool {
        record.rtype == rtype::SOA && is_within(&self.target, &record.owner)
    }

    /// An upstream is not trusted above the zone that it is used for (RFC 5452 §6), unless the chain leads there. But it may set the TTL of
    /// its own negative answer: its SOA record is stored as if it were the zone's. Where that would break a signature, only the time is.
    fn within_its_zone(&mut self, soa: &Record, authority: &[Record]) -> Option<Record> {
        let is_above = is_within(&self.target, &self.zone) && soa.owner.len() < self.zone.len();
        if !is_above {
            return Some(soa.clone());
        }
        if authority.iter().any(|record| covers(record, soa)) {
            self.above = minimum(soa);
            return None;
        }
        Some(Record { owner: self.zone.clone(), ..soa.clone() })
    }

    /// NSEC and NSEC3 records, if they are signed by a zone that a name of the chain lies in, and all signatures of what is kept.
    fn proofs(&self, authority: &[Record], zone: &[Record]) -> Vec<Record> {
        let names = || {
            let owners = self.part(Part::Chain).iter().map(|record| &record.owner);
            owners.chain([&self.target])
        };
        let is_ours = |signature: &Record| {
            let signer = signature.signer().filter(|signer| is_within(&signature.owner, signer));
            signer.is_some_and(|signer| names().any(|name| is_within(name, signer)))
        };
        let signatures = authority.iter().filter(|record| is_ours(record));
        let signatures: Vec<&Record> = signatures.take(MOST_SIGNATURES).collect();
        let is_proof = |record: &&Record| {
            matches!(record.rtype, rtype::NSEC | rtype::NSEC3)
                && signatures.iter().any(|signature| covers(signature, record))
        };
        let mut proofs: Vec<Record> = authority.iter().filter(is_proof).cloned().collect();
        let signs = |signature: &&&Record| zone.iter().chain(&proofs).any(|record| covers(signature, record));
        let signatures: Vec<Record> = signatures.iter().filter(signs).map(|kept| (*kept).clone()).collect();
        proofs.extend(signatures);
        proofs
    }

    /// The kind of the reply. A referral is not an answer (RFC 2308 §2.2).
    pub(super) fn kind(&self, rcode: u16) -> Result<Kind, Rejection> {
        let (has_data, has_chain) = (!self.part(Part::Data).is_empty(), !self.part(Part::Chain).is_empty());
        match rcode {
            NOERROR if has_data => Ok(Kind::Data),
            NXDOMAIN if has_data => Err(Rejection::Contradictory),
            NXDOMAIN => Ok(Kind::NameError),
            NOERROR if !self.part(Part::Authority).is_empty() || self.above.is_some() => Ok(Kind::NoData),
            NOERROR if has_chain => Ok(Kind::Unfinished),
            NOERROR if self.refers => Err(Rejection::Referral),
            NOERROR => Ok(Kind::NoData),
            failure => Ok(Kind::Failure(failure)),
        }
    }

    /// TTLs within their bounds, and how long, in seconds, the whole may be kept (RFC 2308 §5).
    pub(super) fn bound(&mut self, kind: Kind, bounds: &Bounds) -> u32 {
        for record in self.parts.iter_mut().flatten() {
            record.ttl = record.ttl.min(bounds.longest_ttl);
        }
        let answer =
            [Part::Chain, Part::Data].map(|part| self.part(part).iter().map(|record| record.ttl).min());
        let answer = answer.into_iter().flatten().min();
        match kind {
            Kind::Failure(_) => bounds.failure_ttl,
            Kind::Data | Kind::Unfinished => answer.unwrap_or(0),
            Kind::NoData | Kind::NameError => {
                let negative = self.bound_negative(bounds).unwrap_or(bounds.failure_ttl);
                answer.unwrap_or(u32::MAX).min(negative)
            }
        }
    }

    /// RFC 2308 §3: the SOA record's own TTL and its MINIMUM field both limit the TTL of a negative answer; proofs live no longer.
    fn bound_negative(&mut self, bounds: &Bounds) -> Option<u32> {
        let soa = self.part(Part::Authority).first().filter(|record| record.rtype == rtype::SOA);
        let negative = soa.and_then(minimum).or(self.above)?.min(bounds.longest_negative_ttl);
        for part in [Part::Authority, Part::Proofs] {
            for record in &mut self.parts[part as usize] {
                record.ttl = record.ttl.min(negative);
            }
        }
        Some(negative)
    }
}

/// RFC 2308 §3: the TTL of a SOA record or its MINIMUM field, whichever is less.
fn minimum(soa: &Record) -> Option<u32> {
    let minimum = soa.data.last_chunk().map(|minimum| u32::from_be_bytes(*minimum))?;
    Some(soa.ttl.min(minimum))
}

/// Whether a chain that was put together of two leads to no name twice and is not too long; a DNAME record that both have is left in once.
pub(super) fn ends(chain: &mut Vec<Record>) -> Option<()> {
    let mut at = 0;
    while at < chain.len() {
        let (before, rest) = chain.split_at(at);
        let again = |earlier: &Record| earlier.rtype == rest[0].rtype && same(&earlier.owner, &rest[0].owner);
        match (before.iter().any(again), rest[0].rtype) {
            (true, rtype::DNAME) => drop(chain.remove(at)),
            (true, _) => return None,
            (false, _) => at += 1,
        }
    }
    let aliases = || chain.iter().filter(|record| record.rtype == rtype::CNAME);
    let last = aliases().next_back()?;
    let leads_back = aliases().any(|earlier| same(&earlier.owner, &last.data));
    (aliases().count() <= LONGEST_CHAIN && !leads_back).then_some(())
}

/// Whether a record of this type answers a question for that one; signatures answer none but for themselves.
fn asks_for(qtype: u16, rtype: u16) -> bool {
    qtype == rtype || qtype == rtype::ANY && rtype != rtype::RRSIG
}

fn covers(signature: &Record, record: &Record) -> bool {
    signature.covered() == Some(record.rtype) && same(&signature.owner, &record.owner)
}

/// The CNAME record that a DNAME record makes for a name below it (RFC 6672 §2.2, §3.1). `None`: the target would be too long.
fn under_dname(dname: &Record, name: &[u8]) -> Option<Record> {
    let kept = &name[..name.len() - dname.owner.len()];
    let target = [kept, &dname.data].concat();
    let fits = target.len() <= LONGEST_NAME;
    fits.then(|| Record { owner: name.into(), rtype: rtype::CNAME, ttl: dname.ttl, data: target.into() })
}

/// Records of one set get the least of their TTLs (RFC 2181 §5.2), and so do its signatures (RFC 4034 §3); duplicate records are removed (RFC
/// 2181 §5). The order is kept.
fn equalise(records: &mut Vec<Record>) {
    let set = |record: &Record| (record.owner.to_ascii_lowercase(), record.covered().unwrap_or(record.rtype));
    let mut order: Vec<(_, usize)> = records.iter().map(set).zip(0..).collect();
    order.sort_unstable_by(|one, other| {
        let data = |at: usize| (records[at].rtype, &records[at].data, at);
        one.0.cmp(&other.0).then_with(|| data(one.1).cmp(&data(other.1)))
    });
    let mut twice = vec![false; records.len()];
    for same_set in order.chunk_by(|one, other| one.0 == other.0) {
        let least = same_set.iter().map(|(_, at)| records[*at].ttl).min().unwrap_or(0);
        for (_, at) in same_set {
            records[*at].ttl = least;
        }
        for pair in same_set.windows(2) {
            let (one, other) = (&records[pair[0].1], &records[pair[1].1]);
            twice[pair[1].1] = (one.rtype, &one.data) == (other.rtype, &other.data);
        }
    }
    let mut twice = twice.into_iter();
    records.retain(|_| !twice.next().unwrap_or(false));
}
