//! The addresses and ports at which programs of this host listen, from the kernel's tables (proc(5), `/proc/net/tcp`).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// RFC 1035 §4.2.
pub(super) const DNS: u16 = 53;

/// Where a program listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// TCP's or UDP's.
    pub port: u16,
    /// Unspecified: all of its family.
    pub address: IpAddr,
}

/// Each table of the kernel, and the state of a socket there that is not connected.
const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// All of them. Those of the loopback interface are not reachable by other hosts.
pub(super) fn tables() -> Vec<Socket> {
    let read = |(table, state): (&str, &'static str)| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).ok()?;
        Some(sockets(&text, state))
    };
    TABLES.into_iter().filter_map(read).flatten().collect()
}

/// No program listens at this loopback address only.
const NOBODYS: Ipv4Addr = Ipv4Addr::new(127, 83, 53, 1);

/// Whether a socket of `::` for DNS receives IPv4 as well, which the tables do not contain (IPV6_V6ONLY): then no other program can bind an IPv4
/// address at that port. If this cannot be tested, it is assumed.
pub(super) fn takes_ipv4() -> bool {
    UdpSocket::bind((NOBODYS, DNS)).is_err()
}

/// proc(5): the local address and port in the second column, the state in the fourth.
fn sockets(table: &str, state: &str) -> Vec<Socket> {
    let socket = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (digits, port) = columns.next()?.rsplit_once(':')?;
        // One of an IPv4-mapped address receives IPv4.
        let address = address(digits)?.to_canonical();
        let port = u16::from_str_radix(port, 16).ok()?;
        (columns.nth(1)? == state && !address.is_loopback()).then_some(Socket { port, address })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Words of 32 bits in the host's order.
fn address(digits: &str) -> Option<IpAddr> {
    let word = |digits: &str| u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes);
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(digits)?).into()),
        32 => {
            let mut octets = [0; 16];
            for (part, place) in octets.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(digits.get(part * 8..part * 8 + 8)?)?);
            }
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This word as the kernel writes it on this machine.
    fn written(octets: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(octets))
    }

    #[test]
    fn listening_sockets_are_told_from_connections_and_from_the_loopback_interfaces() {
        let (any, resolved) = (written([0; 4]), written([127, 0, 0, 53]));
        let (lan, local) = (written([192, 168, 1, 1]), written([127, 0, 0, 1]));
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: {any}:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n   \
            1: {local}:4E21 {local}:4E20 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n   \
            2: {resolved}:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1\n   \
            3: {lan}:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1\n"
        );
        let at = |address: &str, port| Socket { port, address: address.parse().unwrap() };
        assert_eq!(sockets(&table, "0A"), [at("0.0.0.0", 20_000), at("192.168.1.1", DNS)]);
        assert_eq!(sockets("", "0A"), []);
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let six = |words: [[u8; 4]; 4]| address(&words.map(written).concat());
        let own = six([[0x20, 0x01, 0x0d, 0xb8], [0, 1, 0, 0], [0; 4], [0, 0, 0, 1]]);
        assert_eq!(own, Some("2001:db8:1::1".parse().unwrap()));
        let mapped = six([[0; 4], [0; 4], [0, 0, 0xff, 0xff], [192, 168, 1, 1]]).unwrap();
        assert_eq!(mapped.to_canonical(), IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1)));
        for wrong in ["", "0", "0000000", "0000000g", &"0".repeat(31), &"é".repeat(16)] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
