//! The look at a query: known data, refused queries, and the permitted part of the upstream's answer.

use super::super::answer::{Answer, Kind, Part, rtype};
use super::super::ask::Security;
use super::super::compose::{self, ResponseOptions};
use super::super::key::Key;
use super::super::local::LocalQuestion;
use super::super::outcome::Outcome;
use super::super::query::IN;
use super::info_code::{OTHER, PASSED_ON};
use super::responder::{Entry, Evaluation, QueryContext, Responder, Types};
use std::net::IpAddr;

/// RFC 1035 §3.2.4: CHAOS, in which servers tell their names and versions. Another server cannot answer for them.
const CHAOS: u16 = 3;

/// RFC 1035 §3.2.5, RFC 6895 §3.2: reserved, NONE and ANY. No record has such a class, so that nothing could be said of it truly.
const fn is_forwarded_class(qclass: u16) -> bool {
    !matches!(qclass, 0 | CHAOS | 254 | 255)
}

/// RFC 1035 §3.2.3: zone transfers, and types that no question has, are not forwarded.
const fn is_forwarded_type(qtype: u16) -> bool {
    !matches!(qtype, 0 | 41 | 249..=254)
}

impl Responder {
    /// Looks at a query: the answer is written to `out` if all that is needed for it is known.
    pub(super) fn evaluate(&self, case: &QueryContext<'_>, out: &mut Vec<u8>) -> Evaluation {
        let query = case.query;
        if !is_forwarded_class(query.qclass) || !is_forwarded_type(query.qtype) {
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
        if let Some(said) = self.reversed(case, &key, out) {
            return said;
        }
        if query.qtype == rtype::A
            && self.leased.is_some()
            && self.local.is_special(key.name())
            && !self.withholds_a(case, &key)
            && let Some(said) = self.leased(case, &key, out)
        {
            return said;
        }
        if let Some(known) = self.local.unasked(asked) {
            known.write(out, query, &case.response_options());
            return Evaluation::said(Outcome::Local);
        }
        match query.qtype {
            rtype::AAAA => self.aaaa(case, &key, out),
            rtype::A => self.a(case, &key, out),
            _ => self.plain(case, &key, None, out),
        }
    }

    /// Whether a rule withholds all A records of this name from this client.
    fn withholds_a(&self, case: &QueryContext<'_>, key: &Key) -> bool {
        !case.is_untouched() && self.policy.for_query(case.client, key.name()).hide_a()
    }

    fn a(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Evaluation {
        if self.withholds_a(case, key) {
            let options = ResponseOptions {
                extended_error: Some((OTHER, "A records withheld by local rule")),
                ..case.response_options()
            };
            compose::withheld(out, case.query, &options);
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

    /// An entry without records that count as absent.
    pub(super) fn pass_on(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        entry: Entry<'_>,
        note: Option<&'static str>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let Entry { answer, stale } = entry;
        // A client would take it that the names below do not exist either (RFC 8020 §2). At the end of a chain it is another name that does not.
        if answer.kind() == Kind::NameError
            && case.is_in()
            && !case.is_untouched()
            && answer.count(Part::Chain) == 0
            && let Some(above) = self.local.above_hosts(key.name())
        {
            above.write(out, case.query, &case.response_options());
            return Evaluation::said(Outcome::Local);
        }
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
        let refresh = self.refresh(case, [Some(answer), None], stale);
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
        let is_failure = matches!(answer.kind(), Kind::Failure(_));
        let own = match (note, answer.own_error()) {
            (Some(note), _) if !stale => Some((OTHER, note)),
            (_, Some(error)) if is_failure => Some(error),
            // Why it counts as unsigned though it is signed (RFC 8914 §4.2, §4.3).
            (_, Some(error)) if !stale && self.is_found_insecure(case, answer) => Some(error),
            _ => options.extended_error,
        };
        let passes = |code: u16| is_failure || !stale && PASSED_ON.contains(&code);
        let upstream = answer.extended_error().filter(|(code, _)| passes(*code));
        ResponseOptions { extended_error: own, upstream_error: upstream, ..options }
    }

    /// Whether this client's answer was looked at by our validator, and counts as unsigned.
    fn is_found_insecure(&self, case: &QueryContext<'_>, entry: &Answer) -> bool {
        self.validates(case) && entry.security() == Security::Insecure
    }

    /// Entries to refresh although no client waits for them: those that were used and have expired, or are in the last tenth of their
    /// lifetime.
    pub(super) fn refresh(&self, case: &QueryContext<'_>, used: [Option<&Answer>; 2], stale: bool) -> Types {
        let mut types = Types::new();
        if !stale && !self.settings.prefetch {
            return types;
        }
        for entry in used.into_iter().flatten() {
            let soon = entry.lifetime() >= 10 && entry.left(case.now) <= entry.lifetime() / 10;
            if soon || stale && !entry.is_fresh(case.now) {
                let key = entry.key();
                if self.failures.of(&key, case.now).is_none() {
                    types.push(key.qtype());
                }
            }
        }
        types
    }
}

/// Whether nothing of it is left out.
fn is_whole(entry: &Answer, excluded: impl Fn(IpAddr) -> bool) -> bool {
    entry.raw_records(Part::Data).all(|record| !record.address().is_some_and(&excluded))
}
