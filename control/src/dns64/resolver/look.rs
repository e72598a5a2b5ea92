//! Looking at a query: the order in which RFC 6147 §5.1 has it.

use super::super::answer::{Answer, Kind, Part, rtype};
use super::super::ask::Security;
use super::super::compose::{self, Dress};
use super::super::key::Key;
use super::super::local::Asked;
use super::super::outcome::Outcome;
use super::super::policy::{Embedded, Ruling};
use super::super::settings::{CheckingDisabled, DnssecOk, Synthesis};
use super::desk::{AAAA_PATIENCE, Case, Desk, Known, Look, Need, Needs, Types, fetch};
use super::failures::Failed;
use super::refusals::{INDETERMINATE, OTHER, SERVFAIL};
use std::net::IpAddr;

/// RFC 1035 §3.2.4: the Internet.
pub(super) const IN: u16 = 1;
/// RFC 1035 §3.2.4: CHAOS, in which servers tell their names and versions. Nobody else can for them.
const CHAOS: u16 = 3;
/// RFC 1035 §3.2.3: zone transfers, and what stands in no question.
const NOT_FORWARDED: [u16; 8] = [251, 252, 253, 254, 249, 250, 41, 0];

/// An entry that may be used, or what keeps it from that.
pub(super) enum Found {
    /// It may.
    Ready {
        /// It has expired (RFC 8767).
        stale: bool,
    },
    /// First it must be fetched or validated.
    Needs(Wanting),
    /// There is none, and none will be had at the moment.
    Failed(Failed),
    /// It does not validate.
    Bogus,
}

/// What an entry wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanting {
    /// Whether DNSSEC records are needed.
    pub dnssec_ok: bool,
    /// It is there, and is to be validated.
    pub validate: bool,
}

impl Wanting {
    pub(super) fn of(self, key: &Key) -> Need {
        Need { validate: self.validate, ..fetch(*key, self.dnssec_ok) }
    }
}

/// Why AAAA records are made: there are none that could be used (RFC 6147 §5.1.2 to §5.1.6).
#[derive(Clone, Copy, Debug)]
enum Basis {
    /// The upstream said that there are none.
    NoData {
        /// What may be made lives no longer (RFC 6147 §5.1.7).
        bound: u32,
        stale: bool,
        security: Security,
    },
    /// There are only such as count as absent (§5.1.4).
    Excluded,
    /// It failed (§5.1.2), or there was no answer in time (§5.1.3).
    Failed,
    /// Those that are there are not looked at.
    Rule,
}

/// RFC 6147 §5.1.7: what is made without a SOA record's bound lives no longer, in seconds.
const WITHOUT_SOA: u32 = 600;

impl Desk {
    /// Looks at a query: the answer is written to `out` if all that is needed for it is known.
    pub(super) fn look(&self, case: &Case<'_>, out: &mut Vec<u8>) -> Look {
        let query = case.query;
        if query.qclass == CHAOS || NOT_FORWARDED.contains(&query.qtype) {
            return Look::said(Self::refuse(case, out));
        }
        let key = self.key(query.name, query.qtype, query);
        if query.qclass != IN {
            return self.plain(case, &key, None, out);
        }
        let asked = Asked {
            client: case.client,
            name: key.name(),
            qtype: query.qtype,
            untouched: case.is_untouched(),
        };
        if let Some(known) = self.local.answer(&self.policy, asked) {
            known.write(out, query, &case.dress());
            return Look::said(Outcome::Local);
        }
        match query.qtype {
            rtype::AAAA => self.aaaa(case, &key, out),
            rtype::A => self.a(case, &key, out),
            rtype::PTR if !case.is_untouched() => self.ptr(case, &key, out),
            _ => self.plain(case, &key, None, out),
        }
    }

    fn a(&self, case: &Case<'_>, key: &Key, out: &mut Vec<u8>) -> Look {
        if !case.is_untouched() && self.policy.for_query(case.client, key.name()).hide_a() {
            let dress = Dress {
                extended_error: Some((OTHER, "A records are not given out by local rule")),
                ..case.dress()
            };
            compose::empty(out, case.query, 0, None, &dress);
            return Look::said(Outcome::NoData);
        }
        self.plain(case, key, None, out)
    }

    /// RFC 6147 §5.1: AAAA records that are there, or else such as are made of A records.
    fn aaaa(&self, case: &Case<'_>, key: &Key, out: &mut Vec<u8>) -> Look {
        let passes_on = self.settings.dnssec.checking_disabled == CheckingDisabled::PassOn;
        if case.is_untouched() || (case.query.checking_disabled && passes_on) {
            return self.plain(case, key, None, out);
        }
        match self.policy.for_query(case.client, key.name()).synthesis() {
            Synthesis::Never => self.plain(case, key, Some("no AAAA records are made by local rule"), out),
            Synthesis::Always => self.synthesise(case, key, Basis::Rule, out),
            Synthesis::Normal => self.aaaa_or_a(case, key, out),
        }
    }

    fn aaaa_or_a(&self, case: &Case<'_>, key: &Key, out: &mut Vec<u8>) -> Look {
        let stale = match self.found(case, key) {
            Found::Ready { stale } => stale,
            Found::Needs(need) if !need.validate && case.now >= case.since + AAAA_PATIENCE => {
                return self.synthesise(case, key, Basis::Failed, out);
            }
            Found::Needs(wanting) => return Look::needs(self.with_a(case, key, wanting.of(key))),
            Found::Failed(_) => return self.synthesise(case, key, Basis::Failed, out),
            Found::Bogus => return self.bogus(case, key, out),
        };
        let Some(entry) = self.cache.get(key) else { return Look::needs([]) };
        let basis = match entry.kind() {
            Kind::NameError | Kind::Unfinished => return self.plain(case, key, None, out),
            Kind::Data if entry.addresses6().all(|address| self.policy.excluded(address)) => Basis::Excluded,
            Kind::Data => return self.plain(case, key, None, out),
            Kind::Failure(_) => Basis::Failed,
            Kind::NoData => {
                let bound =
                    entry.negative_ttl(case.now).map_or(WITHOUT_SOA, |soa| soa.min(entry.left(case.now)));
                let security = entry.security();
                if self.passes_proofs_on(case, security) {
                    return self.plain(case, key, None, out);
                }
                Basis::NoData { bound, stale, security }
            }
        };
        self.synthesise(case, key, basis, out)
    }

    /// Whether a client that wants proofs gets those, and nothing that is made.
    fn passes_proofs_on(&self, case: &Case<'_>, security: Security) -> bool {
        let wants = case.query.dnssec_ok() && !case.query.checking_disabled;
        wants && self.settings.dnssec.dnssec_ok == DnssecOk::PassOn && security == Security::Secure
    }

    /// A records may be asked for at the same time (RFC 6147 §5.1.8), but not before the "no" has been validated (§5.5).
    fn with_a(&self, case: &Case<'_>, key: &Key, need: Need) -> Needs {
        let mut needs = Needs::from_iter([need]);
        if self.settings.parallel && !self.settings.dnssec.validate && !need.validate {
            let (key, dnssec_ok) = (key.with_type(rtype::A), need.dnssec_ok);
            if self.known(case, &key, dnssec_ok) == Known::Missing {
                needs.push(fetch(key, dnssec_ok));
            }
        }
        needs
    }

    /// RFC 6147 §5.1.6 and §5.1.7.
    fn synthesise(&self, case: &Case<'_>, aaaa: &Key, basis: Basis, out: &mut Vec<u8>) -> Look {
        let key = aaaa.with_type(rtype::A);
        let stale = match self.found(case, &key) {
            Found::Ready { stale } => stale,
            Found::Needs(wanting) => return Look::needs([wanting.of(&key)]),
            Found::Failed(failed) => return Look::said(self.failed(case, failed, out)),
            Found::Bogus => return self.bogus(case, &key, out),
        };
        let validates = self.validates(case);
        let Some(entry) = self.cache.get(&key) else { return Look::needs([]) };
        match (entry.kind(), basis) {
            (Kind::Data | Kind::NoData, Basis::Failed)
                if validates && entry.security() == Security::Secure =>
            {
                // The zone is signed, and so its "no" would be; without it, there may be AAAA records (RFC 6147 §5.5).
                let why = (INDETERMINATE, "the answer for AAAA cannot be validated");
                compose::empty(
                    out,
                    case.query,
                    SERVFAIL,
                    None,
                    &Dress { extended_error: Some(why), ..case.dress() },
                );
                Look::said(Outcome::Bogus)
            }
            (Kind::Data, _) => self.make(case, aaaa, basis, stale, out),
            (Kind::NoData, Basis::NoData { .. }) => self.plain(case, aaaa, None, out),
            (Kind::NoData | Kind::NameError | Kind::Unfinished | Kind::Failure(_), _) => {
                self.pass_on(case, &key, stale, None, out)
            }
        }
    }

    /// Makes AAAA records of the A records that are there.
    fn make(&self, case: &Case<'_>, aaaa: &Key, basis: Basis, stale: bool, out: &mut Vec<u8>) -> Look {
        let key = aaaa.with_type(rtype::A);
        let (bound, stale, other) = match basis {
            Basis::NoData { bound, stale: also, security } => (Some(bound), stale || also, Some(security)),
            Basis::Excluded | Basis::Failed => (Some(WITHOUT_SOA), stale, None),
            Basis::Rule => (None, stale, None),
        };
        // What is stale has a TTL of its own (RFC 8767 §4).
        let bound = bound.filter(|_| !stale);
        let shown = self.shows_authenticity(case);
        let ruling = self.policy.for_query(case.client, aaaa.name());
        let Some(entry) = self.cache.get(&key) else { return Look::needs([]) };
        let is_secure = other == Some(Security::Secure) && entry.security() == Security::Secure;
        let authentic = shown && !stale && is_secure && is_embedded_whole(entry, &ruling);
        let dress = Dress { authentic, ..case.dressed(self.settings.stale.filter(|_| stale), entry.kind()) };
        let mut why = "";
        let embed = |address, into: &mut compose::Embedded| why = ruling.embed(address, into).text();
        if compose::synthesised(out, case.query, entry, bound, embed, &dress) > 0 {
            let refresh = self.refresh(case, aaaa, &key, stale);
            return Look::Answered {
                outcome: if stale { Outcome::Stale } else { Outcome::Synthesised },
                refresh,
            };
        }
        match basis {
            Basis::NoData { .. } => self.plain(case, aaaa, Some(why), out),
            Basis::Excluded | Basis::Failed | Basis::Rule => {
                compose::empty(
                    out,
                    case.query,
                    0,
                    None,
                    &Dress { authentic: false, extended_error: Some((OTHER, why)), ..dress },
                );
                Look::said(Outcome::NoData)
            }
        }
    }

    /// What the upstream said, as far as it may be given.
    pub(super) fn plain(
        &self,
        case: &Case<'_>,
        key: &Key,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Look {
        match self.found(case, key) {
            Found::Ready { stale } => self.pass_on(case, key, stale, note, out),
            Found::Needs(wanting) => Look::needs([wanting.of(key)]),
            Found::Failed(failed) => Look::said(self.failed(case, failed, out)),
            Found::Bogus => self.bogus(case, key, out),
        }
    }

    /// An entry as it is, without what counts as absent.
    fn pass_on(
        &self,
        case: &Case<'_>,
        key: &Key,
        stale: bool,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Look {
        let shown = self.shows_authenticity(case);
        let ruling = self.policy.for_query(case.client, key.name());
        let hides = key.qtype() == rtype::A && ruling.hides_some() && case.is_in();
        let excludes = key.qtype() == rtype::AAAA && !self.policy.excludes_nothing() && case.is_in();
        let Some(entry) = self.cache.get(key) else { return Look::needs([]) };
        let excluded = |address: IpAddr| match address {
            IpAddr::V4(address) => hides && ruling.hides(address),
            IpAddr::V6(address) => excludes && self.policy.excluded(address),
        };
        let mut dress = case.dressed(self.settings.stale.filter(|_| stale), entry.kind());
        let whole = case.is_untouched() || !(hides || excludes) || is_whole(entry, excluded);
        // What is proven for A says nothing of AAAA.
        let is_asked = key.qtype() == case.query.qtype;
        dress.authentic = shown && is_asked && !stale && whole && entry.security() == Security::Secure;
        match (entry.kind(), note, entry.extended_error()) {
            (Kind::NoData, Some(note), _) => dress.extended_error = Some((OTHER, note)),
            (Kind::Failure(_), _, Some(error)) => dress.extended_error = Some(error),
            // Why it counts as unsigned though it is signed (RFC 8914 §4.2, §4.3).
            (_, _, Some(error)) if !stale && self.is_found_insecure(case, entry) => {
                dress.extended_error = Some(error);
            }
            _ => {}
        }
        let left_out = match whole {
            true => {
                compose::passed_on(out, case.query, entry, &dress);
                0
            }
            false => compose::filtered(out, case.query, entry, excluded, &dress),
        };
        let outcome = match entry.kind() {
            Kind::Failure(_) => Outcome::UpstreamFailure,
            _ if stale => Outcome::Stale,
            Kind::Data if left_out != 0 && left_out == entry.count(Part::Data) => Outcome::NoData,
            Kind::Data | Kind::Unfinished => Outcome::PassedOn,
            Kind::NoData => Outcome::NoData,
            Kind::NameError => Outcome::NameError,
        };
        let refresh = self.refresh(case, key, key, stale);
        Look::Answered { outcome, refresh }
    }

    /// Whether this client's answer was looked at by our validator, and counts as unsigned.
    fn is_found_insecure(&self, case: &Case<'_>, entry: &Answer) -> bool {
        self.validates(case) && entry.security() == Security::Insecure
    }

    /// What is to be asked for though nobody waits for it: what has expired, or is in the last tenth of its time.
    fn refresh(&self, case: &Case<'_>, one: &Key, other: &Key, stale: bool) -> Types {
        let mut types = Types::new();
        if !stale && !self.settings.prefetch {
            return types;
        }
        for key in [one, other] {
            let Some(entry) = self.cache.peek(key).filter(|_| !types.contains(&key.qtype())) else {
                continue;
            };
            let soon = entry.lifetime() >= 10 && entry.left(case.now) <= entry.lifetime() / 10;
            if (soon || stale && !entry.is_fresh(case.now)) && self.failures.of(key, case.now).is_none() {
                types.push(key.qtype());
            }
        }
        types
    }
}

/// Whether each of its A records becomes an AAAA record.
fn is_embedded_whole(entry: &Answer, ruling: &Ruling<'_>) -> bool {
    let mut made = compose::Embedded::new();
    entry.addresses4().all(|address| {
        made.clear();
        ruling.embed(address, &mut made) == Embedded::Some
    })
}

/// Whether nothing of it is left out.
fn is_whole(entry: &Answer, excluded: impl Fn(IpAddr) -> bool) -> bool {
    entry.raw_records(Part::Data).all(|record| !record.address().is_some_and(&excluded))
}
