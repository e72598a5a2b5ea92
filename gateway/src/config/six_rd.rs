//! `[[six_rd]]`: 6rd (RFC 5969).

use std::net::Ipv4Addr;

use serde::Serialize;
use sixway_wire::{Prefix4, Prefix6};

use super::claims::Owner;
use super::encapsulation::Encapsulation;
use super::fault::Report;
use super::local_address::LocalAddress;
use super::section::Reader;
use super::six_to_four::{WAY_OUT, read_addresses};
use super::text::{self, words};
use super::tunnels::Around;

words! {
    /// What a gateway is to a 6rd domain (RFC 5969 §3).
    SixRdRole {
        /// A customer's router.
        CustomerEdge = "customer_edge",
        /// The provider's way to the rest of IPv6.
        BorderRelay = "border_relay",
    }
}

/// A 6rd domain, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SixRd {
    /// What it is called.
    pub name: String,
    /// What the gateway is.
    pub role: SixRdRole,
    /// 6rdPrefix.
    #[serde(serialize_with = "text::one")]
    pub prefix: Prefix6,
    /// IPv4MaskLen.
    pub ipv4_mask_length: u8,
    /// The bits that all customers' addresses begin with, if they are not those of this end.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub ipv4_common: Option<Prefix4>,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// 6rdBRIPv4Address.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub border_relays: Vec<Ipv4Addr>,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

/// The prefix of a customer (RFC 5969 §4): the domain's prefix and the bits of his address that are his own. `None`: they do not
/// fit into 128 bits.
pub fn delegated_prefix(prefix: Prefix6, ipv4_mask_length: u8, address: Ipv4Addr) -> Option<Prefix6> {
    let own = 32_u8.checked_sub(ipv4_mask_length)?;
    let length = prefix.length().checked_add(own).filter(|length| *length <= 128)?;
    let bits = u64::from(address.to_bits()) & ((1_u64 << own) - 1);
    let shifted = u128::from(bits).checked_shl(u32::from(128 - length)).unwrap_or(0);
    Some(Prefix6::holding((prefix.address().to_bits() | shifted).into(), length))
}

/// The address of the customer whose prefix holds an IPv6 address; `common` holds the bits that all customers' begin with. `None`:
/// the address is not of the domain.
pub fn customer_address(prefix: Prefix6, common: Prefix4, address: std::net::Ipv6Addr) -> Option<Ipv4Addr> {
    let own = 32 - common.length();
    let length = prefix.length().checked_add(own).filter(|length| *length <= 128)?;
    if !prefix.contains(address) {
        return None;
    }
    let shifted = address.to_bits().checked_shr(u32::from(128 - length)).unwrap_or(0);
    let bits = (shifted & ((1_u128 << own) - 1)) as u32;
    Some(Ipv4Addr::from_bits(common.address().to_bits() | bits))
}

impl SixRd {
    /// What is routed into it.
    pub fn routes(&self) -> Vec<Prefix6> {
        let edge = self.role == SixRdRole::CustomerEdge;
        std::iter::once(self.prefix).chain(edge.then_some(WAY_OUT)).collect()
    }

    /// The bits that all customers' addresses begin with when this end has `address`.
    pub fn common(&self, address: Ipv4Addr) -> Prefix4 {
        self.ipv4_common.unwrap_or(Prefix4::holding(address, self.ipv4_mask_length))
    }

    /// The prefix that this end has when its address is `address`, a customer's or a border relay's. `None`: the address is outside
    /// of what the customers' begin with.
    pub fn delegated(&self, address: Ipv4Addr) -> Option<Prefix6> {
        let inside = self.common(address).contains(address);
        inside.then(|| delegated_prefix(self.prefix, self.ipv4_mask_length, address)).flatten()
    }

    pub(super) fn read(section: &Reader, default_name: String, around: Around) -> Option<Self> {
        let Around { index, host, claims, report } = around;
        let name = section.value("name", report).map(|v| v.text(report));
        let role = section.value("role", report).and_then(|v| v.word::<SixRdRole>(report));
        let mask = section.value("ipv4_mask_length", report).and_then(|v| v.integer::<u8>(report));
        let prefix = section.value("prefix", report).and_then(|v| {
            let prefix = v.prefix6(report)?;
            check_length(prefix, mask?, role, &v.place, report)?;
            claims.v6(prefix, Owner::SixRd(index), &v.place);
            Some(prefix)
        });
        let local = LocalAddress::read(section, "address", host, report);
        let ipv4_common = section.value("ipv4_common", report).map(|v| {
            let common = v.prefix4(report)?;
            if let Some(mask) = mask.filter(|mask| *mask != common.length()) {
                report.fault(
                    &v.place,
                    format!("is not as long as ipv4_mask_length, {mask}; write the same length in both"),
                );
            }
            Some(common)
        });
        if let (Some(SixRdRole::CustomerEdge), Some((local, place)), Some(Some(common))) =
            (role, &local, ipv4_common)
            && let Some(address) = local.found.filter(|address| !common.contains(*address))
        {
            let what = "the domain's customers have addresses of it (RFC 5969 §4)";
            report.fault(place, format!("{address} is outside of ipv4_common, {common}: {what}"));
        }
        let border_relays = read_border_relays(section, role, report);
        if role == Some(SixRdRole::CustomerEdge) {
            claims.v6(WAY_OUT, Owner::WayOut, section.place());
        }
        let encapsulation = Encapsulation::read(section, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: role?,
            prefix: prefix?,
            ipv4_mask_length: mask?,
            ipv4_common: ipv4_common.map_or(Some(None), |common| common.map(Some))?,
            local: local?.0,
            border_relays: border_relays?,
            encapsulation: encapsulation?,
        })
    }
}

fn read_border_relays(
    section: &Reader,
    role: Option<SixRdRole>,
    report: &mut Report,
) -> Option<Vec<Ipv4Addr>> {
    let relays = match section.value("border_relays", report) {
        None => Some(Vec::new()),
        Some(v) => {
            if role == Some(SixRdRole::BorderRelay) {
                report.fault(&v.place, "this gateway is the border relay; leave it out");
            }
            read_addresses(v.items(), report)
        }
    }?;
    if role == Some(SixRdRole::CustomerEdge) && relays.is_empty() {
        let place = super::fault::Place {
            key: format!("{}.border_relays", section.place().key).into(),
            ..section.place().clone()
        };
        report.fault(
            &place,
            "is missing; write border_relays = [\"192.0.2.254\"], which the provider tells (RFC 5969 §7.1.1)",
        );
        return None;
    }
    Some(relays)
}

/// RFC 5969 §7.1.1: both parts fit into an address, and should leave room for a /64 (§4).
fn check_length(
    prefix: Prefix6,
    mask: u8,
    role: Option<SixRdRole>,
    place: &super::fault::Place,
    report: &mut Report,
) -> Option<()> {
    let total = u16::from(prefix.length()) + u16::from(32 - mask);
    if total > 128 {
        let most = 128 - (32 - u16::from(mask));
        let what =
            format!("{} bits and the {} of an IPv4 address are more than 128", prefix.length(), 32 - mask);
        report.fault(place, format!("{what}; write a prefix of at most {most} bits, or a greater ipv4_mask_length (RFC 5969 §7.1.1)"));
        return None;
    }
    if total > 64 && role.is_some() {
        let what = "no site has room for a /64, and its hosts cannot make addresses of it";
        report.warn(
            place,
            format!(
                "customers' prefixes are {total} bits long: {what}; write a shorter prefix (RFC 5969 §4)"
            ),
        );
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_examples_come_out_both_ways() {
        // RFC 5969 §7.1.1 and §4.
        let cases = [
            ("2001:db8::/32", 8, "10.100.100.1", "2001:db8:6464:100::/56"),
            ("2001:db8::/32", 0, "192.0.2.1", "2001:db8:c000:201::/64"),
            ("2001:db8::/56", 24, "10.1.1.1", "2001:db8:0:1::/64"),
            ("2001:db8::/32", 32, "192.0.2.1", "2001:db8::/32"),
            ("2001:db8::/96", 0, "192.0.2.1", "2001:db8::c000:201/128"),
        ];
        for (prefix, mask, address, delegated) in cases {
            let (prefix, address): (Prefix6, Ipv4Addr) = (prefix.parse().unwrap(), address.parse().unwrap());
            let delegated: Prefix6 = delegated.parse().unwrap();
            assert_eq!(delegated_prefix(prefix, mask, address), Some(delegated));
            let common = Prefix4::holding(address, mask);
            assert_eq!(customer_address(prefix, common, delegated.last()), Some(address));
        }
        assert_eq!(delegated_prefix("2001:db8::/97".parse().unwrap(), 0, Ipv4Addr::new(192, 0, 2, 1)), None);
    }

    #[test]
    fn an_address_of_another_domain_has_no_customer() {
        let common = Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8);
        assert_eq!(
            customer_address("2001:db8::/32".parse().unwrap(), common, "2001:db9::1".parse().unwrap()),
            None
        );
    }
}
