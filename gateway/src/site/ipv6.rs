//! How inside hosts have IPv6: natively, else by the provider's 6rd, else by 6to4.

use super::facts::SiteFacts;
use super::lan::Lan;
use super::options::{SiteOptions, SixRdDomain, SixRdOption};
use sixway_control::option_6rd::SixRdOffer;
use sixway_dataplane::tunnel::address::{Domain, embedded, six_to_four};
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of 2000::/3, which holds all global unicast addresses that are assigned (RFC 4291 §2.4).
const GLOBAL: u8 = 3;
/// Bits of a link's prefix (RFC 4291 §2.5.1).
const SUBNET: u8 = 64;

/// The IPv6 connectivity of inside hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ipv6 {
    /// By a prefix that the provider routes here, which is on the LAN's interface.
    Native,
    /// By the provider's 6rd domain, as it was configured.
    SixRd(SixRdDomain),
    /// By the provider's 6rd domain, as it came with the lease of the public address.
    LeasedSixRd(SixRdOffer),
    /// By 6to4, and this relay.
    SixToFour(Ipv4Addr),
    /// Not at all, and why.
    None(String),
}

impl Ipv6 {
    /// Whether it comes through a tunnel of this gateway.
    pub const fn is_tunnelled(&self) -> bool {
        match self {
            Self::SixRd(_) | Self::LeasedSixRd(_) | Self::SixToFour(_) => true,
            Self::Native | Self::None(_) => false,
        }
    }

    /// The prefix of the site by its tunnel at this public address; `None`: it is not a tunnel, or the address has no prefix.
    fn delegated(&self, public: Ipv4Addr) -> Option<Prefix6> {
        let (prefix, mask_length) = match self {
            Self::Native | Self::None(_) => return None,
            // RFC 3056 §2: only a global address has a prefix.
            Self::SixToFour(_) => {
                return embedded::is_public(public).then(|| six_to_four::prefix_of(public));
            }
            Self::SixRd(domain) => (domain.prefix, domain.mask_length),
            Self::LeasedSixRd(offer) => (offer.domain.prefix, offer.domain.mask_length),
        };
        Domain::new(prefix, Prefix4::holding(public, mask_length)).ok()?.delegated(public)
    }

    /// The global prefixes of the LAN's hosts, with this host's address in each, as far as they are known: a tunnel's follow the public
    /// address.
    pub(super) fn links(&self, lans: &[Lan], public: Option<Ipv4Addr>) -> Vec<(Prefix6, Ipv6Addr)> {
        match self {
            Self::Native => {
                let all = lans.iter().flat_map(|lan| lan.prefixes.iter().zip(&lan.addresses));
                all.map(|(prefix, address)| (*prefix, *address)).collect()
            }
            Self::SixRd(_) | Self::LeasedSixRd(_) | Self::SixToFour(_) | Self::None(_) => {
                let delegated = public.and_then(|public| self.delegated(public));
                let all = (0..).zip(lans).filter_map(|(number, _)| subnet(delegated?, number));
                // The gateway configures the first address on its interface (`config::Reach`).
                all.map(|link| (link, Ipv6Addr::from_bits(link.address().to_bits() | 1))).collect()
            }
        }
    }
}

/// The /64 of this number in a prefix, as router advertisements have it (`subnet`).
fn subnet(prefix: Prefix6, number: u32) -> Option<Prefix6> {
    let bits = SUBNET.checked_sub(prefix.length())?;
    let fits = bits >= u32::BITS as u8 || number >> bits == 0;
    let address = prefix.address().to_bits() | u128::from(number) << SUBNET;
    fits.then(|| Prefix6::holding(address.into(), SUBNET))
}

/// The connectivity with these options; `public`: the interface to the provider, and its address.
pub(super) fn planned(
    options: &SiteOptions,
    facts: &SiteFacts,
    public: Option<(&str, Ipv4Addr)>,
    lans: &[Lan],
    faults: &mut Vec<String>,
) -> Ipv6 {
    let written = match &options.six_rd {
        SixRdOption::Written(domain) => Some(domain),
        SixRdOption::Leased | SixRdOption::No => None,
    };
    let by_tunnel = written.is_some() || options.six_to_four.is_some();
    if by_tunnel {
        check(options, written.is_some(), facts, faults);
    }
    if let Some(domain) = written {
        return Ipv6::SixRd(domain.clone());
    }
    let is_global = |prefix: &Prefix6| prefix.address().to_bits() >> 125 == 1;
    if !by_tunnel && lans.iter().flat_map(|lan| &lan.prefixes).any(is_global) {
        return Ipv6::Native;
    }
    let offer = match options.six_rd {
        SixRdOption::Leased => public.and_then(|public| offered(facts, public)),
        SixRdOption::Written(_) | SixRdOption::No => None,
    };
    let wan = public.map_or("", |(wan, _)| wan);
    let why = match offer.map(|offer| usable(offer, (options, wan), facts, lans)) {
        Some(Ok(offer)) => return Ipv6::LeasedSixRd(offer),
        Some(Err(why)) => format!("the provider's 6rd is not used: {why}"),
        None => "no interface of the LAN has a global IPv6 address with a /64".into(),
    };
    options.six_to_four.map_or(Ipv6::None(why), Ipv6::SixToFour)
}

/// Faults of a requested tunnel.
fn check(options: &SiteOptions, is_six_rd: bool, facts: &SiteFacts, faults: &mut Vec<String>) {
    if is_six_rd && options.six_to_four.is_some() {
        faults.push("--6rd and --6to4 exclude each other; choose one".into());
    }
    if facts.reaches_ipv6 {
        faults.push("this host reaches the IPv6 Internet without a tunnel; omit --6rd and --6to4".into());
    }
    if goes_past_the_filter(options) {
        let what = "--fast-path would forward packets of the tunnel past the packet filter";
        faults.push(format!("{what}; omit it, or add --no-firewall"));
    }
}

const fn goes_past_the_filter(options: &SiteOptions) -> bool {
    options.fast_path && options.firewall
}

/// The domain of the lease of the public address. Other leases have ended, or belong to other interfaces.
fn offered<'f>(facts: &'f SiteFacts, (wan, address): (&str, Ipv4Addr)) -> Option<&'f SixRdOffer> {
    let mut all = facts.six_rd.iter().rev();
    all.find(|it| it.interface == wan && it.offer.address == address).map(|it| &it.offer)
}

/// The offer, or why the site cannot use it.
fn usable(
    offer: &SixRdOffer,
    (options, wan): (&SiteOptions, &str),
    facts: &SiteFacts,
    lans: &[Lan],
) -> Result<SixRdOffer, String> {
    if facts.reaches_ipv6 {
        return Err("this host reaches the IPv6 Internet without a tunnel".into());
    }
    if goes_past_the_filter(options) {
        return Err("--fast-path would forward its packets past the packet filter".into());
    }
    offer.domain.suits(lans.len()).map_err(|why| why.to_string())?;
    if let Some((network, interface)) = overlapping(offer.domain.prefix, facts) {
        let at = if interface.is_empty() { String::new() } else { format!(" at {interface}") };
        let prefix = offer.domain.prefix;
        return Err(format!(
            "its prefix {prefix} overlaps {network}{at}, which this host reaches without 6rd"
        ));
    }
    let mut offer = offer.clone();
    offer.domain.relays.retain(|relay| is_elsewhere(*relay, wan, facts));
    if offer.domain.relays.is_empty() {
        return Err("its border relay is an address of this host or of a network behind it".into());
    }
    Ok(offer)
}

/// A network or a route of this host that overlaps the domain, with its interface: a DHCP server must not divert its packets into the
/// tunnel. A route to all global addresses counts as a default route.
fn overlapping(domain: Prefix6, facts: &SiteFacts) -> Option<(Prefix6, &str)> {
    let own = facts.host.addresses.iter().filter_map(|own| match own.address {
        IpAddr::V6(address) => Some((Prefix6::holding(address, own.length), own.interface.as_str())),
        IpAddr::V4(_) => None,
    });
    let routes = facts.routes6.iter().map(|route| (route.prefix, route.interface.as_str()));
    let mut all = own.chain(routes).filter(|(prefix, _)| prefix.length() > GLOBAL);
    all.find(|(prefix, _)| prefix.overlaps(domain))
}

/// Whether it may be a border relay's: neither this host's, nor a broadcast address, nor one of a network at another interface than that to the
/// provider.
fn is_elsewhere(relay: Ipv4Addr, wan: &str, facts: &SiteFacts) -> bool {
    !facts.host.addresses.iter().any(|own| match own.address {
        IpAddr::V4(address) => {
            let network = Prefix4::holding(address, own.length);
            address == relay
                || own.length < 31 && network.last() == relay
                || own.interface != wan && network.contains(relay)
        }
        IpAddr::V6(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lease::LeasedSixRd;
    use super::super::plan::Site;
    use super::super::plan::tests::{facts, options};
    use super::*;
    use crate::host::ForeignRoute;
    use sixway_control::option_6rd::SixRdOffer;

    /// dhclient's lease of this address, with the domain 2001:db9::/32 for all IPv4 addresses and this border relay.
    fn lease(interface: &str, address: &str, relay: &str) -> LeasedSixRd {
        let text = format!(
            "lease {{\ninterface \"{interface}\";\nfixed-address {address};\noption dhcp-lease-time 3600;\n\
             option option-6rd 0 32 2001:db9:: {relay};\n}}\n"
        );
        let offer = SixRdOffer::in_dhclient_leases(&text, interface).unwrap();
        LeasedSixRd { interface: interface.into(), offer }
    }

    /// A LAN without native IPv6, and this lease.
    fn with(lease: LeasedSixRd) -> SiteFacts {
        let mut facts = facts();
        facts.host.addresses.retain(|own| own.address.is_ipv4());
        facts.six_rd = vec![lease];
        facts
    }

    fn planned_by(options: &SiteOptions, facts: &SiteFacts) -> Ipv6 {
        Site::plan(options, facts).unwrap().ipv6
    }

    fn none(ipv6: &Ipv6) -> &str {
        match ipv6 {
            Ipv6::None(why) => why,
            _ => panic!("{ipv6:?}"),
        }
    }

    #[test]
    fn a_6rd_domain_of_the_lease_is_used_without_native_ipv6() {
        let leased = with(lease("eth0", "203.0.113.1", "203.0.113.2"));
        let Ipv6::LeasedSixRd(offer) = planned_by(&options(), &leased) else { panic!() };
        assert_eq!((offer.domain.prefix, offer.lease_time), ("2001:db9::/32".parse().unwrap(), Some(3_600)));
        let mut native = facts();
        native.six_rd.clone_from(&leased.six_rd);
        assert_eq!(planned_by(&options(), &native), Ipv6::Native);
        let no = SiteOptions { six_rd: SixRdOption::No, ..options() };
        assert!(none(&planned_by(&no, &leased)).contains("no interface of the LAN"));
        // 6to4 is what is left.
        let relay = Ipv4Addr::new(192, 88, 99, 1);
        let six_to_four = SiteOptions { six_to_four: Some(relay), ..options() };
        assert!(matches!(planned_by(&six_to_four, &leased), Ipv6::LeasedSixRd(_)));
        let six_to_four = SiteOptions { six_rd: SixRdOption::No, ..six_to_four };
        assert_eq!(planned_by(&six_to_four, &leased), Ipv6::SixToFour(relay));
    }

    /// RFC 4862 §5.5.3: hosts make addresses of a /64 alone. Those of other networks are not native prefixes.
    #[test]
    fn only_a_global_64_on_the_lan_is_native_ipv6() {
        for (address, length, is_native) in [
            ("2001:db8:1::1", 64, true),
            ("2001:db8:1::1", 60, false),
            ("2001:db8:1::1", 128, false),
            ("fd00:db8:1::1", 64, false),
            ("fe80::2", 64, false),
        ] {
            let mut facts = facts();
            let own = &mut facts.host.addresses[3];
            (own.address, own.length) = (address.parse().unwrap(), length);
            let ipv6 = planned_by(&options(), &facts);
            assert_eq!(ipv6 == Ipv6::Native, is_native, "{address}/{length}: {ipv6:?}");
            assert!(is_native || none(&ipv6).contains("no interface of the LAN"), "{ipv6:?}");
        }
    }

    #[test]
    fn only_the_lease_of_the_public_address_counts() {
        for lease in
            [lease("eth0", "203.0.113.7", "203.0.113.2"), lease("eth1", "203.0.113.1", "203.0.113.2")]
        {
            assert!(
                none(&planned_by(&options(), &with(lease.clone()))).contains("no interface"),
                "{lease:?}"
            );
        }
        // The newest file is the last.
        let mut both = with(lease("eth0", "203.0.113.1", "203.0.113.2"));
        both.six_rd.push(lease("eth0", "203.0.113.1", "203.0.113.3"));
        let Ipv6::LeasedSixRd(offer) = planned_by(&options(), &both) else { panic!() };
        assert_eq!(offer.domain.relays, [Ipv4Addr::new(203, 0, 113, 3)]);
    }

    #[test]
    fn an_offer_that_cannot_be_used_says_why_and_the_site_goes_on_without() {
        let leased = with(lease("eth0", "203.0.113.1", "203.0.113.2"));
        let native = SiteFacts { reaches_ipv6: true, ..leased.clone() };
        assert!(none(&planned_by(&options(), &native)).contains("without a tunnel"));
        let fast = SiteOptions { fast_path: true, ..options() };
        assert!(none(&planned_by(&fast, &leased)).contains("--fast-path"));
        for relay in ["203.0.113.1", "203.0.113.255", "192.168.1.9", "172.17.0.9", "169.254.1.1", "239.0.0.1"]
        {
            let mut facts = with(lease("eth0", "203.0.113.1", relay));
            let container = crate::config::HostAddress {
                interface: "docker0".into(),
                address: "172.17.0.1".parse().unwrap(),
                length: 16,
            };
            facts.host.addresses.push(container);
            let ipv6 = planned_by(&options(), &facts);
            assert!(none(&ipv6).contains("border relay"), "{relay}");
        }
        let mut two = leased;
        two.host.interfaces.push("eth2".into());
        let other = crate::config::HostAddress {
            interface: "eth2".into(),
            address: "192.168.2.1".parse().unwrap(),
            length: 24,
        };
        two.host.addresses.push(other);
        let both = SiteOptions { lans: vec!["eth1".into(), "eth2".into()], ..options() };
        assert!(none(&planned_by(&both, &two)).contains("no /64 for each LAN"));
    }

    /// A DHCP server must not divert packets of other networks into the tunnel.
    #[test]
    fn a_leased_domain_that_overlaps_a_network_or_a_route_of_this_host_is_refused() {
        let leased = with(lease("eth0", "203.0.113.1", "203.0.113.2"));
        let to = |prefix: &str, interface: &str| ForeignRoute {
            prefix: prefix.parse().unwrap(),
            interface: interface.into(),
        };
        for (prefix, interface) in
            [("2001:db9:5::/48", "wg0"), ("2001:da0::/27", "eth1"), ("2001:db9::/32", "")]
        {
            let mut facts = leased.clone();
            facts.routes6 = vec![to("2000::/3", "eth0"), to("fd00::/8", "wg0"), to(prefix, interface)];
            let ipv6 = planned_by(&options(), &facts);
            let expected = format!("its prefix 2001:db9::/32 overlaps {prefix}");
            assert!(none(&ipv6).contains(&expected) && none(&ipv6).contains(interface), "{ipv6:?}");
            facts.routes6.pop();
            assert!(matches!(planned_by(&options(), &facts), Ipv6::LeasedSixRd(_)));
        }
        let mut addressed = leased;
        addressed.host.addresses.push(crate::config::HostAddress {
            interface: "wg0".into(),
            address: "2001:db9:7::1".parse().unwrap(),
            length: 128,
        });
        let ipv6 = planned_by(&options(), &addressed);
        assert!(none(&ipv6).contains("overlaps 2001:db9:7::1/128 at wg0"), "{ipv6:?}");
    }

    #[test]
    fn a_tunnels_links_follow_the_public_address() {
        let lans = ["eth1", "eth2"].map(|name| Lan::of(name, &facts()));
        let at = |ipv6: &Ipv6, public: &str| -> Vec<String> {
            let links = ipv6.links(&lans, public.parse().ok());
            links.iter().map(|(prefix, own)| format!("{prefix} {own}")).collect()
        };
        let six_rd = Ipv6::SixRd("2001:d00::/24,8,10.0.0.1".parse().unwrap());
        assert_eq!(
            at(&six_rd, "10.1.2.3"),
            ["2001:d01:203::/64 2001:d01:203::1", "2001:d01:203:1::/64 2001:d01:203:1::1"]
        );
        assert_eq!(at(&six_rd, ""), [""; 0]);
        // The delegated prefix is a /64, which has no second link.
        let narrow = Ipv6::SixRd("2001:d00::/40,8,10.0.0.1".parse().unwrap());
        assert_eq!(at(&narrow, "10.1.2.3"), ["2001:d00:1:203::/64 2001:d00:1:203::1"]);
        let six_to_four = Ipv6::SixToFour(Ipv4Addr::new(192, 88, 99, 1));
        assert_eq!(
            at(&six_to_four, "203.0.113.1"),
            ["2002:cb00:7101::/64 2002:cb00:7101::1", "2002:cb00:7101:1::/64 2002:cb00:7101:1::1"]
        );
        assert_eq!(at(&six_to_four, "192.168.0.1"), [""; 0]);
        assert_eq!(at(&Ipv6::Native, ""), ["2001:db8:1::/64 2001:db8:1::1"]);
    }
}
