//! A DHCPv4 message of a server, with its leased address and OPTION_6RD (RFC 2131 §2).

use super::domain::OfferedDomain;
use super::offer::SixRdOffer;
use core::net::Ipv4Addr;

/// Octets in front of the magic cookie.
const HEADER: usize = 236;
/// RFC 2131 §3.
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// BOOTREPLY.
const REPLY: u8 = 2;

const PAD: u8 = 0;
const LEASE_TIME: u8 = 51;
/// RFC 5969 §7.1.1.
const OPTION_6RD: u8 = 212;
const END: u8 = 255;

impl SixRdOffer {
    /// The offer in a server's message, as dhcpcd keeps it; `None`: it is another message, or has none.
    pub fn in_message(octets: &[u8]) -> Option<Self> {
        offer(octets)
    }
}

fn offer(octets: &[u8]) -> Option<SixRdOffer> {
    let (header, rest) = octets.split_at_checked(HEADER)?;
    let options = rest.strip_prefix(&COOKIE)?;
    if header[0] != REPLY {
        return None;
    }
    let address = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    let domain = OfferedDomain::parse(&option(options, OPTION_6RD)?)?;
    let lease_time =
        option(options, LEASE_TIME).and_then(|data| Some(u32::from_be_bytes(data.try_into().ok()?)));
    Some(SixRdOffer { address, lease_time, domain })
}

/// An option's data; of an option that is there several times, the parts are joined (RFC 3396 §7).
fn option(mut options: &[u8], wanted: u8) -> Option<Vec<u8>> {
    let mut found = None::<Vec<u8>>;
    while let Some((code, rest)) = options.split_first() {
        options = rest;
        match *code {
            PAD => continue,
            END => break,
            _ => {}
        }
        let (length, rest) = options.split_first()?;
        let (data, rest) = rest.split_at_checked((*length).into())?;
        options = rest;
        if *code == wanted {
            found.get_or_insert_default().extend(data);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: [u8; 22] = [8, 32, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1];

    fn message(options: &[(u8, &[u8])]) -> Vec<u8> {
        let mut octets = vec![0; HEADER];
        octets[0] = REPLY;
        octets[16..20].copy_from_slice(&[10, 100, 100, 1]);
        octets.extend(COOKIE);
        for (code, data) in options {
            octets.extend([*code, u8::try_from(data.len()).unwrap()]);
            octets.extend(*data);
        }
        octets.extend([END, PAD, PAD]);
        octets
    }

    #[test]
    fn the_address_the_lease_time_and_the_domain_are_read() {
        let octets = message(&[(53, &[5]), (LEASE_TIME, &[0, 0, 14, 16]), (OPTION_6RD, &DATA)]);
        let offer = offer(&octets).unwrap();
        assert_eq!((offer.address, offer.lease_time), (Ipv4Addr::new(10, 100, 100, 1), Some(3_600)));
        assert_eq!(offer.domain.relays, [Ipv4Addr::new(10, 0, 0, 1)]);
    }

    #[test]
    fn parts_of_a_long_option_are_joined() {
        let octets = message(&[(OPTION_6RD, &DATA[..10]), (LEASE_TIME, &[0, 0]), (OPTION_6RD, &DATA[10..])]);
        let offer = offer(&octets).unwrap();
        assert_eq!((offer.domain.mask_length, offer.lease_time), (8, None));
    }

    #[test]
    fn a_message_cut_anywhere_before_its_end_is_none_and_so_is_a_request() {
        let octets = message(&[(OPTION_6RD, &DATA)]);
        let whole = HEADER + 4 + 2 + DATA.len();
        for length in 0..whole {
            assert_eq!(offer(&octets[..length]), None, "{length}");
        }
        assert!(offer(&octets[..whole]).is_some());
        let mut request = octets;
        request[0] = 1;
        assert_eq!(offer(&request), None);
    }
}
