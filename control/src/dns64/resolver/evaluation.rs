//! Looking at a query: what is known here, what may not be asked, and what the upstream said, as far as it may be given.

use super::super::answer::{Answer, Kind, Part, rtype};
use super::super::ask::Security;
use super::super::compose::{self, ResponseOptions};
use super::super::key::Key;
use super::super::local::LocalQuestion;
use super::super::outcome::Outcome;
use super::super::query::IN;
use super::info_code::OTHER;
use super::responder::{Entry, Evaluation, QueryContext, Responder, Types};
use std::net::IpAddr;

/// RFC 1035 §3.2.4: CHAOS, in which servers tell their names and versions. Another server cannot answer for them.
const CHAOS: u16 = 3;
/// RFC 1035 §3.2.3: zone transfers, and types that no question has.
const NOT_FORWARDED: [u16; 8] = [251, 252, 253, 254, 249, 250, 41, 0];

impl Responder {
    /// Looks at a query: the answer is written to `out` if all that is needed for it is known.
    pub(super) fn evaluate(&self, case: &QueryContext<'_>, out: &mut Vec<u8>) -> Evaluation {
        let query = case.query;
        if query.qclass == CHAOS || NOT_FORWARDED.contains(&query.qtype) {
            return Evaluation::said(Self::refuse(case, out));
        }
        let key = self.key(query.name, query.qtype, query);
        if query.qclass != IN {
            return self.plain(case, &key, None, out);
        }
        let asked = LocalQuestion {
            client: case.client,
            name: key.name(),
            qtype: query.qtype,
            untouched: case.is_untouched(),
        };
        if let Some(known) = self.local.answer(&self.policy, asked) {
            known.write(out, query, &case.response_options());
            return Evaluation::said(Outcome::Local);
        }
        match query.qtype {
            rtype::AAAA => self.aaaa(case, &key, out),
            rtype::A => self.a(case, &key, out),
            rtype::PTR if !case.is_untouched() => self.ptr(case, &key, out),
            _ => self.plain(case, &key, None, out),
        }
    }

    fn a(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Evaluation {
        if !case.is_untouched() && self.policy.for_query(case.client, key.name()).hide_a() {
            let options = ResponseOptions {
                extended_error: Some((OTHER, "A records withheld by local rule")),
                ..case.response_options()
            };
            compose::empty(out, case.query, 0, None, &options);
            return Evaluation::said(Outcome::NoData);
        }
        self.leased(case, key, out).unwrap_or_else(|| self.a_or_mapped(case, key, out))
    }

    /// What the upstream said, as far as it may be given.
    pub(super) fn plain(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        match self.ready(case, key, out) {
            Ok(entry) => self.pass_on(case, key, entry, note, out),
            Err(look) => look,
        }
    }

    /// An entry as it is, without what counts as absent.
    pub(super) fn pass_on(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        entry: Entry<'_>,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let Entry { answer, stale } = entry;
        let ruling = self.policy.for_query(case.client, key.name());
        let hides = key.qtype() == rtype::A && ruling.hides_some() && case.is_in();
        let excludes = key.qtype() == rtype::AAAA && !self.policy.excludes_nothing() && case.is_in();
        let excluded = |address: IpAddr| match address {
            IpAddr::V4(address) => hides && ruling.hides(address),
            IpAddr::V6(address) => excludes && self.policy.excluded(address),
        };
        let whole = case.is_untouched() || !(hides || excludes) || is_whole(answer, excluded);
        // What is proven for A says nothing of AAAA.
        let is_asked = key.qtype() == case.query.qtype;
        let authentic = self.shows_authenticity(case)
            && is_asked
            && !stale
            && whole
            && answer.security() == Security::Secure;
        // What is left out of it leaves nothing.
        let is_emptied = !whole && excludes && answer.addresses6().all(|it| self.policy.excluded(it));
        let note = note.filter(|_| answer.kind() == Kind::NoData || is_emptied);
        let options = ResponseOptions { authentic, ..self.explained(case, entry, note) };
        let left_out = match whole {
            true => {
                compose::forwarded(out, case.query, answer, &options);
                0
            }
            false => compose::filtered(out, case.query, answer, excluded, &options),
        };
        let outcome = match answer.kind() {
            Kind::Failure(_) => Outcome::UpstreamFailure,
            _ if stale => Outcome::Stale,
            Kind::Data if left_out != 0 && left_out == answer.count(Part::Data) => Outcome::NoData,
            Kind::Data | Kind::Unfinished => Outcome::Forwarded,
            Kind::NoData => Outcome::NoData,
            Kind::NameError => Outcome::NameError,
        };
        let refresh = self.refresh(case, key, key, stale);
        Evaluation::Answered { outcome, refresh }
    }

    /// How an answer is written from an entry, and what is said of it in more detail than an RCODE; `note`: why there is nothing in it.
    fn explained<'e>(
        &self,
        case: &QueryContext<'_>,
        entry: Entry<'e>,
        note: Option<&'e str>,
    ) -> ResponseOptions<'e> {
        let Entry { answer, stale } = entry;
        let options = case.dressed(self.settings.stale.filter(|_| stale), answer.kind());
        let why = match (answer.kind(), note, answer.extended_error()) {
            (_, Some(note), _) if !stale => Some((OTHER, note)),
            (Kind::Failure(_), _, Some(error)) => Some(error),
            // Why it counts as unsigned though it is signed (RFC 8914 §4.2, §4.3).
            (_, _, Some(error)) if !stale && self.is_found_insecure(case, answer) => Some(error),
            _ => options.extended_error,
        };
        ResponseOptions { extended_error: why, ..options }
    }

    /// Whether this client's answer was looked at by our validator, and counts as unsigned.
    fn is_found_insecure(&self, case: &QueryContext<'_>, entry: &Answer) -> bool {
        self.validates(case) && entry.security() == Security::Insecure
    }

    /// What is to be queried though no one waits for it: what has expired, or is in the last tenth of its time.
    pub(super) fn refresh(&self, case: &QueryContext<'_>, one: &Key, other: &Key, stale: bool) -> Types {
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

/// Whether nothing of it is left out.
fn is_whole(entry: &Answer, excluded: impl Fn(IpAddr) -> bool) -> bool {
    entry.raw_records(Part::Data).all(|record| !record.address().is_some_and(&excluded))
}
