//! Base64 for URLs without padding (RFC 4648 §5, as RFC 8484 §4.1 requires).

/// Decodes `text`; `None`: not base64url. Padding, which is not allowed here, is ignored.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut octets = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for character in group {
            bits = bits << 6 | value(*character)?;
        }
        let left = match group.len() {
            4 => 0,
            3 => 6,
            2 => 12,
            _ => return None,
        };
        let [_, bytes @ ..] = (bits << left).to_be_bytes();
        octets.extend_from_slice(bytes.get(..group.len() - 1)?);
    }
    Some(octets)
}

fn value(character: u8) -> Option<u32> {
    let value = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn the_example_of_rfc_8484_is_read() {
        let message = decode("AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB").unwrap();
        assert_eq!(message.len(), 33);
        assert_eq!(&message[12..], b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
    }

    #[test]
    fn every_length_of_the_last_group_is_read() {
        assert_eq!(decode(""), Some(vec![]));
        assert_eq!(decode("_w"), Some(vec![0xff]));
        assert_eq!(decode("_w=="), Some(vec![0xff]));
        assert_eq!(decode("-_8"), Some(vec![0xfb, 0xff]));
        assert_eq!(decode("AQID"), Some(vec![1, 2, 3]));
    }

    #[test]
    fn what_is_not_base64url_is_refused() {
        for text in ["A", "AAAAA", "A+==", "A/AA", "AA AA", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
