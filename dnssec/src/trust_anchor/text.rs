//! The state as text, for a file: one line for each zone, digest and key.
//!
//! ```text
//! version 1
//! zone . next 1700086400 ttl 172800 expire 1209600
//! ds 38696 8 2 683D2D0A…
//! key 1 20326 configured valid 257 3 8 AwEAAaz/…
//! key 2 38696 learnt pending since 1700000000 wait 2592000 by 1 257 3 8 AwEAAa96…
//! end 4
//! ```
//!
//! Each key has its tag (RFC 4034 Appendix B) and the last line counts those before it, so that a text that was cut or changed by accident is
//! noticed and not half believed.

use super::dnskey::Dnskey;
use super::event::presentation;
use super::point::{MOST_KNOWN, TrustPoint};
use super::presentation::{dnskey, ds, zone};
use super::state::{KnownKey, State};
use super::timers::Lifetimes;
use domain::utils::{base16, base64};
use std::fmt;

const HEAD: &str = "; Trust anchors of DNSSEC (RFC 5011). The gateway writes this file; without it, it starts again.\nversion 1\n";

/// The text is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Damaged {}

pub(super) fn write(points: &[TrustPoint]) -> String {
    let mut lines = Vec::new();
    for point in points {
        let times =
            point.lifetimes.map_or(String::new(), |of| format!(" ttl {} expire {}", of.ttl, of.expire));
        lines.push(format!("zone {} next {}{times}", presentation(&point.zone), point.next));
        lines.extend(point.digests.iter().map(|ds| format!("ds {}", digest(ds))));
        lines.extend(point.keys.iter().map(key));
    }
    format!("{HEAD}{}end {}\n", lines.iter().map(|line| format!("{line}\n")).collect::<String>(), lines.len())
}

fn digest(ds: &[u8]) -> String {
    let [high, low, algorithm, digest_type, digest @ ..] = ds else { return String::new() };
    let tag = u16::from_be_bytes([*high, *low]);
    format!("{tag} {algorithm} {digest_type} {}", base16::encode_string(digest))
}

fn key(known: &KnownKey) -> String {
    let from = if known.configured { "configured" } else { "learnt" };
    let since = known.state.since().map_or(String::new(), |since| format!(" since {since}"));
    let rest = match &known.state {
        State::Pending { wait, by, .. } => {
            let by: Vec<_> = by.iter().map(u32::to_string).collect();
            format!(" wait {wait} by {}", by.join(","))
        }
        State::Valid | State::Missing { .. } | State::Revoked { .. } | State::Removed => String::new(),
    };
    let (key, state) = (&known.key, known.state.name());
    let rdata = format!("{} 3 {} {}", key.flags(), key.algorithm(), base64::encode_string(key.public_key()));
    format!("key {} {} {from} {state}{since}{rest} {rdata}", known.number, key.tag())
}

pub(super) fn read(text: &str) -> Result<Vec<TrustPoint>, Damaged> {
    let (mut points, mut count, mut ended) = (Vec::new(), 0_usize, false);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with(';'));
    let fault = |line, what| Damaged { line, what };
    if lines.next().map(|(_, line)| line) != Some("version 1") {
        return Err(fault(1, "the version line is missing; expected version 1"));
    }
    let mut last = 1;
    for (number, line) in lines {
        if ended {
            return Err(fault(number, "text after the end line"));
        }
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if kind == "end" {
            ended = rest.parse() == Ok(count);
        } else {
            entry(&mut points, kind, rest).ok_or(fault(number, "not a zone, ds, key or end line"))?;
        }
        (count, last) = (count + 1, number);
    }
    if ended { Ok(points) } else { Err(fault(last, "the end line with the number of lines is missing")) }
}

fn entry(points: &mut Vec<TrustPoint>, kind: &str, rest: &str) -> Option<()> {
    let mut words = rest.split(' ');
    match kind {
        "zone" => {
            points.push(read_zone(&mut words).filter(|zone| points.iter().all(|p| p.zone != zone.zone))?)
        }
        "ds" => points.last_mut()?.digests.push(ds(words.by_ref())?),
        "key" => {
            let (keys, known) = (&mut points.last_mut()?.keys, read_key(&mut words)?);
            let is_new = keys.iter().all(|other| other.number != known.number && other.key != known.key);
            (is_new && keys.len() < MOST_KNOWN).then(|| keys.push(known))?;
        }
        _ => return None,
    }
    words.next().is_none().then_some(())
}

fn read_zone<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<TrustPoint> {
    let zone = zone(words.next()?)?;
    let next = named(words, "next")?;
    let lifetimes = match words.next() {
        None => None,
        Some("ttl") => Some(Lifetimes { ttl: words.next()?.parse().ok()?, expire: named(words, "expire")? }),
        Some(_) => return None,
    };
    Some(TrustPoint { zone, keys: Vec::new(), digests: Vec::new(), lifetimes, next })
}

fn named<'a>(words: &mut impl Iterator<Item = &'a str>, name: &str) -> Option<u64> {
    words.next().filter(|word| *word == name)?;
    words.next()?.parse().ok()
}

fn read_key<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<KnownKey> {
    let number = words.next()?.parse().ok()?;
    let tag: u16 = words.next()?.parse().ok()?;
    let configured = match words.next()? {
        "configured" => true,
        "learnt" => false,
        _ => return None,
    };
    let state = match words.next()? {
        "valid" => State::Valid,
        "removed" => State::Removed,
        "missing" => State::Missing { since: named(words, "since")? },
        "revoked" => State::Revoked { since: named(words, "since")? },
        "pending" => pending(words)?,
        _ => return None,
    };
    let key = Dnskey::new(&dnskey(words)?)?;
    (key.tag() == tag && !key.is_revoked()).then_some(KnownKey { number, key, state, configured })
}

fn pending<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<State> {
    let (since, wait) = (named(words, "since")?, named(words, "wait")?);
    words.next().filter(|word| *word == "by")?;
    let by: Result<Vec<u32>, _> = words.next()?.split(',').map(str::parse).collect();
    Some(State::Pending { since, wait, by: by.ok()? })
}
