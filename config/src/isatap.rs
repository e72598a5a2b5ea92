//! `[[isatap]]`: ISATAP (RFC 5214).

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Serialize;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::Owner;
use crate::encapsulation::Encapsulation;
use crate::fault::Place;
use crate::host_prefixes::{NO_HOSTS, is_of_hosts, read_prefixes};
use crate::local_address::LocalAddress;
use crate::outer_end;
use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::read_unicast;
use crate::word::{self, words_of};

pub use sixway_dataplane::mechanism::isatap::Role as IsatapRole;

words_of! {
    IsatapRole {
        Router = "router",
        Host = "host",
    }
}

/// An ISATAP interface, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Isatap {
    /// Its name.
    pub name: String,
    /// The gateway's role.
    #[serde(serialize_with = "word::serialize")]
    pub role: IsatapRole,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// The site's prefix; a host learns it.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix6>,
    /// A host's potential router list.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub potential_routers: Vec<Ipv4Addr>,
    /// The least time between two events of solicitation of one router; `None` for a router, which sends no solicitations.
    #[serde(serialize_with = "text::as_optional_duration", skip_serializing_if = "Option::is_none")]
    pub min_solicit_interval: Option<Duration>,
    /// The site's IPv4 networks; none: anywhere.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub locators: Vec<Prefix4>,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

/// RFC 5214 §8.3.4: MinRouterSolicitInterval, 2 min.
const MIN_SOLICIT_INTERVAL: Duration = Duration::from_secs(120);
/// RFC 5214 §6.1: interface identifiers are 64 bits long.
const PREFIX_LENGTH: u8 = 64;

impl Isatap {
    pub(crate) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { index, mtu, host, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let role = section.value("role", report).and_then(|v| v.word::<IsatapRole>(report));
        let local = LocalAddress::read(section, "address", host, report);
        let missing = |key: &str| Place {
            key: format!("{}.{key}", section.place().key).into(),
            ..section.place().clone()
        };
        let prefix = section.value("prefix", report);
        let no_prefix = prefix.is_none();
        let prefix = prefix.map(|v| {
            let prefix = v.prefix6(report)?;
            if role == Some(IsatapRole::Host) {
                report.fault(&v.place, "a host learns its prefix from a router; remove it");
            }
            if prefix.length() != PREFIX_LENGTH {
                let what = "an ISATAP prefix must be 64 bits long (RFC 5214 §6.1)";
                report.fault(&v.place, format!("is {} bits long; {what}", prefix.length()));
                return None;
            }
            if !is_of_hosts(prefix) {
                report.fault(&v.place, NO_HOSTS);
            }
            claims.v6(prefix, Owner::Isatap(index), &v.place);
            Some(prefix)
        });
        if no_prefix && role == Some(IsatapRole::Router) {
            report.fault(
                &missing("prefix"),
                "is missing; write the prefix to advertise, such as prefix = \"2001:db8:1::/64\"",
            );
        }
        let routers = section.value("potential_routers", report);
        let potential_routers = match routers {
            None => Some(Vec::new()),
            Some(v) => {
                if role == Some(IsatapRole::Router) {
                    report.fault(&v.place, "only a host has a potential router list; remove it");
                }
                let place = v.place.clone();
                let routers = read_unicast(v.items(), report);
                for router in routers.iter().flatten() {
                    outer_end::check(*router, &place, host, claims, report);
                }
                let own = local.as_ref().and_then(|(local, _)| local.found);
                if let Some(own) = own.filter(|own| routers.as_ref().is_some_and(|all| all.contains(own))) {
                    report
                        .fault(&place, format!("{own} is also the local end; write the routers' addresses"));
                }
                routers
            }
        };
        if role == Some(IsatapRole::Host) && potential_routers.as_ref().is_some_and(Vec::is_empty) {
            let what = "is missing; write potential_routers = [\"192.0.2.254\"], the site's routers (RFC 5214 §8.3.1)";
            report.fault(&missing("potential_routers"), what);
        }
        let min_solicit_interval = match section.value("min_solicit_interval", report) {
            None => Some((role == Some(IsatapRole::Host)).then_some(MIN_SOLICIT_INTERVAL)),
            Some(v) => {
                if role == Some(IsatapRole::Router) {
                    report.fault(&v.place, "only a host solicits routers; remove it");
                }
                v.duration(report).map(Some)
            }
        };
        let locators = section.value("locators", report);
        let place = locators.as_ref().map(|v| v.place.clone());
        let locators = read_prefixes(locators, report);
        if let (Some(place), Some(locators), Some(routers)) = (place, &locators, &potential_routers)
            && !(locators.is_empty() || routers.is_empty())
            && !routers.iter().any(|router| locators.iter().any(|network| network.contains(*router)))
        {
            let what = "packets of the routers are dropped; add their networks";
            report.warn(&place, format!("contains none of the potential routers: {what}"));
        }
        let encapsulation = Encapsulation::read(section, mtu, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: role?,
            local: local?.0,
            prefix: prefix.map_or(Some(None), |prefix| prefix.map(Some))?,
            potential_routers: potential_routers?,
            min_solicit_interval: min_solicit_interval?,
            locators: locators?,
            encapsulation: encapsulation?,
        })
    }
}
