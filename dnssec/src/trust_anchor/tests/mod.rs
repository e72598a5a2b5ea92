//! Trust points in fake time. What is published is written as `"A* B! c"`: the key A signs, B is revoked and does not sign, c is not a secure entry point.

mod model;
mod signed;
mod text;
mod timeline;

use super::dnskey::Dnskey;
use super::event::Change;
use super::observation::{Published, Signed};
use super::point::TrustPoint;
use super::timers::DAY;
use crate::anchor::{Anchor, AnchorKey};
use crate::wire::Wire;

/// The first day of the timelines.
const START: u64 = 1_700_000_000;

/// Two days, as at the root.
const TTL: u32 = 172_800;

fn zone() -> Wire {
    Wire(b"\x07example\x00"[..].into())
}

/// A key that is known by its letter.
fn key(letter: char) -> Dnskey {
    let flags = if letter.is_ascii_uppercase() { 257_u16 } else { 256 };
    let mut rdata = flags.to_be_bytes().to_vec();
    rdata.extend([3, 13]);
    rdata.extend([letter as u8; 64]);
    Dnskey::new(&rdata).unwrap()
}

fn revoked(key: &Dnskey) -> Dnskey {
    let mut rdata = key.rdata().to_vec();
    rdata[1] |= 0x80;
    Dnskey::new(&rdata).unwrap()
}

fn anchor(letter: char) -> Anchor {
    Anchor { zone: zone(), key: AnchorKey::Dnskey(key(letter).rdata().into()) }
}

fn published(text: &str, ttl: u32) -> Vec<Published> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    let read = |word: &str| {
        let plain = key(word.chars().next().unwrap());
        let signed = word.contains('*').then_some(Signed { ttl, expire: 1_209_600 });
        Published { key: if word.contains('!') { revoked(&plain) } else { plain }, signed }
    };
    words.map(read).collect()
}

fn point(letters: &str) -> TrustPoint {
    let anchors: Vec<_> = letters.chars().map(anchor).collect();
    TrustPoint::new(&zone(), anchors.iter(), START)
}

fn letter(tag: u16) -> char {
    ('A'..='Z').chain('a'..='z').find(|letter| key(*letter).tag() == tag).unwrap_or('-')
}

/// What happens when this is published this many days after the start.
fn on(point: &mut TrustPoint, day: u64, text: &str) -> Vec<(char, Change)> {
    let events = point.observe(START + day * DAY, &published(text, TTL));
    events.into_iter().map(|event| (letter(event.tag), event.change)).collect()
}

/// The letters of the trusted keys.
fn believed(point: &TrustPoint) -> String {
    let letters = point.keys.iter().filter(|known| known.state.is_believed());
    let mut letters: Vec<_> = letters.map(|known| letter(known.key.tag())).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

fn state(point: &TrustPoint, of: char) -> &'static str {
    let known = point.keys.iter().find(|known| known.key == key(of));
    known.map_or("start", |known| known.state.name())
}
