//! `[[six_rd]]`: 6rd (RFC 5969).

use std::net::Ipv4Addr;

use serde::Serialize;
use sixway_dataplane::tunnel::address::Domain;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::Owner;
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::host_prefixes::read_prefixes;
use crate::local_address::LocalAddress;
use crate::outer_end;
use crate::route::DEFAULT_ROUTE6;
use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::read_unicast;
use crate::word::{self, words_of};

pub use sixway_dataplane::mechanism::six_rd::Role as SixRdRole;

words_of! {
    SixRdRole {
        CustomerEdge = "customer_edge",
        BorderRelay = "border_relay",
    }
}

/// A 6rd domain, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SixRd {
    /// Its name.
    pub name: String,
    /// The gateway's role.
    #[serde(serialize_with = "word::serialize")]
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
    /// Where relays of other tunnels are.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub other_relays: Vec<Prefix4>,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

impl SixRd {
    /// What is routed into it.
    pub fn routes(&self) -> Vec<Prefix6> {
        let edge = self.role == SixRdRole::CustomerEdge;
        std::iter::once(self.prefix).chain(edge.then_some(DEFAULT_ROUTE6)).collect()
    }

    /// The domain when this end has `address`.
    pub fn domain(&self, address: Ipv4Addr) -> Option<Domain> {
        let common = self.ipv4_common.unwrap_or(Prefix4::holding(address, self.ipv4_mask_length));
        Domain::new(self.prefix, common).ok()
    }

    /// The prefix that this end has when its address is `address`, a customer's or a border relay's. `None`: the address is outside
    /// of what the customers' begin with.
    pub fn delegated(&self, address: Ipv4Addr) -> Option<Prefix6> {
        self.domain(address)?.delegated(address)
    }

    pub(crate) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { index, mtu, host, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let role = section.value("role", report).and_then(|v| v.word::<SixRdRole>(report));
        let mask = section.value("ipv4_mask_length", report).and_then(|v| v.integer::<u8>(report));
        let prefix = section.value("prefix", report).and_then(|v| {
            let prefix = v.prefix6(report)?;
            // Any address will do: only the lengths count.
            let common = Prefix4::holding(Ipv4Addr::UNSPECIFIED, mask?);
            let length = match Domain::new(prefix, common) {
                Ok(domain) => domain.delegated_length(),
                Err(fault) => {
                    report.fault(&v.place, fault.to_string());
                    return None;
                }
            };
            if length > 64 {
                let what = "a site needs at least a /64 for its hosts";
                let what = format!(
                    "the delegated prefixes are {length} bits long: {what}; write a shorter prefix (RFC 5969 §4)"
                );
                report.warn(&v.place, what);
            }
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
            let what = "all customers' addresses must be within it (RFC 5969 §4)";
            report.fault(place, format!("{address} is not within ipv4_common, {common}: {what}"));
        }
        let own = local.as_ref().and_then(|(local, _)| local.found);
        let border_relays = read_border_relays(section, role, own, report).map(|(relays, place)| {
            for relay in &relays {
                outer_end::check(*relay, &place, host, claims, report);
            }
            relays
        });
        if role == Some(SixRdRole::CustomerEdge) {
            claims.v6(DEFAULT_ROUTE6, Owner::WayOut, section.place());
        }
        let other_relays = read_other_relays(section, role, report);
        let encapsulation = Encapsulation::read(section, mtu, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: role?,
            prefix: prefix?,
            ipv4_mask_length: mask?,
            ipv4_common: ipv4_common.map_or(Some(None), |common| common.map(Some))?,
            local: local?.0,
            border_relays: border_relays?,
            other_relays: other_relays?,
            encapsulation: encapsulation?,
        })
    }
}

fn read_border_relays(
    section: &Reader,
    role: Option<SixRdRole>,
    own: Option<Ipv4Addr>,
    report: &mut Report,
) -> Option<(Vec<Ipv4Addr>, Place)> {
    let mut at =
        Place { key: format!("{}.border_relays", section.place().key).into(), ..section.place().clone() };
    let relays = match section.value("border_relays", report) {
        None => Some(Vec::new()),
        Some(v) => {
            if role == Some(SixRdRole::BorderRelay) {
                report.fault(&v.place, "this gateway is the border relay; remove it");
            }
            let place = v.place.clone();
            let relays = read_unicast(v.items(), report);
            if let Some(own) = own.filter(|own| relays.as_ref().is_some_and(|relays| relays.contains(own))) {
                report.fault(&place, format!("{own} is also the local end; write the provider's address"));
            }
            at = place;
            relays
        }
    }?;
    if role == Some(SixRdRole::CustomerEdge) && relays.is_empty() {
        report.fault(
            &at,
            "is missing; write border_relays = [\"192.0.2.254\"], as given by the provider (RFC 5969 §7.1.1)",
        );
        return None;
    }
    Some((relays, at))
}

fn read_other_relays(section: &Reader, role: Option<SixRdRole>, report: &mut Report) -> Option<Vec<Prefix4>> {
    let Some(v) = section.value("other_relays", report) else { return Some(Vec::new()) };
    let place = v.place.clone();
    let relays = read_prefixes(Some(v), report)?;
    if relays.iter().any(|network| network.length() == 0) {
        let what = "contains every address, including the customers'; write only the networks of the relays";
        report.fault(&place, format!("0.0.0.0/0 {what}"));
    } else if role == Some(SixRdRole::CustomerEdge) {
        report.warn(&place, "has no effect: only a border relay uses it; remove it");
    }
    Some(relays)
}
