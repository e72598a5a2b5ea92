//! Any text is the operator's trust anchors, or the state of trust anchors, or none; whatever an upstream replies, only what is signed changes what is
//! believed in, and what is written down is taken over again.
//!
//! The input is a text, an octet 0, and a reply, which comes three times: immediately, after 31 days and a day later.

use sixway_dnssec::Wire;
use sixway_dnssec::trust_anchor::{TrustAnchors, read, root};

/// A zone whose keys the corpus has, signed.
const ZONE: &[u8] = b"\x06anchor\x07example\x00";

const ANCHOR: &str = "anchor.example. DNSKEY 257 3 13 xOs96W7hvi5qv9nu0D4B9p9+Wy5kA9Ki33LpjlQbec+08mTlnKLQvSwc yE2/BZEZLn43oao6wV824fbcvIE20w==";

/// 2024-02-01, within the time of the corpus' signatures.
const START: u64 = 1_706_745_600;

const DAY: u64 = 86_400;

pub fn run(octets: &[u8]) {
    let at = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    let (text, reply) = (String::from_utf8_lossy(&octets[..at]), octets.get(at + 1..).unwrap_or_default());
    if let Ok(configured) = read(&text) {
        let mut anchors = TrustAnchors::new(&configured, START);
        kept(&anchors);
        let _ = anchors.poll_lookup(START);
    }
    let configured = [root(), read(ANCHOR).unwrap()].concat();
    let restored = TrustAnchors::restored(&configured, &text, START);
    published(restored.unwrap_or_else(|_| TrustAnchors::new(&configured, START)), reply);
}

fn published(mut anchors: TrustAnchors, reply: &[u8]) {
    let zone = Wire(ZONE.into());
    let others = |anchors: &TrustAnchors| {
        let all = anchors.anchors().into_iter();
        all.filter(|anchor| anchor.zone.0[..] != *ZONE).collect::<Vec<_>>()
    };
    let root = others(&anchors);
    for now in [START, START + 31 * DAY, START + 32 * DAY] {
        let before = anchors.anchors();
        let events = anchors.handle_reply(now, &zone, Some(reply));
        assert!(events.iter().all(|event| !event.to_string().is_empty()));
        let is_changed = events.iter().any(|event| event.changes_anchors());
        assert!(is_changed || before.len() == anchors.anchors().len(), "{events:?}");
        assert_eq!(others(&anchors), root, "a zone speaks for itself only");
        kept(&anchors);
    }
}

/// What is written down is taken over.
fn kept(anchors: &TrustAnchors) {
    let text = anchors.text();
    let configured = anchors.anchors();
    if let Some(again) = configured.first().map(|_| TrustAnchors::restored(&configured, &text, START)) {
        let again = again.unwrap_or_else(|damaged| panic!("{damaged}: {text}"));
        assert!(configured.iter().all(|anchor| again.anchors().contains(anchor)), "{text}");
    }
}
