//! Trailers behind the IPv6 packet (RFC 6081 §4.1):
//!
//! ```text
//! |     Type      |    Length     |        Value (variable)       |
//! ```
//!
//! The two highest bits of an unknown type say what to do with the packet: 01 means discard it, all others mean skip the trailer.

use crate::Endpoint4;
use core::net::Ipv4Addr;

/// Nonce (RFC 6081 §4.2).
const NONCE: u8 = 1;
/// Alternate addresses (RFC 6081 §4.3).
const ALTERNATE_ADDRESS: u8 = 3;
/// Neighbour discovery option (RFC 6081 §4.4).
const DISCOVERY: u8 = 4;
/// Random port (RFC 6081 §4.5).
const RANDOM_PORT: u8 = 5;

/// One trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer<'a> {
    /// The sender's nonce.
    Nonce([u8; 4]),
    /// Further endpoints of the sender, of 6 octets each: one to four.
    AlternateAddresses(&'a [[u8; 6]]),
    /// A direct bubble that asks for one.
    Solicitation,
    /// The direct bubble that was asked for.
    Advertisement,
    /// The port that the sender expects its NAT to use.
    RandomPort(u16),
}

/// An endpoint of [`Trailer::AlternateAddresses`].
pub const fn alternate([a, b, c, d, high, low]: [u8; 6]) -> Endpoint4 {
    Endpoint4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
}

/// Why the trailers of a packet cannot be read: the packet is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTrailer;

/// The trailers of a packet, in their order. After an error there are no others.
#[derive(Clone, Copy, Debug)]
pub struct Trailers<'a>(&'a [u8]);

impl<'a> Trailers<'a> {
    /// Of the octets behind an IPv6 packet.
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    fn read(&mut self) -> Option<Result<Trailer<'a>, BadTrailer>> {
        loop {
            let (kind, length, rest) = match self.0 {
                [] => return None,
                [kind, length, rest @ ..] => (*kind, usize::from(*length), rest),
                [_] => return Some(Err(BadTrailer)),
            };
            let Some((value, rest)) = rest.split_at_checked(length) else { return Some(Err(BadTrailer)) };
            self.0 = rest;
            return Some(match (kind, value) {
                (NONCE, &[a, b, c, d]) => Ok(Trailer::Nonce([a, b, c, d])),
                (ALTERNATE_ADDRESS, [_, _, list @ ..]) => match list.as_chunks() {
                    (list @ ([_] | [_, _] | [_, _, _] | [_, _, _, _]), []) => {
                        Ok(Trailer::AlternateAddresses(list))
                    }
                    _ => Err(BadTrailer),
                },
                (DISCOVERY, [0, _, _, _]) => Ok(Trailer::Solicitation),
                (DISCOVERY, [1, _, _, _]) => Ok(Trailer::Advertisement),
                (RANDOM_PORT, &[high, low]) => Ok(Trailer::RandomPort(u16::from_be_bytes([high, low]))),
                (NONCE | ALTERNATE_ADDRESS | DISCOVERY | RANDOM_PORT, _) => Err(BadTrailer),
                (unknown, _) if unknown >> 6 == 1 => Err(BadTrailer),
                _ => continue,
            });
        }
    }
}

impl<'a> Iterator for Trailers<'a> {
    type Item = Result<Trailer<'a>, BadTrailer>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if matches!(read, Some(Err(_))) {
            self.0 = &[];
        }
        read
    }
}

impl Trailer<'_> {
    /// Writes it at the start of `octets`, and returns how many octets it has; `None`: no room, or more than four alternate addresses.
    pub fn write(&self, octets: &mut [u8]) -> Option<usize> {
        let mut value = [0; 26];
        let (kind, length) = match *self {
            Self::Nonce(nonce) => {
                value[..4].copy_from_slice(&nonce);
                (NONCE, 4)
            }
            Self::AlternateAddresses(list) => {
                let length = 2 + list.as_flattened().len();
                value.get_mut(2..length)?.copy_from_slice(list.as_flattened());
                (ALTERNATE_ADDRESS, length)
            }
            Self::Solicitation => (DISCOVERY, 4),
            Self::Advertisement => {
                value[0] = 1;
                (DISCOVERY, 4)
            }
            Self::RandomPort(port) => {
                value[..2].copy_from_slice(&port.to_be_bytes());
                (RANDOM_PORT, 2)
            }
        };
        let [first, second, rest @ ..] = octets else { return None };
        rest.get_mut(..length)?.copy_from_slice(value.get(..length)?);
        (*first, *second) = (kind, length as u8);
        Some(2 + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn all(octets: &[u8]) -> Vec<Result<Trailer<'_>, BadTrailer>> {
        Trailers::new(octets).collect()
    }

    #[test]
    fn each_trailer_is_read_and_written_as_rfc_6081_draws_it() {
        let addresses = [[192, 0, 2, 1, 0x13, 0x88], [10, 0, 0, 1, 0, 1]];
        let drawn: [(Trailer<'_>, &[u8]); 5] = [
            (Trailer::Nonce([1, 2, 3, 4]), &[1, 4, 1, 2, 3, 4]),
            (
                Trailer::AlternateAddresses(&addresses),
                &[3, 14, 0, 0, 192, 0, 2, 1, 0x13, 0x88, 10, 0, 0, 1, 0, 1],
            ),
            (Trailer::Solicitation, &[4, 4, 0, 0, 0, 0]),
            (Trailer::Advertisement, &[4, 4, 1, 0, 0, 0]),
            (Trailer::RandomPort(5000), &[5, 2, 0x13, 0x88]),
        ];
        for (trailer, octets) in drawn {
            let mut written = [0; 28];
            assert_eq!(trailer.write(&mut written), Some(octets.len()));
            assert_eq!(&written[..octets.len()], octets);
            assert_eq!(all(octets), [Ok(trailer)]);
            assert_eq!(trailer.write(&mut written[..octets.len() - 1]), None);
        }
        assert_eq!(alternate(addresses[0]), Endpoint4::new(Ipv4Addr::new(192, 0, 2, 1), 5000));
        assert_eq!(Trailer::AlternateAddresses(&[[0; 6]; 5]).write(&mut [0; 40]), None);
    }

    #[test]
    fn an_unknown_trailer_is_skipped_unless_its_type_says_discard() {
        for skipped in [0, 2, 0x3f, 0x80, 0xbf, 0xc0, 0xff] {
            assert_eq!(all(&[skipped, 1, 9, 5, 2, 0, 1]), [Ok(Trailer::RandomPort(1))]);
        }
        for fatal in [0x40, 0x7f] {
            assert_eq!(all(&[fatal, 0, 5, 2, 0, 1]), [Err(BadTrailer)]);
        }
    }

    #[test]
    fn a_trailer_of_a_wrong_length_ends_the_list() {
        let bad: [&[u8]; 7] = [
            &[1],
            &[1, 3, 0, 0, 0],
            &[1, 4, 0, 0, 0],
            &[3, 2, 0, 0],
            &[3, 9, 0, 0, 1, 2, 3, 4, 5, 6, 7],
            &[4, 4, 2, 0, 0, 0],
            &[5, 1, 0],
        ];
        for octets in bad {
            assert_eq!(all(octets), [Err(BadTrailer)], "{octets:?}");
        }
        let mut five = Vec::from([3, 32]);
        five.resize(34, 1);
        assert_eq!(all(&five), [Err(BadTrailer)]);
    }

    proptest! {
        #[test]
        fn any_octets_have_at_most_half_as_many_trailers(octets in any::<Vec<u8>>()) {
            prop_assert!(Trailers::new(&octets).count() <= octets.len() / 2 + 1);
        }
    }
}
