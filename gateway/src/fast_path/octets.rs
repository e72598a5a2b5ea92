//! Netlink messages and attributes (linux/netlink.h): octets in, pieces out. A truncated piece ends the iteration.

/// `struct nlmsghdr`.
const MESSAGE_HEADER: usize = 16;
/// `struct nlattr`.
const ATTRIBUTE_HEADER: usize = 4;
/// NLA_F_NESTED and NLA_F_NET_BYTEORDER are not part of a type.
const TYPE: u16 = 0x3fff;

/// A message: its type, and what follows its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NetlinkMessage<'m> {
    pub kind: u16,
    pub sequence: u32,
    pub body: &'m [u8],
}

/// The messages of a datagram.
pub(super) fn messages(mut octets: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let length = number32(octets, 0)? as usize;
        let whole = octets.get(..length).filter(|_| length >= MESSAGE_HEADER)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        let (kind, sequence) = (number16(whole, 4)?, number32(whole, 8)?);
        Some(NetlinkMessage { kind, sequence, body: &whole[MESSAGE_HEADER..] })
    })
}

/// The attributes: type and value of each.
pub(super) fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(number16(octets, 0)?);
        let whole = octets.get(..length).filter(|_| length >= ATTRIBUTE_HEADER)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((number16(whole, 2)? & TYPE, &whole[ATTRIBUTE_HEADER..]))
    })
}

/// The value of the first attribute of a type.
pub(super) fn attribute(octets: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(octets).find(|(own, _)| *own == kind).map(|(_, value)| value)
}

pub(super) fn number16(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn number32(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn number64(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(octets.get(at..at + 8)?.try_into().ok()?))
}

/// A string, which ends with a zero.
pub(super) fn text(octets: &[u8]) -> String {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    String::from_utf8_lossy(&octets[..end]).into_owned()
}

/// An attribute, padded.
pub(super) fn write_attribute(kind: u16, value: &[u8], to: &mut Vec<u8>) {
    let length = (ATTRIBUTE_HEADER + value.len()) as u16;
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// A message.
pub(super) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(MESSAGE_HEADER + body.len());
    octets.extend(((MESSAGE_HEADER + body.len()) as u32).to_ne_bytes());
    octets.extend(kind.to_ne_bytes());
    octets.extend(flags.to_ne_bytes());
    octets.extend(sequence.to_ne_bytes());
    octets.extend([0; 4]);
    octets.extend(body);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_what_is_cut_ends_the_walk() {
        let mut body = vec![1, 2, 3, 4];
        write_attribute(3, b"eth0\0", &mut body);
        write_attribute(0x8000 | 5, &7_u32.to_ne_bytes(), &mut body);
        let two = [message(16, 0, 9, &body), message(17, 0, 10, &[])].concat();
        let found: Vec<_> = messages(&two).collect();
        assert_eq!((found[0].kind, found[0].sequence, found[1].kind), (16, 9, 17));
        assert_eq!(text(attribute(&found[0].body[4..], 3).unwrap()), "eth0");
        assert_eq!(number32(attribute(&found[0].body[4..], 5).unwrap(), 0), Some(7));
        for length in 0..two.len() {
            let whole = messages(&two[..length]).count();
            assert!(whole <= 1, "{length}");
            messages(&two[..length]).for_each(|one| assert!(attributes(one.body).count() < 20));
        }
        for wrong in [[0; 16], [0xff; 16]] {
            assert_eq!(messages(&wrong).count(), 0);
            assert_eq!(attributes(&wrong).count(), 0);
        }
    }
}
