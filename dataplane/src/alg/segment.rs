//! A TCP segment as it came, as far as a change of its payload needs it (RFC 9293 §3.1, RFC 2018 §3).

use crate::frame::{Checksum, Frame};
use crate::parse::{Addresses, Packet};
use arrayvec::ArrayVec;
use sixway_wire::TCP_HEADER;
use sixway_wire::checksum::{pseudo4, pseudo6};
use sixway_wire::protocol::TCP;

/// The kind of the option with selective acknowledgments (RFC 2018 §3).
const SACK: u8 = 5;
/// Edges in such an option: four blocks.
pub(super) const MOST_EDGES: usize = 8;

/// A TCP segment.
#[derive(Clone, Debug)]
pub(crate) struct TcpSegment<'a> {
    /// Sequence number.
    pub(super) sequence: u32,
    /// Acknowledgment number; valid with ACK.
    pub(super) acknowledgment: u32,
    /// The flags octet.
    pub(super) flags: u8,
    /// Edges of selective acknowledgments: where each is in the header, in octets, and its value.
    pub(super) edges: ArrayVec<(u8, u32), MOST_EDGES>,
    /// What it carries.
    pub(super) payload: &'a [u8],
    /// Whether its checksum is right, or will be computed later.
    pub(super) is_sound: bool,
}

impl<'a> TcpSegment<'a> {
    /// Reads the segment of a packet; `None`: it is not TCP, is a fragment, or is cut short.
    pub(crate) fn read(frame: &'a Frame, packet: &Packet) -> Option<Self> {
        if packet.protocol != TCP || packet.fragment.is_some() {
            return None;
        }
        let tcp = frame.bytes().get(usize::from(packet.transport_at)..packet.length as usize)?;
        let head = tcp.first_chunk::<TCP_HEADER>()?;
        let length = usize::from(head[12] >> 4) * 4;
        let options = tcp.get(TCP_HEADER..length)?;
        let is_sound = frame.offload.checksum == Checksum::Partial || {
            let octets = tcp.len() as u32;
            let pseudo = match packet.addresses {
                Addresses::V4 { source, destination } => pseudo4(source, destination, TCP, octets),
                Addresses::V6 { source, destination } => pseudo6(source, destination, TCP, octets),
            };
            pseudo.bytes(tcp).fold() == 0xffff
        };
        Some(Self {
            sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            acknowledgment: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
            flags: head[13],
            edges: edges(options),
            payload: &tcp[length..],
            is_sound,
        })
    }
}

/// The edges in a header's options. An option with an invalid length ends the search.
fn edges(options: &[u8]) -> ArrayVec<(u8, u32), MOST_EDGES> {
    let (mut edges, mut at) = (ArrayVec::new(), 0);
    while let Some(kind) = options.get(at).copied().filter(|kind| *kind != 0) {
        let length = if kind == 1 { 1 } else { options.get(at + 1).copied().map_or(0, usize::from) };
        let Some(option) = options.get(at..at + length).filter(|option| !option.is_empty()) else { break };
        if kind == SACK && length >= 2 {
            for (number, edge) in option[2..].as_chunks::<4>().0.iter().enumerate() {
                let place = (TCP_HEADER + at + 2 + number * 4) as u8;
                if edges.try_push((place, u32::from_be_bytes(*edge))).is_err() {
                    break;
                }
            }
        }
        at += length;
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_behind_other_options_and_lies_end_the_search() {
        let sack = [1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 1, 0];
        assert_eq!(edges(&sack).as_slice(), [(24, 9), (28, 256)]);
        for lies in [&[5, 40, 0, 0][..], &[8, 0, 5, 10], &[5], &[5, 1, 2], &[0, 5, 10, 0, 0, 0, 1]] {
            assert_eq!(edges(lies).as_slice(), [], "{lies:?}");
        }
    }
}
