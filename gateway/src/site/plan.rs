//! The plan of a site, derived from the options and the host's state, or everything that is missing for it.

use super::dhcp_program::DhcpProgram;
use super::facts::{PCP, SiteFacts};
use super::ipv6::{self, Ipv6};
use super::lan::Lan;
use super::nat64::{self, Nat64};
use super::options::{DEVICE, SiteOptions};
use super::ports;
use crate::config::Surroundings;
use sixway_wire::Prefix4;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The smallest MTU that IPv6 passes (RFC 8200 §5).
const LEAST_MTU: u32 = 1_280;
/// The MTU of Ethernet.
const ETHERNET: u32 = 1_500;
/// Smaller networks have no room for leases.
const LONGEST_PREFIX: u8 = 29;
/// RFC 7335: addresses for translators, which are not routed.
const SERVICE_ADDRESSES: RangeInclusive<u8> = 2..=6;

/// DHCP for inside hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcp {
    /// The program that leases addresses.
    pub program: DhcpProgram,
    /// The DNS servers of hosts.
    pub dns: DhcpDns,
    /// Whether hosts that can do without IPv4 are requested to (RFC 8925).
    pub ipv6_mostly: bool,
}

/// The DNS servers that hosts get with their IPv4 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DhcpDns {
    /// dnsmasq itself, at this host's address in each network, by the servers of `/etc/resolv.conf`.
    Dnsmasq,
    /// The same, as soon as there are such servers: now they are missing.
    DnsmasqLater,
    /// Another program of this host, at this address of each network in turn.
    Other(Vec<Ipv4Addr>),
    /// With Kea: those of `/etc/resolv.conf`, by NAT44.
    Hosts(Vec<Ipv4Addr>),
    /// With Kea, none: inside hosts reach no server of `/etc/resolv.conf`.
    None,
}

/// The plan of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The gateway's name.
    pub name: String,
    /// The gateway's device.
    pub device: String,
    /// The interface to the provider.
    pub wan: String,
    /// This interface, and that of IPv6's default route, if it is another one, such as a tunnel of the kernel.
    pub outside: Vec<String>,
    /// Its current IPv4 address.
    pub public: Option<Ipv4Addr>,
    /// Its MTU, if that is smaller than Ethernet's (PPPoE: 1492).
    pub small_mtu: Option<u32>,
    /// The interfaces to inside hosts.
    pub lans: Vec<Lan>,
    /// Source of the gateway's ICMP errors.
    pub own: Ipv4Addr,
    /// Ports of the public address that are the NAT44's.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The IPv6 connectivity of inside hosts.
    pub ipv6: Ipv6,
    /// The NAT64, or why there is none; `None`: it is disabled.
    pub nat64: Option<Result<Nat64, String>>,
    /// The number of files that the gateway's process may open.
    pub descriptors: Option<u64>,
    /// Whether hosts may request mappings by PCP and NAT-PMP.
    pub pcp: bool,
    /// Whether they might, but for another program that has the server's port.
    pub pcp_taken: bool,
    /// DHCP for inside hosts; `None`: another program leases addresses.
    pub dhcp: Option<Dhcp>,
    /// DNS servers for inside hosts' IPv6.
    pub dns: Vec<Ipv6Addr>,
    /// Whether there is a table of the packet filter.
    pub firewall: bool,
    /// Whether sessions are forwarded in the kernel.
    pub fast_path: bool,
}

impl Site {
    /// Makes the plan.
    ///
    /// # Errors
    /// Everything that is missing, and what to do about it.
    pub fn plan(options: &SiteOptions, facts: &SiteFacts) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let wan = wan(options, facts, &mut faults);
        let lans = lans(options, facts, wan.as_deref(), &mut faults);
        let (ports, others) = ports::free(facts.host.local_ports.as_ref(), &facts.listening);
        if ports.is_empty() {
            let what = "no ports are left for the NAT44: net.ipv4.ip_local_port_range has all of them";
            faults.push(format!("{what}; sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\""));
        }
        let own = own(facts);
        if own.is_none() {
            faults.push("this host has all of 192.0.0.2 to 192.0.0.6; free one of them".into());
        }
        let public = wan.as_ref().and_then(|wan| Surroundings::of(&facts.host.addresses).ipv4_of(wan));
        let ipv6 = ipv6::planned(options, facts, wan.as_deref().zip(public), &lans, &mut faults);
        let links = ipv6.links(&lans, public);
        let nat64 = nat64::planned(options, (&ipv6, &links), (public, others), facts, &mut faults);
        let dhcp = if options.dhcp { dhcp(options, &lans, facts, &mut faults) } else { None };
        match (wan, own) {
            (Some(wan), Some(own)) if faults.is_empty() => Ok(Self {
                name: options.name.clone(),
                device: DEVICE.into(),
                public,
                small_mtu: facts.mtus.get(&wan).copied().filter(|mtu| *mtu < ETHERNET),
                outside: outside(&wan, &lans, facts),
                wan,
                lans,
                own,
                ports,
                ipv6,
                nat64,
                descriptors: facts.host.descriptors,
                pcp: options.pcp && !facts.listening.contains(&PCP),
                pcp_taken: options.pcp && facts.listening.contains(&PCP),
                dhcp,
                dns: dns(facts),
                firewall: options.firewall,
                fast_path: options.fast_path,
            }),
            _ => Err(faults),
        }
    }
}

/// The outside interfaces. Those with names that nft cannot read are omitted.
fn outside(wan: &str, lans: &[Lan], facts: &SiteFacts) -> Vec<String> {
    let mut all = vec![wan.to_owned()];
    for name in &facts.defaults6 {
        if is_plain(name) && !all.contains(name) && lans.iter().all(|lan| lan.interface != *name) {
            all.push(name.clone());
        }
    }
    all
}

/// The interface to the provider: as configured, else that of the default route.
fn wan(options: &SiteOptions, facts: &SiteFacts, faults: &mut Vec<String>) -> Option<String> {
    let Some(written) = &options.wan else {
        let is_other = |name: &&String| !options.lans.contains(name);
        let found = facts.defaults.iter().find(is_other).cloned();
        if found.is_none() {
            faults.push(match facts.defaults.first() {
                Some(lan) => {
                    format!(
                        "the IPv4 default route leads to {lan}, which is --lan; change it, or write --wan"
                    )
                }
                None => {
                    "the interface to the provider is unknown, as there is no IPv4 default route; write --wan"
                        .into()
                }
            });
        }
        return found;
    };
    if options.lans.contains(written) {
        faults.push(format!("{written} is both --lan and --wan; name two different interfaces"));
    }
    is_usable(written, "--wan", facts, faults).then(|| written.clone())
}

fn lans(options: &SiteOptions, facts: &SiteFacts, wan: Option<&str>, faults: &mut Vec<String>) -> Vec<Lan> {
    let mut lans: Vec<Lan> = Vec::new();
    for name in &options.lans {
        if lans.iter().any(|lan| lan.interface == *name) || !is_usable(name, "--lan", facts, faults) {
            continue;
        }
        let lan = Lan::of(name, facts);
        if lan.networks.is_empty() {
            let what = "has no IPv4 address for inside hosts to reach";
            faults.push(format!("{name} {what}; ip address add 192.168.1.1/24 dev {name}"));
        }
        lans.push(lan);
    }
    let outside = wan.filter(|wan| options.lans.iter().all(|lan| lan != wan));
    let outside: Vec<Prefix4> = outside.map(|wan| Lan::of(wan, facts).networks).unwrap_or_default();
    for lan in &lans {
        if lan.networks.iter().any(|network| outside.iter().any(|other| network.overlaps(*other))) {
            let what = "have addresses of the same network";
            let name = &lan.interface;
            faults.push(format!("{name} and the interface to the provider {what}; use others at {name}"));
        }
    }
    lans
}

/// Whether there is such an interface, of a name that nft can read.
fn is_usable(name: &str, option: &str, facts: &SiteFacts, faults: &mut Vec<String>) -> bool {
    let is_plain = is_plain(name);
    let is_there = facts.host.interfaces.iter().any(|there| there == name);
    if !is_plain {
        faults
            .push(format!("{option}: the packet filter cannot read the name {name:?}; rename the interface"));
    } else if !is_there {
        let others = facts.host.interfaces.iter().filter(|other| *other != "lo");
        let others: Vec<&str> = others.map(String::as_str).collect();
        faults.push(format!("{option}: there is no interface {name}; there are {}", others.join(", ")));
    } else if name == "lo" {
        faults.push(format!("{option}: lo is the loopback interface"));
    }
    is_plain && is_there && name != "lo"
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|octet| octet.is_ascii_graphic() && !b"\"\\*".contains(&octet))
}

fn own(facts: &SiteFacts) -> Option<Ipv4Addr> {
    let candidates = SERVICE_ADDRESSES.map(|last| Ipv4Addr::new(192, 0, 0, last));
    let is_free = |one: &Ipv4Addr| !facts.host.addresses.iter().any(|own| own.address == IpAddr::V4(*one));
    candidates.into_iter().find(is_free)
}

fn dhcp(options: &SiteOptions, lans: &[Lan], facts: &SiteFacts, faults: &mut Vec<String>) -> Option<Dhcp> {
    for network in lans.iter().flat_map(|lan| &lan.networks).filter(|it| it.length() > LONGEST_PREFIX) {
        faults.push(format!(
            "{network} has no room for leases of --dhcp; use a /{LONGEST_PREFIX} or a shorter prefix"
        ));
    }
    let Some(program) = facts.dhcp_program else {
        let what = "--dhcp needs dnsmasq or Kea";
        faults.push(format!("{what}; install the package dnsmasq-base or kea-dhcp4-server, or omit --dhcp"));
        return None;
    };
    Some(Dhcp { program, dns: dhcp_dns(program, lans, facts), ipv6_mostly: options.ipv6_mostly })
}

/// The program that already answers at this host's addresses, else dnsmasq, which cannot exclude some of several addresses.
fn dhcp_dns(program: DhcpProgram, lans: &[Lan], facts: &SiteFacts) -> DhcpDns {
    let own = || lans.iter().flat_map(|lan| &lan.own).copied();
    let is_taken = |address: &Ipv4Addr| facts.answers_dns(IpAddr::V4(*address));
    if let Some(first) = own().find(is_taken) {
        let nearest = own().map(|address| if is_taken(&address) { address } else { first });
        return DhcpDns::Other(nearest.collect());
    }
    match program {
        DhcpProgram::Dnsmasq if facts.host.resolvers.is_empty() => DhcpDns::DnsmasqLater,
        DhcpProgram::Dnsmasq => DhcpDns::Dnsmasq,
        DhcpProgram::Kea => {
            let servers = reached_by_ipv4(facts);
            if servers.is_empty() { DhcpDns::None } else { DhcpDns::Hosts(servers) }
        }
    }
}

/// DNS servers of this host that other hosts can also reach.
fn reached_by_ipv4(facts: &SiteFacts) -> Vec<Ipv4Addr> {
    let all = facts.host.resolvers.iter().filter(|server| server.port() == 53);
    let all = all.filter_map(|server| match server.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let is_own = |it: &Ipv4Addr| facts.host.addresses.iter().any(|own| own.address == IpAddr::V4(*it));
    all.filter(|address| !address.is_loopback() && !address.is_link_local() && !is_own(address))
        .take(3)
        .collect()
}

/// Those of this host that inside hosts can also reach.
fn dns(facts: &SiteFacts) -> Vec<Ipv6Addr> {
    let all = facts.host.resolvers.iter().filter(|server| server.port() == 53);
    let all = all.filter_map(|server| match server.ip() {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    });
    all.filter(|address| !address.is_loopback() && !address.is_unicast_link_local()).take(3).collect()
}

/// The device's MTU.
pub(super) fn device_mtu(site: &Site) -> Option<u32> {
    site.small_mtu.map(|mtu| mtu.max(LEAST_MTU))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::options::{Nat64Option, SixRdOption};
    use super::*;
    use crate::config::{HostAddress, HostFacts};

    pub(crate) fn options() -> SiteOptions {
        SiteOptions {
            name: "site".into(),
            lans: vec!["eth1".into()],
            wan: Some("eth0".into()),
            firewall: true,
            fast_path: false,
            nat64: Nat64Option::Auto,
            pcp: true,
            dhcp: false,
            ipv6_mostly: false,
            six_rd: SixRdOption::Leased,
            six_to_four: None,
        }
    }

    pub(crate) fn facts() -> SiteFacts {
        let own = |interface: &str, address: &str, length| HostAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            length,
        };
        let addresses = vec![
            own("lo", "127.0.0.1", 8),
            own("eth0", "203.0.113.1", 24),
            own("eth1", "192.168.1.1", 24),
            own("eth1", "2001:db8:1::1", 64),
            own("eth1", "fe80::1", 64),
        ];
        let interfaces = ["lo", "eth0", "eth1"].map(String::from).to_vec();
        let host =
            HostFacts { addresses, interfaces, local_ports: Some(32_768..=60_999), ..HostFacts::default() };
        let mtus = [("eth0".to_owned(), 1_500), ("eth1".to_owned(), 1_500)].into();
        let dhcp_program = Some(DhcpProgram::Dnsmasq);
        SiteFacts { host, mtus, defaults: vec!["eth0".into()], dhcp_program, ..SiteFacts::default() }
    }

    fn faults(options: &SiteOptions, facts: &SiteFacts) -> String {
        Site::plan(options, facts).unwrap_err().join("\n")
    }

    #[test]
    fn the_interface_of_the_default_route_leads_to_the_provider() {
        let site = Site::plan(&SiteOptions { wan: None, ..options() }, &facts()).unwrap();
        assert_eq!((site.wan.as_str(), site.public), ("eth0", Some(Ipv4Addr::new(203, 0, 113, 1))));
        assert_eq!((site.small_mtu, site.ipv6), (None, Ipv6::Native));
        let without = SiteFacts { defaults: Vec::new(), ..facts() };
        assert!(faults(&SiteOptions { wan: None, ..options() }, &without).contains("write --wan"));
        // The LAN's own default route is not the provider's.
        let only_lan = SiteFacts { defaults: vec!["eth1".into()], ..facts() };
        let said = faults(&SiteOptions { wan: None, ..options() }, &only_lan);
        assert!(said.contains("leads to eth1") && said.contains("write --wan"), "{said}");
    }

    #[test]
    fn a_link_of_pppoe_is_known_by_its_mtu() {
        let mut facts = facts();
        facts.mtus.insert("eth0".into(), 1_492);
        let site = Site::plan(&options(), &facts).unwrap();
        assert_eq!((site.small_mtu, device_mtu(&site)), (Some(1_492), Some(1_492)));
        facts.mtus.insert("eth0".into(), 576);
        assert_eq!(device_mtu(&Site::plan(&options(), &facts).unwrap()), Some(1_280));
    }

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let bad =
            SiteOptions { lans: vec!["eth2".into(), "a\"b".into()], wan: Some("eth9".into()), ..options() };
        let said = faults(&bad, &facts());
        for part in ["no interface eth9; there are eth0, eth1", "no interface eth2", "cannot read the name"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let mut bare = facts();
        bare.host.addresses.retain(|own| own.interface != "eth1");
        assert!(faults(&options(), &bare).contains("ip address add 192.168.1.1/24 dev eth1"));
        let mut same = facts();
        same.host.addresses[1].address = "192.168.1.7".parse().unwrap();
        assert!(faults(&options(), &same).contains("addresses of the same network"));
        let both = SiteOptions { lans: vec!["eth0".into()], ..options() };
        let said = faults(&both, &facts());
        assert!(said.contains("name two different interfaces") && !said.contains("same network"), "{said}");
    }

    #[test]
    fn a_fast_path_past_the_filter_is_refused() {
        let tunnelled = SiteOptions { six_to_four: Some(Ipv4Addr::new(192, 88, 99, 1)), ..options() };
        assert!(Site::plan(&tunnelled, &facts()).is_ok());
        let fast = SiteOptions { fast_path: true, ..tunnelled };
        assert!(faults(&fast, &facts()).contains("past the packet filter"));
        assert!(Site::plan(&SiteOptions { firewall: false, ..fast }, &facts()).is_ok());
        assert!(Site::plan(&SiteOptions { fast_path: true, ..options() }, &facts()).is_ok());
    }

    #[test]
    fn a_tunnel_next_to_native_ipv6_is_refused() {
        let tunnelled = SiteOptions { six_to_four: Some(Ipv4Addr::new(192, 88, 99, 1)), ..options() };
        let native = SiteFacts { reaches_ipv6: true, ..facts() };
        assert!(faults(&tunnelled, &native).contains("without a tunnel"));
        assert!(Site::plan(&options(), &native).is_ok());
    }

    /// As by a tunnel of the kernel, which another program made.
    #[test]
    fn the_interface_of_ipv6s_default_route_is_outside_as_well() {
        let mut facts = facts();
        facts.defaults6 = ["eth1", "he-ipv6", "eth0", "he-ipv6", "a\"b"].map(String::from).to_vec();
        let site = Site::plan(&options(), &facts).unwrap();
        assert_eq!(site.outside, ["eth0", "he-ipv6"]);
    }

    #[test]
    fn an_address_of_the_host_is_not_the_gateways() {
        let mut facts = facts();
        facts.host.addresses[0].address = "192.0.0.2".parse().unwrap();
        assert_eq!(Site::plan(&options(), &facts).unwrap().own, Ipv4Addr::new(192, 0, 0, 3));
    }
}
