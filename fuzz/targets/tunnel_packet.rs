//! Any octets are a tunnel packet from a raw socket or a TUN device: what is said of them can be acted on.
//!
//! The first ten octets are a virtio header, the rest is the packet.

#[path = "checksum.rs"]
mod checksum;

use checksum::State;
use sixway_dataplane::{Checksum, Frame, Offload, parse};
use sixway_link::LinkCounters;
use sixway_link::raw::{Reading, reading};
use sixway_link::segmentation::Plain;
use sixway_link::tun::virtio::{Header, LENGTH};

pub fn run(octets: &[u8]) {
    let Some((header, packet)) = octets.split_first_chunk::<LENGTH>() else { return };
    let mut counters = LinkCounters::default();
    let mut received = packet.to_vec();
    let offload = Header::from_octets(header).offload(&mut received, &mut counters);
    cut_inside(&received, offload, None);
    let mut frame = Frame::holding(&received);
    frame.offload = offload;
    let _ = Header::describing(&mut frame);

    match reading(packet) {
        Reading::Packet(offload) => cut_inside(packet, offload, Some(1_280)),
        Reading::BoundariesLost => assert!(packet.len() > 1_500),
    }
}

/// Takes the outer header off, finishes or cuts what was inside, and looks at what becomes of it. With `largest` the packet was
/// judged by itself, so that nothing longer and no wrong checksum may come of it; a device is believed.
fn cut_inside(packet: &[u8], offload: Offload, largest: Option<usize>) {
    let tunnel = packet.first().is_some_and(|octet| octet >> 4 == 4) && packet.get(9) == Some(&41);
    if offload.checksum == Checksum::Complete || !tunnel {
        return;
    }
    let outer = usize::from(packet[0] & 0x0f) * 4;
    let inner = &packet[outer..];
    // The engine continues with what is a packet of its own, and cuts off what follows it.
    let Ok(whole) = parse::parse(inner) else { return };
    let mut frame = Frame::holding(&inner[..whole.length as usize]);
    frame.offload = Offload { transport: offload.transport - outer as u16, ..offload };
    let sent = Plain::default().each(&mut frame, &mut LinkCounters::default(), |sent, _| {
        let Ok(parsed) = parse::parse(sent.bytes()) else { panic!("no packet: {sent:?}") };
        if let Some(largest) = largest {
            assert!(offload.segments.is_none() || sent.len() <= largest, "{sent:?}");
            let state = checksum::complete(sent.bytes(), &parsed);
            assert!(matches!(state, State::Right | State::Unknown), "{state:?}: {sent:?}");
        }
        Ok(())
    });
    assert!(sent.is_ok());
}
