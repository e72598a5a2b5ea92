//! The look at a query: from the known data to an answer, or to the data that is missing.
//!
//! A look changes nothing but marks of use in the cache, and mappings of a NAT46 are made once for a server, so it can be repeated whenever something more is known; a query that waits is
//! looked at again and again until it is answered.

use super::super::answer::{Answer, Kind};
use super::super::ask::{Asker, Security, Transport};
use super::super::cache::{Cache, NameErrors};
use super::super::compose::ResponseOptions;
use super::super::cookie::{COOKIE_OCTETS, CookieSecret};
use super::super::key::Key;
use super::super::leased::LeasedNames;
use super::super::local::Local;
use super::super::mapping::MappedNames;
use super::super::name::is_within;
use super::super::outcome::Outcome;
use super::super::policy::Policy;
use super::super::query::{IN, Query};
use super::super::settings::{Settings, Stale};
use super::failures::{Failed, Failures};
use super::info_code::{STALE_ANSWER, STALE_NXDOMAIN};
use crate::Instant;
use arrayvec::ArrayVec;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long AAAA records are waited for before A records are queried: then the timeout of RFC 6147 §5.1.3 has come.
pub(super) const AAAA_PATIENCE: Duration = Duration::from_secs(2);

/// What must be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// The question.
    pub key: Key,
    /// Whether DNSSEC records are needed.
    pub dnssec_ok: bool,
    /// An upstream that is better not asked again.
    pub unlike: Option<usize>,
    /// The answer is known, and must be validated.
    pub validate: bool,
}

/// What is needed to fetch a question.
pub(super) fn fetch(key: Key, dnssec_ok: bool) -> Need {
    Need { key, dnssec_ok, unlike: None, validate: false }
}

/// What a query waits for.
pub(super) type Needs = ArrayVec<Need, 2>;

/// Types of records at one name.
pub(super) type Types = ArrayVec<u16, 2>;

/// What a look came to.
#[derive(Debug)]
pub(super) enum Evaluation {
    /// The answer is written.
    Answered {
        /// What it is.
        outcome: Outcome,
        /// Types to be queried at the name of the query, although no query waits for them.
        refresh: Types,
    },
    /// First, this must be found out.
    Needs(Box<Needs>),
}

impl Evaluation {
    pub(super) fn said(outcome: Outcome) -> Self {
        Self::Answered { outcome, refresh: Types::new() }
    }

    pub(super) fn needs(needs: impl IntoIterator<Item = Need>) -> Self {
        Self::Needs(Box::new(needs.into_iter().collect()))
    }
}

/// A query that is examined.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryContext<'q> {
    /// The question.
    pub query: &'q Query<'q>,
    /// By whom.
    pub client: IpAddr,
    /// When it is examined.
    pub now: Instant,
    /// When it came.
    pub since: Instant,
    /// The largest answer that the transport takes, if that is bounded.
    limit: Option<u16>,
    /// What we take ourselves.
    udp_payload: u16,
    /// Nothing more can be found out for it: what is stale serves immediately.
    is_last: bool,
    /// Whether the transport hides what is said, so that padding hides its length (RFC 8467).
    hidden: bool,
    /// The cookie for the client.
    cookie: Option<[u8; COOKIE_OCTETS]>,
    /// How long its stream may be idle, in tenths of a second.
    keepalive: Option<u16>,
    /// Its cookie shows that its address is not forged.
    pub proven: bool,
}

impl<'q> QueryContext<'q> {
    pub(super) fn new<T>(
        query: &'q Query<'q>,
        asker: &Asker<T>,
        times: (Instant, Instant),
        settings: &Settings,
    ) -> Self {
        let (now, since) = times;
        let udp_payload = settings.limits.udp_payload;
        let theirs = query.edns.map_or(512, |edns| edns.payload);
        Self {
            query,
            client: asker.address,
            now,
            since,
            limit: (asker.transport == Transport::Udp).then(|| theirs.min(udp_payload).max(512)),
            udp_payload,
            is_last: false,
            hidden: matches!(asker.transport, Transport::Tls | Transport::Https),
            cookie: None,
            // HTTP has its own ways.
            keepalive: settings
                .stream_idle
                .filter(|_| matches!(asker.transport, Transport::Tcp | Transport::Tls))
                .map(|idle| u16::try_from(idle.as_millis() / 100).unwrap_or(u16::MAX)),
            proven: !matches!(asker.transport, Transport::Udp),
        }
    }

    /// With the cookie that it has, and that it gets (RFC 7873 §5.2); `seconds`: the wall clock's.
    pub(super) fn with_cookie(mut self, secrets: &[CookieSecret], seconds: u64) -> Self {
        let cookie = self.query.edns.and_then(|edns| edns.cookie);
        if let Some((cookie, secret)) = cookie.zip(secrets.first()) {
            self.proven |= cookie.is_valid(secrets, self.client, seconds);
            self.cookie = Some(cookie.answer(secret, self.client, seconds));
        }
        self
    }

    /// Whether it has a cookie that is not ours, and its address may be forged.
    pub(super) fn has_bad_cookie(&self) -> bool {
        self.cookie.is_some() && !self.proven
    }

    /// CD=1 and DO=1: the client validates itself and gets the upstream's answer unchanged (RFC 6147 §5.5 case 3).
    pub(super) fn is_untouched(&self) -> bool {
        self.query.checking_disabled && self.query.dnssec_ok()
    }

    /// Whether it came by a datagram, whose source may be forged.
    pub(super) fn is_datagram(&self) -> bool {
        self.limit.is_some()
    }

    /// Class IN, the only one with DNS64 (RFC 6147 §5.1).
    pub(super) fn is_in(&self) -> bool {
        self.query.qclass == IN
    }

    /// How an answer is written.
    pub(super) fn response_options(&self) -> ResponseOptions<'static> {
        ResponseOptions {
            now: self.now,
            authentic: false,
            authoritative: false,
            ttl: None,
            limit: self.limit,
            udp_payload: self.udp_payload,
            extended_error: None,
            upstream_error: None,
            cookie: self.cookie,
            keepalive: self.keepalive,
            pad: self.hidden,
        }
    }

    /// How one is written from an entry that may have expired.
    pub(super) fn dressed(&self, stale: Option<Stale>, kind: Kind) -> ResponseOptions<'static> {
        let code = if kind == Kind::NameError { STALE_NXDOMAIN } else { STALE_ANSWER };
        ResponseOptions {
            ttl: stale.map(|stale| stale.ttl),
            extended_error: stale.map(|_| (code, "")),
            ..self.response_options()
        }
    }
}

/// The known data about a question.
#[derive(Clone, Copy, Debug)]
pub(super) enum CacheState<'c> {
    /// There is an entry that may be used.
    Usable(Entry<'c>),
    /// It failed lately.
    Failed(Failed),
    /// Nothing.
    Missing,
}

/// An entry of the cache that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'c> {
    /// What it says.
    pub answer: &'c Answer,
    /// It has expired (RFC 8767).
    pub stale: bool,
}

/// An entry that may be used, or what keeps it from that.
#[derive(Debug)]
pub(super) enum Usability<'c> {
    /// It may.
    Ready(Entry<'c>),
    /// First it must be fetched or validated.
    Needs(Box<Need>),
    /// It is missing, and cannot be obtained now.
    Failed(Failed),
    /// It does not validate.
    Bogus(&'c Answer),
}

/// What the resolver knows, and its instructions.
#[derive(Debug)]
pub(super) struct Responder {
    pub settings: Settings,
    pub policy: Policy,
    pub local: Local,
    pub cache: Cache,
    /// Names that do not exist.
    pub name_errors: NameErrors,
    pub failures: Failures,
    /// Names that lead clients of a NAT46 to its mappings.
    pub mapped: Option<MappedNames>,
    /// Names of hosts whose addresses are leased.
    pub leased: Option<Arc<dyn LeasedNames>>,
}

impl Responder {
    /// The answer that needs no upstream: a stale one, or SERVFAIL.
    pub(super) fn evaluate_without_asking(
        &self,
        case: &QueryContext<'_>,
        why: (u16, &str),
        out: &mut Vec<u8>,
    ) -> Outcome {
        if self.settings.stale.is_some() {
            let case = QueryContext { is_last: true, ..*case };
            if let Evaluation::Answered { outcome, .. } = self.evaluate(&case, out) {
                return outcome;
            }
        }
        Self::overloaded(case, why, out)
    }

    /// The known data about a question, for this query.
    pub(super) fn known(&self, case: &QueryContext<'_>, key: &Key, dnssec_ok: bool) -> CacheState<'_> {
        let mut expired = None;
        if let Some(answer) =
            self.cache.get_since(key, case.since).filter(|answer| answer.has_dnssec() || !dnssec_ok)
        {
            // What was fetched for this query serves it, whatever its time to live.
            if answer.is_fresh(case.now) || answer.stored() >= case.since {
                return CacheState::Usable(Entry { answer, stale: false });
            }
            expired = Some(answer).filter(|answer| may_be_stale(answer));
        }
        let failed = self.failures.of(key, case.now);
        if let Some((answer, stale)) = expired.zip(self.settings.stale) {
            let waited = case.is_last || case.now >= case.since + stale.patience;
            if (waited || failed.is_some()) && case.now < answer.expires() + stale.longest {
                return CacheState::Usable(Entry { answer, stale: true });
            }
        }
        failed.map_or(CacheState::Missing, CacheState::Failed)
    }

    /// The answer to a question about a name below one that does not exist, as is proven (RFC 8020 §4).
    pub(super) fn cut(&self, now: Instant, key: &Key) -> Option<Answer> {
        let insecure = &self.settings.dnssec.insecure;
        if insecure.iter().any(|zone| is_within(key.name(), &zone.0.to_ascii_lowercase())) {
            return None;
        }
        self.name_errors.above(key).find_map(|above| {
            let denied = self.cache.get(&above)?;
            let holds = denied.security() == Security::Secure && denied.is_fresh(now);
            if holds { denied.denied_below(key) } else { None }
        })
    }

    /// An entry that may be used for this query, or what keeps it from that.
    pub(super) fn found(&self, case: &QueryContext<'_>, key: &Key) -> Usability<'_> {
        let dnssec_ok = self.wants_dnssec(case.query);
        let entry = match self.known(case, key, dnssec_ok) {
            CacheState::Missing => return Usability::Needs(fetch(*key, dnssec_ok).into()),
            CacheState::Failed(failed) => return Usability::Failed(failed),
            CacheState::Usable(entry) => entry,
        };
        let is_checked = self.validates(case) && !matches!(entry.answer.kind(), Kind::Failure(_));
        match entry.answer.security() {
            _ if !is_checked => Usability::Ready(entry),
            Security::Unchecked => Usability::Needs(Need { validate: true, ..fetch(*key, dnssec_ok) }.into()),
            Security::Bogus | Security::Indeterminate => Usability::Bogus(entry.answer),
            Security::Secure | Security::Insecure => Usability::Ready(entry),
        }
    }

    /// An entry that may be used for this query; or else what comes of that, written to `out` if it is an answer.
    pub(super) fn ready(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        out: &mut Vec<u8>,
    ) -> Result<Entry<'_>, Evaluation> {
        match self.found(case, key) {
            Usability::Ready(entry) => Ok(entry),
            Usability::Needs(need) => Err(Evaluation::needs([*need])),
            Usability::Failed(failed) => Err(Evaluation::said(self.failed(case, failed, out))),
            Usability::Bogus(answer) => Err(Evaluation::said(Self::bogus(case, answer, out))),
        }
    }

    /// The key of a question as this client's CD bit has it. Where answers are validated here, upstreams are always asked with CD=1.
    pub(super) fn key(&self, name: &[u8], qtype: u16, query: &Query<'_>) -> Key {
        Key::of(name, qtype, query.qclass, query.checking_disabled && !self.settings.dnssec.validate)
    }

    /// Whether DNSSEC records are needed for this client.
    pub(super) fn wants_dnssec(&self, query: &Query<'_>) -> bool {
        self.settings.dnssec.validate || query.dnssec_ok()
    }

    /// Whether only what validates is said to this client.
    pub(super) fn validates(&self, case: &QueryContext<'_>) -> bool {
        self.settings.dnssec.validate && !case.query.checking_disabled && case.is_in()
    }

    /// Whether this client learns that an answer is authentic: with DO=0 never (RFC 6147 §5.5) or, if so configured, when AD was set (RFC 6840 §5.8).
    pub(super) fn shows_authenticity(&self, case: &QueryContext<'_>) -> bool {
        let without_do = self.settings.dnssec.ad_without_do && case.query.authentic_data;
        let asked = case.query.dnssec_ok() || without_do;
        asked && !case.query.checking_disabled
    }
}

/// Only what was of use may serve after its end.
pub(super) fn may_be_stale(entry: &Answer) -> bool {
    let of_use = matches!(entry.kind(), Kind::Data | Kind::NoData | Kind::NameError);
    of_use && !matches!(entry.security(), Security::Bogus | Security::Indeterminate)
}
