//! Domain names as the DNSSL option carries them: labels, uncompressed (RFC 8106 §5.2, RFC 1035 §3.1).

use core::fmt;
use core::str::FromStr;

/// RFC 1035 §3.1: octets of a name, lengths and the root included.
const MAX_NAME: usize = 255;
/// RFC 1035 §2.3.4: octets of a label.
const MAX_LABEL: usize = 63;

/// Why a text is not a valid domain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainNameError {
    /// No label.
    Empty,
    /// A label is empty, or longer than 63 octets.
    Label,
    /// The whole name is longer than 255 octets.
    TooLong,
    /// A character that no host name has.
    Character,
}

impl fmt::Display for DomainNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "not a domain name; write it as in example.com",
            Self::Label => "each part of a domain name has 1 to 63 characters",
            Self::TooLong => "a domain name has at most 253 characters",
            Self::Character => "a domain name has letters, digits, hyphens and underscores",
        })
    }
}

impl core::error::Error for DomainNameError {}

/// A domain name, kept as labels with their lengths in front and the root at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DomainName(Vec<u8>);

impl DomainName {
    /// The name on the wire.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Splits a name off the front of `octets`; `None` if there is none, or a compressed one.
    pub(super) fn split(octets: &[u8]) -> Option<(Self, &[u8])> {
        let mut at = 0;
        loop {
            let label = usize::from(*octets.get(at)?);
            if label > MAX_LABEL {
                return None;
            }
            at += 1 + label;
            if at > MAX_NAME {
                return None;
            }
            if label == 0 {
                break;
            }
        }
        (at > 1).then(|| (Self(octets[..at].to_vec()), &octets[at..]))
    }
}

impl FromStr for DomainName {
    type Err = DomainNameError;

    /// Reads a name as people write it; a dot at the end is allowed.
    fn from_str(text: &str) -> Result<Self, DomainNameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(DomainNameError::Empty);
        }
        let mut octets = Vec::with_capacity(text.len() + 2);
        for label in text.split('.') {
            if label.is_empty() || label.len() > MAX_LABEL {
                return Err(DomainNameError::Label);
            }
            if !label.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_') {
                return Err(DomainNameError::Character);
            }
            octets.push(label.len() as u8);
            octets.extend(label.bytes());
        }
        octets.push(0);
        if octets.len() > MAX_NAME { Err(DomainNameError::TooLong) } else { Ok(Self(octets)) }
    }
}

impl fmt::Display for DomainName {
    /// As people write it; octets that no host name has are escaped (RFC 1035 §5.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut first = true;
        while let Some((length, behind)) = rest.split_first().filter(|(length, _)| **length > 0) {
            let (label, behind) = behind.split_at_checked(usize::from(*length)).unwrap_or((behind, &[]));
            if !first {
                f.write_str(".")?;
            }
            for octet in label {
                if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_') {
                    write!(f, "{}", char::from(*octet))?;
                } else {
                    write!(f, "\\{octet:03}")?;
                }
            }
            (rest, first) = (behind, false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_as_it_is_written() {
        let name: DomainName = "ipv6.example.com.".parse().unwrap();
        assert_eq!(name.octets(), b"\x04ipv6\x07example\x03com\x00");
        assert_eq!(name.to_string(), "ipv6.example.com");
        let (again, rest) = DomainName::split(b"\x04ipv6\x07example\x03com\x00\x01x\x00").unwrap();
        assert_eq!((again, rest), (name, &b"\x01x\x00"[..]));
    }

    #[test]
    fn what_is_not_a_name_says_why() {
        let long = format!("{}.example", "a".repeat(64));
        let too_long = ["abcdefg"; 32].join(".");
        for (text, error) in [
            ("", DomainNameError::Empty),
            (".", DomainNameError::Empty),
            ("a..b", DomainNameError::Label),
            (&long, DomainNameError::Label),
            ("exa mple", DomainNameError::Character),
            (&too_long, DomainNameError::TooLong),
        ] {
            assert_eq!(text.parse::<DomainName>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn compressed_cut_and_endless_names_are_refused() {
        assert_eq!(DomainName::split(b"\xc0\x00"), None);
        assert_eq!(DomainName::split(b"\x04ipv"), None);
        assert_eq!(DomainName::split(b"\x04ipv6"), None);
        assert_eq!(DomainName::split(b"\x00"), None);
        assert_eq!(DomainName::split(&b"\x01a".repeat(200)), None);
    }

    #[test]
    fn strange_octets_are_escaped() {
        let (name, _) = DomainName::split(b"\x03a.\n\x00").unwrap();
        assert_eq!(name.to_string(), "a\\046\\010");
    }
}
