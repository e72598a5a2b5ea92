//! An answer of an upstream, in the form from which clients' answers are copied.

use super::accepted_records::{self, AcceptedRecords};
use super::allocation::allocated;
use super::body::{self, Parts};
use super::bounds::Bounds;
use super::extended_error::ExtendedError;
use super::kind::Kind;
use super::part::Part;
use super::raw_record::RawRecord;
use super::rcode::{FORMERR, NOERROR, NOTIMP, NXDOMAIN, SERVFAIL};
use super::record::{Record, expand_data, rtype};
use super::rejection::Rejection;
use super::reply::Reply;
use crate::Instant;
use crate::dns64::ask::Security;
use crate::dns64::key::Key;
use crate::dns64::name::{Name, expand_within};
use crate::dns64::query::HEADER;
use crate::dns64::settings::Wire;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The upstream that an answer came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The upstream's place in the settings.
    pub upstream: u16,
    /// This is the second attempt, after another upstream's answer did not validate (RFC 4035 §4.7).
    pub again: bool,
}

/// An upstream's answer to one question.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The key, then the body.
    octets: Box<[u8]>,
    stored: Instant,
    /// The upstream's.
    extended_error: Option<Box<ExtendedError>>,
    /// Ours.
    own_error: Option<Box<ExtendedError>>,
    lifetime: u32,
    /// No record lives longer than this, in seconds from `stored`.
    longest: u32,
    parts: Parts,
    /// Octets of the name in the key, so that its labels need not be counted.
    name_length: u8,
    kind: Kind,
    security: Security,
    has_dnssec: bool,
    authentic: bool,
    origin: Origin,
}

impl Answer {
    /// Reads an upstream's reply to the question.
    pub fn read(key: &Key, reply: &[u8], now: Instant, bounds: &Bounds) -> Result<Self, Rejection> {
        let mut reply = Reply::read(key, reply)?;
        let (rcode, authentic) = (reply.rcode, reply.authentic);
        let extended_error = reply.extended_error.take().map(Box::new);
        if !matches!(rcode, NOERROR | NXDOMAIN) {
            let failure = Self::failure(key, to_the_client(rcode), now, bounds);
            return Ok(Self { extended_error, ..failure });
        }
        let mut accepted = AcceptedRecords::of(key, reply, bounds)?;
        let kind = accepted.kind(rcode)?;
        let lifetime = accepted.bound(kind, bounds);
        let (octets, parts) = body::write(key, &accepted.parts).ok_or(Rejection::TooLarge)?;
        let (has_dnssec, security) = (bounds.dnssec_ok, Security::Unchecked);
        Ok(Self {
            octets,
            stored: now,
            extended_error,
            own_error: None,
            lifetime,
            longest: u32::MAX,
            parts,
            name_length: name_length(key),
            kind,
            security,
            has_dnssec,
            authentic,
            origin: Origin::default(),
        })
    }

    /// A failure: no upstream answered, or all returned the same RCODE.
    #[must_use]
    pub fn failure(key: &Key, rcode: u16, now: Instant, bounds: &Bounds) -> Self {
        Self {
            octets: key.octets().into(),
            stored: now,
            extended_error: None,
            own_error: None,
            lifetime: bounds.failure_ttl,
            longest: u32::MAX,
            parts: Parts::none(key.octets().len()),
            name_length: name_length(key),
            kind: Kind::Failure(rcode),
            security: Security::Unchecked,
            has_dnssec: bounds.dnssec_ok,
            authentic: false,
            origin: Origin::default(),
        }
    }

    /// This answer, [unfinished](Kind::Unfinished), with what was said about its [target](Self::target) appended; a failure there is one
    /// of the whole. `None`: the chain is a loop, is too long, or does not fit into a message.
    #[must_use]
    pub fn joined(&self, rest: &Self) -> Option<Self> {
        let stored = self.stored.max(rest.stored);
        let aged = |answer: &Self, record: Record| {
            let ttl = record.ttl.saturating_sub(answer.age(stored));
            Record { ttl, ..record }
        };
        let mut parts = Part::ALL.map(|part| {
            let own = self.records(part).map(|record| aged(self, record));
            own.chain(rest.records(part).map(|record| aged(rest, record))).collect()
        });
        accepted_records::ends(&mut parts[Part::Chain as usize])?;
        if let Kind::Failure(_) = rest.kind {
            parts = Default::default();
        }
        let (octets, parts) = body::write(&self.key(), &parts)?;
        Some(Self {
            octets,
            stored,
            extended_error: rest.extended_error.clone(),
            own_error: rest.own_error.clone(),
            lifetime: self.left(stored).min(rest.left(stored)),
            longest: u32::MAX,
            parts,
            name_length: self.name_length,
            kind: rest.kind,
            security: if self.security == rest.security { rest.security } else { Security::Unchecked },
            has_dnssec: self.has_dnssec && rest.has_dnssec,
            authentic: self.authentic && rest.authentic,
            origin: rest.origin,
        })
    }

    /// The same answer to a question about a name below: none exists there either (RFC 8020 §2). `None`: this does not deny the very name that was
    /// queried, but the end of its chain, or no message would hold it.
    #[must_use]
    pub fn denied_below(&self, key: &Key) -> Option<Self> {
        if self.kind != Kind::NameError || self.count(Part::Chain) > 0 {
            return None;
        }
        let (octets, parts) = body::write(key, &Part::ALL.map(|part| self.records(part).collect()))?;
        let name_length = u8::try_from(key.name().len()).ok()?;
        Some(Self { octets, parts, name_length, ..self.clone() })
    }

    /// The question.
    #[must_use]
    pub fn key(&self) -> Key {
        let question = self.question();
        let name = &question[..question.len() - 4];
        let pair = |at: usize| u16::from_be_bytes([question[name.len() + at], question[name.len() + at + 1]]);
        Key::of(name, pair(0), pair(2), self.octets[0] != 0)
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// RCODE.
    #[must_use]
    pub fn rcode(&self) -> u16 {
        match self.kind {
            Kind::Data | Kind::NoData | Kind::Unfinished => NOERROR,
            Kind::NameError => NXDOMAIN,
            Kind::Failure(rcode) => rcode,
        }
    }

    /// Its DNSSEC status.
    #[must_use]
    pub fn security(&self) -> Security {
        self.security
    }

    /// The extended error of the upstream.
    #[must_use]
    pub fn extended_error(&self) -> Option<(u16, &str)> {
        self.extended_error.as_deref().map(|error| (error.code, &*error.text))
    }

    /// What is to be said of it here: by the validator, or of whose failure it is.
    #[must_use]
    pub fn own_error(&self) -> Option<(u16, &str)> {
        self.own_error.as_deref().map(|error| (error.code, &*error.text))
    }

    /// Sets what is to be said of it here.
    pub fn set_own_error(&mut self, error: ExtendedError) {
        self.own_error = Some(Box::new(error));
    }

    /// Sets its DNSSEC status, and what the validator says of it.
    pub fn set_security(&mut self, security: Security, error: Option<ExtendedError>) {
        self.security = security;
        if !matches!(self.kind, Kind::Failure(_)) {
            self.own_error = error.map(Box::new);
        }
    }

    /// Limits its lifetime, and that of its records, to this many seconds from `now`.
    pub fn limit_lifetime(&mut self, now: Instant, seconds: u32) {
        let longest = self.age(now).saturating_add(seconds);
        (self.lifetime, self.longest) = (self.lifetime.min(longest), self.longest.min(longest));
    }

    /// Clamps its lifetime to these seconds from `now`, regardless of its records' TTLs.
    pub fn hold(&mut self, now: Instant, least: u32, most: u32) {
        self.lifetime = self.age(now).saturating_add(self.left(now).clamp(least, most));
    }

    /// The most that a record's TTL counts, in seconds from [`Self::stored`].
    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }

    /// Whether it was queried with DO=1.
    #[must_use]
    pub fn has_dnssec(&self) -> bool {
        self.has_dnssec
    }

    /// Whether the upstream set AD.
    #[must_use]
    pub fn authentic(&self) -> bool {
        self.authentic
    }

    /// Which upstream it came from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Sets the upstream that it came from.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// When it was read.
    #[must_use]
    pub fn stored(&self) -> Instant {
        self.stored
    }

    /// When it ends.
    #[must_use]
    pub fn expires(&self) -> Instant {
        self.stored + Duration::from_secs(self.lifetime.into())
    }

    /// Whether it may be used.
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        now < self.expires()
    }

    /// Whole seconds since it was read.
    #[must_use]
    pub fn age(&self, now: Instant) -> u32 {
        u32::try_from((now - self.stored).as_secs()).unwrap_or(u32::MAX)
    }

    /// Seconds for which it may still be used.
    #[must_use]
    pub fn left(&self, now: Instant) -> u32 {
        self.lifetime.saturating_sub(self.age(now))
    }

    /// Seconds it may be used for in all.
    #[must_use]
    pub fn lifetime(&self) -> u32 {
        self.lifetime
    }

    /// The limit that a negative answer's SOA record sets on the TTL of records synthesised instead, at `now` (RFC 6147 §5.1.7). `None`: no SOA record.
    #[must_use]
    pub fn negative_ttl(&self, now: Instant) -> Option<u32> {
        let is_soa = |record: &RawRecord<'_>| record.rtype == rtype::SOA;
        let soa = self.raw_records(Part::Authority).next().filter(is_soa)?;
        Some(soa.ttl.min(self.longest).saturating_sub(self.age(now)))
    }

    /// The name that an [unfinished](Kind::Unfinished) chain leads to.
    #[must_use]
    pub fn target(&self) -> Option<Wire> {
        let last = self.records(Part::Chain).last()?;
        (last.rtype == rtype::CNAME).then(|| Wire(last.data.to_ascii_lowercase().into()))
    }

    /// How many records a part has.
    #[must_use]
    pub fn count(&self, part: Part) -> usize {
        self.parts.count(part).into()
    }

    /// The addresses of its A records.
    pub fn addresses4(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        let data = self.raw_records(Part::Data).filter(|record| record.rtype == rtype::A);
        data.filter_map(|record| record.data.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets)))
    }

    /// The addresses of its AAAA records.
    pub fn addresses6(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let data = self.raw_records(Part::Data).filter(|record| record.rtype == rtype::AAAA);
        data.filter_map(|record| record.data.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets)))
    }

    /// The records of a part, names written out, TTLs as they were at [`Self::stored`].
    pub fn records(&self, part: Part) -> impl Iterator<Item = Record> + '_ {
        self.raw_records(part).filter_map(|raw| {
            let (mut owner, mut data) = (Name::new(), Vec::with_capacity(raw.data.len()));
            self.expand_owner(&raw, &mut owner)?;
            self.expand_data(&raw, &mut data)?;
            Some(Record { owner: owner[..].into(), rtype: raw.rtype, ttl: raw.ttl, data: data.into() })
        })
    }

    /// Octets allocated for it, as far as an allocator lets itself be guessed.
    pub(crate) fn allocated(&self) -> usize {
        let errors = self.extended_error.iter().chain(&self.own_error);
        let errors = errors.map(|error| allocated(size_of::<ExtendedError>()) + allocated(error.text.len()));
        allocated(self.octets.len()) + errors.sum::<usize>()
    }
}

/// The answer as it is written: its question, its parts, and their records.
impl Answer {
    /// Key and body.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Name, type and class, as they are in a question, the name in lower case.
    pub(crate) fn question(&self) -> &[u8] {
        &self.octets[1..self.key_length()]
    }

    /// CD, the name, type and class.
    fn key_length(&self) -> usize {
        1 + usize::from(self.name_length) + 4
    }

    /// A part's records as they follow the question.
    pub(crate) fn part(&self, part: Part) -> &[u8] {
        &self.octets[self.parts.range(self.key_length(), part)]
    }

    /// The records of a part, as they are written.
    pub(crate) fn raw_records(&self, part: Part) -> impl Iterator<Item = RawRecord<'_>> {
        let std::ops::Range { start: mut at, end } = self.parts.range(self.key_length(), part);
        std::iter::from_fn(move || {
            let record = RawRecord::read(&self.octets[..end], at)?;
            at = record.end;
            Some(record)
        })
    }

    /// A record as it is written.
    pub(crate) fn raw(&self, record: &RawRecord<'_>) -> &[u8] {
        &self.octets[record.at..record.end]
    }

    /// Its owner as it is written.
    pub(crate) fn raw_owner(&self, record: &RawRecord<'_>) -> &[u8] {
        &self.octets[record.at..record.end - record.data.len() - 10]
    }

    /// Appends the owner's name in full.
    pub(crate) fn expand_owner(&self, record: &RawRecord<'_>, out: &mut Name) -> Option<()> {
        expand_within(&self.octets, HEADER - 1, record.at, out).map(|_| ())
    }

    /// Appends the data, with names in full.
    pub(crate) fn expand_data(&self, record: &RawRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        let data = (record.rtype, record.end - record.data.len(), record.end);
        expand_data(&self.octets, HEADER - 1, data, out)
    }
}

/// FORMERR, NOTIMP and the RCODEs of EDNS are about our query, not about the client's.
const fn to_the_client(rcode: u16) -> u16 {
    match rcode {
        FORMERR | NOTIMP | 16.. => SERVFAIL,
        other => other,
    }
}

/// A name has 255 octets at most.
fn name_length(key: &Key) -> u8 {
    key.name().len() as u8
}
