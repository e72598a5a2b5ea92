//! A generated zone: names of every kind that a DNS64 meets, in turn, and what its client is to get for each. The same seed makes the same zone.

use super::kind::Kind;
use super::sample::{Sample, Trust};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// TTL of most records: none of them ends while a benchmark runs.
pub const TTL: u32 = 86_400;

/// The address of this number: a global one, so that it may be embedded in the well-known prefix (RFC 6052 §3.1). No packet is sent to it.
pub fn address(number: u32) -> Ipv4Addr {
    (0x2d40_0000 + number).into()
}

/// Start of a zone's text.
pub fn head(origin: &str) -> String {
    let origin = if origin.is_empty() { "." } else { &format!("{origin}.") };
    format!(
        "$ORIGIN {origin}\n$TTL {TTL}\n@ SOA ns.test. admin.test. 1 3600 600 86400 {TTL}\n@ NS ns.test.\n"
    )
}

/// Writes `count` names of all kinds below `origin`, in turn.
pub fn fill(text: &mut String, origin: &str, count: u32, seed: u64) -> Vec<Sample> {
    let mut numbers = Numbers(seed);
    (0..count)
        .map(|number| {
            let kind = Kind::ALL[number as usize % Kind::ALL.len()];
            one(text, origin, kind, number, &mut numbers)
        })
        .collect()
}

fn one(text: &mut String, origin: &str, kind: Kind, number: u32, numbers: &mut Numbers) -> Sample {
    let label = format!("{}-{number}", format!("{kind:?}").to_lowercase());
    let first = numbers.below(0x3f_0000);
    let mut four: Vec<_> = (0..=numbers.below(3)).map(|step| address(first + step)).collect();
    let own = Ipv6Addr::from((0x2a00_u128 << 112) + u128::from(first));
    let excluded = four[0].to_ipv6_mapped();
    let mut six = Vec::new();
    let mut name = format!("{label}.{origin}");
    // Nothing can fail in writing to a string.
    let mut add = |line: String| writeln!(text, "{line}").unwrap_or_default();
    let hosts =
        |owner: &str| four.iter().map(|four| format!("{owner} A {four}")).collect::<Vec<_>>().join("\n");
    match kind {
        Kind::VersionFour => add(hosts(&label)),
        Kind::VersionSix => {
            add(format!("{label} AAAA {own}"));
            (four, six) = (Vec::new(), vec![own]);
        }
        Kind::Both => {
            add(format!("{}\n{label} AAAA {own}", hosts(&label)));
            six.push(own);
        }
        Kind::Alias => add(format!("{label} CNAME {label}-host\n{}", hosts(&format!("{label}-host")))),
        Kind::AliasAcross => {
            let target = numbers.below(TARGETS);
            add(format!("{label} CNAME host-{target}.{ELSEWHERE}."));
            four = vec![address(target)];
        }
        Kind::Chain => {
            add(format!("{label} CNAME {label}-0"));
            (0..3).for_each(|link| add(format!("{label}-{link} CNAME {label}-{}", link + 1)));
            add(format!("{label}-3 CNAME {label}-host\n{}", hosts(&format!("{label}-host"))));
        }
        Kind::Branch => {
            name = format!("host.{name}");
            add(format!("{label} DNAME {label}-tree\n{}", hosts(&format!("host.{label}-tree"))));
        }
        Kind::ExcludedOnly => {
            add(format!("{}\n{label} AAAA {excluded}", hosts(&label)));
            six.push(excluded);
        }
        Kind::ExcludedBeside => {
            add(format!("{}\n{label} AAAA {excluded}\n{label} AAAA {own}", hosts(&label)));
            six.extend([excluded, own]);
        }
        Kind::Wildcard => {
            name = format!("any.{name}");
            add(hosts(&format!("*.{label}")));
        }
        Kind::EmptyNonTerminal => {
            add(hosts(&format!("deep.{label}")));
            four.clear();
        }
        Kind::Text => {
            add(format!("{label} TXT \"no address\""));
            four.clear();
        }
        Kind::Missing => four.clear(),
        Kind::DanglingAlias => {
            add(format!("{label} CNAME {label}-host"));
            four.clear();
        }
    }
    Sample { name, kind, four, six, trust: [Trust::Insecure; 2] }
}

/// The zone that others' CNAMEs lead to.
pub const ELSEWHERE: &str = "elsewhere.test";
/// How many names it has.
pub const TARGETS: u32 = 16;

/// That zone's text.
pub fn elsewhere() -> String {
    let mut text = head(ELSEWHERE);
    for number in 0..TARGETS {
        writeln!(text, "host-{number} A {}", address(number)).unwrap_or_default();
    }
    text
}

/// SplitMix64: the same numbers from the same seed, on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % u64::from(bound)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns64::embedded;

    fn made(seed: u64) -> (String, Vec<Sample>) {
        let mut text = head("x.test");
        let samples = fill(&mut text, "x.test", 140, seed);
        (text, samples)
    }

    #[test]
    fn the_same_seed_makes_the_same_zone() {
        assert_eq!(made(1).0, made(1).0);
        assert_ne!(made(1).0, made(2).0);
    }

    #[test]
    fn every_kind_has_as_many_names() {
        let samples = made(1).1;
        for kind in Kind::ALL {
            assert_eq!(samples.iter().filter(|sample| sample.kind == kind).count(), 10, "{kind:?}");
        }
    }

    #[test]
    fn an_address_is_embedded_behind_the_well_known_prefix() {
        assert_eq!(embedded(address(1)).to_string(), "64:ff9b::2d40:1");
    }
}
