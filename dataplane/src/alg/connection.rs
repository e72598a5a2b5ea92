//! A control connection: its two streams, and the dialogue in them.

use super::ftp::{Answer, Asked, Dialogue};
use super::segment::TcpSegment;
use super::stream::{Stream, Unread};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::parse::{ACK, FIN, SYN};
use crate::verdict::TcpRewrite;
use arrayvec::ArrayVec;

/// Octets of a line that came in several segments which are kept: a reply's code, and what is behind it.
const HEAD: usize = 4;

/// One direction.
#[derive(Clone, Debug)]
struct Half {
    stream: Stream,
    /// The beginning of a line that has no end yet; `None`: the next octet begins a line.
    open_line: Option<ArrayVec<u8, HEAD>>,
    has_ended: bool,
}

impl Half {
    fn new(sequence: u32) -> Self {
        Self { stream: Stream::new(sequence.wrapping_add(1)), open_line: None, has_ended: false }
    }
}

/// A control connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// The client's initial sequence number.
    initial: u32,
    client: Half,
    /// `None`: the server has not answered the SYN.
    server: Option<Half>,
    dialogue: Dialogue,
}

impl Connection {
    /// A connection that this SYN begins.
    pub(super) fn new(syn: &TcpSegment<'_>) -> Self {
        let (initial, client) = (syn.sequence, Half::new(syn.sequence));
        Self { initial, client, server: None, dialogue: Dialogue::new() }
    }

    /// Whether a SYN from inside begins another connection.
    pub(super) fn is_other(&self, syn: &TcpSegment<'_>) -> bool {
        syn.sequence != self.initial
    }

    /// Whether both sides have sent FIN.
    pub(super) fn has_ended(&self) -> bool {
        self.client.has_ended && self.server.as_ref().is_some_and(|server| server.has_ended)
    }

    /// A segment passes. What is changed in it; `None`: nothing.
    pub(super) fn pass(
        &mut self,
        segment: &TcpSegment<'_>,
        direction: Direction,
        asked: &mut Asked<'_>,
        counters: &mut Counters,
    ) -> Option<TcpRewrite> {
        if segment.flags & SYN != 0 {
            if direction == Direction::In && segment.flags & ACK != 0 && self.server.is_none() {
                self.server = Some(Half::new(segment.sequence));
            }
            return None;
        }
        let Self { client, server, dialogue, .. } = self;
        let server = server.as_mut()?;
        let (from, to) = match direction {
            Direction::Out => (client, server),
            Direction::In => (server, client),
        };
        if segment.flags & ACK != 0 {
            to.stream.acknowledge(segment.acknowledgment);
        }
        from.has_ended |= segment.flags & FIN != 0;
        if segment.is_sound && !segment.payload.is_empty() {
            from.read(segment, (direction, dialogue), asked, counters);
        }
        rewrite(segment, &from.stream, &to.stream)
    }
}

impl Half {
    /// Reads the lines that pass for the first time.
    fn read(
        &mut self,
        segment: &TcpSegment<'_>,
        (direction, dialogue): (Direction, &mut Dialogue),
        asked: &mut Asked<'_>,
        counters: &mut Counters,
    ) {
        let (start, octets) = match self.stream.advance(segment.sequence, segment.payload) {
            Unread::Nothing => return,
            Unread::BehindGap(octets) => {
                counters.ftp_lines_unread += 1;
                self.open_line = (!octets.ends_with(b"\n")).then(ArrayVec::new);
                return;
            }
            Unread::Following(start, octets) => (start, octets),
        };
        let mut at = 0_usize;
        for line in octets.split_inclusive(|octet| *octet == b'\n') {
            if dialogue.is_transparent() {
                return;
            }
            let is_whole = line.ends_with(b"\n");
            let answer = match (&mut self.open_line, is_whole) {
                (None, true) if self.stream.has_room() => match direction {
                    Direction::Out => dialogue.command(line, asked),
                    Direction::In => dialogue.reply(line),
                },
                (None, true) => {
                    counters.ftp_lines_unread += 1;
                    note(dialogue, direction, line.get(..HEAD).unwrap_or_default());
                    Answer::Keep
                }
                (open @ None, false) => {
                    counters.ftp_lines_unread += 1;
                    *open = Some(line.iter().copied().take(HEAD).collect());
                    Answer::Keep
                }
                (Some(head), _) => {
                    let room = head.remaining_capacity();
                    head.extend(line.iter().copied().take(room));
                    if is_whole {
                        note(dialogue, direction, head);
                        self.open_line = None;
                    }
                    Answer::Keep
                }
            };
            match answer {
                Answer::Keep => {}
                Answer::Refuse => counters.ftp_mappings_refused += 1,
                Answer::Change(text) => {
                    counters.ftp_lines_changed += 1;
                    self.stream.change(start.wrapping_add(at as u32), line.len() as u16, text);
                }
            }
            at += line.len();
        }
    }
}

/// A line passed of which the beginning is known.
fn note(dialogue: &mut Dialogue, direction: Direction, head: &[u8]) {
    match direction {
        Direction::Out => dialogue.unread_command(head),
        Direction::In => dialogue.unread_reply(head),
    }
}

/// What is changed in a segment: its payload and position by the changes in its own stream, what it acknowledges by those in the other.
fn rewrite(segment: &TcpSegment<'_>, from: &Stream, to: &Stream) -> Option<TcpRewrite> {
    if !from.is_changed() && !to.is_changed() {
        return None;
    }
    let edges = segment.edges.iter().map(|(place, edge)| (*place, to.sent(*edge))).collect();
    let acknowledges = segment.flags & ACK != 0;
    let acknowledged = segment.acknowledgment;
    Some(TcpRewrite {
        sequence: from.forwarded(segment.sequence),
        acknowledgment: if acknowledges { to.sent(acknowledged) } else { acknowledged },
        edges,
        payload: from.rewritten(segment.sequence, segment.payload),
    })
}
