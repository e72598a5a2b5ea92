//! The header of RTP (RFC 3550 §5.1) for audio of type 0: G.711, 8,000 samples a second (RFC 3551 §4.5.14).

/// Octets of the header.
pub(super) const RTP_HEADER: usize = 12;
/// Samples, and octets, of a packet of 20 ms.
pub(super) const SAMPLES: usize = 160;
/// Packets in a second.
pub(super) const PER_SECOND: f64 = 50.0;
/// Nanoseconds of a unit of the timestamp.
const UNIT: u64 = 125_000;

/// What differs from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtp {
    pub sequence: u16,
    /// Of the first sample, in samples.
    pub timestamp: u32,
    pub source: u32,
}

impl Rtp {
    pub(super) fn octets(self) -> [u8; RTP_HEADER] {
        let mut octets = [0; RTP_HEADER];
        octets[0] = 2 << 6;
        octets[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        octets[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        octets[8..].copy_from_slice(&self.source.to_be_bytes());
        octets
    }

    /// Splits a packet; `None` if it is not one of version 2 and type 0, or has extensions.
    pub(super) fn split(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = packet.split_first_chunk::<RTP_HEADER>()?;
        let [first, kind, s0, s1, t0, t1, t2, t3, source @ ..] = *header;
        let is_ours = first == 2 << 6 && kind & 0x7f == 0;
        is_ours.then_some((
            Self {
                sequence: u16::from_be_bytes([s0, s1]),
                timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
                source: u32::from_be_bytes(source),
            },
            payload,
        ))
    }

    /// The time of its first sample in nanoseconds since the call's beginning.
    pub(super) const fn nanoseconds(&self) -> u64 {
        self.timestamp as u64 * UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let rtp = Rtp { sequence: 0xff01, timestamp: 160, source: 0x1122_3344 };
        let packet = [&rtp.octets()[..], b"audio"].concat();
        assert_eq!(packet[..4], [0x80, 0, 0xff, 0x01]);
        assert_eq!(Rtp::split(&packet), Some((rtp, &b"audio"[..])));
        assert_eq!(rtp.nanoseconds(), 20_000_000);
        assert_eq!(Rtp::split(&packet[..11]), None);
        assert_eq!(Rtp::split(&[0x40; 20]), None, "version 1");
    }
}
