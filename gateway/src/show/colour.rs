//! Whether a table is coloured.

/// Whether a table may be coloured: only on a terminal that was not told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Ansi,
}
