//! The host's state, as far as a site depends on it.

use super::dhcp_program::DhcpProgram;
use super::lease::{LeasedSixRd, offers};
use super::options::DEVICE;
use super::sockets::{DNS, Socket, tables, takes_ipv4};
use crate::config::HostFacts;
use crate::host::{self, ForeignRoute};
use sixway_link::interface;
use sixway_wire::Prefix6;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The host's state, as far as a site depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteFacts {
    /// The facts against which every configuration is checked.
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
    /// IPv6 routes that are not the gateway's, without default routes.
    pub routes6: Vec<ForeignRoute>,
    /// Ports at which programs of this host listen, TCP and UDP.
    pub listening: BTreeSet<u16>,
    /// The program that can lease IPv4 addresses.
    pub dhcp_program: Option<DhcpProgram>,
    /// Addresses at which programs of this host answer DNS queries; the unspecified one of a family: at all of it.
    pub dns: BTreeSet<IpAddr>,
}

impl SiteFacts {
    /// Reads the state from the kernel. What it does not report is omitted.
    pub fn gather() -> Self {
        let host = host::host_facts();
        let mtus = host.interfaces.iter().filter_map(|name| Some((name.clone(), interface::mtu(name).ok()?)));
        let mtus = mtus.collect();
        let reaches_ipv6 = host::native_ipv6(Some(DEVICE)) == Some(true);
        let (tables, defaults) = (tables(), host::default_interfaces());
        let mut defaults6 = host::default_interfaces6();
        defaults6.retain(|name| name != DEVICE && name != "lo");
        let six_rd = offers(Path::new("/"), &host.interfaces);
        let mut routes6 = host::foreign_routes6();
        routes6.retain(|route| route.interface != DEVICE);
        let dhcp_program = DhcpProgram::installed();
        Self {
            reaches_ipv6,
            mtus,
            defaults,
            defaults6,
            six_rd,
            routes6,
            dhcp_program,
            host,
            ..Self::default()
        }
        .with_sockets(&tables, takes_ipv4)
    }

    /// Whether a program of this host answers DNS queries at this address.
    pub(super) fn answers_dns(&self, address: IpAddr) -> bool {
        let of_all = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        self.dns.contains(&address) || self.dns.contains(&of_all)
    }

    /// The same without the addresses that the gateway itself has added to interfaces: a tunnel's prefix is not a native one.
    #[must_use]
    pub(super) fn without_addresses(mut self, added: &[(String, IpAddr)]) -> Self {
        let is_added = |interface: &str, address: IpAddr| {
            added.iter().any(|(name, own)| name == interface && *own == address)
        };
        self.host.addresses.retain(|own| !is_added(&own.interface, own.address));
        let is_of_added = |route: &ForeignRoute| {
            let mut here = added.iter().filter(|(name, _)| *name == route.interface);
            here.any(
                |(_, own)| matches!(own, IpAddr::V6(own) if Prefix6::holding(*own, LINK) == route.prefix),
            )
        };
        self.routes6.retain(|route| !is_of_added(route));
        self
    }

    /// The same without the sockets that the site has itself.
    #[must_use]
    pub(super) fn without_own(mut self, own: &OwnSockets) -> Self {
        self.dns.retain(|address| !own.dns.contains(address));
        if own.pcp {
            self.listening.remove(&PCP);
        }
        self
    }

    /// With these sockets. `takes_ipv4`: whether one of `::` for DNS receives IPv4 as well.
    fn with_sockets(mut self, sockets: &[Socket], takes_ipv4: impl Fn() -> bool) -> Self {
        self.listening.extend(sockets.iter().map(|socket| socket.port));
        self.dns.extend(sockets.iter().filter(|socket| socket.port == DNS).map(|socket| socket.address));
        if self.dns.contains(&IpAddr::V6(Ipv6Addr::UNSPECIFIED)) && takes_ipv4() {
            self.dns.insert(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        }
        self
    }
}

/// Length of the prefix of an address that the gateway adds (`config::Reach`).
const LINK: u8 = 64;
/// RFC 6887 §19: PCP's and NAT-PMP's.
pub(super) const PCP: u16 = 5_351;

/// The sockets that the running site has itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnSockets {
    /// Addresses of dnsmasq's and of the DNS64's.
    pub dns: Vec<IpAddr>,
    /// Whether there is a PCP server's.
    pub pcp: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostAddress;

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
    fn the_network_of_an_address_that_the_gateway_added_is_not_the_hosts() {
        let to = |prefix: &str, interface: &str| ForeignRoute {
            prefix: prefix.parse().unwrap(),
            interface: interface.into(),
        };
        let routes6 =
            vec![to("2001:db9:1::/64", "eth1"), to("2001:db9:1::/64", "eth2"), to("2001:db9::/32", "eth1")];
        let added = [("eth1".to_owned(), "2001:db9:1::1".parse().unwrap())];
        let facts = SiteFacts { routes6, ..SiteFacts::default() }.without_addresses(&added);
        assert_eq!(facts.routes6, [to("2001:db9:1::/64", "eth2"), to("2001:db9::/32", "eth1")]);
    }

    /// Where a program answers at this address, and whether it does so at others.
    fn answering(address: &str, is_dual: bool) -> SiteFacts {
        let socket = Socket { port: DNS, address: address.parse().unwrap() };
        SiteFacts::default().with_sockets(&[socket], || is_dual)
    }

    #[test]
    fn a_program_answers_dns_at_its_address_or_at_all() {
        let at = |facts: &SiteFacts, address: &str| facts.answers_dns(address.parse().unwrap());
        for (listens, is_dual, expected) in [
            ("192.168.122.1", false, [false, false]),
            ("192.168.1.1", false, [true, false]),
            ("0.0.0.0", false, [true, false]),
            ("::", false, [false, true]),
            ("::", true, [true, true]),
            ("fe80::1", false, [false, false]),
            ("2001:db8:1::1", false, [false, true]),
        ] {
            let facts = answering(listens, is_dual);
            assert_eq!([at(&facts, "192.168.1.1"), at(&facts, "2001:db8:1::1")], expected, "{listens}");
        }
    }

    #[test]
    fn the_sites_own_servers_are_not_those_of_other_programs() {
        let own = OwnSockets { dns: vec!["192.168.1.1".parse().unwrap()], pcp: true };
        let mut facts = answering("192.168.1.1", false);
        facts.dns.insert("192.168.122.1".parse().unwrap());
        facts.listening.insert(PCP);
        let facts = facts.without_own(&own);
        assert_eq!(facts.dns, ["192.168.122.1".parse().unwrap()].into());
        assert_eq!((facts.listening.contains(&DNS), facts.listening.contains(&PCP)), (true, false));
    }
}
