//! The stamp in each packet, from which loss, order, latency and jitter follow. `stamped.bpf.c` has the same layout.
//!
//! ```text
//! | flow 16 | balance 16 | sequence 32 | due 64 |     in network order
//! ```
//!
//! The balance makes the eight words sum to all ones, so a stamp does not change the checksum of a packet whose payload is zero. It also
//! distinguishes our packets from others.

use sixway_wire::checksum::Sum;

/// Octets of a stamp.
pub const STAMP: usize = 16;

/// What octets behind a stamp are filled with.
pub const FILL: u8 = 0x36;

/// A packet's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The flow that it belongs to, from 0.
    pub flow: u16,
    /// Its number among all packets of its load, from 0.
    pub sequence: u32,
    /// When it was to be sent, by [`super::clock::now`].
    pub due: u64,
}

impl Stamp {
    /// As it is in a packet.
    pub fn octets(self) -> [u8; STAMP] {
        let mut octets = [0; STAMP];
        octets[..2].copy_from_slice(&self.flow.to_be_bytes());
        octets[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        octets[8..].copy_from_slice(&self.due.to_be_bytes());
        let balance = !Sum::ZERO.bytes(&octets).fold();
        octets[2..4].copy_from_slice(&balance.to_be_bytes());
        octets
    }

    /// Writes it to the front of a payload, if there is room.
    pub fn write(self, payload: &mut [u8]) {
        if let Some(front) = payload.first_chunk_mut() {
            *front = self.octets();
        }
    }

    /// Reads it; `None` if the payload is not one of ours.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let octets: &[u8; STAMP] = payload.first_chunk()?;
        let [f0, f1, _, _, s0, s1, s2, s3, due @ ..] = *octets;
        let is_ours = Sum::ZERO.bytes(octets).fold() == 0xffff;
        is_ours.then(|| Self {
            flow: u16::from_be_bytes([f0, f1]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            due: u64::from_be_bytes(due),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written_and_changes_no_checksum() {
        for flow in [0, 1, 0xffff] {
            let stamp = Stamp { flow, sequence: 70_000, due: u64::from(flow) << 40 | 5 };
            let mut payload = [FILL; 20];
            stamp.write(&mut payload);
            assert_eq!(Stamp::read(&payload), Some(stamp));
            assert_eq!(Sum::ZERO.bytes(&payload[..STAMP]).fold(), 0xffff, "zero in ones' complement");
            payload[9] ^= 1;
            assert_eq!(Stamp::read(&payload), None, "not what was sent");
            assert_eq!(Stamp::read(&payload[..15]), None);
        }
    }
}
