//! The options of `sixway up`.

use clap::ValueEnum;
use sixway_wire::Prefix6;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The gateway's device.
pub(super) const DEVICE: &str = "sixway0";

/// Whether IPv6-only hosts reach IPv4 by NAT64, and to which hosts the DNS64 is announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Nat64Option {
    /// NAT64 if it is possible; the DNS64 answers queries, and is not announced.
    #[default]
    Auto,
    /// NAT64 is required, and the DNS64 is announced to all hosts.
    Dns64,
    /// NAT64 is required, and only its prefix is announced.
    Pref64,
    /// None.
    No,
}

/// The options of `sixway up`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOptions {
    /// The gateway's name.
    pub name: String,
    /// Interfaces of the LAN.
    pub lans: Vec<String>,
    /// The interface to the provider; `None`: that of the default route.
    pub wan: Option<String>,
    /// Whether there is a table of the packet filter.
    pub firewall: bool,
    /// Whether sessions are forwarded in the kernel.
    pub fast_path: bool,
    /// Whether IPv6-only hosts reach IPv4 by NAT64 and DNS64.
    pub nat64: Nat64Option,
    /// Whether hosts of the LAN may request mappings by PCP and NAT-PMP.
    pub pcp: bool,
    /// Whether hosts get IPv4 addresses by DHCP.
    pub dhcp: bool,
    /// Whether hosts that can do without IPv4 are requested to (RFC 8925).
    pub ipv6_mostly: bool,
    /// Whether the site has IPv6 by the provider's 6rd domain.
    pub six_rd: SixRdOption,
    /// The relay of 6to4, which is used without native IPv6 and 6rd.
    pub six_to_four: Option<Ipv4Addr>,
}

/// Whether the site has IPv6 by 6rd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SixRdOption {
    /// If the provider's DHCP server offers it (RFC 5969 §7.1.1), and there is no native IPv6.
    #[default]
    Leased,
    /// By this domain.
    Written(SixRdDomain),
    /// An offer is ignored.
    No,
}

impl FromStr for SixRdOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "dhcp" => Ok(Self::Leased),
            "no" => Ok(Self::No),
            domain => domain.parse().map(Self::Written),
        }
    }
}

/// A 6rd domain as RFC 5969 §7.1.1 announces it: `PREFIX,MASK-LENGTH,RELAY[,RELAY …]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SixRdDomain {
    /// 6rdPrefix with 6rdPrefixLen.
    pub prefix: Prefix6,
    /// IPv4MaskLen.
    pub mask_length: u8,
    /// The border relays.
    pub relays: Vec<Ipv4Addr>,
}

impl FromStr for SixRdDomain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write PREFIX,MASK-LENGTH,RELAY, such as 2001:db8::/32,8,10.0.0.1, or dhcp, or no";
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let [prefix, mask_length, relays @ ..] = &parts[..] else { return Err(FORM.into()) };
        let prefix = prefix.parse().map_err(|_| format!("{prefix} is not an IPv6 prefix; {FORM}"))?;
        let mask_length = mask_length.parse().ok().filter(|length| *length <= 32);
        let mask_length = mask_length.ok_or_else(|| format!("the mask length is not 0 to 32; {FORM}"))?;
        let relays: Result<Vec<Ipv4Addr>, String> = relays
            .iter()
            .map(|relay| relay.parse().map_err(|_| format!("{relay} is not an IPv4 address; {FORM}")))
            .collect();
        let relays = relays?;
        if relays.is_empty() { Err(FORM.into()) } else { Ok(Self { prefix, mask_length, relays }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_6rd_domain_is_its_prefix_its_mask_length_and_relays() {
        let domain: SixRdDomain = "2001:db8::/32, 8,10.0.0.1,10.0.0.2".parse().unwrap();
        assert_eq!((domain.mask_length, domain.relays.len()), (8, 2));
        assert_eq!("no".parse(), Ok(SixRdOption::No));
        assert_eq!("dhcp".parse(), Ok(SixRdOption::Leased));
        assert_eq!("2001:db8::/32,8,10.0.0.1,10.0.0.2".parse(), Ok(SixRdOption::Written(domain)));
        for wrong in [
            "",
            "2001:db8::/32",
            "2001:db8::/32,8",
            "2001:db8::/32,33,10.0.0.1",
            "x,8,10.0.0.1",
            "2001:db8::/32,8,x",
        ] {
            assert!(wrong.parse::<SixRdOption>().is_err(), "{wrong}");
        }
    }
}
