//! Why octets are not the header that was looked for.

use core::fmt;

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Fewer octets than the header has, or than its own length field counts.
    Truncated,
    /// The Version field is another protocol's.
    WrongVersion,
    /// A length field counts fewer octets than the header itself has.
    LengthTooSmall,
    /// An option runs beyond the end of its header.
    OptionBeyondEnd,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "fewer octets than the header says",
            Self::WrongVersion => "another IP version",
            Self::LengthTooSmall => "a length field smaller than the header",
            Self::OptionBeyondEnd => "an option beyond the end of its header",
        })
    }
}

impl core::error::Error for HeaderError {}
