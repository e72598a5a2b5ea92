//! Where the next page of a table begins.

use crate::worker::Position;

/// A place in all workers' tables; as text `WORKER-MECHANISM-SLOT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) worker: usize,
    pub(super) position: Position,
}

impl Cursor {
    pub(super) fn text(self) -> String {
        format!("{}-{}-{}", self.worker, self.position.mechanism, self.position.slot)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (worker, mechanism, slot) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let position = Position { mechanism: mechanism.parse().ok()?, slot: slot.parse().ok()? };
        Some(Self { worker: worker.parse().ok()?, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_as_it_is_written() {
        let cursor = Cursor { worker: 3, position: Position { mechanism: 1, slot: 70_000 } };
        assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
        for text in ["", "1-2", "1-2-3-4", "a-b-c", "1-2--3", "0-70000-1"] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }
}
