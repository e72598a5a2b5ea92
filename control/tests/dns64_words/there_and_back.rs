//! What was read and is served decodes, by another's reader, to the records that the upstream sent, whatever the question's case, DO and
//! what is left out.

use super::upstream::{NOW, Reply, query, shown, wire};
use proptest::collection::vec;
use proptest::prelude::*;
use sixway_control::dns64::answer::Kind;
use sixway_control::dns64::compose::{self, Embedded, LocalRecord, ResponseOptions};
use sixway_control::dns64::query::Query;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// What a reply is made of.
#[derive(Clone, Debug)]
struct Made {
    /// The question's name, and the chain's.
    names: Vec<String>,
    rtype: &'static str,
    /// Data of that type.
    data: Vec<String>,
    ttl: u32,
    signed: bool,
    authority: bool,
}

/// Names that share ends with each other, at all depths.
fn name() -> impl Strategy<Value = String> {
    let label =
        prop::sample::select(vec!["a", "B", "www", "cdn-7", "\\000x", "ExAmPlE", "a-label-of-some-length"]);
    let zone = prop::sample::select(vec![
        "example.org.",
        "EXAMPLE.org.",
        "example.net.",
        "org.",
        "x.y.z.example.org.",
    ]);
    (vec(label, 0..4), zone).prop_map(|(labels, zone)| {
        labels.iter().map(|label| format!("{label}.")).chain([zone.to_owned()]).collect()
    })
}

fn made() -> impl Strategy<Value = Made> {
    let rtype = prop::sample::select(vec!["A", "AAAA", "MX", "TXT", "SOA", "NS", "PTR", "NSEC"]);
    let parts = (vec(name(), 1..6), rtype, vec((name(), any::<u16>()), 0..6), 1..100_000_u32);
    (parts, any::<bool>(), any::<bool>()).prop_map(|((mut names, rtype, data, ttl), signed, authority)| {
        let mut seen: Vec<String> = Vec::new();
        names.retain(|name| {
            let lower = name.to_ascii_lowercase();
            let is_new = !seen.contains(&lower);
            seen.push(lower);
            is_new
        });
        let mut data: Vec<String> = data.iter().map(|(name, number)| datum(rtype, name, *number)).collect();
        data.sort();
        data.dedup();
        Made { names, rtype, data, ttl, signed, authority }
    })
}

fn datum(rtype: &str, name: &str, number: u16) -> String {
    match rtype {
        "A" => Ipv4Addr::from_bits(0xc000_0000 | u32::from(number)).to_string(),
        "AAAA" => Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)).to_string(),
        "MX" => format!("{number} {name}"),
        "SOA" => format!("{name} {name} {number} 2 3 4 100000"),
        "TXT" => format!("text{number}"),
        _ => name.to_owned(),
    }
}

impl Made {
    fn owner(&self) -> &str {
        self.names.last().unwrap()
    }

    fn chain(&self) -> Vec<String> {
        let links = self.names.windows(2);
        links.map(|pair| format!("{} {} CNAME {}", pair[0], self.ttl, pair[1])).collect()
    }

    fn records(&self, rtype: &str, data: &[String]) -> Vec<String> {
        data.iter().map(|data| format!("{} {} {rtype} {data}", self.owner(), self.ttl)).collect()
    }

    fn signatures(&self) -> Vec<String> {
        let signature = |name: &str, covered: &str| format!("{name} {} RRSIG {covered} org.", self.ttl);
        let chain = self.names.windows(2).map(|pair| signature(&pair[0], "CNAME"));
        let data = (!self.data.is_empty()).then(|| signature(self.owner(), self.rtype));
        chain.chain(data).collect()
    }

    fn authority(&self) -> Vec<String> {
        let rtype = if self.data.is_empty() {
            "SOA ns.example.org. h.x.y.z.example.org. 1 2 3 4 100000"
        } else {
            "NS ns.example.net."
        };
        let zone = self.owner().rsplit('.').nth(1).unwrap();
        vec![format!("{zone}. {} {rtype}", self.ttl)]
    }

    fn reply(&self) -> Reply {
        let mut answer = [self.chain(), self.records(self.rtype, &self.data)].concat();
        if self.signed {
            answer.extend(self.signatures());
        }
        let text = |records: &[String]| records.to_vec();
        let authority = if self.authority { self.authority() } else { Vec::new() };
        let reply = Reply::to(&self.names[0], self.rtype, &[], &[]);
        Reply { answer: text(&answer), authority: text(&authority), ..reply }
    }
}

/// Records as `domain` shows them, in lower case: case is the client's where a name ends as the question does.
fn lower(records: &[String]) -> Vec<String> {
    records.iter().map(|record| record.to_ascii_lowercase()).collect()
}

/// The same records, as `domain` reads and shows what the upstream sent.
fn expected(reply: &Reply, age: u32) -> [Vec<String>; 3] {
    let aged = |record: String| {
        let mut words: Vec<String> = record.split(' ').map(str::to_owned).collect();
        words[1] = (words[1].parse::<u32>().unwrap().min(86_400) - age).to_string();
        words.join(" ").to_ascii_lowercase()
    };
    shown(&reply.octets()).map(|section| section.into_iter().map(aged).collect())
}

/// A name whose letters' case is as the bits say.
fn in_case(name: &str, bits: u64) -> Vec<u8> {
    let mut name = wire(name);
    for (at, octet) in name.iter_mut().enumerate() {
        let flip = bits >> (at % 64) & 1 != 0 && octet.is_ascii_alphabetic();
        *octet ^= u8::from(flip) << 5;
    }
    name
}

fn without(records: &[String], sign: &str) -> Vec<String> {
    records.iter().filter(|record| !record.contains(sign)).cloned().collect()
}

proptest! {
    #[test]
    fn what_is_passed_on_is_what_was_said(made in made(), bits: u64, dnssec_ok: bool, age in 0..2_u32) {
        let reply = made.reply();
        let answer = reply.read(true).unwrap();
        let name = in_case(&made.names[0], bits);
        let message = query(&name, made.rtype, Some((1232, dnssec_ok)), [1, 0]);
        let (mut out, now) = (Vec::new(), NOW + Duration::from_secs(age.into()));
        compose::forwarded(&mut out, &Query::read(&message).unwrap(), &answer, &ResponseOptions { now, ..ResponseOptions::default() });
        prop_assert_eq!(&out[12..12 + name.len()], &name[..]);
        let [mut given, mut authority, _] = expected(&reply, age.min(made.ttl));
        if !dnssec_ok {
            given = without(&given, " rrsig ");
        }
        if matches!(answer.kind(), Kind::Data | Kind::Unfinished) {
            authority.clear();
        }
        let [records, authorities, _] = shown(&out);
        prop_assert_eq!(lower(&records), given);
        if made.ttl <= 10_800 || !made.data.is_empty() {
            prop_assert_eq!(lower(&authorities), authority);
        }
    }

    #[test]
    fn what_is_synthesised_is_the_chain_and_an_address_for_each_address(
        made in made(),
        bits: u64,
        dnssec_ok: bool,
        bound in 0..1_000_u32,
        prefixes in 1..=8_u128,
    ) {
        let made = Made { rtype: "A", data: (0..made.data.len()).map(|n| datum("A", "", n as u16)).collect(), ..made };
        let reply = made.reply();
        let answer = reply.read(true).unwrap();
        let message = query(&in_case(&made.names[0], bits), "AAAA", Some((1232, dnssec_ok)), [1, 0]);
        let prefix = |at: u128, four: Ipv4Addr| Ipv6Addr::from_bits(0x0064_ff9b << 96 | at << 64 | u128::from(four.to_bits()));
        let embed = |four, into: &mut Embedded| into.extend((0..prefixes).map(|at| prefix(at, four)));
        let (mut out, dress) = (Vec::new(), ResponseOptions { now: NOW, ..ResponseOptions::default() });
        let count = compose::synthesised(&mut out, &Query::read(&message).unwrap(), &answer, Some(bound), embed, &dress);
        prop_assert_eq!(count, made.data.len() * prefixes as usize);
        if count > 0 {
            let fours = made.data.iter().map(|four| four.parse::<Ipv4Addr>().unwrap());
            let sixes: Vec<String> = fours.flat_map(|four| (0..prefixes).map(move |at| prefix(at, four).to_string())).collect();
            let ttl = made.ttl.min(86_400).min(bound);
            let sixes = Made { ttl, ..made.clone() }.records("AAAA", &sixes);
            let [given, ..] = expected(&reply, 0);
            let signatures = without(&given[made.names.len() - 1 + made.data.len()..], " rrsig a ");
            let mut all = [&given[..made.names.len() - 1], &lower(&sixes)].concat();
            if dnssec_ok {
                all.extend(signatures);
            }
            let [records, authorities, _] = shown(&out);
            prop_assert_eq!(lower(&records), all);
            prop_assert_eq!(authorities.len(), 0);
        }
    }

    #[test]
    fn what_is_rewritten_is_led_to_and_then_as_it_was(made in made(), dnssec_ok: bool) {
        let reply = made.reply();
        let answer = reply.read(true).unwrap();
        let message = query(&wire("1.2.3.ip6.arpa."), "PTR", Some((1232, dnssec_ok)), [1, 0]);
        let (target, mut out) = (wire(&made.names[0]), Vec::new());
        let leading = LocalRecord { owner: None, rtype: 5, ttl: 60, data: &target };
        let dress = ResponseOptions { now: NOW, ..ResponseOptions::default() };
        compose::rewritten(&mut out, &Query::read(&message).unwrap(), &[leading], &answer, &dress);
        let [mut given, ..] = expected(&reply, 0);
        if !dnssec_ok {
            given = without(&given, " rrsig ");
        }
        given.insert(0, format!("1.2.3.ip6.arpa. 60 cname {}", lower(&[made.names[0].clone()])[0]));
        prop_assert_eq!(lower(&shown(&out)[0]), given);
    }

    #[test]
    fn a_chain_in_two_replies_is_as_one_in_one(made in made(), at in 1..5_usize) {
        let finished = !made.data.is_empty() || made.authority;
        let most = made.names.len() - 1 - usize::from(!finished && made.names.len() > 1);
        if most == 0 {
            return Ok(());
        }
        let at = 1 + at % most;
        let whole = made.reply().read(true).unwrap();
        let first = Made { names: made.names[..=at].to_vec(), data: vec![], authority: false, ..made.clone() };
        let second = Made { names: made.names[at..].to_vec(), ..made.clone() };
        let joined = first.reply().read(true).unwrap().joined(&second.reply().read(true).unwrap()).unwrap();
        let serve = |answer| {
            let message = query(&wire(&made.names[0]), made.rtype, Some((1232, true)), [1, 0]);
            let mut out = Vec::new();
            compose::forwarded(&mut out, &Query::read(&message).unwrap(), answer, &ResponseOptions { now: NOW, ..ResponseOptions::default() });
            shown(&out)
        };
        prop_assert_eq!(serve(&joined), serve(&whole));
        prop_assert_eq!((joined.kind(), joined.lifetime()), (whole.kind(), whole.lifetime()));
    }
}
