//! Queries for AAAA records, in the order of RFC 6147 §5.1: existing ones, or else those synthesised from A records.

use super::super::answer::{Answer, Kind, rtype};
use super::super::ask::Security;
use super::super::compose::{self, ResponseOptions};
use super::super::key::Key;
use super::super::outcome::Outcome;
use super::super::policy::{Embedded, Ruling};
use super::super::settings::{CheckingDisabled, DnssecOk, Synthesis, SynthesisedTtl, ValidatingClients};
use super::info_code::OTHER;
use super::responder::{
    AAAA_PATIENCE, CacheState, Entry, Evaluation, Need, Needs, QueryContext, Responder, Usability, fetch,
};
use crate::Instant;

/// Why AAAA records are made: there are none that could be used (RFC 6147 §5.1.2 to §5.1.6).
#[derive(Clone, Copy, Debug)]
enum Basis<'c> {
    /// The upstream said that there are none.
    NoData {
        /// What it said.
        aaaa: Entry<'c>,
        /// What may be made lives no longer (RFC 6147 §5.1.7).
        bound: u32,
    },
    /// There are only such as count as absent (§5.1.4).
    Excluded,
    /// It failed (§5.1.2), or there was no answer in time (§5.1.3).
    Failed,
    /// Existing records are ignored.
    Rule,
}

impl<'c> Basis<'c> {
    fn no_data(aaaa: Entry<'c>, now: Instant) -> Self {
        let soa = aaaa.answer.negative_ttl(now);
        let bound = soa.map_or(WITHOUT_SOA, |soa| soa.min(aaaa.answer.left(now)));
        Self::NoData { aaaa, bound }
    }
}

/// RFC 6147 §5.1.7: what is made without a SOA record's bound lives no longer, in seconds.
const WITHOUT_SOA: u32 = 600;

/// Why a client gets a proof that there is no AAAA record, and none that is made.
pub(super) const PROOF_INSTEAD: &str = "signed data is not synthesised from with DO=1, as configured";

impl Responder {
    /// RFC 6147 §5.1: existing AAAA records, or else those synthesised from A records.
    pub(super) fn aaaa(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Evaluation {
        if self.policy.makes_none() {
            return self.plain(case, key, None, out);
        }
        if let Some(why) = self.leaves_alone(case) {
            let a = self.cache.peek(&key.with_type(rtype::A)).filter(|a| a.is_fresh(case.now));
            let why = a.filter(|a| a.kind() == Kind::Data).map(|_| why);
            return match self.may_be_unsigned(case) {
                true => self.unsigned(case, key, why, out),
                false => self.plain(case, key, why, out),
            };
        }
        let ruling = self.policy.for_query(case.client, key.name());
        match ruling.synthesis() {
            Synthesis::Never => self.plain(case, key, Some("not synthesised by local rule"), out),
            Synthesis::Always => self.synthesise(case, key, (Basis::Rule, ruling), out),
            Synthesis::Normal => self.aaaa_or_a(case, key, ruling, out),
        }
    }

    /// Why nothing is synthesised for such a client, whatever records exist.
    fn leaves_alone(&self, case: &QueryContext<'_>) -> Option<&'static str> {
        let passes_on = self.settings.dnssec.checking_disabled == CheckingDisabled::PassOn;
        match case.query.checking_disabled {
            true if case.is_untouched() => Some("no synthesis with CD=1 and DO=1 (RFC 6147 5.5)"),
            true if passes_on => Some("no synthesis with CD=1, as configured"),
            true | false => None,
        }
    }

    /// Whether this client gets what is made of unsigned answers though it validates.
    fn may_be_unsigned(&self, case: &QueryContext<'_>) -> bool {
        let dnssec = &self.settings.dnssec;
        case.is_untouched() && dnssec.validate && dnssec.validating_clients == ValidatingClients::Unsigned
    }

    /// For a client that validates: AAAA records that are made, if both answers are proven to be unsigned; else what the upstream said.
    fn unsigned(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let ruling = self.policy.for_query(case.client, key.name());
        let aaaa = match self.ready(case, key, out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        if aaaa.answer.kind() != Kind::NoData || ruling.synthesis() == Synthesis::Never {
            return self.pass_on(case, key, aaaa, note, out);
        }
        let security = match verdict(aaaa, key) {
            Ok(security) => security,
            Err(look) => return look,
        };
        if security != Security::Insecure {
            return self.pass_on(case, key, aaaa, note, out);
        }
        let of_a = key.with_type(rtype::A);
        let a = match self.ready(case, &of_a, out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        if a.answer.kind() != Kind::Data {
            return self.pass_on(case, key, aaaa, note, out);
        }
        match verdict(a, &of_a) {
            Err(look) => look,
            Ok(Security::Insecure) => self.make(case, key, (Basis::no_data(aaaa, case.now), ruling), a, out),
            Ok(_) => self.pass_on(case, key, aaaa, note, out),
        }
    }

    fn aaaa_or_a(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        ruling: Ruling<'_>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let entry = match self.found(case, key) {
            Usability::Ready(entry) => entry,
            Usability::Needs(need) if !need.validate && case.now >= case.since + AAAA_PATIENCE => {
                return self.synthesise(case, key, (Basis::Failed, ruling), out);
            }
            Usability::Needs(need) => return Evaluation::needs(self.with_a(case, *need)),
            Usability::Failed(_) => return self.synthesise(case, key, (Basis::Failed, ruling), out),
            Usability::Bogus(answer) => return Evaluation::said(Self::bogus(case, answer, out)),
        };
        let answer = entry.answer;
        let basis = match answer.kind() {
            Kind::NameError | Kind::Unfinished => return self.pass_on(case, key, entry, None, out),
            Kind::Data if answer.addresses6().all(|address| self.policy.excluded(address)) => Basis::Excluded,
            Kind::Data => return self.pass_on(case, key, entry, None, out),
            Kind::Failure(_) => Basis::Failed,
            Kind::NoData => {
                if self.passes_proofs_on(case, answer.security()) {
                    return self.pass_on(case, key, entry, Some(PROOF_INSTEAD), out);
                }
                Basis::no_data(entry, case.now)
            }
        };
        self.synthesise(case, key, (basis, ruling), out)
    }

    /// Whether a client with DO gets proofs instead of synthesised records.
    pub(super) fn passes_proofs_on(&self, case: &QueryContext<'_>, security: Security) -> bool {
        let wants = case.query.dnssec_ok() && !case.query.checking_disabled;
        wants && self.settings.dnssec.dnssec_ok == DnssecOk::PassOn && security == Security::Secure
    }

    /// A records may be asked for at the same time (RFC 6147 §5.1.8), but not before the "no" has been validated (§5.5).
    fn with_a(&self, case: &QueryContext<'_>, need: Need) -> Needs {
        let mut needs = Needs::from_iter([need]);
        if self.settings.parallel && !self.settings.dnssec.validate && !need.validate {
            let (key, dnssec_ok) = (need.key.with_type(rtype::A), need.dnssec_ok);
            if let CacheState::Missing = self.known(case, &key, dnssec_ok) {
                needs.push(fetch(key, dnssec_ok));
            }
        }
        needs
    }

    /// RFC 6147 §5.1.6 and §5.1.7.
    fn synthesise(
        &self,
        case: &QueryContext<'_>,
        aaaa: &Key,
        (basis, ruling): (Basis<'_>, Ruling<'_>),
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let key = aaaa.with_type(rtype::A);
        let entry = match self.ready(case, &key, out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        let is_secure = self.validates(case) && entry.answer.security() == Security::Secure;
        match (entry.answer.kind(), basis) {
            (Kind::Data | Kind::NoData, Basis::Failed) if is_secure => {
                Evaluation::said(Self::unproven(case, out))
            }
            (Kind::Data, _) => self.make(case, aaaa, (basis, ruling), entry, out),
            (Kind::NoData, Basis::NoData { .. }) => self.plain(case, aaaa, None, out),
            (Kind::NoData | Kind::NameError | Kind::Unfinished | Kind::Failure(_), _) => {
                self.pass_on(case, &key, entry, None, out)
            }
        }
    }

    /// What is made lives no longer than this, in seconds, and than the A record (RFC 6147 §5.1.7).
    fn bound(&self, basis: Basis<'_>) -> Option<u32> {
        match (basis, self.settings.synthesised_ttl) {
            (Basis::Failed, _) | (Basis::Excluded, SynthesisedTtl::Negative) => Some(WITHOUT_SOA),
            (Basis::NoData { bound, .. }, SynthesisedTtl::Negative) => Some(bound),
            (Basis::NoData { .. } | Basis::Excluded, SynthesisedTtl::A) | (Basis::Rule, _) => None,
        }
    }

    /// Synthesises AAAA records from the existing A records.
    fn make(
        &self,
        case: &QueryContext<'_>,
        aaaa: &Key,
        (basis, ruling): (Basis<'_>, Ruling<'_>),
        a: Entry<'_>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let Entry { answer, stale } = a;
        let (stale, other) = match basis {
            Basis::NoData { aaaa, .. } => (stale || aaaa.stale, Some(aaaa.answer.security())),
            Basis::Excluded | Basis::Failed | Basis::Rule => (stale, None),
        };
        // Stale records have a separate TTL (RFC 8767 §4).
        let bound = self.bound(basis).filter(|_| !stale);
        let shown = self.shows_authenticity(case);
        let is_secure = other == Some(Security::Secure) && answer.security() == Security::Secure;
        let authentic = shown && !stale && is_secure && is_embedded_whole(answer, &ruling);
        let options = ResponseOptions {
            authentic,
            ..case.dressed(self.settings.stale.filter(|_| stale), answer.kind())
        };
        let mut why = "";
        let embed = |address, into: &mut compose::Embedded| why = ruling.embed(address, into).text();
        if compose::synthesised(out, case.query, answer, bound, embed, &options) > 0 {
            let denied = match basis {
                Basis::NoData { aaaa, .. } => Some(aaaa.answer),
                Basis::Excluded | Basis::Failed | Basis::Rule => self.cache.peek(aaaa),
            };
            let refresh = self.refresh(case, [denied, Some(answer)], stale);
            let outcome = if stale { Outcome::Stale } else { Outcome::Synthesised };
            return Evaluation::Answered { outcome, refresh };
        }
        match basis {
            Basis::NoData { .. } => self.plain(case, aaaa, Some(why), out),
            Basis::Excluded | Basis::Failed | Basis::Rule => {
                let options =
                    ResponseOptions { authentic: false, extended_error: Some((OTHER, why)), ..options };
                compose::withheld(out, case.query, &options);
                Evaluation::said(Outcome::NoData)
            }
        }
    }
}

/// What the validator found, or that it is to look.
fn verdict(entry: Entry<'_>, key: &Key) -> Result<Security, Evaluation> {
    match entry.answer.security() {
        Security::Unchecked => Err(Evaluation::needs([Need { validate: true, ..fetch(*key, true) }])),
        security => Ok(security),
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
