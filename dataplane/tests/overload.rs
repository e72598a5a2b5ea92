//! An engine with a standing queue in front of it: who sends most loses, others do not, and what is left keeps its order.

use crate::support::{gateway, nat64, v6};
use sixway_dataplane::{DropReason, Frame, Outbox, Verdict};
use std::time::Duration;

const HEAVY: &str = "2001:db8:1::1";
const LIGHT: &str = "2001:db8:1:1::1";
const SERVER: &str = "64:ff9b::203.0.113.2";
/// Packets of a batch, of which one is the light sender's.
const BATCH: u16 = 64;

/// What became of the packets of both, in batches 2 ms apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fates {
    heavy: [usize; 2],
    light: [usize; 2],
}

/// `is_empty`: whether the queue is empty after each batch.
fn run(is_empty: bool) -> Fates {
    let mut gateway = gateway(|engine| {
        engine.nat64.push(nat64());
        engine.fair_shares = Some(64);
    });
    let (mut fates, mut out) = (Fates::default(), Outbox::new(1_024));
    for round in 0..500_u16 {
        gateway.now = gateway.now + Duration::from_millis(2);
        let own = round % BATCH;
        let packet = |number: u16| {
            let source = if number == own { LIGHT } else { HEAVY };
            Frame::holding(&v6(source, SERVER).udp(4_000 + number, 53, &round.to_be_bytes()).octets())
        };
        let mut frames: Vec<_> = (0..BATCH).map(packet).collect();
        gateway.engine.process(&mut frames, gateway.now, &mut out);
        for (number, frame) in frames.iter().enumerate() {
            let fate = if number == usize::from(own) { &mut fates.light } else { &mut fates.heavy };
            match frame.verdict {
                Verdict::Dropped(DropReason::Overload) => {
                    fate[1] += 1;
                    assert_eq!(frame.bytes()[0] >> 4, 6, "nothing was done with it");
                }
                _ => {
                    fate[0] += 1;
                    assert_eq!(frame.bytes()[0] >> 4, 4, "{:?}", frame.verdict);
                    assert!(frame.bytes().ends_with(&round.to_be_bytes()));
                }
            }
        }
        out.clear();
        if is_empty {
            gateway.engine.emptied(gateway.now);
        }
    }
    let counters = gateway.engine.counters();
    assert_eq!(counters.received, 500 * u64::from(BATCH));
    assert_eq!(counters.received, counters.forwarded + counters.dropped_total(), "packets are conserved");
    assert_eq!(counters.dropped_total(), (fates.heavy[1] + fates.light[1]) as u64);
    fates
}

#[test]
fn a_standing_queue_causes_drops_of_the_heavy_sender_and_none_of_the_light_one() {
    let fates = run(false);
    assert_eq!(fates.light, [500, 0]);
    assert!(fates.heavy[1] > 1_000, "{fates:?}");
    // Four fifths of what was processed before are processed at least.
    assert!(fates.heavy[0] + fates.light[0] > 500 * usize::from(BATCH) * 4 / 5, "{fates:?}");
}

#[test]
fn without_a_standing_queue_nothing_is_dropped() {
    assert_eq!(run(true), Fates { heavy: [500 * 63, 0], light: [500, 0] });
}

/// What is not an IP packet has no sender. It is dropped for what it is.
#[test]
fn octets_without_a_source_address_are_dropped_for_another_reason() {
    let mut gateway = gateway(|engine| engine.fair_shares = Some(64));
    for octets in [&[][..], &[0x45; 15], &[0x60; 23], &[0x10; 60]] {
        for _ in 0..100 {
            gateway.now = gateway.now + Duration::from_millis(10);
            let mut frames = [Frame::holding(octets), Frame::holding(octets)];
            gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(8));
            for frame in frames {
                let is_other =
                    matches!(frame.verdict, Verdict::Dropped(reason) if reason != DropReason::Overload);
                assert!(is_other, "{:?}", frame.verdict);
            }
        }
    }
}
