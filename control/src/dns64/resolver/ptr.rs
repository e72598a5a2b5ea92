//! PTR queries for addresses within our prefixes (RFC 6147 §5.3.1).

use super::super::answer::{Kind, Part, rtype};
use super::super::compose::{self, LocalRecord};
use super::super::key::Key;
use super::super::outcome::Outcome;
use super::super::reverse::{embedded, in_addr_address, in_addr_arpa, ip6_arpa};
use super::super::settings::Reverse;
use super::responder::{Entry, Evaluation, QueryContext, Responder};
use std::net::Ipv6Addr;

impl Responder {
    /// The server that the queried address of a NAT46's pool represents for this client, and for how long it may be said.
    fn mapped_server(&self, case: &QueryContext<'_>, key: &Key) -> Option<(Ipv6Addr, u32)> {
        let names = self.mapped.as_ref()?;
        names.server(case.client, in_addr_address(key.name())?, case.now)
    }

    /// An address of ours is queried under in-addr.arpa, and one of a NAT46's pool under ip6.arpa, any other as it is.
    pub(super) fn ptr(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Evaluation {
        let cname = match self.settings.reverse {
            Reverse::Off | Reverse::Name { .. } => return self.plain(case, key, None, out),
            Reverse::Cname { ttl } => Some(ttl),
            Reverse::Rewrite => None,
        };
        let (name, cname, bound) = match self.mapped_server(case, key) {
            // The address may soon be another server's.
            Some((server, bound)) => (ip6_arpa(server), cname.map(|ttl| ttl.min(bound)), Some(bound)),
            None => match embedded(key.name(), self.policy.all_prefixes()) {
                Some(address) => (in_addr_arpa(address).into_iter().collect(), cname, None),
                None => return self.plain(case, key, None, out),
            },
        };
        let key = key.with_name(&name);
        let Entry { answer, stale } = match self.ready(case, &key, out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        let mut options = case.dressed(self.settings.stale.filter(|_| stale), answer.kind());
        if let Some(bound) = bound {
            options.ttl = Some(options.ttl.unwrap_or_else(|| answer.left(case.now)).min(bound));
        }
        if answer.kind() != Kind::Data {
            compose::renamed(out, case.query, answer, &options);
            return Evaluation::said(match answer.kind() {
                Kind::NameError => Outcome::NameError,
                Kind::Failure(_) => Outcome::UpstreamFailure,
                Kind::Data | Kind::NoData | Kind::Unfinished => Outcome::NoData,
            });
        }
        match cname {
            // RFC 6147 §5.3.1: a name that is an alias itself gets no alias that leads to it.
            Some(ttl) if answer.count(Part::Chain) == 0 => {
                let leading = LocalRecord { owner: None, rtype: rtype::CNAME, ttl, data: &name };
                compose::rewritten(out, case.query, &[leading], answer, &options);
            }
            Some(_) | None => compose::renamed(out, case.query, answer, &options),
        }
        Evaluation::said(Outcome::Reverse)
    }
}
