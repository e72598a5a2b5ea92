//! The lines of a control connection: commands with addresses and ports (RFC 959 §4.1.2, RFC 2428 §2), and replies with them.
//!
//! What is not exactly as the RFCs say is not read: the line passes unchanged, and the server or client judges it.

use core::net::{IpAddr, Ipv4Addr};
use sixway_wire::Endpoint4;

/// The longest line that is read. An EPRT command with the longest IPv6 address has 56 octets.
const LONGEST: usize = 128;

/// An address and a port that a client announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    /// The address.
    pub(super) address: IpAddr,
    /// The port.
    pub(super) port: u16,
}

/// What follows the name of a command; `None`: the line is too long, or not in UTF-8.
pub(super) fn argument(line: &[u8]) -> Option<&str> {
    let line = core::str::from_utf8(trimmed(line)?).ok()?;
    let (_, argument) = line.split_once(' ').unwrap_or((line, ""));
    Some(argument.trim_end_matches(' '))
}

/// A line without its end, if it is not too long and has an end.
fn trimmed(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (line.len() <= LONGEST).then_some(line)
}

/// The argument of PORT: six numbers (RFC 959 §4.1.2).
pub(super) fn host_port(argument: &str) -> Option<Endpoint4> {
    let mut numbers = [0_u8; 6];
    let mut parts = argument.split(',');
    for number in &mut numbers {
        *number = decimal(parts.next()?)?;
    }
    if parts.next().is_some() {
        return None;
    }
    let [a, b, c, d, high, low] = numbers;
    Some(Endpoint4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
}

/// The argument of EPRT: family, address and port between delimiters (RFC 2428 §2).
pub(super) fn extended(argument: &str) -> Option<Announced> {
    let delimiter = argument.chars().next().filter(char::is_ascii_graphic)?;
    let mut parts = argument.split(delimiter);
    let [before, family, address, port, after] = core::array::from_fn(|_| parts.next());
    if before != Some("") || after != Some("") || parts.next().is_some() {
        return None;
    }
    let address: IpAddr = address?.parse().ok()?;
    let is_family = match address {
        IpAddr::V4(_) => family == Some("1"),
        IpAddr::V6(_) => family == Some("2"),
    };
    is_family.then_some(Announced { address, port: decimal(port?)? })
}

/// The six numbers in the text of a reply, from the first digit on (RFC 1123 §4.1.2.6).
pub(super) fn in_reply(line: &[u8]) -> Option<Endpoint4> {
    let text = core::str::from_utf8(trimmed(line)?.get(4..)?).ok()?;
    let numbers = &text[text.find(|one: char| one.is_ascii_digit())?..];
    let end = numbers.find(|one: char| !one.is_ascii_digit() && one != ',').unwrap_or(numbers.len());
    host_port(&numbers[..end])
}

/// A decimal number without sign, of at most five digits.
pub(super) fn decimal<T: core::str::FromStr>(digits: &str) -> Option<T> {
    let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|octet| octet.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_read_with_either_end_of_line() {
        assert_eq!(argument(b"port 1,2\r\n"), Some("1,2"));
        assert_eq!(argument(b"Pwd\n"), Some(""));
        assert_eq!(argument(b"EPSV 2 \r\n"), Some("2"));
        assert_eq!(argument(b"PORT 1,2"), None);
        assert_eq!(argument(b"CWD \xff\r\n"), None);
        assert_eq!(argument(&[b"PORT ".as_slice(), &[b'1'; 200], b"\r\n"].concat()), None);
    }

    #[test]
    fn the_argument_of_port_is_six_octets_and_nothing_else() {
        let endpoint = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 1), 0x0402);
        assert_eq!(host_port("10,0,0,1,4,2"), Some(endpoint));
        for argument in [
            "",
            "10,0,0,1,4",
            "10,0,0,1,4,2,3",
            "10,0,0,256,4,2",
            "10,0,0,+1,4,2",
            "10,0,0, 1,4,2",
            "10,0,0,1,4,",
            "a,b,c,d,e,f",
        ] {
            assert_eq!(host_port(argument), None, "{argument}");
        }
    }

    #[test]
    fn the_argument_of_eprt_has_any_delimiter_and_the_family_of_its_address() {
        let [v4, v6] = ["132.235.1.2", "1080::8:800:200c:417a"].map(|address| address.parse().unwrap());
        assert_eq!(extended("|1|132.235.1.2|6275|"), Some(Announced { address: v4, port: 6_275 }));
        assert_eq!(extended("|2|1080::8:800:200C:417A|5282|"), Some(Announced { address: v6, port: 5_282 }));
        assert_eq!(extended("!1!132.235.1.2!6275!"), Some(Announced { address: v4, port: 6_275 }));
        for argument in [
            "",
            "|",
            "|1|132.235.1.2|6275",
            "|1|132.235.1.2|6275|x",
            "|1|132.235.1.2|65536|",
            "|1|132.235.1.2|-1|",
            "|1|132.235.1.2||",
            "|2|132.235.1.2|6275|",
            "|1|1080::8|6275|",
            "|3|1080::8|6275|",
            "|1|132.235.1|6275|",
            "\u{e9}1\u{e9}132.235.1.2\u{e9}6275\u{e9}",
        ] {
            assert_eq!(extended(argument), None, "{argument}");
        }
    }

    #[test]
    fn a_reply_is_read_from_its_first_digit_on() {
        let endpoint = Some(Endpoint4::new(Ipv4Addr::new(192, 0, 2, 31), 60_691));
        assert_eq!(in_reply(b"227 Entering Passive Mode (192,0,2,31,237,19)\r\n"), endpoint);
        assert_eq!(in_reply(b"227 =192,0,2,31,237,19\r\n"), endpoint);
        for line in
            [&b"227 none\r\n"[..], b"227", b"227 (192,0,2,31,237)\r\n", b"227 (192,0,2,31,237,19,1)\r\n"]
        {
            assert_eq!(in_reply(line), None);
        }
    }
}
