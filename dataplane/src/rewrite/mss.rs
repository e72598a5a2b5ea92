//! TCP's maximum segment size option (RFC 9293 §3.7.1), lowered to what the path can carry.

use sixway_wire::checksum::{self, Sum};

/// The kind of the option.
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// Lowers the MSS option of a SYN to `limit` octets if it is greater; `tcp` starts at the TCP header.
/// The checksum is kept right unless it is partial, when the kernel computes it later. Options that lie about their
/// lengths end the search.
pub fn clamp(tcp: &mut [u8], limit: u16, partial: bool) {
    let Some(header_length) = tcp.get(12).map(|octet| usize::from(octet >> 4) * 4) else { return };
    let end = header_length.min(tcp.len());
    let mut at = 20;
    while at < end {
        let length = match tcp[at] {
            0 => return,
            1 => 1,
            _ => tcp.get(at + 1).copied().map_or(0, usize::from),
        };
        if length == 0 || at + length > end {
            return;
        }
        if tcp[at] == MAXIMUM_SEGMENT_SIZE && length == 4 {
            return lower(tcp, at + 2, limit, partial);
        }
        at += length;
    }
}

fn lower(tcp: &mut [u8], at: usize, limit: u16, partial: bool) {
    let value = u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    if value <= limit {
        return;
    }
    tcp[at..at + 2].copy_from_slice(&limit.to_be_bytes());
    if !partial {
        // At an odd offset the value straddles two words of the sum: its octets change places.
        let swap = |word: u16| if at % 2 == 1 { word.swap_bytes() } else { word };
        let old = u16::from_be_bytes([tcp[16], tcp[17]]);
        let new = checksum::update(old, Sum::ZERO.word(swap(value)), Sum::ZERO.word(swap(limit)));
        tcp[16..18].copy_from_slice(&new.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0u8; 20];
        tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
        tcp[13] = 2;
        tcp.extend_from_slice(options);
        let sum = Sum::ZERO.bytes(&tcp).checksum();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    }

    #[test]
    fn a_greater_mss_is_lowered_and_the_checksum_stays_right() {
        for options in
            [&[2, 4, 0x05, 0xb4][..], &[1, 2, 4, 0x05, 0xb4, 1, 1, 1], &[1, 1, 1, 2, 4, 0xff, 0xff, 0]]
        {
            let mut tcp = syn(options);
            clamp(&mut tcp, 1_220, false);
            assert_eq!(Sum::ZERO.bytes(&tcp).fold(), 0xffff, "{options:?}");
            assert!(tcp.windows(4).any(|w| w == [2, 4, 0x04, 0xc4]), "{options:?}");
        }
    }

    #[test]
    fn a_smaller_mss_and_lying_options_are_left_alone() {
        for options in [&[2, 4, 0x02, 0x00][..], &[3, 0, 1, 1], &[2, 40, 5, 5], &[0, 2, 4, 9]] {
            let before = syn(options);
            let mut tcp = before.clone();
            clamp(&mut tcp, 1_220, false);
            assert_eq!(tcp, before);
        }
        clamp(&mut [0; 5], 1_220, false);
    }
}
