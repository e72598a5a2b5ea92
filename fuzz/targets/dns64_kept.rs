//! Any octets are the cache of a previous process: what is taken over of it is kept again, and answers without a panic.

use sixway_control::Instant;
use sixway_control::dns64::{Anchor, AnchorKey, Dnssec, Resolver, Upstream, Wire};
use std::sync::Arc;

#[path = "dns64_resolver/settings.rs"]
mod settings;

/// As the corpus was written.
const LABELS: [&str; 2] = ["192.0.2.53:53 (udp)", "192.0.2.54:53 (udp)"];

pub fn run(octets: &[u8]) {
    let now = Instant::from_secs(1_050);
    let labels: Vec<String> = LABELS.map(Into::into).into();
    let adopted = |octets: &[u8]| {
        let mut settings = settings::chosen(0);
        settings.upstreams = vec![
            Upstream { names: vec![], datagrams: true },
            Upstream { names: vec![Wire(b"\x04corp\x04test\0".as_slice().into())], datagrams: true },
        ];
        let mut resolver: Resolver<u32> = Resolver::new(settings, [7; 32], now);
        if let Some(mut kept) = resolver.kept(Arc::from(octets), &labels) {
            while resolver.adopt(now, &mut kept, 16) {}
        }
        resolver
    };
    let first = adopted(octets);
    let written = first.keep_answers(now, &labels, 1 << 30);
    // An answer that nobody could have said may read otherwise the second time: it is left out then.
    let again = adopted(&written).keep_answers(now, &labels, 1 << 30);
    assert!(again.len() <= written.len(), "nothing is added");
    let third = adopted(&again).keep_answers(now, &labels, 1 << 30);
    assert_eq!(third.len(), again.len(), "what is kept is kept again");
}
