//! Frame sizes (RFC 8219 §5.1.1), and what of them is UDP payload.

use sixway_wire::{IPV6_HEADER, UDP_HEADER};

/// Octets of an Ethernet frame around its packet: header and check sequence.
const ETHERNET: usize = 18;
/// Sizes of frames with IPv6, up to the links' MTU of 1,500. The smallest one is 84: a translated frame has 64.
pub const SIZES: [f64; 8] = [84.0, 128.0, 256.0, 512.0, 768.0, 1_024.0, 1_280.0, 1_518.0];
/// The smallest size.
pub const SMALLEST: usize = 84;
/// Those of a quick run.
pub const QUICK: [f64; 2] = [84.0, 1_518.0];

/// Octets of UDP payload in an IPv6 frame of this size.
pub const fn payload(frame: usize) -> usize {
    frame.saturating_sub(ETHERNET + IPV6_HEADER + UDP_HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::STAMP;

    #[test]
    fn every_frame_has_room_for_its_number_and_fits() {
        for frame in SIZES {
            let payload = payload(frame as usize);
            assert!((STAMP..=1_500 - IPV6_HEADER - UDP_HEADER).contains(&payload), "{frame}");
        }
        assert_eq!(payload(84), 18, "as much as a frame of 64 octets has with IPv4");
    }
}
