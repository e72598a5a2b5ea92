//! PTR queries for addresses within our prefixes (RFC 6147 §5.3.1).

use super::super::answer::{Kind, Part, rtype};
use super::super::compose::{self, LocalRecord};
use super::super::key::Key;
use super::super::outcome::Outcome;
use super::super::reverse::{embedded, in_addr_arpa};
use super::super::settings::Reverse;
use super::desk::{Case, Desk, Look};
use super::look::Found;

impl Desk {
    /// An address of ours is asked for under in-addr.arpa, any other as it is.
    pub(super) fn ptr(&self, case: &Case<'_>, key: &Key, out: &mut Vec<u8>) -> Look {
        let cname = match self.settings.reverse {
            Reverse::Off | Reverse::Name { .. } => return self.plain(case, key, None, out),
            Reverse::Cname { ttl } => Some(ttl),
            Reverse::Rewrite => None,
        };
        let Some(address) = embedded(key.name(), self.policy.all_prefixes()) else {
            return self.plain(case, key, None, out);
        };
        let name = in_addr_arpa(address);
        let key = key.with_name(&name);
        let stale = match self.found(case, &key) {
            Found::Ready { stale } => stale,
            Found::Needs(wanting) => return Look::needs([wanting.of(&key)]),
            Found::Failed(failed) => return Look::said(self.failed(case, failed, out)),
            Found::Bogus => return self.bogus(case, &key, out),
        };
        let Some(entry) = self.cache.get(&key) else { return Look::needs([]) };
        let dress = case.dressed(self.settings.stale.filter(|_| stale), entry.kind());
        if entry.kind() != Kind::Data {
            compose::renamed(out, case.query, entry, &dress);
            return Look::said(match entry.kind() {
                Kind::NameError => Outcome::NameError,
                Kind::Failure(_) => Outcome::UpstreamFailure,
                Kind::Data | Kind::NoData | Kind::Unfinished => Outcome::NoData,
            });
        }
        match cname {
            // RFC 6147 §5.3.1: a name that is an alias itself gets no alias that leads to it.
            Some(_) | None if entry.count(Part::Chain) > 0 => {
                compose::renamed(out, case.query, entry, &dress)
            }
            Some(ttl) => {
                let leading = LocalRecord { owner: None, rtype: rtype::CNAME, ttl, data: &name };
                compose::rewritten(out, case.query, &[leading], entry, &dress);
            }
            None => compose::renamed(out, case.query, entry, &dress),
        }
        Look::said(Outcome::Reverse)
    }
}
