//! One direction of a control connection: its octets become lines, of which the dialogue changes some.

use super::ftp::{Answer, Asked, Dialogue, HEAD};
use super::segment::TcpSegment;
use super::stream::{Stream, Text, Unread};
use super::telnet::{Refusals, Telnet, Token};
use crate::counters::Counters;
use crate::direction::Direction;
use arrayvec::ArrayVec;

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) stream: Stream,
    telnet: Telnet,
    /// The beginning of a line that has no end yet; `None`: the next octet begins a line.
    open_line: Option<ArrayVec<u8, HEAD>>,
    /// Refusals for its receiver, which are sent in front of the next line.
    owed: Refusals,
    pub(super) has_ended: bool,
}

/// The readers.
pub(super) struct Reader<'a, 'b> {
    pub(super) direction: Direction,
    pub(super) dialogue: &'a mut Dialogue,
    pub(super) asked: &'a mut Asked<'b>,
    pub(super) counters: &'a mut Counters,
}

impl Half {
    /// One whose SYN has this sequence number.
    pub(super) fn new(sequence: u32) -> Self {
        Self {
            stream: Stream::new(sequence.wrapping_add(1)),
            telnet: Telnet::default(),
            open_line: None,
            owed: Refusals::new(),
            has_ended: false,
        }
    }

    /// The receiver of this direction gets these refusals.
    pub(super) fn owe(&mut self, refusals: Refusals) {
        // Further attempts are not answered.
        let room = self.owed.remaining_capacity();
        self.owed.extend(refusals.into_iter().take(room));
    }

    /// Reads the octets that pass for the first time. Returns the refusals for their sender.
    pub(super) fn read(&mut self, segment: &TcpSegment<'_>, reader: &mut Reader<'_, '_>) -> Refusals {
        let mut refused = Refusals::new();
        let (start, octets) = match self.stream.advance(segment.sequence, segment.payload) {
            Unread::Nothing => return refused,
            Unread::BehindGap(octets) => {
                self.telnet = Telnet::default();
                self.open_line = (!octets.ends_with(b"\n")).then(ArrayVec::new);
                reader.lose();
                return refused;
            }
            Unread::Following(start, octets) => (start, octets),
        };
        let mut at = 0_usize;
        while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
            if reader.dialogue.is_transparent() {
                break;
            }
            let place = start.wrapping_add(at as u32);
            match self.telnet.next(rest, reader.dialogue.is_reading()) {
                Token::Text(text) => {
                    self.read_text(place, text, reader);
                    at += text.len();
                }
                Token::Negotiation { octets, instead, refusals } => {
                    if self.cut(place, octets, instead, reader.counters) {
                        let room = refused.remaining_capacity();
                        refused.extend(refusals.into_iter().take(room));
                    }
                    at += octets;
                }
            }
        }
        refused
    }

    /// Replaces these octets. Returns whether there was room to store the change.
    fn cut(&mut self, place: u32, octets: usize, instead: &[u8], counters: &mut Counters) -> bool {
        let has_room = self.stream.has_room();
        if has_room {
            counters.ftp_lines_changed += 1;
            self.stream.change(place, octets as u16, instead.iter().copied().collect());
        } else {
            counters.ftp_lines_unread += 1;
        }
        has_room
    }

    /// Reads a line, or a part of one.
    fn read_text(&mut self, place: u32, text: &[u8], reader: &mut Reader<'_, '_>) {
        let (begins, is_whole, has_room) =
            (self.open_line.is_none(), text.ends_with(b"\n"), self.stream.has_room());
        let answer = match &mut self.open_line {
            None if is_whole && has_room => reader.line(text),
            None if is_whole => reader.unread_line(text.get(..HEAD).unwrap_or(text)),
            None => {
                reader.counters.ftp_lines_unread += 1;
                self.open_line = Some(text.iter().copied().take(HEAD).collect());
                Answer::Keep
            }
            Some(head) => {
                let room = head.remaining_capacity();
                head.extend(text.iter().copied().take(room));
                if is_whole {
                    reader.note(head);
                    self.open_line = None;
                }
                Answer::Keep
            }
        };
        let mut line = Text::new();
        if begins && has_room {
            line.extend(core::mem::take(&mut self.owed).into_iter().flatten());
        }
        let replaced = match answer {
            Answer::Keep | Answer::Refuse => {
                reader.counters.ftp_mappings_refused += u64::from(answer == Answer::Refuse);
                // Refusals are sent in front of its first octet.
                text.get(..1).filter(|_| !line.is_empty())
            }
            Answer::Change(_) => Some(text),
        };
        let Some(replaced) = replaced else { return };
        let new = match &answer {
            Answer::Change(new) => new,
            Answer::Keep | Answer::Refuse => replaced,
        };
        if line.try_extend_from_slice(new).is_ok() {
            reader.counters.ftp_lines_changed += 1;
            self.stream.change(place, replaced.len() as u16, line);
        }
    }
}

impl Reader<'_, '_> {
    fn line(&mut self, line: &[u8]) -> Answer {
        match self.direction {
            Direction::Out => self.dialogue.command(line, self.asked),
            Direction::In => self.dialogue.reply(line),
        }
    }

    fn unread_line(&mut self, head: &[u8]) -> Answer {
        self.counters.ftp_lines_unread += 1;
        self.note(head);
        Answer::Keep
    }

    /// A line of which only the beginning is known has passed.
    fn note(&mut self, head: &[u8]) {
        match self.direction {
            Direction::Out => self.dialogue.unread_command(head),
            Direction::In => self.dialogue.unread_reply(head),
        }
    }

    /// Octets are missing, or will arrive too late to be read. A client's octets there may not be a command.
    fn lose(&mut self) {
        self.counters.ftp_lines_unread += u64::from(!self.dialogue.is_transparent());
        match self.direction {
            Direction::Out => self.dialogue.stop(),
            Direction::In => {}
        }
    }
}
