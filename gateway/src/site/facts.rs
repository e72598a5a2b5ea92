//! What the host is, as far as a site depends on it.

use super::lease::{LeasedSixRd, offers};
use super::options::DEVICE;
use crate::config::HostFacts;
use crate::host;
use sixway_link::interface;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

/// What the host is, as far as a site depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteFacts {
    /// What every configuration is checked against.
    pub host: HostFacts,
    /// The interfaces of IPv4's default routes, the preferred ones first.
    pub defaults: Vec<String>,
    /// The same of IPv6's default routes, without the gateway's own device.
    pub defaults6: Vec<String>,
    /// The MTU of each interface.
    pub mtus: BTreeMap<String, u32>,
    /// Whether this host reaches the IPv6 Internet without a tunnel of the gateway.
    pub reaches_ipv6: bool,
    /// 6rd domains that came with leases of IPv4 addresses, the newest last. The leases may have ended.
    pub six_rd: Vec<LeasedSixRd>,
    /// Ports at which programs of this host listen, TCP and UDP.
    pub listening: BTreeSet<u16>,
    /// Whether a program of this host answers DNS queries over IPv4.
    pub dns4: bool,
    /// The same over IPv6.
    pub dns6: bool,
}

impl SiteFacts {
    /// As the kernel says. What it does not tell is left out.
    pub fn gather() -> Self {
        let host = host::host_facts();
        let mtus = host.interfaces.iter().filter_map(|name| Some((name.clone(), interface::mtu(name).ok()?)));
        let mtus = mtus.collect();
        let reaches_ipv6 = host::native_ipv6(Some(DEVICE)) == Some(true);
        let (tables, defaults) = (tables(), host::default_interfaces());
        let mut defaults6 = host::default_interfaces6();
        defaults6.retain(|name| name != DEVICE && name != "lo");
        let six_rd = offers(Path::new("/"), &host.interfaces);
        Self { reaches_ipv6, mtus, defaults, defaults6, six_rd, host, ..Self::default() }
            .with_sockets(&tables)
    }

    /// The same without the addresses that the gateway itself has added to interfaces: a tunnel's prefix is not a native one.
    #[must_use]
    pub(super) fn without_addresses(mut self, added: &[(String, IpAddr)]) -> Self {
        let is_added = |interface: &str, address: IpAddr| {
            added.iter().any(|(name, own)| name == interface && *own == address)
        };
        self.host.addresses.retain(|own| !is_added(&own.interface, own.address));
        self
    }

    /// The same without the sockets that the site has itself.
    #[must_use]
    pub(super) fn without_own(mut self, own: OwnSockets) -> Self {
        self.dns4 &= !own.dns4;
        self.dns6 &= !own.dns6;
        if own.pcp {
            self.listening.remove(&PCP);
        }
        self
    }

    fn with_sockets(mut self, tables: &[(bool, Vec<Socket>)]) -> Self {
        for (is_ipv6, socket) in tables.iter().flat_map(|(six, sockets)| sockets.iter().map(|it| (*six, it)))
        {
            self.listening.insert(socket.port);
            if socket.port == DNS {
                self.dns6 |= is_ipv6;
                // One of `::` receives IPv4 as well, unless IPV6_V6ONLY is set, which is not told here.
                self.dns4 |= !is_ipv6 || socket.is_wildcard;
            }
        }
        self
    }
}

/// RFC 1035 §4.2.
const DNS: u16 = 53;
/// RFC 6887 §19: PCP's and NAT-PMP's.
pub(super) const PCP: u16 = 5_351;

/// The sockets that the running site has itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnSockets {
    /// dnsmasq's for DNS.
    pub dns4: bool,
    /// The DNS64's.
    pub dns6: bool,
    /// The PCP server's.
    pub pcp: bool,
}

/// Where a program listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    port: u16,
    is_wildcard: bool,
}

/// Each table of the kernel, and the state of a socket there that receives from anybody.
const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

fn tables() -> Vec<(bool, Vec<Socket>)> {
    let read = |(table, state): (&str, &'static str)| {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).ok()?;
        Some((table.ends_with('6'), sockets(&text, state)))
    };
    TABLES.into_iter().filter_map(read).collect()
}

/// proc(5): the local address and port in the second column, the state in the fourth. Sockets of the loopback interface do not matter.
fn sockets(table: &str, state: &str) -> Vec<Socket> {
    let socket = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (address, port) = columns.next()?.rsplit_once(':')?;
        let is_loopback = address == LOOPBACK6 || address.len() == 8 && address.ends_with("7F");
        let is_wildcard = address.bytes().all(|digit| digit == b'0');
        let port = u16::from_str_radix(port, 16).ok()?;
        (columns.nth(1)? == state && !is_loopback).then_some(Socket { port, is_wildcard })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// `::1`, as these tables have it.
const LOOPBACK6: &str = "00000000000000000000000001000000";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;

    #[test]
    fn listening_sockets_are_told_from_connections() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 00000000:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n   \
            1: 0100007F:4E21 0100007F:4E20 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n   \
            2: 3500007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1\n";
        assert_eq!(sockets(table, "0A"), [Socket { port: 20_000, is_wildcard: true }]);
        assert_eq!(sockets("", "0A"), []);
    }

    #[test]
    fn an_address_that_the_gateway_added_is_not_the_hosts() {
        let own =
            |text: &str| HostAddress { interface: "eth1".into(), address: text.parse().unwrap(), length: 64 };
        let host =
            HostFacts { addresses: vec![own("2001:db8:1::1"), own("2001:db9:1::1")], ..HostFacts::default() };
        let added = [
            ("eth1".to_owned(), "2001:db9:1::1".parse().unwrap()),
            ("eth2".to_owned(), "2001:db8:1::1".parse().unwrap()),
        ];
        let facts = SiteFacts { host, ..SiteFacts::default() }.without_addresses(&added);
        assert_eq!(facts.host.addresses, [own("2001:db8:1::1")]);
    }

    #[test]
    fn the_sites_own_servers_are_not_those_of_other_programs() {
        let dns = |is_wildcard| vec![Socket { port: DNS, is_wildcard }];
        let of = |six, is_wildcard| SiteFacts::default().with_sockets(&[(six, dns(is_wildcard))]);
        assert_eq!((of(false, true).dns4, of(false, true).dns6), (true, false));
        assert_eq!((of(true, false).dns4, of(true, false).dns6), (false, true));
        assert_eq!((of(true, true).dns4, of(true, true).dns6), (true, true));
        let own = OwnSockets { dns6: true, pcp: true, ..OwnSockets::default() };
        let facts = SiteFacts { listening: [DNS, PCP].into(), ..of(true, true) }.without_own(own);
        assert_eq!((facts.dns4, facts.dns6, facts.listening.contains(&PCP)), (true, false, false));
    }
}
