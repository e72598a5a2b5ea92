//! All zones of an authority, from a root of our own down: unsigned ones, signed ones, and signed ones that lie.

use super::kind::Kind;
use super::sample::{Sample, Trust};
use super::signing::{Signing, signed};
use super::zone::{self, ELSEWHERE, TTL, address, head};
use crate::failure::Result;
use std::fmt::Write as _;
use std::path::Path;

/// The authority's address in [`client_gateway_server`](crate::topology::client_gateway_server).
pub const AUTHORITY: &str = "203.0.113.2";

/// A zone's name (the root's is empty) and text.
pub type Text = (String, String);

/// The zones of one authority, the names to query in them, and the root's keys.
pub struct Tree {
    /// Zones.
    pub zones: Vec<Text>,
    /// Names to query.
    pub samples: Vec<Sample>,
    /// DS records of the root, as a trust anchor; empty where nothing is signed.
    pub anchor: String,
}

/// A name of the large zone: it has an A record only.
pub fn large_name(number: u32) -> String {
    format!("host-{number}.large.test")
}

/// A name of the zone that is asked again and again: it has an A record only.
pub fn cached_name(number: u32) -> String {
    format!("host-{number}.cached.test")
}

impl Tree {
    /// Unsigned zones for measuring: `large` names that are asked once, and `cached` names that are asked again and again.
    pub fn to_measure(large: u32, cached: u32) -> Self {
        let hosts = |origin: &str, count| {
            let mut text = head(origin);
            (0..count)
                .for_each(|number| writeln!(text, "host-{number} A {}", address(number)).unwrap_or_default());
            (origin.to_owned(), text)
        };
        let sample = |name, number| Sample {
            name,
            kind: Kind::VersionFour,
            four: vec![address(number)],
            six: Vec::new(),
            trust: [Trust::Insecure; 2],
        };
        let samples = (0..cached).map(|number| sample(cached_name(number), number)).collect();
        let below = ["large.test", "cached.test"].map(delegation).concat();
        let mut zones = vec![hosts("large.test", large), hosts("cached.test", cached)];
        zones.extend([("test".to_owned(), test(&below)), (String::new(), root())]);
        zones.extend(others());
        Self { zones, samples, anchor: String::new() }
    }

    /// An unsigned zone `test` with these hosts.
    pub fn of_hosts(hosts: &[(&str, &str)]) -> Self {
        let records: String = hosts.iter().map(|(host, address)| format!("{host} A {address}\n")).collect();
        let mut zones = vec![("test".to_owned(), test(&records)), (String::new(), root())];
        zones.extend(others());
        Self { zones, samples: Vec::new(), anchor: String::new() }
    }

    /// `count` names of all kinds, in zones that are unsigned, signed with NSEC, signed with NSEC3, and signed long ago, and some whose signatures
    /// are wrong. The records are the seed's, the keys are new each time. Works in `folder`.
    pub fn of_all_kinds(folder: &Path, count: u32, seed: u64) -> Result<Self> {
        let mut zones = others();
        let mut samples = Vec::new();
        let kinds = [
            ("plain.test", Signing::None, 35),
            ("signed.test", Signing::Nsec, 35),
            ("hashed.test", Signing::Nsec3, 25),
            ("expired.test", Signing::Expired, 5),
        ];
        for (number, (origin, signing, percent)) in kinds.into_iter().enumerate() {
            let mut text = head(origin);
            let mut made =
                zone::fill(&mut text, origin, count * percent / 100, seed.wrapping_add(number as u64));
            let trust = match signing {
                Signing::None => Trust::Insecure,
                Signing::Expired => Trust::Bogus,
                Signing::Nsec | Signing::Nsec3 | Signing::Corrupted => Trust::Secure,
            };
            made.iter_mut().for_each(|sample| sample.trust = [trust; 2]);
            samples.extend(made);
            zones.push((origin.to_owned(), signed(folder, origin, &text, signing)?.text));
        }
        zones
            .push((ELSEWHERE.to_owned(), signed(folder, ELSEWHERE, &zone::elsewhere(), Signing::Nsec)?.text));
        zones.push(("brief.test".to_owned(), brief()));
        let (text, lies) = lying();
        samples.extend(lies);
        zones.push(("bogus.test".to_owned(), signed(folder, "bogus.test", &text, Signing::Corrupted)?.text));
        let mut below = ["signed.test", "hashed.test", "expired.test", "bogus.test"].map(delegation).concat();
        below += &["plain.test", "brief.test", ELSEWHERE].map(delegation).concat();
        zones.push(("test".to_owned(), signed(folder, "test", &test(&below), Signing::Nsec)?.text));
        let root = signed(folder, "", &root(), Signing::Nsec)?;
        zones.push((String::new(), root.text));
        Ok(Self { zones, samples, anchor: root.ds })
    }
}

fn delegation(origin: &str) -> String {
    format!("{origin}. NS ns.test.\n")
}

fn root() -> String {
    let below = ["test", "in-addr.arpa", "ip6.arpa", "ipv4only.arpa"].map(delegation).concat();
    format!("{}{below}ns.test. A {AUTHORITY}\n", head(""))
}

fn test(below: &str) -> String {
    format!("{}ns A {AUTHORITY}\n{below}", head("test"))
}

/// Zones that are never signed: addresses to names, and the name by which hosts find the prefix (RFC 7050).
fn others() -> Vec<Text> {
    let mut reverse = head("in-addr.arpa");
    for number in 0..zone::TARGETS {
        writeln!(reverse, "{number}.0.64.45 PTR host-{number}.{ELSEWHERE}.").unwrap_or_default();
    }
    let only = format!("{}@ A 192.0.0.170\n@ A 192.0.0.171\n", head("ipv4only.arpa"));
    vec![
        ("in-addr.arpa".to_owned(), reverse),
        ("ip6.arpa".to_owned(), head("ip6.arpa")),
        ("ipv4only.arpa".to_owned(), only),
    ]
}

/// A zone that denies for a minute only (RFC 2308 §5), with a name that has an A record.
fn brief() -> String {
    format!(
        "$TTL {TTL}\n@ 60 SOA ns.test. admin.test. 1 3600 600 86400 60\n@ NS ns.test.\nhost A {}\n",
        address(78)
    )
}

/// A zone some of whose signatures are spoilt after signing, by the names that they are at: see [`Signing::Corrupted`].
fn lying() -> (String, Vec<Sample>) {
    use Trust::{Bogus, Secure};
    let mut text = head("bogus.test");
    let mut samples = Vec::new();
    let kinds = [
        ("bad-a", false, [Bogus, Secure]),
        ("bad-aaaa", true, [Secure, Bogus]),
        ("bad-nsec", false, [Secure, Bogus]),
        ("good", false, [Secure, Secure]),
    ];
    for number in 0..40 {
        let (label, both, trust) = kinds[number as usize % kinds.len()];
        let (name, four) = (format!("{label}-{}", number / 4), vec![address(77)]);
        writeln!(text, "{name} A {}", four[0]).unwrap_or_default();
        let six: Vec<_> =
            both.then_some(std::net::Ipv6Addr::new(0x2a00, 0, 0, 0, 0, 0, 0, 1)).into_iter().collect();
        six.iter().for_each(|six| writeln!(text, "{name} AAAA {six}").unwrap_or_default());
        let kind = if both { Kind::Both } else { Kind::VersionFour };
        samples.push(Sample { name: format!("{name}.bogus.test"), kind, four, six, trust });
    }
    (text, samples)
}
