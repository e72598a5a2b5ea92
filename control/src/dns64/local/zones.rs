//! Zones that are answered locally and not forwarded: names of special use, and reverse zones of non-global addresses. No server on the
//! Internet can answer for them, and queries for them would reveal details of the network (RFC 6303 §2).

use super::super::answer::rtype;
use super::super::policy::Names;
use super::super::settings::{Settings, SpecialNames};
use super::answer::{
    DNS_RESOLVER_ARPA, Data, DnsName, LocalAnswer, LocalQuestion, NAME_ERROR, NEGATIVE, NO_ERROR, below,
    record,
};
use std::ops::RangeInclusive;

/// A zone, or the zones that a number in its first label makes.
struct Zone {
    /// Without the final dot, and, if there are numbers, without the first label.
    name: &'static str,
    numbers: Option<RangeInclusive<u8>>,
}

const fn zone(name: &'static str) -> Zone {
    Zone { name, numbers: None }
}

/// The zones, with the document that says so.
const ZONES: &[(Zone, &str)] = &[
    (zone("test"), "RFC 6761 §6.2"),
    (zone("local"), "RFC 6762 §22.1"),
    (zone("alt"), "RFC 9476 §3"),
    (zone("home.arpa"), "RFC 8375 §4"),
    (zone(RESOLVER_ARPA), "RFC 9462 §6.4"),
    (zone("0.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("10.in-addr.arpa"), "RFC 6303 §4.1"),
    (Zone { name: "172.in-addr.arpa", numbers: Some(16..=31) }, "RFC 6303 §4.1"),
    (zone("168.192.in-addr.arpa"), "RFC 6303 §4.1"),
    (Zone { name: "100.in-addr.arpa", numbers: Some(64..=127) }, "RFC 7793 §3"),
    (zone("254.169.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("2.0.192.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("100.51.198.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("113.0.203.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("255.255.255.255.in-addr.arpa"), "RFC 6303 §4.2"),
    (zone("0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa"), "RFC 6303 §4.3"),
    (zone("d.f.ip6.arpa"), "RFC 6303 §4.4"),
    (zone("8.e.f.ip6.arpa"), "RFC 6303 §4.5"),
    (zone("9.e.f.ip6.arpa"), "RFC 6303 §4.5"),
    (zone("a.e.f.ip6.arpa"), "RFC 6303 §4.5"),
    (zone("b.e.f.ip6.arpa"), "RFC 6303 §4.5"),
    (zone("8.b.d.0.1.0.0.2.ip6.arpa"), "RFC 6303 §4.6"),
];

const RESOLVER_ARPA: &str = "resolver.arpa";

/// Names of the zones end in one of these: most names end in none.
const LAST_LABELS: [&[u8]; 4] = [b"\x04arpa\x00", b"\x04test\x00", b"\x05local\x00", b"\x03alt\x00"];

/// Each zone's name, in text.
fn names() -> impl Iterator<Item = String> {
    ZONES.iter().flat_map(|(zone, _)| {
        let numbered = zone.numbers.clone().into_iter().flatten();
        let numbered = numbered.map(|number| format!("{number}.{}", zone.name));
        numbered.chain(zone.numbers.is_none().then(|| zone.name.to_owned()))
    })
}

fn wire(name: &str) -> DnsName {
    let labels = name.split('.').flat_map(|label| std::iter::once(label.len() as u8).chain(label.bytes()));
    labels.chain([0]).collect()
}

/// Names in such zones, except those of an upstream.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    /// Octets of a zone's name.
    zones: Names<u8>,
    /// What an upstream is responsible for, or is not validated because it is this network's own.
    elsewhere: Names<()>,
}

impl Zones {
    pub(super) fn new(settings: &Settings) -> Self {
        let (mut zones, mut elsewhere) = (Names::default(), Names::default());
        if settings.special_names == SpecialNames::Local {
            for name in names().map(|name| wire(&name)) {
                zones.insert(&name, name.len() as u8);
            }
        }
        let of_upstreams = settings.upstreams.iter().flat_map(|upstream| &upstream.names);
        for name in of_upstreams.chain(&settings.dnssec.insecure).filter(|name| name.0.len() > 1) {
            elsewhere.insert(&name.0, ());
        }
        Self { zones, elsewhere }
    }

    /// How many octets of the name precede its zone's.
    pub(super) fn of(&self, name: &[u8]) -> Option<u8> {
        if !LAST_LABELS.iter().any(|last| name.ends_with(last)) {
            return None;
        }
        let octets = self.zones.longest(name)?;
        let zone = u8::try_from(name.len()).ok()?.checked_sub(*octets)?;
        self.elsewhere.longest(name).is_none().then_some(zone)
    }

    /// RFC 6303 §3: such a zone has a SOA and a NS record and nothing else.
    pub(super) fn answer<'a>(&self, asked: LocalQuestion<'_>) -> Option<LocalAnswer<'a>> {
        let zone = self.of(asked.name)?;
        Some(match (zone, asked.qtype) {
            (0, rtype::SOA) => LocalAnswer::apex(),
            (0, rtype::NS) => LocalAnswer::data([record(rtype::NS, NEGATIVE, Data::pointer(0))]),
            (0, _) => LocalAnswer::nothing(NO_ERROR, zone),
            // RFC 9462 §6.4: it exists, whether or not there are designated resolvers.
            (1.., _) if below(asked.name, DNS_RESOLVER_ARPA) == Some(0) => {
                LocalAnswer::nothing(NO_ERROR, zone)
            }
            (1.., _) => LocalAnswer::nothing(NAME_ERROR, zone),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns64::policy::settings;
    use crate::dns64::settings::{Upstream, Wire};

    fn zones(change: impl FnOnce(&mut Settings)) -> Zones {
        let mut settings = Settings { special_names: SpecialNames::Local, ..settings() };
        change(&mut settings);
        Zones::new(&settings)
    }

    fn rcode(zones: &Zones, name: &str, qtype: u16) -> Option<(u8, usize)> {
        let (client, name) = (std::net::Ipv6Addr::LOCALHOST.into(), wire(name));
        let asked = LocalQuestion { client, name: &name, qtype, untouched: false };
        let answer = zones.answer(asked)?;
        assert_eq!(answer.authority.is_some(), answer.answer.is_empty());
        Some((answer.rcode, answer.answer.len()))
    }

    #[test]
    fn every_special_zone_is_answered_here_and_asked_of_nobody() {
        let local = zones(|_| ());
        let mut count = 0;
        for name in names() {
            for (qtype, expected) in
                [(rtype::SOA, (0, 1)), (rtype::NS, (0, 1)), (rtype::A, (0, 0)), (43, (0, 0))]
            {
                assert_eq!(rcode(&local, &name, qtype), Some(expected), "{name} {qtype}");
            }
            assert_eq!(rcode(&local, &format!("1.{name}"), rtype::PTR), Some((3, 0)), "{name}");
            assert_eq!(rcode(&local, &format!("a.b.{name}"), rtype::AAAA), Some((3, 0)), "{name}");
            assert_eq!(rcode(&local, &format!("x{name}"), rtype::A), None, "x{name}");
            count += 1;
        }
        assert_eq!(count, ZONES.len() - 2 + 16 + 64);
        for name in
            ["15.172.in-addr.arpa", "32.172.in-addr.arpa", "63.100.in-addr.arpa", "128.100.in-addr.arpa"]
        {
            assert_eq!(rcode(&local, name, rtype::PTR), None, "{name}");
        }
        for name in ["in-addr.arpa", "arpa", "e.f.ip6.arpa", "test.example", "8.8.8.8.in-addr.arpa"] {
            assert_eq!(rcode(&local, name, rtype::PTR), None, "{name}");
        }
    }

    #[test]
    fn special_names_can_all_be_asked_of_upstreams() {
        let upstream = zones(|settings| settings.special_names = SpecialNames::Upstream);
        for name in names() {
            assert_eq!(rcode(&upstream, &name, rtype::A), None, "{name}");
        }
    }

    #[test]
    fn an_upstream_for_a_private_zone_is_asked() {
        let names = ["10.in-addr.arpa", "office.home.arpa", ""].map(|name| Wire(wire(name).into()));
        let own = zones(|settings| {
            settings.upstreams.push(Upstream { names: names.to_vec(), datagrams: true });
        });
        for name in ["10.in-addr.arpa", "1.0.0.10.in-addr.arpa", "office.home.arpa", "a.office.home.arpa"] {
            assert_eq!(rcode(&own, name, rtype::PTR), None, "{name}");
        }
        for name in ["1.168.192.in-addr.arpa", "b.home.arpa"] {
            assert_eq!(rcode(&own, name, rtype::PTR), Some((3, 0)), "{name}");
        }
        let insecure = zones(|settings| settings.dnssec.insecure = vec![Wire(wire("local").into())]);
        assert_eq!(rcode(&insecure, "printer.local", rtype::A), None);
    }

    #[test]
    fn the_name_of_designated_resolvers_exists() {
        let local = zones(|_| ());
        assert_eq!(rcode(&local, "_dns.resolver.arpa", 64), Some((0, 0)));
        assert_eq!(rcode(&local, "x._dns.resolver.arpa", 64), Some((3, 0)));
    }
}
