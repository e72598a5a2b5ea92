//! The result for a line.

use crate::alg::stream::Text;

/// The result for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It stays.
    Keep,
    /// It becomes another one.
    Change(Text),
    /// It stays, although it requests a mapping: mappings for this host or port are refused, or there was no room.
    Refuse,
}

impl Answer {
    /// A new line, with its CRLF added; one that is too long for [`Text`] is not sent.
    pub(super) fn line(text: &str) -> Self {
        let mut line = Text::new();
        match line.try_extend_from_slice(text.as_bytes()).and_then(|()| line.try_extend_from_slice(b"\r\n")) {
            Ok(()) => Self::Change(line),
            Err(_) => Self::Keep,
        }
    }
}
