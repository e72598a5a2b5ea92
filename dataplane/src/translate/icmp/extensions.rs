//! ICMP extensions (RFC 4884): where the quoted packet ends and the extension structure starts, and how both fit the
//! translated error.
//!
//! The length attribute counts the octets of the quote with its padding: in units of 4 octets in octet 5 of an ICMPv4 error, of 8
//! octets in octet 4 of an ICMPv6 error (RFC 4884 §4.1 to §4.5). The extension itself is opaque (RFC 7915 §4.2, §5.2).

use arrayvec::ArrayVec;
use sixway_wire::checksum::Sum;

/// RFC 4884 §3: a quote that an extension follows is padded to at least 128 octets.
const LEAST_QUOTE: usize = 128;

/// Octets of the header of an extension structure, and of that of an object in it (RFC 4884 §7, §8).
const STRUCTURE_HEADER: usize = 4;
const OBJECT_HEADER: usize = 4;

/// An ICMP error in the making: the outer IP header, eight octets of ICMP, the quote, the extension.
pub(super) type Message = ArrayVec<u8, 1_280>;

/// What of a message's body is the quote and what is the extension.
pub(super) struct Body<'a> {
    /// The quoted packet, perhaps with padding behind it.
    pub(super) quote: &'a [u8],
    /// The extension structure; empty if there is none.
    pub(super) extension: &'a [u8],
}

impl<'a> Body<'a> {
    /// Divides what follows the eight octets of an ICMP error by its length attribute, in octets; 0: no attribute.
    ///
    /// Many routers write a wrong attribute, or none: an extension structure whose checksum is right is also found where the quote
    /// ends if the attribute counts in half its unit, or at octet 128 (RFC 4884 §5.5). Otherwise an attribute that lies (less than 128
    /// octets, or more than there are) is not believed, and all is quote.
    pub(super) fn split(body: &'a [u8], attribute: usize) -> Self {
        let as_written = body.split_at_checked(attribute).filter(|_| attribute >= LEAST_QUOTE);
        let (quote, extension) = match as_written {
            Some((_, extension)) if is_structure(extension) => as_written,
            Some(_) | None => {
                let elsewhere = [attribute / 2, LEAST_QUOTE].into_iter().filter(|at| *at >= LEAST_QUOTE);
                let mut found = elsewhere.filter_map(|at| body.split_at_checked(at));
                found.find(|(_, extension)| is_structure(extension)).or(as_written)
            }
        }
        .unwrap_or((body, &[]));
        Self { quote, extension }
    }
}

/// Whether this is an extension structure: version 2, a checksum that is there and right, and objects that fill it (RFC 4884 §7, §8).
fn is_structure(octets: &[u8]) -> bool {
    let Some((&[version, _, high, low], mut objects)) = octets.split_first_chunk() else { return false };
    if version >> 4 != 2 || (high, low) == (0, 0) || Sum::ZERO.bytes(octets).fold() != 0xffff {
        return false;
    }
    while let Some(&[high, low]) = objects.first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        match objects.get(length..) {
            Some(rest) if length >= OBJECT_HEADER => objects = rest,
            Some(_) | None => return false,
        }
    }
    objects.is_empty() && octets.len() > STRUCTURE_HEADER
}

/// Appends as many octets as fit a message of `limit` octets.
pub(super) fn append(message: &mut Message, octets: &[u8], limit: usize) {
    let room = limit.min(message.capacity()).saturating_sub(message.len());
    message.extend(octets.iter().copied().take(room));
}

/// Puts the extension behind the translated quote, which starts at `quote_at` and ends the message: pads the quote to a multiple of
/// `unit`, or shortens it so that the message stays within `limit` octets. Yields the length attribute in units.
///
/// An extension that would leave the quote less than 128 octets is left off (RFC 7915 §4.2 has it truncated, which no reader could
/// make sense of), and the attribute is 0.
pub(super) fn attach(
    message: &mut Message,
    quote_at: usize,
    extension: &[u8],
    unit: usize,
    limit: usize,
) -> u8 {
    if extension.is_empty() {
        return 0;
    }
    let longest = (255 * unit).min(limit.saturating_sub(quote_at + extension.len())) / unit * unit;
    if longest < LEAST_QUOTE {
        return 0;
    }
    let quote = (message.len() - quote_at).next_multiple_of(unit).max(LEAST_QUOTE).min(longest);
    message.truncate(quote_at + quote);
    let padding = quote_at + quote - message.len();
    message.extend(core::iter::repeat_n(0, padding));
    append(message, extension, limit);
    u8::try_from(quote / unit).unwrap_or(u8::MAX)
}
