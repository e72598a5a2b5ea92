//! Names of addresses within our prefixes (RFC 6147 §5.3.1). All types at such a name agree with its PTR record, and so do the names above it: "no
//! such name" for one of them would deny the others (RFC 8020).

use super::super::answer::{Kind, Part, rtype};
use super::super::compose::{self, LocalRecord, ResponseOptions};
use super::super::key::Key;
use super::super::local::LocalAnswer;
use super::super::outcome::Outcome;
use super::super::reverse::{IP6_OCTETS, Ip6Name, in_addr_address, in_addr_arpa, ip6_arpa};
use super::super::settings::Reverse;
use super::responder::{Entry, Evaluation, QueryContext, Responder};
use arrayvec::ArrayVec;
use std::net::Ipv6Addr;

/// RFC 1035 §4.1.1: no error.
const NO_ERROR: u8 = 0;
/// RFC 1035 §4.1.1: the name does not exist.
const NAME_ERROR: u8 = 3;
/// RFC 6303 §3: maximum TTL of a local negative answer, in seconds.
const LONGEST_NO: u32 = 10_800;

/// An address that represents one of the other family.
struct Represented {
    /// The name of what it represents.
    name: ArrayVec<u8, IP6_OCTETS>,
    /// The TTL of an alias that leads there; `None`: no alias leads there.
    alias: Option<u32>,
    /// Nothing is said for longer, in seconds.
    bound: Option<u32>,
    /// How many octets of the name precede its zone's.
    zone: u8,
}

impl Responder {
    /// The server that the queried address of a NAT46's pool represents for this client, and for how long it may be said.
    fn mapped_server(&self, case: &QueryContext<'_>, key: &Key) -> Option<(Ipv6Addr, u32)> {
        let names = self.mapped.as_ref()?;
        names.server(case.client, in_addr_address(key.name())?, case.now)
    }

    /// The answer for a name within our prefixes, or for an address of a NAT46's pool; `None`: it is another's.
    pub(super) fn reversed(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        out: &mut Vec<u8>,
    ) -> Option<Evaluation> {
        let alias = match self.settings.reverse {
            _ if case.is_untouched() => return None,
            Reverse::Off | Reverse::Name { .. } => return None,
            Reverse::Cname { ttl } => Some(ttl),
            Reverse::Rewrite => None,
        };
        if let Some((server, bound)) = self.mapped_server(case, key) {
            // The address may soon be another server's.
            let alias = alias.map(|ttl| ttl.min(bound));
            let zone = key.name().first().map_or(0, |label| label + 1);
            let represented = Represented { name: ip6_arpa(server), alias, bound: Some(bound), zone };
            return Some(self.represented(case, key, &represented, out));
        }
        let read = Ip6Name::read(key.name())?;
        let zone = read.zone(self.policy.all_prefixes())?;
        if let Some(address) = self.policy.embedded(key.name()) {
            let name = in_addr_arpa(address).into_iter().collect();
            return Some(self.represented(case, key, &Represented { name, alias, bound: None, zone }, out));
        }
        let answer = match key.qtype() {
            // No AAAA record is made with it: it may be a host's.
            _ if read.address().is_some() => return None,
            _ if read.is_below() => LocalAnswer::nothing_for(NAME_ERROR, zone, LONGEST_NO),
            rtype::SOA if zone == 0 => LocalAnswer::apex(),
            _ => LocalAnswer::nothing_for(NO_ERROR, zone, LONGEST_NO),
        };
        answer.write(out, case.query, &case.response_options());
        Some(Evaluation::said(Outcome::Local))
    }

    /// What is said of an address that represents another one.
    fn represented(
        &self,
        case: &QueryContext<'_>,
        key: &Key,
        represented: &Represented,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let own = key.with_name(&represented.name);
        if let Some(names) = self.local.names_of(own.name()).filter(|_| key.qtype() == rtype::PTR) {
            names.write(out, case.query, &case.response_options());
            return Evaluation::said(Outcome::Reverse);
        }
        if self.local.is_special(own.name()) {
            return Self::no_name(case, (NAME_ERROR, represented.zone, LONGEST_NO), None, out);
        }
        let ptr = match self.ready(case, &own.with_type(rtype::PTR), out) {
            Ok(entry) => entry,
            Err(look) => return look,
        };
        let options = self.bounded(case, ptr, represented.bound);
        let left = ptr.answer.negative_ttl(case.now).unwrap_or_else(|| ptr.answer.left(case.now));
        let left = left.min(LONGEST_NO).min(represented.bound.unwrap_or(LONGEST_NO));
        let no = |rcode, out: &mut Vec<u8>| {
            Self::no_name(case, (rcode, represented.zone, left), Some(&options), out)
        };
        match ptr.answer.kind() {
            Kind::Failure(rcode) => {
                compose::empty(out, case.query, rcode, None, &options);
                return Evaluation::said(Outcome::UpstreamFailure);
            }
            Kind::NameError => return no(NAME_ERROR, out),
            Kind::NoData | Kind::Unfinished => return no(NO_ERROR, out),
            Kind::Data => {}
        }
        let is_asked = matches!(key.qtype(), rtype::PTR | rtype::ANY);
        // RFC 6147 §5.3.1: a name that is an alias itself gets no alias that leads to it.
        let Some(ttl) = represented.alias.filter(|_| ptr.answer.count(Part::Chain) == 0) else {
            if !is_asked {
                return no(NO_ERROR, out);
            }
            compose::renamed(out, case.query, ptr.answer, &options);
            return Evaluation::said(Outcome::Reverse);
        };
        let alias = LocalRecord { owner: None, rtype: rtype::CNAME, ttl, data: &represented.name };
        // RFC 1034 §3.6.2: an alias is followed for every type but those that may be next to it.
        match key.qtype() {
            rtype::CNAME => compose::local(out, case.query, 0, (&[alias], &[]), &options),
            rtype::DS | rtype::NSEC => return no(NO_ERROR, out),
            _ if is_asked => compose::rewritten(out, case.query, &[alias], ptr.answer, &options),
            _ => {
                let other = match self.ready(case, &own, out) {
                    Ok(entry) => entry,
                    Err(look) => return look,
                };
                let options = self.bounded(case, other, represented.bound);
                compose::rewritten(out, case.query, &[alias], other.answer, &options);
            }
        }
        Evaluation::said(Outcome::Reverse)
    }

    /// How an answer about an address is written that represents another one so long.
    fn bounded(
        &self,
        case: &QueryContext<'_>,
        entry: Entry<'_>,
        bound: Option<u32>,
    ) -> ResponseOptions<'static> {
        let Entry { answer, stale } = entry;
        let mut options = case.dressed(self.settings.stale.filter(|_| stale), answer.kind());
        if let Some(bound) = bound {
            options.ttl = Some(options.ttl.unwrap_or_else(|| answer.left(case.now)).min(bound));
        }
        options
    }

    /// There is no such name, or nothing of the type at it: with a SOA record at the name of the zone, which is above it (RFC 2308 §2.1).
    fn no_name(
        case: &QueryContext<'_>,
        (rcode, zone, seconds): (u8, u8, u32),
        options: Option<&ResponseOptions<'_>>,
        out: &mut Vec<u8>,
    ) -> Evaluation {
        let plain = case.response_options();
        let answer = LocalAnswer { authoritative: false, ..LocalAnswer::nothing_for(rcode, zone, seconds) };
        answer.write(out, case.query, options.unwrap_or(&plain));
        Evaluation::said(if rcode == NAME_ERROR { Outcome::NameError } else { Outcome::NoData })
    }
}
