//! Any octets are a packet or none: parsing never panics, and what it says lies within the octets.

use sixway_dataplane::parse;

pub fn run(octets: &[u8]) {
    let Ok(packet) = parse::parse(octets) else { return };
    assert!(packet.length as usize <= octets.len(), "the packet is longer than its octets");
    assert!(
        u32::from(packet.transport_at) <= packet.length,
        "the transport header starts behind the packet's end"
    );
    assert!(u32::from(packet.segments_left_at) < packet.length, "Segments Left lies behind the packet's end");
    assert!(
        u32::from(packet.fragment_header) < packet.length,
        "the Fragment header starts behind the packet's end"
    );
    // Octets behind the packet's own length are padding, and change nothing.
    let cut = parse::parse(&octets[..packet.length as usize]);
    assert_eq!(cut, Ok(packet), "padding changed what was read");
}
