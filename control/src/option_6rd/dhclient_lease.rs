//! dhclient's lease file (dhclient.leases(5)): the newest lease is at the end. dhclient 4.4 knows the option; what dhclient.conf defines comes
//! first.
//!
//! ```text
//!     lease {
//!       interface "eth0";
//!       fixed-address 10.100.100.1;
//!       option dhcp-lease-time 3600;
//!       option option-6rd 8 32 2001:db8:: 10.0.0.1;                             also request option-6rd
//!       option unknown-212 8:20:20:1:d:b8:0:0:0:0:0:0:0:0:0:0:0:0:a:0:0:1;      before dhclient 4.4, also request unknown-212
//!       option option-6rd 8 32 8193 3512 0 0 0 0 0 0 10.0.0.1;                  a record with eight integers of 16 bits
//!       option option-6rd 8,32,32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,0,10,0,0,1;    an array of octets
//!     }
//! ```

use super::domain::OfferedDomain;
use super::offer::SixRdOffer;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Parts of names that operators give the option in dhclient.conf.
const NAMES: [&str; 4] = ["unknown-212", "6rd", "sixrd", "rfc5969"];

/// A lease, as far as it was read.
#[derive(Default)]
struct Block {
    is_wanted: bool,
    address: Option<Ipv4Addr>,
    lease_time: Option<u32>,
    domain: Option<OfferedDomain>,
}

impl Block {
    fn take(&mut self, line: &str, interface: &str) {
        let Some(statement) = line.strip_suffix(';') else { return };
        let Some((name, value)) = statement.split_once(' ') else { return };
        match name {
            "interface" => self.is_wanted = value.trim_matches('"') == interface,
            "fixed-address" => self.address = value.parse().ok(),
            "option" => self.option(value),
            _ => {}
        }
    }

    fn option(&mut self, written: &str) {
        let Some((name, value)) = written.split_once(' ') else { return };
        if name == "dhcp-lease-time" {
            self.lease_time = value.parse().ok();
        } else if NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part)) {
            self.domain = octets(value).and_then(|data| OfferedDomain::parse(&data));
        }
    }

    fn offer(self) -> Option<SixRdOffer> {
        Some(SixRdOffer { address: self.address?, lease_time: self.lease_time, domain: self.domain? })
    }
}

impl SixRdOffer {
    /// The offer of the newest lease of an interface in dhclient's file; `None`: that lease has none.
    pub fn in_dhclient_leases(text: &str, interface: &str) -> Option<Self> {
        offer(text, interface)
    }
}

fn offer(text: &str, interface: &str) -> Option<SixRdOffer> {
    let (mut newest, mut open) = (None, None::<Block>);
    for line in text.lines().map(str::trim) {
        match (line, &mut open) {
            ("lease {", _) => open = Some(Block::default()),
            // Of a lease without its end, the end is still being written.
            ("}", _) => newest = open.take().filter(|block| block.is_wanted).or(newest),
            (_, Some(block)) => block.take(line, interface),
            (_, None) => {}
        }
    }
    newest.and_then(Block::offer)
}

/// The octets of the option's value in any of its forms.
fn octets(value: &str) -> Option<Vec<u8>> {
    let words: Vec<&str> =
        value.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
    match &words[..] {
        [alone] => alone.split(':').map(hexadecimal).collect(),
        [mask, length, prefix, relays @ ..] if prefix.contains(':') => {
            record(mask, length, &prefix.parse::<Ipv6Addr>().ok()?.octets(), relays)
        }
        [mask, length, rest @ ..] if words.iter().any(|word| word.contains('.')) => {
            let (parts, relays) = rest.split_at_checked(8)?;
            let parts: Option<Vec<u16>> = parts.iter().map(|part| sixteen_bits(part)).collect();
            let prefix: Vec<u8> = parts?.into_iter().flat_map(u16::to_be_bytes).collect();
            record(mask, length, &prefix, relays)
        }
        all => all.iter().map(|octet| octet.parse().ok()).collect(),
    }
}

/// `integer 16` is written with a sign, `unsigned integer 16` without.
fn sixteen_bits(digits: &str) -> Option<u16> {
    digits.parse::<u16>().or_else(|_| digits.parse::<i16>().map(i16::cast_unsigned)).ok()
}

fn hexadecimal(digits: &str) -> Option<u8> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| are_digits)
}

fn record(mask: &str, length: &str, prefix: &[u8], relays: &[&str]) -> Option<Vec<u8>> {
    let mut data = vec![mask.parse().ok()?, length.parse().ok()?];
    data.extend(prefix);
    for relay in relays {
        data.extend(relay.parse::<Ipv4Addr>().ok()?.octets());
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEXADECIMAL: &str = "unknown-212 8:20:20:1:d:b8:0:0:0:0:0:0:0:0:0:0:0:0:a:0:0:1";

    fn lease(interface: &str, address: &str, option: &str) -> String {
        format!(
            "lease {{\n  interface \"{interface}\";\n  fixed-address {address};\n  option subnet-mask 255.255.255.0;\n  \
             option dhcp-lease-time 3600;\n  option {option};\n  renew 5 2026/11/27 10:00:00;\n}}\n"
        )
    }

    fn read(text: &str) -> Option<SixRdOffer> {
        offer(text, "eth0")
    }

    #[test]
    fn every_form_of_the_option_is_the_same_domain() {
        let expected = read(&lease("eth0", "10.100.100.1", HEXADECIMAL)).unwrap();
        assert_eq!((expected.address, expected.lease_time), (Ipv4Addr::new(10, 100, 100, 1), Some(3_600)));
        assert_eq!(expected.domain.prefix, "2001:db8::/32".parse().unwrap());
        for option in [
            "option-6rd 8 32 2001:db8:: 10.0.0.1",
            "rfc5969-6rd 8 32 8193 3512 0 0 0 0 0 0 10.0.0.1",
            "SIXRD 8,32,32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,0,10,0,0,1",
        ] {
            assert_eq!(read(&lease("eth0", "10.100.100.1", option)), Some(expected.clone()), "{option}");
        }
        let two =
            read(&lease("eth0", "10.100.100.1", "option-6rd 8 32 2001:db8:: 10.0.0.1, 10.0.0.2")).unwrap();
        assert_eq!(two.domain.relays.len(), 2);
    }

    #[test]
    fn the_newest_lease_of_the_interface_counts_also_if_it_has_no_option() {
        let of = |address: &str| lease("eth0", address, HEXADECIMAL);
        let text = of("10.1.1.1") + &of("10.2.2.2") + &lease("eth1", "10.3.3.3", HEXADECIMAL);
        assert_eq!(read(&text).unwrap().address, Ipv4Addr::new(10, 2, 2, 2));
        let without = lease("eth0", "10.4.4.4", "routers 10.0.0.254");
        assert_eq!(read(&(text.clone() + &without)), None);
        // dhclient is writing it.
        let half = without.trim_end_matches("}\n");
        assert_eq!(read(&(text + half)).unwrap().address, Ipv4Addr::new(10, 2, 2, 2));
    }

    #[test]
    fn what_is_not_understood_is_none() {
        for option in [
            "unknown-212",
            "unknown-212 8:20",
            "unknown-212 8:20:zz",
            "unknown-212 \"text\"",
            "option-6rd 8 32 2001:db8::",
            "option-6rd 8 32 2001:db8:: x.y",
            "option-6rd 8 32 1 2 10.0.0.1",
            "option-6rd 256,1",
        ] {
            assert_eq!(read(&lease("eth0", "10.100.100.1", option)), None, "{option}");
        }
        assert_eq!(read(&lease("eth0", "host.example", HEXADECIMAL)), None);
        assert_eq!(read("lease {\n}\n}\nlease {"), None);
    }
}
