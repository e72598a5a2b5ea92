//! Answers that need no upstream.
//!
//! | Name | Answer | Source |
//! |---|---|---|
//! | `ipv4only.arpa` | A, AAAA for each prefix of the client; DS is queried upstream | RFC 8880 §7.1 |
//! | PTR of prefix::192.0.0.170 and .171 | `ipv4only.arpa` | RFC 8880 §7.2.1 |
//! | `localhost` and below | 127.0.0.1, ::1 | RFC 6761 §6.3 |
//! | `invalid`, `onion` and below | no such name | RFC 6761 §6.4, RFC 7686 §2 |
//! | `127.in-addr.arpa`, PTR of ::1 | `localhost` for 127.0.0.1 and ::1 | RFC 6303 §4.2, §4.3 |
//! | PTR of our prefixes, where a name is configured for them | that name | RFC 6147 §5.3.1, first option |
//! | any other with QTYPE=ANY, if so configured | one HINFO record | RFC 8482 §4.2 |
//!
//! Names under IN-ADDR.ARPA of 192.0.0.170 and .171 are not special to a resolver (RFC 8880 §7.2, item 4).

use super::answer::rtype;
use super::compose::{self, LocalRecord, ResponseOptions};
use super::policy::Policy;
use super::query::Query;
use super::reverse::{Ip6Name, embedded};
use super::settings::{Reverse, Settings, Wire};
use super::special_address::WELL_KNOWN;
use arrayvec::ArrayVec;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// RFC 8880 §7.1: the name.
const IPV4ONLY_ARPA: &[u8] = b"\x08ipv4only\x04arpa\x00";
const LOCALHOST: &[u8] = b"\x09localhost\x00";
const INVALID: &[u8] = b"\x07invalid\x00";
const ONION: &[u8] = b"\x05onion\x00";
const LOOPBACK4: &[u8] = b"\x03127\x07in-addr\x04arpa\x00";
const NOBODY_INVALID: &[u8] = b"\x06nobody\x07invalid\x00";
const LOCALHOST4: &[u8] = b"\x011\x010\x010";

/// RFC 1035 §4.1.1: no error.
const NO_ERROR: u8 = 0;

/// RFC 1035 §4.1.1: the name does not exist.
const NAME_ERROR: u8 = 3;

/// RFC 8880 Appendix A: what never changes may be kept for a day.
const DAY: u32 = 86_400;

/// RFC 7050 §4 requires at least 60 minutes; clients query again when it expires (§3) and then learn of a changed prefix.
const HOUR: u32 = 3_600;

/// RFC 6303 §3: the TTL and the MINIMUM of a local zone's SOA, in seconds.
const NEGATIVE: u32 = 10_800;

/// RFC 8482 §4.2: a TTL that prevents immediate retries, in seconds.
const HINFO_TTL: u32 = 3_600;

/// RFC 8482 §4.2: CPU is "RFC8482", OS is empty.
const HINFO_DATA: &[u8] = b"\x07RFC8482\x00";

/// Records in an answer: the well-known addresses under each of a client's prefixes.
pub(super) const MOST_RECORDS: usize = 16;

/// Octets of RDATA that is made here, at most: a SOA's.
const MADE_OCTETS: usize = 40;

/// RDATA, as it goes into a message whose question is at offset 12.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data<'a> {
    /// Made here.
    Made(ArrayVec<u8, MADE_OCTETS>),
    /// Known before.
    Known(&'a [u8]),
}

impl Data<'_> {
    fn a(address: Ipv4Addr) -> Self {
        Self::Made(address.octets().into_iter().collect())
    }

    fn aaaa(address: Ipv6Addr) -> Self {
        Self::Made(address.octets().into_iter().collect())
    }

    /// RFC 6303 §3, with the owner as MNAME.
    fn soa(owner: [u8; 2]) -> Self {
        let timers = [1, 3_600, 1_200, 604_800, NEGATIVE].map(u32::to_be_bytes);
        Self::Made(owner.iter().chain(NOBODY_INVALID).chain(timers.as_flattened()).copied().collect())
    }

    /// Its octets.
    pub(super) fn octets(&self) -> &[u8] {
        match self {
            Self::Made(octets) => octets,
            Self::Known(octets) => octets,
        }
    }
}

/// A record whose owner is the question's name or one above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// A pointer into the question's name (RFC 1035 §4.1.4).
    pub(super) owner: [u8; 2],
    /// TYPE.
    pub(super) rtype: u16,
    /// In seconds.
    pub(super) ttl: u32,
    /// RDATA.
    pub(super) data: Data<'a>,
}

impl Record<'_> {
    fn local(&self) -> LocalRecord<'_> {
        let (owner, data) = (Some(&self.owner[..]), self.data.octets());
        LocalRecord { owner, rtype: self.rtype, ttl: self.ttl, data }
    }
}

/// A pointer to the question's name without its first octets.
fn pointer(skipped: u8) -> [u8; 2] {
    (0xc00c + u16::from(skipped)).to_be_bytes()
}

/// An answer. Class IN, and nothing in it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalAnswer<'a> {
    /// 0 or 3 (RFC 1035 §4.1.1).
    pub(super) rcode: u8,
    /// AA.
    pub(super) authoritative: bool,
    /// The answer section.
    pub(super) answer: ArrayVec<Record<'a>, MOST_RECORDS>,
    /// The authority section: the zone's SOA, if there is no answer (RFC 2308 §3).
    pub(super) authority: Option<Record<'a>>,
}

impl<'a> LocalAnswer<'a> {
    fn data(answer: impl IntoIterator<Item = Record<'a>>) -> Self {
        let answer = answer.into_iter().take(MOST_RECORDS).collect();
        Self { rcode: NO_ERROR, authoritative: true, answer, authority: None }
    }

    /// Writes the whole message. AA is as the answer says, the rest of the options is the caller's.
    pub(super) fn write(&self, out: &mut Vec<u8>, query: &Query<'_>, options: &ResponseOptions<'_>) {
        let answer: ArrayVec<LocalRecord<'_>, MOST_RECORDS> = self.answer.iter().map(Record::local).collect();
        let authority = self.authority.as_ref().map(Record::local);
        let options = ResponseOptions { authoritative: self.authoritative, ..*options };
        compose::local(out, query, u16::from(self.rcode), (&answer, authority.as_slice()), &options);
    }

    /// NODATA (0) or NXDOMAIN (3) in the zone that begins at this offset in the name.
    fn nothing(rcode: u8, zone: u8) -> Self {
        Self { rcode, authoritative: true, answer: ArrayVec::new(), authority: Some(soa(zone)) }
    }
}

fn soa<'a>(zone: u8) -> Record<'a> {
    let owner = pointer(zone);
    Record { owner, rtype: rtype::SOA, ttl: NEGATIVE, data: Data::soa(owner) }
}

fn record(rtype: u16, ttl: u32, data: Data<'_>) -> Record<'_> {
    Record { owner: pointer(0), rtype, ttl, data }
}

fn ptr(ttl: u32, target: &[u8]) -> LocalAnswer<'_> {
    LocalAnswer::data([record(rtype::PTR, ttl, Data::Known(target))])
}

/// A question of class IN.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalQuestion<'q> {
    /// The client.
    pub(super) client: IpAddr,
    /// QNAME, in lower-case wire form.
    pub(super) name: &'q [u8],
    /// QTYPE.
    pub(super) qtype: u16,
    /// CD and DO are set: nothing is rewritten for a client that validates (RFC 6147 §5.5), so no PTR record is synthesised.
    pub(super) untouched: bool,
}

/// What is answered here.
#[derive(Clone, Debug)]
pub(super) struct Local {
    ipv4only: bool,
    reverse: Reverse,
    minimal_any: bool,
}

impl Local {
    /// Takes what matters of the settings.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            ipv4only: settings.local_ipv4only,
            reverse: settings.reverse.clone(),
            minimal_any: settings.minimal_any,
        }
    }

    /// The answer; `None`: an upstream must be queried.
    pub(super) fn answer<'a>(&'a self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        self.ipv4only(policy, asked)
            .or_else(|| special(asked))
            .or_else(|| loopback(asked))
            .or_else(|| self.reverse(policy, asked))
            .or_else(|| self.any(asked))
    }

    /// RFC 8880 §7.1.
    fn ipv4only<'a>(&self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let zone = below(asked.name, IPV4ONLY_ARPA).filter(|_| self.ipv4only)?;
        match (zone, asked.qtype) {
            (1.., _) => Some(LocalAnswer::nothing(NAME_ERROR, zone)),
            (0, rtype::DS) => None,
            (0, rtype::A) => {
                Some(LocalAnswer::data(WELL_KNOWN.map(|address| record(rtype::A, DAY, Data::a(address)))))
            }
            (0, rtype::AAAA) => Some(LocalAnswer::data(pairs(policy.prefixes_of(asked.client)))),
            (0, _) => Some(LocalAnswer::nothing(NO_ERROR, zone)),
        }
    }

    /// PTR of addresses within our prefixes, as far as no upstream is needed (RFC 6147 §5.3.1).
    fn reverse<'a>(&'a self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        if asked.untouched {
            return None;
        }
        match &self.reverse {
            Reverse::Off => None,
            Reverse::Name { name, ttl } => named(policy.all_prefixes(), asked, name, *ttl),
            Reverse::Cname { .. } | Reverse::Rewrite => {
                let address = embedded(asked.name, policy.all_prefixes())?;
                let known = asked.qtype == rtype::PTR && WELL_KNOWN.contains(&address);
                known.then(|| ptr(DAY, IPV4ONLY_ARPA))
            }
        }
    }

    /// RFC 8482 §4.2.
    fn any<'a>(&self, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let hinfo = record(rtype::HINFO, HINFO_TTL, Data::Known(HINFO_DATA));
        let minimal = self.minimal_any && asked.qtype == rtype::ANY;
        minimal.then(|| LocalAnswer { authoritative: false, ..LocalAnswer::data([hinfo]) })
    }
}

/// The length in octets of the name's part in front of the zone; `None`: not in the zone.
fn below(name: &[u8], zone: &[u8]) -> Option<u8> {
    let before = name.strip_suffix(zone)?;
    let mut labels = before;
    while let [length, rest @ ..] = labels {
        labels = rest.get(usize::from(*length)..)?;
    }
    u8::try_from(before.len()).ok()
}

/// RFC 7050 §3: both well-known addresses under each prefix, prefix after prefix.
fn pairs<'a>(prefixes: &[Rfc6052]) -> impl Iterator<Item = Record<'a>> {
    let made = prefixes.iter().flat_map(|prefix| WELL_KNOWN.map(|address| prefix.embed_any(address)));
    made.map(|address| record(rtype::AAAA, HOUR, Data::aaaa(address)))
}

/// RFC 6761 §6.3 and §6.4, RFC 7686 §2.
fn special<'a>(asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
    if let Some(zone) = below(asked.name, INVALID).or_else(|| below(asked.name, ONION)) {
        return Some(LocalAnswer::nothing(NAME_ERROR, zone));
    }
    let zone = below(asked.name, LOCALHOST)?;
    Some(match asked.qtype {
        rtype::A | rtype::ANY => {
            LocalAnswer::data([record(rtype::A, NEGATIVE, Data::a(Ipv4Addr::LOCALHOST))])
        }
        rtype::AAAA => LocalAnswer::data([record(rtype::AAAA, NEGATIVE, Data::aaaa(Ipv6Addr::LOCALHOST))]),
        _ => LocalAnswer::nothing(NO_ERROR, zone),
    })
}

/// RFC 6303 §4.2 and §4.3, with the one name that each of these zones is known for.
fn loopback<'a>(asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
    let (zone, is_localhost, is_above) = match below(asked.name, LOOPBACK4) {
        Some(zone) => {
            let labels = &asked.name[..usize::from(zone)];
            (zone, labels == LOCALHOST4, LOCALHOST4.ends_with(labels))
        }
        None => {
            let is_localhost = Ip6Name::read(asked.name)?.address() == Some(Ipv6Addr::LOCALHOST);
            is_localhost.then_some((0, true, true))?
        }
    };
    Some(match asked.qtype {
        rtype::PTR | rtype::ANY if is_localhost => ptr(NEGATIVE, LOCALHOST),
        rtype::SOA if zone == 0 => LocalAnswer::data([soa(0)]),
        _ if is_above => LocalAnswer::nothing(NO_ERROR, zone),
        _ => LocalAnswer::nothing(NAME_ERROR, zone),
    })
}

/// RFC 6147 §5.3.1, the first option: authoritative for the prefixes' zones, with one name for every address.
fn named<'a>(
    prefixes: &[Rfc6052],
    asked: LocalQuestion<'_>,
    name: &'a Wire,
    ttl: u32,
) -> Option<LocalAnswer<'a>> {
    let read = Ip6Name::read(asked.name)?;
    let zone = read.zone(prefixes)?;
    Some(match asked.qtype {
        _ if read.is_below() => LocalAnswer::nothing(NAME_ERROR, zone),
        rtype::PTR | rtype::ANY if read.address().is_some() => ptr(ttl, &name.0),
        rtype::SOA if zone == 0 => LocalAnswer::data([soa(0)]),
        _ => LocalAnswer::nothing(NO_ERROR, zone),
    })
}
