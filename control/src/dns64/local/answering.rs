//! The local answers, and the order in which they are tried.

use super::super::answer::rtype;
use super::super::compose::Embedded;
use super::super::hosts::Hosts;
use super::super::policy::Policy;
use super::super::reverse::Ip6Name;
use super::super::settings::{Reverse, Settings, Synthesis, Wire};
use super::super::special_address::WELL_KNOWN;
use super::answer::{
    DNS_RESOLVER_ARPA, Data, LocalAnswer, LocalQuestion, NAME_ERROR, NEGATIVE, NO_ERROR, Record, below, ptr,
    record,
};
use super::designated;
use super::zones::Zones;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// RFC 8880 §7.1: the name.
const IPV4ONLY_ARPA: &[u8] = b"\x08ipv4only\x04arpa\x00";
const LOCALHOST: &[u8] = b"\x09localhost\x00";
const INVALID: &[u8] = b"\x07invalid\x00";
const ONION: &[u8] = b"\x05onion\x00";
const LOOPBACK4: &[u8] = b"\x03127\x07in-addr\x04arpa\x00";
const LOCALHOST4: &[u8] = b"\x011\x010\x010";

/// RFC 8880 Appendix A: what never changes may be kept for a day.
const DAY: u32 = 86_400;

/// RFC 7050 §4 requires at least 60 minutes; clients query again when it expires (§3) and then learn of a changed prefix.
const HOUR: u32 = 3_600;

/// RFC 9460 §14.1.
const SVCB: u16 = 64;

/// For this time a host keeps what it has found of designated resolvers, in seconds: the same as of a prefix.
const DESIGNATED_TTL: u32 = HOUR;

/// Records of this network may soon be others, in seconds.
const HOST_TTL: u32 = 60;

/// RFC 8482 §4.2: a TTL that prevents immediate retries, in seconds.
const HINFO_TTL: u32 = 3_600;

/// RFC 8482 §4.2: CPU is "RFC8482", OS is empty.
const HINFO_DATA: &[u8] = b"\x07RFC8482\x00";

/// What is answered here.
#[derive(Clone, Debug)]
pub(in crate::dns64) struct Local {
    ipv4only: bool,
    reverse: Reverse,
    minimal_any: bool,
    zones: Zones,
    hosts: Arc<Hosts>,
    /// RDATA of the SVCB records at `_dns.resolver.arpa`.
    designated: Vec<Vec<u8>>,
}

impl Local {
    /// Takes what matters of the settings.
    pub(in crate::dns64) fn new(settings: &Settings) -> Self {
        Self {
            ipv4only: settings.local_ipv4only,
            reverse: settings.reverse.clone(),
            minimal_any: settings.minimal_any,
            zones: Zones::new(settings),
            hosts: Arc::clone(&settings.hosts),
            designated: (1..).zip(&settings.designated).map(|(at, it)| designated::service(it, at)).collect(),
        }
    }

    /// The answer; `None`: an upstream must be queried.
    pub(in crate::dns64) fn answer<'a>(
        &'a self,
        policy: &Policy,
        asked: LocalQuestion<'_>,
    ) -> Option<LocalAnswer<'a>> {
        self.ipv4only(policy, asked).or_else(|| self.host(policy, asked)).or_else(|| {
            let answer = self
                .designated(asked)
                .or_else(|| special(asked))
                .or_else(|| loopback(asked))
                .or_else(|| self.reverse(policy, asked));
            answer.map(|answer| self.unless_there_are_names_below(asked, answer))
        })
    }

    /// The answer to what no upstream is to be asked for, unless there is a better one.
    pub(in crate::dns64) fn unasked<'a>(&self, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let answer = self.zones.answer(asked);
        answer.map(|answer| self.unless_there_are_names_below(asked, answer)).or_else(|| self.any(asked))
    }

    /// A name above one of the hosts file exists, whatever its zone: NODATA instead of NXDOMAIN (RFC 8020 §2).
    fn unless_there_are_names_below<'a>(
        &self,
        asked: LocalQuestion<'_>,
        answer: LocalAnswer<'a>,
    ) -> LocalAnswer<'a> {
        let denies = answer.rcode == NAME_ERROR && self.hosts.has_names_below(asked.name);
        if denies { LocalAnswer::nothing_for(NO_ERROR, 0, HOST_TTL) } else { answer }
    }

    /// The answer to a question about a name that does not exist elsewhere, if it is above one of the hosts file.
    pub(in crate::dns64) fn above_hosts<'a>(&self, name: &[u8]) -> Option<LocalAnswer<'a>> {
        self.hosts.has_names_below(name).then(|| LocalAnswer::nothing_for(NO_ERROR, 0, HOST_TTL))
    }

    /// Other records of this network are known from now on.
    pub(in crate::dns64) fn set_hosts(&mut self, hosts: Arc<Hosts>) {
        self.hosts = hosts;
    }

    /// The PTR records of an address's name, if it is one of this network's.
    pub(in crate::dns64) fn names_of(&self, name: &[u8]) -> Option<LocalAnswer<'_>> {
        let host = self.hosts.of(name).filter(|host| !host.names.is_empty())?;
        let names = host.names.iter().map(|name| record(rtype::PTR, HOST_TTL, Data::Known(&name.0)));
        Some(LocalAnswer::data(names))
    }

    /// Records of this network; AAAA records are made of A records as the rules have it.
    fn host<'a>(&'a self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let host = self.hosts.of(asked.name)?;
        let ruling = policy.for_query(asked.client, asked.name);
        let v4 = || host.v4.iter().map(|address| record(rtype::A, HOST_TTL, Data::a(*address)));
        let v6 = || host.v6.iter().map(|address| record(rtype::AAAA, HOST_TTL, Data::aaaa(*address)));
        let made = || {
            let mut made = Embedded::new();
            let is_never = asked.untouched || ruling.synthesis() == Synthesis::Never;
            for address in host.v4.iter().filter(|_| !is_never) {
                ruling.embed(*address, &mut made);
            }
            let records = made.into_iter().map(|address| record(rtype::AAAA, HOST_TTL, Data::aaaa(address)));
            LocalAnswer::data(records)
        };
        let answer = match asked.qtype {
            rtype::A if asked.untouched => LocalAnswer::data(v4()),
            rtype::A => {
                let shown = host.v4.iter().filter(|address| !ruling.hides(**address));
                LocalAnswer::data(shown.map(|address| record(rtype::A, HOST_TTL, Data::a(*address))))
            }
            rtype::AAAA if host.v6.is_empty() => made(),
            rtype::AAAA => LocalAnswer::data(v6()),
            rtype::PTR => self.names_of(asked.name).unwrap_or_else(|| LocalAnswer::data([])),
            rtype::ANY => LocalAnswer::data(v4().chain(v6())),
            _ => LocalAnswer::data([]),
        };
        let is_empty = answer.answer.is_empty();
        Some(if is_empty { LocalAnswer::nothing_for(NO_ERROR, 0, HOST_TTL) } else { answer })
    }

    /// RFC 9462 §4.
    fn designated<'a>(&'a self, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let is_asked = asked.qtype == SVCB && asked.name == DNS_RESOLVER_ARPA;
        if !is_asked || self.designated.is_empty() {
            return None;
        }
        let records = self.designated.iter().map(|data| record(SVCB, DESIGNATED_TTL, Data::Known(data)));
        Some(LocalAnswer::data(records))
    }

    /// Whether no upstream is queried for this name.
    pub(in crate::dns64) fn is_special(&self, name: &[u8]) -> bool {
        self.zones.of(name).is_some()
    }

    /// RFC 8880 §7.1.
    fn ipv4only<'a>(&self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let zone = below(asked.name, IPV4ONLY_ARPA).filter(|_| self.ipv4only)?;
        match (zone, asked.qtype) {
            (1.., _) => Some(LocalAnswer::nothing(NAME_ERROR, zone)),
            (0, rtype::DS) => None,
            (0, rtype::A) => {
                Some(LocalAnswer::data(WELL_KNOWN.map(|address| record(rtype::A, DAY, Data::a(address)))))
            }
            (0, rtype::AAAA) => Some(LocalAnswer::data(pairs(policy.prefixes_of(asked.client)))),
            (0, _) => Some(LocalAnswer::nothing(NO_ERROR, zone)),
        }
    }

    /// PTR of addresses within our prefixes, as far as no upstream is needed (RFC 6147 §5.3.1).
    fn reverse<'a>(&'a self, policy: &Policy, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        if asked.untouched {
            return None;
        }
        match &self.reverse {
            Reverse::Off => None,
            Reverse::Name { name, ttl } => named(policy.all_prefixes(), asked, name, *ttl),
            Reverse::Cname { .. } | Reverse::Rewrite => {
                let address = policy.embedded(asked.name)?;
                let known = asked.qtype == rtype::PTR && WELL_KNOWN.contains(&address);
                known.then(|| ptr(DAY, IPV4ONLY_ARPA))
            }
        }
    }

    /// RFC 8482 §4.2.
    fn any<'a>(&self, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let hinfo = record(rtype::HINFO, HINFO_TTL, Data::Known(HINFO_DATA));
        let minimal = self.minimal_any && asked.qtype == rtype::ANY;
        minimal.then(|| LocalAnswer { authoritative: false, ..LocalAnswer::data([hinfo]) })
    }
}

/// RFC 7050 §3: both well-known addresses under each prefix, prefix after prefix.
fn pairs<'a>(prefixes: &[Rfc6052]) -> impl Iterator<Item = Record<'a>> {
    let made = prefixes.iter().flat_map(|prefix| WELL_KNOWN.map(|address| prefix.embed_any(address)));
    made.map(|address| record(rtype::AAAA, HOUR, Data::aaaa(address)))
}

/// RFC 6761 §6.3 and §6.4, RFC 7686 §2.
fn special<'a>(asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
    if let Some(zone) = below(asked.name, INVALID).or_else(|| below(asked.name, ONION)) {
        return Some(LocalAnswer::nothing(NAME_ERROR, zone));
    }
    let zone = below(asked.name, LOCALHOST)?;
    Some(match asked.qtype {
        rtype::A | rtype::ANY => {
            LocalAnswer::data([record(rtype::A, NEGATIVE, Data::a(Ipv4Addr::LOCALHOST))])
        }
        rtype::AAAA => LocalAnswer::data([record(rtype::AAAA, NEGATIVE, Data::aaaa(Ipv6Addr::LOCALHOST))]),
        _ => LocalAnswer::nothing(NO_ERROR, zone),
    })
}

/// RFC 6303 §4.2 and §4.3, with the one name that each of these zones is known for.
fn loopback<'a>(asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
    let (zone, is_localhost, is_above) = match below(asked.name, LOOPBACK4) {
        Some(zone) => {
            let labels = &asked.name[..usize::from(zone)];
            (zone, labels == LOCALHOST4, LOCALHOST4.ends_with(labels))
        }
        None => {
            let is_localhost = Ip6Name::read(asked.name)?.address() == Some(Ipv6Addr::LOCALHOST);
            is_localhost.then_some((0, true, true))?
        }
    };
    Some(match asked.qtype {
        rtype::PTR | rtype::ANY if is_localhost => ptr(NEGATIVE, LOCALHOST),
        rtype::SOA if zone == 0 => LocalAnswer::apex(),
        _ if is_above => LocalAnswer::nothing(NO_ERROR, zone),
        _ => LocalAnswer::nothing(NAME_ERROR, zone),
    })
}

/// RFC 6147 §5.3.1, the first option: authoritative for the prefixes' zones, with one name for every address.
fn named<'a>(
    prefixes: &[Rfc6052],
    asked: LocalQuestion<'_>,
    name: &'a Wire,
    ttl: u32,
) -> Option<LocalAnswer<'a>> {
    let read = Ip6Name::read(asked.name)?;
    let zone = read.zone(prefixes)?;
    Some(match asked.qtype {
        _ if read.is_below() => LocalAnswer::nothing(NAME_ERROR, zone),
        rtype::PTR | rtype::ANY if read.address().is_some() => ptr(ttl, &name.0),
        rtype::SOA if zone == 0 => LocalAnswer::apex(),
        _ => LocalAnswer::nothing(NO_ERROR, zone),
    })
}
