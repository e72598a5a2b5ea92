//! Queries for A records of a NAT46's clients, like RFC 6147 §5.1 for AAAA, in the other direction: existing ones, or else
//! addresses of the pool for the servers that AAAA records name.

use super::super::answer::{Answer, Kind, Part, rtype};
use super::super::compose;
use super::super::key::Key;
use super::super::mapping::MappedNames;
use super::super::name::Name;
use super::super::outcome::Outcome;
use super::super::settings::{CheckingDisabled, Synthesis};
use super::responder::{Entry, Evaluation, QueryContext, Responder, Usability};
use super::synthesis::PROOF_INSTEAD;
use sixway_dataplane::mechanism::nat46::MappingRefused;
use std::net::Ipv4Addr;

/// What is made without a SOA record's bound lives no longer, in seconds: as RFC 6147 §5.1.7 has it.
const WITHOUT_SOA: u32 = 600;

/// Why there is no record though there is a server.
const NO_SERVER: &str = "no server that NAT46 translates to";

impl Responder {
    /// What may lead this client to a mapping, and the client.
    fn maps(&self, case: &QueryContext<'_>, key: &Key) -> Option<(&MappedNames, Ipv4Addr)> {
        let names = self.mapped.as_ref()?;
        let client = names.client(case.client, key.name())?;
        let passes_on = self.settings.dnssec.checking_disabled == CheckingDisabled::PassOn;
        // RFC 6147 §5.5: who validates gets what is signed.
        if case.is_untouched() || case.query.checking_disabled && passes_on {
            return None;
        }
        let ruling = self.policy.for_query(case.client, key.name());
        (ruling.synthesis() != Synthesis::Never).then_some((names, client))
    }

    /// Existing A records, or else addresses that represent the servers of AAAA records.
    pub(super) fn a_or_mapped(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Evaluation {
        let Some((names, client)) = self.maps(case, key) else {
            return self.plain(case, key, None, out);
        };
        let a = match self.ready(case, key, out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        if a.answer.kind() != Kind::NoData {
            return self.pass_on(case, key, a, None, out);
        }
        if self.passes_proofs_on(case, a.answer.security()) {
            return self.pass_on(case, key, a, Some(PROOF_INSTEAD), out);
        }
        let aaaa = match self.found(case, &key.with_type(rtype::AAAA)) {
            Usability::Ready(entry) => entry,
            Usability::Needs(need) => return Evaluation::needs([*need]),
            Usability::Failed(failed) => return Evaluation::said(self.failed(case, failed, out)),
            // That there is no A record is proven all the same.
            Usability::Bogus(_) => return self.pass_on(case, key, a, None, out),
        };
        match aaaa.answer.kind() {
            Kind::Data => self.map_servers(case, key, (names, client), (a, aaaa), out),
            // There may be a server: a negative answer would be cached for longer.
            Kind::Failure(_) => self.pass_on(case, &key.with_type(rtype::AAAA), aaaa, None, out),
            Kind::NoData | Kind::NameError | Kind::Unfinished => self.pass_on(case, key, a, None, out),
        }
    }

    fn map_servers(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        (names, client): (&MappedNames, Ipv4Addr),
        (a, aaaa): (Entry<'_>, Entry<'_>),
        out: &mut Vec<u8>,
    ) -> Evaluation {
        if leads_through(aaaa.answer, |name| names.excludes(name)) {
            return self.pass_on(case, key, a, None, out);
        }
        let servers = names.servers(client, aaaa.answer.addresses6().filter(|it| !self.policy.excluded(*it)));
        if servers.is_empty() {
            return self.pass_on(case, key, a, Some(NO_SERVER), out);
        }
        let stale = a.stale || aaaa.stale;
        let negative =
            a.answer.negative_ttl(case.now).map_or(WITHOUT_SOA, |soa| soa.min(a.answer.left(case.now)));
        let fresh = negative.min(aaaa.answer.left(case.now)).min(names.longest_ttl);
        let ttl =
            self.settings.stale.filter(|_| stale).map_or(fresh, |stale| stale.ttl.min(names.longest_ttl));
        match names.map(client, &servers, (ttl, !case.is_datagram()), case.now) {
            Err(MappingRefused::Unproven) => Evaluation::said(Self::ask_again_by_stream(case, out)),
            Err(why) => Evaluation::said(Self::unmapped(case, why.text(), out)),
            Ok(addresses) => {
                // The records are this gateway's, whatever they were made of: never authentic.
                let options = case.dressed(self.settings.stale.filter(|_| stale), aaaa.answer.kind());
                compose::mapped(out, case.query, aaaa.answer, (&addresses, ttl), &options);
                let refresh = self.refresh(case, [Some(a.answer), Some(aaaa.answer)], stale);
                let outcome = if stale { Outcome::Stale } else { Outcome::Mapped };
                Evaluation::Answered { outcome, refresh }
            }
        }
    }
}

/// Whether any name of a chain, its end included, is such.
fn leads_through(answer: &Answer, is_such: impl Fn(&[u8]) -> bool) -> bool {
    let chain = answer.raw_records(Part::Chain).chain(answer.raw_records(Part::Data).take(1));
    chain.into_iter().any(|record| {
        let mut owner = Name::new();
        answer.expand_owner(&record, &mut owner).is_some() && is_such(&owner)
    })
}
