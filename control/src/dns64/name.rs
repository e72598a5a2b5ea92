//! Domain names in wire form (RFC 1035 §3.1), as octets: measured, compared and read out of messages without allocating.

use arrayvec::ArrayVec;

/// RFC 1035 §2.3.4: octets of a name, its root label included.
pub const LONGEST_NAME: usize = 255;

/// RFC 1035 §2.3.4: octets of a label.
const LONGEST_LABEL: u8 = 63;

/// A name without compression, root label included.
pub type Name = ArrayVec<u8, LONGEST_NAME>;

/// The length of the uncompressed name that the octets begin with, root label included.
#[must_use]
pub fn measure(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *octets.get(at)? {
            0 => return Some(at + 1),
            label @ 1..=LONGEST_LABEL => at += 1 + usize::from(label),
            _ => return None,
        }
        if at >= LONGEST_NAME {
            return None;
        }
    }
}

/// Whether two names are the same. A label's length is never a letter, so octets may be compared directly.
#[must_use]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    // Most names are written in lower case, which is compared faster.
    one == other || one.eq_ignore_ascii_case(other)
}

/// Where the labels of an uncompressed name begin, the root's included.
pub fn labels(name: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let length = usize::from(*name.get(at)?);
        next = (length != 0).then_some(at + 1 + length);
        Some(at)
    })
}

/// Whether a name is the zone's or below it.
#[must_use]
pub fn is_within(name: &[u8], zone: &[u8]) -> bool {
    let Some(start) = name.len().checked_sub(zone.len()) else { return false };
    same(&name[start..], zone) && labels(name).any(|at| at == start)
}

/// Reads the name at `at` of a message and appends it to `out` without compression; says where what follows it begins.
///
/// Pointers must lead backwards (RFC 1035 §4.1.4: to a *prior* occurrence), so that no row of them is endless.
#[must_use]
pub fn expand(message: &[u8], at: usize, out: &mut Name) -> Option<usize> {
    expand_within(message, 0, at, out)
}

/// As [`expand`], of a message whose first `absent` octets are not there. `at` and what is said count from the octets that are.
#[must_use]
pub(crate) fn expand_within(message: &[u8], absent: usize, mut at: usize, out: &mut Name) -> Option<usize> {
    let mut behind = None;
    let mut earliest = at;
    loop {
        let first = *message.get(at)?;
        match first {
            0 => {
                out.try_push(0).ok()?;
                return Some(behind.unwrap_or(at + 1));
            }
            1..=LONGEST_LABEL => {
                let end = at + 1 + usize::from(first);
                out.try_extend_from_slice(message.get(at..end)?).ok()?;
                at = end;
            }
            0xc0.. => {
                let pointer = usize::from(first & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                let pointer = pointer.checked_sub(absent).filter(|pointer| *pointer < earliest)?;
                behind = behind.or(Some(at + 2));
                (at, earliest) = (pointer, pointer);
            }
            _ => return None,
        }
    }
}

/// Where what follows the name at `at` begins; the name itself is not judged.
#[must_use]
pub fn skip(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            label @ 1..=LONGEST_LABEL => at += 1 + usize::from(label),
            0xc0.. => return (at + 2 <= message.len()).then_some(at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &[u8] = b"\x03www\x07eXample\x03org\0";

    #[test]
    fn a_name_is_measured_up_to_its_root_label() {
        assert_eq!(measure(NAME), Some(17));
        assert_eq!(measure(b"\0rest"), Some(1));
        for cut in 0..NAME.len() {
            assert_eq!(measure(&NAME[..cut]), None);
        }
        assert_eq!(measure(b"\xc0\x0c"), None);
    }

    #[test]
    fn a_name_of_255_octets_is_one_and_a_longer_one_is_not() {
        let mut name = [&[63][..], &[b'a'; 63]].concat().repeat(3);
        name.push(61);
        name.extend([b'b'; 61]);
        name.push(0);
        assert_eq!((name.len(), measure(&name)), (255, Some(255)));
        name.insert(193, b'b');
        name[192] = 62;
        assert_eq!((name.len(), measure(&name)), (256, None));
        assert_eq!(expand(&name, 0, &mut Name::new()), None);
    }

    #[test]
    fn a_name_is_within_its_ancestors_and_itself() {
        assert!(is_within(NAME, NAME) && is_within(NAME, b"\x07example\x03ORG\0") && is_within(NAME, b"\0"));
        assert!(!is_within(b"\x03org\0", NAME));
        assert!(!is_within(b"\x08wexample\x03org\0", b"\x07example\x03org\0"));
    }

    #[test]
    fn pointers_are_followed_backwards_only() {
        let message = b"\x03org\0\x03www\xc0\x00\xc0\x05";
        let mut name = Name::new();
        assert_eq!(expand(message, 11, &mut name), Some(13));
        assert_eq!(&name[..], b"\x03www\x03org\0");
        assert_eq!(expand(b"\xc0\x00", 0, &mut Name::new()), None);
        assert_eq!(expand(b"\xc0\x02\xc0\x00", 0, &mut Name::new()), None);
        assert_eq!(expand(b"\x01a\xc0\x00", 0, &mut Name::new()), None);
    }
}
