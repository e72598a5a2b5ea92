//! One direction of a connection whose lines are changed: which octets are new, and where the changed lines are.
//!
//! ```text
//!     as sent:      ....|PORT 10,0,0,1,4,1\r\n|NOOP\r\n        positions of the sender: what the rewritten packets map from
//!     as forwarded: ....|PORT 192,0,2,1,78,32\r\n|NOOP\r\n     positions of the receiver: acknowledgments map back from
//! ```
//!
//! A line is changed when it passes for the first time, if all of it is in one segment. A retransmission gets the same change, however its
//! sender cuts it: the segment with the line's last octet carries the whole new line. What was forwarded once is never changed otherwise.

use arrayvec::ArrayVec;

/// Octets of a new line.
pub(super) const MOST_OCTETS: usize = 64;
/// Changed lines that may be retransmitted still.
const MOST_EDITS: usize = 4;
/// How far behind what was forwarded a segment may begin: others are not of this connection's window.
const WINDOW: u32 = 1 << 20;

/// A new line.
pub(super) type Text = ArrayVec<u8, MOST_OCTETS>;

/// A changed line.
#[derive(Clone, Debug)]
struct Edit {
    /// Where it begins, as sent.
    start: u32,
    /// Its octets, as sent.
    length: u16,
    /// What is forwarded.
    text: Text,
}

impl Edit {
    const fn end(&self) -> u32 {
        self.start.wrapping_add(self.length as u32)
    }

    /// Octets that the line becomes longer by.
    fn growth(&self) -> u32 {
        (self.text.len() as u32).wrapping_sub(u32::from(self.length))
    }
}

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The growth of the lines that are not remembered.
    base: u32,
    /// The changed lines that are, in their order.
    edits: ArrayVec<Edit, MOST_EDITS>,
    /// What was forwarded ends here, as sent.
    next: u32,
    /// What the receiver acknowledged, as forwarded.
    acknowledged: u32,
}

/// Octets that pass for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread<'a> {
    /// There are none.
    Nothing,
    /// They follow what passed before; where they begin, as sent.
    Following(u32, &'a [u8]),
    /// Octets before them have not passed.
    BehindGap(&'a [u8]),
}

impl Stream {
    /// A stream whose first octet has this position.
    pub(super) fn new(first: u32) -> Self {
        Self { base: 0, edits: ArrayVec::new(), next: first, acknowledged: first }
    }

    /// Whether positions or octets differ between the two sides.
    pub(super) fn is_changed(&self) -> bool {
        self.base != 0 || !self.edits.is_empty()
    }

    /// The octets of a segment that pass for the first time. They count as forwarded from now on.
    pub(super) fn advance<'a>(&mut self, sequence: u32, payload: &'a [u8]) -> Unread<'a> {
        let end = sequence.wrapping_add(payload.len() as u32);
        if !is_before(self.next, end) {
            return Unread::Nothing;
        }
        let (next, ahead) = (self.next, sequence.wrapping_sub(self.next));
        if is_before(next, sequence) {
            if ahead > WINDOW {
                return Unread::Nothing;
            }
            self.next = end;
            return Unread::BehindGap(payload);
        }
        self.next = end;
        payload
            .get(next.wrapping_sub(sequence) as usize..)
            .map_or(Unread::Nothing, |rest| Unread::Following(next, rest))
    }

    /// Whether one more line may be changed. Lines that the receiver has acknowledged are forgotten for it.
    pub(super) fn has_room(&mut self) -> bool {
        if self.edits.is_full() {
            let end =
                self.edits.first().map(|edit| self.base.wrapping_add(edit.end()).wrapping_add(edit.growth()));
            if end.is_some_and(|end| !is_before(self.acknowledged, end)) {
                self.base = self.base.wrapping_add(self.edits.remove(0).growth());
            }
        }
        !self.edits.is_full()
    }

    /// The line at this position becomes another one. Ignored without room: see [`Stream::has_room`].
    pub(super) fn change(&mut self, start: u32, length: u16, text: Text) {
        let _ = self.edits.try_push(Edit { start, length, text });
    }

    /// The receiver acknowledges everything before this position, as forwarded.
    pub(super) fn acknowledge(&mut self, position: u32) {
        let most = self.forwarded(self.next).wrapping_add(1);
        if is_before(self.acknowledged, position) && !is_before(most, position) {
            self.acknowledged = position;
        }
    }

    /// A position as forwarded, of one as sent. Of one inside a changed line: the line's start.
    pub(super) fn forwarded(&self, position: u32) -> u32 {
        let mut growth = self.base;
        for edit in &self.edits {
            if !is_before(position, edit.end()) {
                growth = growth.wrapping_add(edit.growth());
            } else if is_before(edit.start, position) {
                return edit.start.wrapping_add(growth);
            } else {
                break;
            }
        }
        position.wrapping_add(growth)
    }

    /// A position as sent, of one as forwarded. Of one inside a new line: the line's start.
    pub(super) fn sent(&self, position: u32) -> u32 {
        let mut growth = self.base;
        for edit in &self.edits {
            let start = edit.start.wrapping_add(growth);
            if !is_before(position, start.wrapping_add(edit.text.len() as u32)) {
                growth = growth.wrapping_add(edit.growth());
            } else if is_before(start, position) {
                return edit.start;
            } else {
                break;
            }
        }
        position.wrapping_sub(growth)
    }

    /// What a segment's payload becomes; `None`: it stays.
    pub(super) fn rewritten(&self, sequence: u32, payload: &[u8]) -> Option<Box<[u8]>> {
        let end = sequence.wrapping_add(payload.len() as u32);
        let touches = |edit: &&Edit| is_before(edit.start, end) && is_before(sequence, edit.end());
        let mut edits = self.edits.iter().filter(touches).peekable();
        edits.peek()?;
        let (mut result, mut at) = (Vec::with_capacity(payload.len() + MOST_OCTETS), 0_usize);
        for edit in edits {
            if is_before(sequence, edit.start) {
                let start = edit.start.wrapping_sub(sequence) as usize;
                result.extend_from_slice(payload.get(at..start).unwrap_or_default());
            }
            if is_before(end, edit.end()) {
                at = payload.len();
            } else {
                result.extend_from_slice(&edit.text);
                at = edit.end().wrapping_sub(sequence) as usize;
            }
        }
        result.extend_from_slice(payload.get(at..).unwrap_or_default());
        Some(result.into())
    }
}

/// Whether a position comes before another (RFC 9293 §3.4).
const fn is_before(first: u32, second: u32) -> bool {
    (first.wrapping_sub(second) as i32) < 0
}

#[cfg(test)]
mod tests;
