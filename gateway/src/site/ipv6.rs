//! How inside hosts have IPv6: natively, else by the provider's 6rd, else by 6to4.

use super::facts::SiteFacts;
use super::lan::Lan;
use super::options::{SiteOptions, SixRdDomain, SixRdOption};
use sixway_control::option_6rd::SixRdOffer;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{IpAddr, Ipv4Addr};

/// How inside hosts have IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ipv6 {
    /// By a prefix that the provider routes here, which is on the LAN's interface.
    Native,
    /// By the provider's 6rd domain, as it was written.
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
}

/// How it is with these options; `public`: the interface to the provider, and its address.
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
    let why = match offer.map(|offer| usable(offer, options, facts, lans)) {
        Some(Ok(offer)) => return Ipv6::LeasedSixRd(offer),
        Some(Err(why)) => format!("the provider's 6rd is not used: {why}"),
        None => "no interface of the LAN has a global IPv6 address with a /64".into(),
    };
    options.six_to_four.map_or(Ipv6::None(why), Ipv6::SixToFour)
}

/// What is wrong with a tunnel that was asked for.
fn check(options: &SiteOptions, is_six_rd: bool, facts: &SiteFacts, faults: &mut Vec<String>) {
    if is_six_rd && options.six_to_four.is_some() {
        faults.push("--6rd and --6to4 exclude each other; choose one".into());
    }
    if facts.reaches_ipv6 {
        faults
            .push("this host reaches the IPv6 Internet without a tunnel; leave out --6rd and --6to4".into());
    }
    if goes_past_the_filter(options) {
        let what = "--fast-path would forward packets of the tunnel past the packet filter";
        faults.push(format!("{what}; leave it out, or add --no-firewall"));
    }
}

const fn goes_past_the_filter(options: &SiteOptions) -> bool {
    options.fast_path && options.firewall
}

/// What came with the lease that the public address is from. Another lease has ended, or is another interface's.
fn offered<'f>(facts: &'f SiteFacts, (wan, address): (&str, Ipv4Addr)) -> Option<&'f SixRdOffer> {
    let mut all = facts.six_rd.iter().rev();
    all.find(|it| it.interface == wan && it.offer.address == address).map(|it| &it.offer)
}

/// The offer as far as the site can use it, or why it cannot.
fn usable(
    offer: &SixRdOffer,
    options: &SiteOptions,
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
    let mut offer = offer.clone();
    offer.domain.relays.retain(|relay| is_elsewhere(*relay, facts, lans));
    if offer.domain.relays.is_empty() {
        return Err("its border relay is an address of this site".into());
    }
    Ok(offer)
}

/// Whether it may be a border relay's: neither this host's, nor a broadcast address, nor one of the LAN.
fn is_elsewhere(relay: Ipv4Addr, facts: &SiteFacts, lans: &[Lan]) -> bool {
    let is_own = facts.host.addresses.iter().any(|own| match own.address {
        IpAddr::V4(address) => {
            address == relay || own.length < 31 && Prefix4::holding(address, own.length).last() == relay
        }
        IpAddr::V6(_) => false,
    });
    !is_own && !lans.iter().flat_map(|lan| &lan.networks).any(|network| network.contains(relay))
}

#[cfg(test)]
mod tests {
    use super::super::lease::LeasedSixRd;
    use super::super::plan::Site;
    use super::super::plan::tests::{facts, options};
    use super::*;
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
        for relay in ["203.0.113.1", "203.0.113.255", "192.168.1.9"] {
            let ipv6 = planned_by(&options(), &with(lease("eth0", "203.0.113.1", relay)));
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
}
