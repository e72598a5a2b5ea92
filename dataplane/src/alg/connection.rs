//! A control connection: its two streams, and the dialogue in them.

use super::ftp::{Asked, Dialogue};
use super::half::{Half, Reader};
use super::segment::TcpSegment;
use super::stream::Stream;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::parse::{ACK, FIN};
use crate::verdict::TcpRewrite;

/// A control connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// The client's initial sequence number.
    initial: u32,
    client: Half,
    server: Half,
    dialogue: Dialogue,
}

impl Connection {
    /// A connection with the sequence numbers of the client's SYN and the server's.
    pub(super) fn new(client: u32, server: u32) -> Self {
        Self {
            initial: client,
            client: Half::new(client),
            server: Half::new(server),
            dialogue: Dialogue::new(),
        }
    }

    /// Whether a SYN from inside begins another connection.
    pub(super) const fn is_other(&self, syn: &TcpSegment<'_>) -> bool {
        syn.sequence != self.initial
    }

    /// Whether both sides have sent FIN.
    pub(super) const fn has_ended(&self) -> bool {
        self.client.has_ended && self.server.has_ended
    }

    /// Processes a segment without SYN. Returns its changes; `None`: none.
    pub(super) fn pass(
        &mut self,
        segment: &TcpSegment<'_>,
        direction: Direction,
        asked: &mut Asked<'_>,
        counters: &mut Counters,
    ) -> Option<TcpRewrite> {
        let Self { client, server, dialogue, .. } = self;
        let (from, to) = match direction {
            Direction::Out => (client, server),
            Direction::In => (server, client),
        };
        if segment.flags & ACK != 0 {
            to.stream.acknowledge(segment.acknowledgment);
        }
        from.has_ended |= segment.flags & FIN != 0;
        if segment.is_sound && !segment.payload.is_empty() {
            let was_transparent = dialogue.is_transparent();
            let refused = from.read(segment, &mut Reader { direction, dialogue, asked, counters });
            to.owe(refused);
            counters.ftp_connections_unread += u64::from(!was_transparent && dialogue.is_transparent());
        }
        rewrite(segment, &from.stream, &to.stream)
    }
}

/// The changes of a segment: of its payload and sequence number, by its own stream; of its acknowledgment, by the other stream.
fn rewrite(segment: &TcpSegment<'_>, from: &Stream, to: &Stream) -> Option<TcpRewrite> {
    if !from.is_changed() && !to.is_changed() {
        return None;
    }
    let edges = segment.edges.iter().map(|(place, edge)| (*place, to.sent(*edge))).collect();
    let acknowledges = segment.flags & ACK != 0;
    let acknowledged = segment.acknowledgment;
    let payload = from.rewritten(segment.sequence, segment.payload);
    let position = from.forwarded(segment.sequence);
    let is_cut_out = payload.as_ref().is_some_and(|payload| payload.is_empty())
        && segment.flags & FIN == 0
        && from.sent(position) != segment.sequence;
    Some(TcpRewrite {
        // A segment without remaining octets becomes a keep-alive (RFC 9293 §3.8.4). Otherwise its sender would retransmit it until it aborts.
        sequence: position.wrapping_sub(u32::from(is_cut_out)),
        acknowledgment: if acknowledges { to.sent(acknowledged) } else { acknowledged },
        edges,
        payload,
    })
}
