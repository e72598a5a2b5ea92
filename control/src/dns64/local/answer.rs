//! Local answers, and the records that they may have.

use super::super::answer::rtype;
use super::super::compose::{self, LocalRecord, ResponseOptions};
use super::super::query::Query;
use arrayvec::ArrayVec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name in wire form that is made here.
pub(super) type DnsName = Vec<u8>;

/// The mailbox of locally served zones (RFC 6303 §3).
const NOBODY_INVALID: &[u8] = b"\x06nobody\x07invalid\x00";

/// RFC 1035 §4.1.1: no error.
pub(super) const NO_ERROR: u8 = 0;

/// RFC 1035 §4.1.1: the name does not exist.
pub(super) const NAME_ERROR: u8 = 3;

/// RFC 6303 §3: the TTL and the MINIMUM of a local zone's SOA, in seconds.
pub(super) const NEGATIVE: u32 = 10_800;

/// RFC 9462 §4: the name of designated resolvers.
pub(super) const DNS_RESOLVER_ARPA: &[u8] = b"\x04_dns\x08resolver\x04arpa\x00";

/// Records in an answer: the well-known addresses under each of a client's prefixes.
pub(super) const MOST_RECORDS: usize = 16;

/// Octets of RDATA that is made here, at most: a SOA's.
const MADE_OCTETS: usize = 40;

/// RDATA, as it goes into a message whose question is at offset 12.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dns64) enum Data<'a> {
    /// Made here.
    Made(ArrayVec<u8, MADE_OCTETS>),
    /// Known before.
    Known(&'a [u8]),
}

impl Data<'_> {
    /// An A record's.
    pub(super) fn a(address: Ipv4Addr) -> Self {
        Self::Made(address.octets().into_iter().collect())
    }

    /// An AAAA record's.
    pub(super) fn aaaa(address: Ipv6Addr) -> Self {
        Self::Made(address.octets().into_iter().collect())
    }

    /// A name that ends the question's.
    pub(super) fn pointer(skipped: u8) -> Self {
        Self::Made(pointer(skipped).into_iter().collect())
    }

    /// RFC 6303 §3, with the owner as MNAME.
    fn soa(owner: [u8; 2], minimum: u32) -> Self {
        let timers = [1, 3_600, 1_200, 604_800, minimum].map(u32::to_be_bytes);
        Self::Made(owner.iter().chain(NOBODY_INVALID).chain(timers.as_flattened()).copied().collect())
    }

    /// Its octets.
    pub(in crate::dns64) fn octets(&self) -> &[u8] {
        match self {
            Self::Made(octets) => octets,
            Self::Known(octets) => octets,
        }
    }
}

/// A record whose owner is the question's name or one above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dns64) struct Record<'a> {
    /// A pointer into the question's name (RFC 1035 §4.1.4).
    pub(in crate::dns64) owner: [u8; 2],
    /// TYPE.
    pub(in crate::dns64) rtype: u16,
    /// In seconds.
    pub(in crate::dns64) ttl: u32,
    /// RDATA.
    pub(in crate::dns64) data: Data<'a>,
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
pub(in crate::dns64) struct LocalAnswer<'a> {
    /// 0 or 3 (RFC 1035 §4.1.1).
    pub(in crate::dns64) rcode: u8,
    /// AA.
    pub(in crate::dns64) authoritative: bool,
    /// The answer section.
    pub(in crate::dns64) answer: ArrayVec<Record<'a>, MOST_RECORDS>,
    /// The authority section: the zone's SOA, if there is no answer (RFC 2308 §3).
    pub(in crate::dns64) authority: Option<Record<'a>>,
}

impl<'a> LocalAnswer<'a> {
    /// Records.
    pub(super) fn data(answer: impl IntoIterator<Item = Record<'a>>) -> Self {
        let answer = answer.into_iter().take(MOST_RECORDS).collect();
        Self { rcode: NO_ERROR, authoritative: true, answer, authority: None }
    }

    /// Writes the whole message. AA is as the answer says, the rest of the options is the caller's.
    pub(in crate::dns64) fn write(
        &self,
        out: &mut Vec<u8>,
        query: &Query<'_>,
        options: &ResponseOptions<'_>,
    ) {
        let answer: ArrayVec<LocalRecord<'_>, MOST_RECORDS> = self.answer.iter().map(Record::local).collect();
        let authority = self.authority.as_ref().map(Record::local);
        let options = ResponseOptions { authoritative: self.authoritative, ..*options };
        compose::local(out, query, u16::from(self.rcode), (&answer, authority.as_slice()), &options);
    }

    /// The SOA record at the name of a local zone.
    pub(in crate::dns64) fn apex() -> Self {
        Self::data([soa(0, NEGATIVE)])
    }

    /// NODATA (0) or NXDOMAIN (3) in the zone that begins at this offset in the name.
    pub(super) fn nothing(rcode: u8, zone: u8) -> Self {
        Self::nothing_for(rcode, zone, NEGATIVE)
    }

    /// The same, with this TTL in seconds.
    pub(in crate::dns64) fn nothing_for(rcode: u8, zone: u8, seconds: u32) -> Self {
        let authority = Some(soa(zone, seconds.min(NEGATIVE)));
        Self { rcode, authoritative: true, answer: ArrayVec::new(), authority }
    }
}

fn soa<'a>(zone: u8, seconds: u32) -> Record<'a> {
    let owner = pointer(zone);
    Record { owner, rtype: rtype::SOA, ttl: seconds, data: Data::soa(owner, seconds) }
}

/// A record of the question's name.
pub(super) fn record(rtype: u16, ttl: u32, data: Data<'_>) -> Record<'_> {
    Record { owner: pointer(0), rtype, ttl, data }
}

/// One PTR record.
pub(super) fn ptr(ttl: u32, target: &[u8]) -> LocalAnswer<'_> {
    LocalAnswer::data([record(rtype::PTR, ttl, Data::Known(target))])
}

/// A question of class IN.
#[derive(Clone, Copy, Debug)]
pub(in crate::dns64) struct LocalQuestion<'q> {
    /// The client.
    pub(in crate::dns64) client: IpAddr,
    /// QNAME, in lower-case wire form.
    pub(in crate::dns64) name: &'q [u8],
    /// QTYPE.
    pub(in crate::dns64) qtype: u16,
    /// CD and DO are set: nothing is rewritten for a client that validates (RFC 6147 §5.5), so no PTR record is synthesised.
    pub(in crate::dns64) untouched: bool,
}

/// The length in octets of the name's part in front of the zone; `None`: not in the zone.
pub(super) fn below(name: &[u8], zone: &[u8]) -> Option<u8> {
    let before = name.strip_suffix(zone)?;
    let mut labels = before;
    while let [length, rest @ ..] = labels {
        labels = rest.get(usize::from(*length)..)?;
    }
    u8::try_from(before.len()).ok()
}
