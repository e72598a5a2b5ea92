//! Packets of a flow leave in the order in which they came (RFC 7915 §4, §5), also where some of them leave in fragments, some are
//! refused, and the batch is longer than what the engine looks at together.

use crate::support;
use crate::support::{Gateway, eam, v4, v6};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::{Frame, Instant, Limits, Outbox, Verdict};

const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::203.0.113.2";
/// Packets of the flow; the data of each begins with its number.
const PACKETS: u16 = 300;

fn gateway() -> Gateway {
    support::gateway(|config| {
        config.limits = Limits { mtu4: 1_000, mtu6: 1_500 };
        config.siit.push(SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
            ..SiitConfig::default()
        });
    })
}

/// Every third packet is large, every seventh comes with no hop left.
fn shape(number: u16) -> (Vec<u8>, u8) {
    let length = if number.is_multiple_of(3) { 1_180 } else { 20 };
    let mut data = vec![0; length];
    data[..2].copy_from_slice(&number.to_be_bytes());
    (data, if number.is_multiple_of(7) { 1 } else { 64 })
}

/// What a caller sends of a batch: each frame that leaves, and at the place of one that left in pieces those pieces.
fn on_the_wire(frames: &[Frame], out: &mut Outbox) -> Vec<Vec<u8>> {
    let pieces: Vec<Vec<u8>> = out.frames().iter().map(|frame| frame.bytes().to_vec()).collect();
    let mut sent = Vec::new();
    for frame in frames {
        if frame.verdict.leaves() {
            sent.push(frame.bytes().to_vec());
        }
        sent.extend(frame.pieces.clone().map(|piece| pieces[usize::from(piece)].clone()));
    }
    sent
}

/// The number of a packet of the flow, unless it is a later fragment or an answer to its sender.
fn number(packet: &[u8]) -> Option<u16> {
    let (at, is_later) = match (packet[0] >> 4, packet[6]) {
        (4, _) if packet[9] == 17 => (20, u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff != 0),
        (6, 17) => (40, false),
        (6, 44) => (48, u16::from_be_bytes([packet[42], packet[43]]) >> 3 != 0),
        _ => return None,
    };
    (!is_later).then(|| u16::from_be_bytes([packet[at + 8], packet[at + 9]]))
}

fn check(packets: Vec<Vec<u8>>) {
    let mut gateway = gateway();
    let mut frames: Vec<Frame> = packets.iter().map(|packet| Frame::holding(packet)).collect();
    let mut out = Outbox::new(2_000);
    gateway.engine.process(&mut frames, Instant::from_secs(1), &mut out);
    let sent = on_the_wire(&frames, &mut out);
    let numbers: Vec<u16> = sent.iter().filter_map(|packet| number(packet)).collect();
    assert_eq!(numbers, (0..PACKETS).filter(|number| !number.is_multiple_of(7)).collect::<Vec<_>>());
    assert!(frames.iter().any(|frame| frame.verdict == Verdict::InPieces), "some leave in fragments");
    // The fragments of a packet are together, the first in front.
    let fragments =
        sent.iter().filter(|packet| packet[0] >> 4 == 6 && packet[6] == 44 || packet[0] >> 4 == 4);
    assert!(fragments.count() > usize::from(PACKETS) / 3);
}

#[test]
fn from_ipv4_to_ipv6() {
    check(
        (0..PACKETS)
            .map(|number| {
                let (mut data, hops) = shape(number);
                data.resize(if data.len() > 20 { 1_400 } else { 20 }, 0);
                v4(PEER4, HOST4).may_fragment().hops(hops).udp(1, 2, &data).octets()
            })
            .collect(),
    );
}

#[test]
fn from_ipv6_to_ipv4() {
    check(
        (0..PACKETS)
            .map(|number| {
                let (data, hops) = shape(number);
                v6(HOST6, PEER6).hops(hops).udp(1, 2, &data).octets()
            })
            .collect(),
    );
}
