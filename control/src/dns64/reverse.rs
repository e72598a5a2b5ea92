//! Names of addresses: from IP6.ARPA (RFC 3596 §2.5) through our prefixes to IN-ADDR.ARPA (RFC 1035 §3.5), all in lower-case wire form.

use super::special_address::WELL_KNOWN;
use arrayvec::ArrayVec;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};

/// RFC 3596 §2.5: `ip6.arpa`.
const IP6_ARPA: &[u8] = b"\x03ip6\x04arpa\x00";

/// RFC 1035 §3.5: `in-addr.arpa`.
const IN_ADDR_ARPA: &[u8] = b"\x07in-addr\x04arpa\x00";

/// The position of a name under IP6.ARPA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip6Name {
    /// The nibbles that are there are the highest; the others are zero.
    bits: u128,
    nibbles: u8,
    /// There are further labels below the nibbles.
    below: bool,
    octets: usize,
}

impl Ip6Name {
    /// `None`: the name is not under IP6.ARPA.
    pub(super) fn read(name: &[u8]) -> Option<Self> {
        let mut labels = name.strip_suffix(IP6_ARPA)?;
        let mut read = Self { bits: 0, nibbles: 0, below: false, octets: name.len() };
        while let [length, rest @ ..] = labels {
            let (label, rest) = rest.split_at_checked(usize::from(*length))?;
            let nibble = <[u8; 1]>::try_from(label).ok().and_then(|[digit]| nibble(digit));
            read.push(nibble);
            labels = rest;
        }
        Some(read)
    }

    /// Labels come from the lowest to the highest. Labels before one that is not a nibble are below it; of more than 32 nibbles the last 32 count.
    fn push(&mut self, nibble: Option<u8>) {
        let Some(nibble) = nibble else {
            (self.bits, self.nibbles, self.below) = (0, 0, true);
            return;
        };
        self.bits = self.bits >> 4 | u128::from(nibble) << 124;
        self.below |= self.nibbles == 32;
        self.nibbles = (self.nibbles + 1).min(32);
    }

    /// The address, if the name is one's.
    pub(super) fn address(&self) -> Option<Ipv6Addr> {
        (self.nibbles == 32 && !self.below).then(|| Ipv6Addr::from_bits(self.bits))
    }

    /// Whether there is no such name, in a zone in which each address has one: it is below an address, or has labels that are not nibbles.
    pub(super) fn is_below(&self) -> bool {
        self.below
    }

    /// The zone of the longest of these prefixes that the name is in: how many octets of the name precede the zone's.
    /// Prefixes are the longest first; their lengths are whole nibbles.
    pub(super) fn zone(&self, prefixes: &[Rfc6052]) -> Option<u8> {
        let length = |prefix: &Rfc6052| prefix.prefix().length();
        let mut ours = prefixes.iter().filter(|prefix| length(prefix) <= self.nibbles * 4);
        let prefix = ours.find(|prefix| prefix.contains(Ipv6Addr::from_bits(self.bits)))?;
        let apex = usize::from(length(prefix)) / 2 + IP6_ARPA.len();
        u8::try_from(self.octets.checked_sub(apex)?).ok()
    }
}

fn nibble(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// The IPv4 address that the name's IPv6 address represents, under the longest of these prefixes that holds it. The suffix is ignored,
/// as the translator ignores it (RFC 6052 §2.2).
///
/// `None`: no such name, no address of ours, one with an octet u that is not zero (§2.2), or one that no AAAA record is ever made with.
pub(super) fn embedded(
    name: &[u8],
    prefixes: &[Rfc6052],
    is_no_host: impl Fn(Ipv4Addr) -> bool,
) -> Option<Ipv4Addr> {
    let address = Ip6Name::read(name)?.address()?;
    let prefix = prefixes.iter().find(|prefix| prefix.contains(address))?;
    let embedded = prefix.extract_any(address).ok()?;
    let stands = WELL_KNOWN.contains(&embedded) || (prefix.permit(embedded).is_ok() && !is_no_host(embedded));
    stands.then_some(embedded)
}

/// The longest name of an IPv4 address, in octets: four labels of three digits, and `in-addr.arpa`.
pub(super) const IN_ADDR_OCTETS: usize = 30;

/// The name under IN-ADDR.ARPA (RFC 1035 §3.5).
pub(super) fn in_addr_arpa(address: Ipv4Addr) -> ArrayVec<u8, IN_ADDR_OCTETS> {
    let mut name = ArrayVec::new();
    for octet in address.octets().into_iter().rev() {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let leading = digits[..2].iter().take_while(|digit| **digit == 0).count();
        name.push(3 - leading as u8);
        name.extend(digits[leading..].iter().map(|digit| b'0' + digit));
    }
    name.extend(IN_ADDR_ARPA.iter().copied());
    name
}

/// The address of a name under IN-ADDR.ARPA (RFC 1035 §3.5).
pub(super) fn in_addr_address(name: &[u8]) -> Option<Ipv4Addr> {
    let mut labels = name.strip_suffix(IN_ADDR_ARPA)?;
    let mut octets = [0; 4];
    for octet in octets.iter_mut().rev() {
        let (length, rest) = labels.split_first()?;
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        *octet = std::str::from_utf8(label).ok()?.parse().ok()?;
        labels = rest;
    }
    let address = Ipv4Addr::from(octets);
    // One spelling of each address: no leading zeros, no further labels.
    (labels.is_empty() && in_addr_arpa(address).as_slice() == name).then_some(address)
}

/// The name of an IPv6 address, in octets: 32 labels of one digit, and `ip6.arpa`.
pub(super) const IP6_OCTETS: usize = 74;

/// The name under IP6.ARPA (RFC 3596 §2.5).
pub(super) fn ip6_arpa(address: Ipv6Addr) -> ArrayVec<u8, IP6_OCTETS> {
    let mut name = ArrayVec::new();
    for place in 0..32 {
        let nibble = (address.to_bits() >> (4 * place)) as u8 & 15;
        name.push(1);
        name.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
    name.extend(IP6_ARPA.iter().copied());
    name
}

#[cfg(test)]
mod tests {
    use super::super::policy::wire;
    use super::super::special_address::is_no_host as never_a_host;
    use super::*;
    use proptest::prelude::*;
    use sixway_dataplane::translate::address::rfc6052::PREFIX_LENGTHS;
    use sixway_wire::Prefix6;

    fn prefix(text: &str) -> Rfc6052 {
        Rfc6052::new(text.parse().unwrap(), false).unwrap()
    }

    /// RFC 3596 §2.5, as it is written there.
    fn ip6_arpa(address: Ipv6Addr) -> Vec<u8> {
        let nibbles = format!("{:032x}", address.to_bits());
        wire(
            &nibbles
                .chars()
                .rev()
                .map(|nibble| format!("{nibble}."))
                .chain(["ip6.arpa".into()])
                .collect::<String>(),
        )
    }

    fn embedded(name: &[u8], prefixes: &[Rfc6052]) -> Option<Ipv4Addr> {
        super::embedded(name, prefixes, |address| never_a_host(address, false))
    }

    fn six(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_both_families_are_written_and_read() {
        let address = six("4321:0:1:2:3:4:567:89ab");
        assert_eq!(super::ip6_arpa(address).as_slice(), ip6_arpa(address));
        assert_eq!(Ip6Name::read(&super::ip6_arpa(address)).unwrap().address(), Some(address));
        for text in ["0.0.0.0", "192.0.2.10", "10.200.3.255"] {
            let address: Ipv4Addr = text.parse().unwrap();
            assert_eq!(in_addr_address(&in_addr_arpa(address)), Some(address), "{text}");
        }
        for text in [
            "1.2.3.in-addr.arpa",
            "0.1.2.3.4.in-addr.arpa",
            "01.2.3.4.in-addr.arpa",
            "1.2.3.256.in-addr.arpa",
            "1.2.3.+4.in-addr.arpa",
            "in-addr.arpa",
            "a.b.c.d.ip6.arpa",
        ] {
            assert_eq!(in_addr_address(&wire(text)), None, "{text}");
        }
    }

    #[test]
    fn the_rfcs_example_is_read() {
        let name = "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa";
        assert_eq!(Ip6Name::read(&wire(name)).unwrap().address(), Some(six("4321:0:1:2:3:4:567:89ab")));
    }

    #[test]
    fn a_name_that_is_not_of_an_address_has_no_address() {
        let whole = "0.".repeat(32);
        for name in [
            "ip6.arpa".to_owned(),
            "0.".repeat(31) + "ip6.arpa",
            "0.".repeat(33) + "ip6.arpa",
            "00.".to_owned() + &"0.".repeat(31) + "ip6.arpa",
            "g.".to_owned() + &"0.".repeat(31) + "ip6.arpa",
            "0.".repeat(31) + "-.ip6.arpa",
            "x.".to_owned() + &whole + "ip6.arpa",
        ] {
            assert_eq!(Ip6Name::read(&wire(&name)).unwrap().address(), None, "{name}");
        }
        assert_eq!(Ip6Name::read(&wire(&(whole.clone() + "ip6.int"))), None);
        assert_eq!(Ip6Name::read(&wire(&(whole + "xip6.arpa"))), None);
        // A label whose text looks like labels.
        let trap = [&[3, b'0', 1, b'0'][..], &wire("ip6.arpa")].concat();
        assert_eq!(Ip6Name::read(&trap).unwrap().address(), None);
    }

    #[test]
    fn an_octet_u_that_is_not_zero_is_not_an_address_of_ours() {
        for text in [
            "2001:db8::/32",
            "2001:db8:100::/40",
            "2001:db8:122::/48",
            "2001:db8:122:300::/56",
            "2001:db8:122:344::/64",
        ] {
            let ours = [prefix(text)];
            let good = ours[0].embed(Ipv4Addr::new(192, 0, 2, 33)).unwrap();
            assert_eq!(embedded(&ip6_arpa(good), &ours), Some(Ipv4Addr::new(192, 0, 2, 33)), "{text}");
            let bad = Ipv6Addr::from_bits(good.to_bits() | 1 << 56);
            assert_eq!(embedded(&ip6_arpa(bad), &ours), None, "{text}");
        }
    }

    #[test]
    fn what_no_aaaa_record_is_made_with_is_not_looked_up() {
        let ours = [prefix("2001:db8:64::/96"), prefix("64:ff9b::/96")];
        for text in
            ["2001:db8:64::127.0.0.1", "2001:db8:64::224.0.0.1", "64:ff9b::10.0.0.1", "2001:db8:65::8.8.8.8"]
        {
            assert_eq!(embedded(&ip6_arpa(six(text)), &ours), None, "{text}");
        }
        assert_eq!(
            embedded(&ip6_arpa(six("2001:db8:64::10.0.0.1")), &ours),
            Some(Ipv4Addr::new(10, 0, 0, 1))
        );
        assert_eq!(embedded(&ip6_arpa(six("64:ff9b::192.0.0.170")), &ours), Some(WELL_KNOWN[0]));
    }

    #[test]
    fn the_longest_prefix_is_the_one_that_counts() {
        let ours = [prefix("2001:db8:0:0:0:1::/96"), prefix("2001:db8::/48")];
        let name = ip6_arpa(six("2001:db8::1:c000:201"));
        assert_eq!(embedded(&name, &ours), Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(Ip6Name::read(&name).unwrap().zone(&ours), Some(16));
        assert_eq!(Ip6Name::read(&name[16..]).unwrap().zone(&ours), Some(0));
        assert_eq!(Ip6Name::read(&name[18..]).unwrap().zone(&ours), Some(22));
    }

    #[test]
    fn the_shortest_and_the_longest_name_of_an_ipv4_address_fit() {
        assert_eq!(in_addr_arpa(Ipv4Addr::new(0, 9, 10, 100))[..], wire("100.10.9.0.in-addr.arpa"));
        let longest = in_addr_arpa(Ipv4Addr::BROADCAST);
        assert_eq!(
            (longest.len(), &longest[..]),
            (IN_ADDR_OCTETS, &wire("255.255.255.255.in-addr.arpa")[..])
        );
    }

    proptest! {
        #[test]
        fn an_embedded_address_is_found_under_every_length_whatever_the_suffix(
            bits: u128, which in 0usize..6, address: u32, suffix: u128
        ) {
            let length = PREFIX_LENGTHS[which];
            let network = (bits >> 4 | 2 << 124) & !(0xff << 56);
            let ours = [Rfc6052::new(Prefix6::holding(Ipv6Addr::from_bits(network), length), false).unwrap()];
            let four = Ipv4Addr::from_bits(address);
            let made = ours[0].embed_any(four);
            let suffix_bits = if length == 96 { 0 } else { 88 - u32::from(length) };
            let name = ip6_arpa(Ipv6Addr::from_bits(made.to_bits() | suffix & ((1 << suffix_bits) - 1)));
            let stands = !never_a_host(four, false) || WELL_KNOWN.contains(&four);
            prop_assert_eq!(embedded(&name, &ours), stands.then_some(four));
            let zone = Ip6Name::read(&name).unwrap().zone(&ours).unwrap();
            prop_assert_eq!(usize::from(zone), (128 - usize::from(length)) / 2);
        }

        #[test]
        fn names_of_ipv4_addresses_are_as_they_are_written(address: u32) {
            let [a, b, c, d] = address.to_be_bytes();
            prop_assert_eq!(&in_addr_arpa(Ipv4Addr::from_bits(address))[..], wire(&format!("{d}.{c}.{b}.{a}.in-addr.arpa")));
        }

        #[test]
        fn no_octets_before_the_suffix_lead_astray(before in prop::collection::vec(any::<u8>(), 0..80)) {
            let name = [&before[..], IP6_ARPA].concat();
            let read = Ip6Name::read(&name);
            let _ = read.map(|read| (read.address(), read.is_below(), read.zone(&[prefix("2001:db8::/32")])));
        }
    }
}
