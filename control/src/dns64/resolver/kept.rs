//! Transfer of the cache from one process of a gateway to the next: what is written, and what of it is used again.
//!
//! ```text
//!     ┌ version ┬ DNSSEC settings ┬ upstreams ┬ answers, each behind its length …
//!     │ 4       │ 4 + n           │ 2 + n     │ 4 + n
//!     upstream: its label 1 + n, the number of its names 2, each name 1 + n
//! ```
//!
//! The handover is bounded, since no query is answered while it is written and read: answers that were used most come first; others are
//! queried again.
//!
//! Numbers have their lowest octet first. An answer stays if the upstream that gave it is still asked about its name, or, if that upstream is
//! gone and was there for all names, if an upstream for all names is. A DNSSEC status stays if the anchors are the same.

use super::super::answer::Answer;
use super::super::settings::{AnchorKey, Dnssec, Wire};
use super::forwarder::Resolver;
use super::reconfigure::GONE;
use crate::Instant;
use crate::dns64::ask::Security;
use sixway_dnssec::Validate;
use std::sync::Arc;

/// The first octets of what is kept. The last one is the version.
const VERSION: [u8; 4] = *b"6dn\x01";

/// The place of an upstream of the previous process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Former {
    /// Its place here; `None`: it is gone.
    place: Option<usize>,
    /// It was there for some names only.
    had_names: bool,
}

/// Answers of a previous process, of which each is read once.
#[derive(Clone, Debug)]
pub struct KeptAnswers {
    octets: Arc<[u8]>,
    at: usize,
    upstreams: Vec<Former>,
    /// DNSSEC statuses are kept.
    same_anchors: bool,
}

impl<T: Copy, V: Validate> Resolver<T, V> {
    /// What the next process may continue with, in `most` octets of answers; `labels`: what the upstreams are called, in the order of the settings.
    #[must_use]
    pub fn keep_answers(&self, now: Instant, labels: &[String], most: usize) -> Vec<u8> {
        let settings = &self.responder.settings;
        let mut out = VERSION.to_vec();
        let dnssec = dnssec(&settings.dnssec);
        out.extend_from_slice(&(dnssec.len() as u32).to_le_bytes());
        out.extend_from_slice(&dnssec);
        out.extend_from_slice(&(settings.upstreams.len() as u16).to_le_bytes());
        for (place, upstream) in settings.upstreams.iter().enumerate() {
            text(&mut out, labels.get(place).map_or(&[], |label| label.as_bytes()));
            out.extend_from_slice(&(upstream.names.len() as u16).to_le_bytes());
            upstream.names.iter().for_each(|name| text(&mut out, &name.0));
        }
        let stale = settings.stale.map_or_else(Default::default, |stale| stale.longest);
        let end = out.len() + most;
        for answer in self.responder.cache.answers_by_use().filter(|answer| now < answer.expires() + stale) {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            match answer.write_kept(&mut out) {
                true => {
                    let length = (out.len() - start - 4) as u32;
                    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
                }
                false => out.truncate(start),
            }
            if out.len() > end {
                out.truncate(start);
                break;
            }
        }
        out
    }

    /// Prepares for [adopting](Self::adopt) what a previous process kept; `None`: it is damaged, of another version, or answers were validated
    /// there and are not here, or the other way round.
    #[must_use]
    pub fn kept(&self, octets: Arc<[u8]>, labels: &[String]) -> Option<KeptAnswers> {
        let mut rest = octets.strip_prefix(&VERSION)?;
        let length = u32::from_le_bytes(take(&mut rest)?);
        let (theirs, mut rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        let own = dnssec(&self.responder.settings.dnssec);
        if theirs.first() != own.first() {
            return None;
        }
        let same_anchors = theirs == own;
        let mut upstreams = Vec::new();
        for _ in 0..u16::from_le_bytes(take(&mut rest)?) {
            let label = take_text(&mut rest)?;
            let names = u16::from_le_bytes(take(&mut rest)?);
            for _ in 0..names {
                take_text(&mut rest)?;
            }
            let place = labels.iter().position(|own| own.as_bytes() == label);
            upstreams.push(Former { place, had_names: names > 0 });
        }
        let at = octets.len() - rest.len();
        Some(KeptAnswers { octets, at, upstreams, same_anchors })
    }

    /// Takes up to `most` answers over; whether there are more.
    pub fn adopt(&mut self, now: Instant, kept: &mut KeptAnswers, most: usize) -> bool {
        for _ in 0..most {
            let Some(octets) = kept.next() else { return false };
            // Whether it is held to its upstream's zone was decided when it came.
            let bounds = self.bounds(true, 1);
            let Some(mut answer) = Answer::read_kept(&kept.octets[octets], now, &bounds) else { continue };
            let mut origin = answer.origin();
            let Some(former) = kept.upstreams.get(usize::from(origin.upstream)) else { continue };
            let key = answer.key();
            // What this process found out itself is newer.
            if self.responder.cache.peek(&key).is_some() || !self.still_serves(*former, &answer) {
                continue;
            }
            origin.upstream = former.place.and_then(|place| u16::try_from(place).ok()).unwrap_or(GONE);
            answer.set_origin(origin);
            if !kept.same_anchors {
                answer.set_security(Security::Unchecked, None);
            }
            self.responder.cache.insert(&key, answer);
        }
        kept.at < kept.octets.len()
    }

    /// Whether an answer of a former upstream is one to its question here.
    fn still_serves(&self, former: Former, answer: &Answer) -> bool {
        let key = answer.key();
        let asked = self.upstreams.asked_about(key.name(), key.qtype());
        let for_all = |place: &usize| {
            self.responder.settings.upstreams.get(*place).is_some_and(|upstream| upstream.names.is_empty())
        };
        match former.place {
            Some(place) => asked.contains(&place),
            None => !former.had_names && asked.iter().any(for_all),
        }
    }
}

impl KeptAnswers {
    /// Where the next answer is.
    fn next(&mut self) -> Option<std::ops::Range<usize>> {
        let mut rest = self.octets.get(self.at..)?;
        let length = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let start = self.octets.len() - rest.len();
        // One that is cut off ends all of it.
        self.at = start.checked_add(length).filter(|end| *end <= self.octets.len())?;
        Some(start..self.at)
    }
}

/// What a DNSSEC status depends on: whether there is validation first.
fn dnssec(dnssec: &Dnssec) -> Vec<u8> {
    let mut out = vec![u8::from(dnssec.validate) | u8::from(dnssec.trust_upstream) << 1];
    let mut names: Vec<&Wire> = dnssec.insecure.iter().collect();
    names.sort_by(|one, other| one.0.cmp(&other.0));
    out.extend_from_slice(&(names.len() as u32).to_le_bytes());
    names.iter().for_each(|name| text(&mut out, &name.0));
    let mut anchors: Vec<(&[u8], u8, &[u8])> = dnssec
        .anchors
        .iter()
        .map(|anchor| match &anchor.key {
            AnchorKey::Ds(data) => (&anchor.zone.0[..], 0, &data[..]),
            AnchorKey::Dnskey(data) => (&anchor.zone.0[..], 1, &data[..]),
        })
        .collect();
    anchors.sort_unstable();
    for (zone, kind, data) in anchors {
        text(&mut out, zone);
        out.push(kind);
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        out.extend_from_slice(data);
    }
    out
}

/// Appends a text behind its length, cut at 255 octets.
fn text(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(u8::MAX.into())];
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [length] = take(rest)?;
    let (text, behind) = rest.split_at_checked(length.into())?;
    *rest = behind;
    Some(text)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (octets, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*octets)
}
