//! `[[six_to_four]]`: 6to4 (RFC 3056).

use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};
use sixway_dataplane::translate::address::non_global::non_global;
use sixway_dataplane::tunnel::address::embedded::is_public;
use sixway_dataplane::tunnel::address::six_to_four::{PREFIX, prefix_of};
use sixway_wire::Prefix6;

use crate::claims::Owner;
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::local_address::LocalAddress;
use crate::outer_end;
use crate::route::DEFAULT_ROUTE6;
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::is_unicast;
use crate::unicast::read_unicast;
use crate::word::{self, words_of};

pub use sixway_dataplane::mechanism::six_to_four::{NativeSources, Role as SixToFourRole};

words_of! {
    SixToFourRole {
        Relay = "relay",
        Router = "router",
        Host = "host",
    }
}

fn native_sources<S: Serializer>(sources: &NativeSources, serializer: S) -> Result<S::Ok, S::Error> {
    match sources {
        NativeSources::AnyRelay => serializer.serialize_str("any"),
        NativeSources::Listed(relays) => text::many(relays, serializer),
    }
}

/// A 6to4 mechanism, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SixToFour {
    /// Its name.
    pub name: String,
    /// The gateway's role.
    #[serde(serialize_with = "word::serialize")]
    pub role: SixToFourRole,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// The address in the prefix, if it is not the local address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_address: Option<Ipv4Addr>,
    /// The relay for native destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<Ipv4Addr>,
    /// The relays from which packets of native IPv6 hosts are accepted.
    #[serde(serialize_with = "native_sources", skip_serializing_if = "is_any")]
    pub native_sources: NativeSources,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

fn is_any(sources: &NativeSources) -> bool {
    *sources == NativeSources::AnyRelay
}

/// RFC 3068 §2.4: the anycast address of relays; deprecated by RFC 7526.
pub const ANYCAST: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 1);

/// Why an address cannot be in a 6to4 prefix; documentation addresses may.
fn unusable(address: Ipv4Addr) -> Option<&'static str> {
    if is_public(address) { None } else { Some(non_global(address).map_or("no host's", |row| row.purpose)) }
}

impl SixToFour {
    /// What is routed into it.
    pub fn routes(&self) -> Vec<Prefix6> {
        std::iter::once(PREFIX).chain(self.relay.map(|_| DEFAULT_ROUTE6)).collect()
    }

    /// The current local end. `None`: the interface has no address, or one that 6to4 cannot use (RFC 3056 §5.8).
    pub fn now(&self, surroundings: &Surroundings) -> Option<Ipv4Addr> {
        let address = self.local.now(surroundings)?;
        unusable(self.nat_address.unwrap_or(address)).is_none().then_some(address)
    }

    /// The site's prefix when this end has `address`; a relay has none.
    pub fn site(&self, address: Ipv4Addr) -> Option<Prefix6> {
        match self.role {
            SixToFourRole::Relay => None,
            SixToFourRole::Router | SixToFourRole::Host => {
                Some(prefix_of(self.nat_address.unwrap_or(address)))
            }
        }
    }

    pub(crate) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { index, mtu, host, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let role = section.value("role", report).and_then(|v| v.word::<SixToFourRole>(report));
        let local = LocalAddress::read(section, "address", host, report);
        let nat_address = section.value("nat_address", report).map(|v| {
            let address = v.address4(report)?;
            if role == Some(SixToFourRole::Relay) {
                report.fault(&v.place, "a relay must not be behind a NAT (RFC 6343 §4.4); remove it");
            } else if let Some(purpose) = unusable(address) {
                report.fault(
                    &v.place,
                    format!("is not global ({purpose}); write the outer address of the outermost NAT"),
                );
            }
            Some(address)
        });
        let is_site = role != Some(SixToFourRole::Relay);
        let relay = section.value("relay", report).map(|v| {
            let relay = v.address4(report)?;
            if !is_site {
                report.fault(&v.place, "a relay reaches native destinations directly; remove it");
            } else if !is_unicast(relay) {
                report.fault(&v.place, "is not a valid host address; write a relay's address");
            } else if local.as_ref().is_some_and(|(local, _)| local.found == Some(relay))
                || nat_address == Some(Some(relay))
            {
                report.fault(&v.place, "is also the local end; write the address of another router, or remove it");
            } else if relay == ANYCAST {
                report.warn(&v.place, "is the anycast address that RFC 7526 deprecates: perhaps no relay answers there; write the address of a known relay");
            }
            outer_end::check(relay, &v.place, host, claims, report);
            claims.v6(DEFAULT_ROUTE6, Owner::WayOut, &v.place);
            Some(relay)
        });
        let native_sources = section.value("native_sources", report).and_then(|v| match v.is_word("any") {
            true => Some(NativeSources::AnyRelay),
            false => {
                if !is_site {
                    report.fault(&v.place, "applies only to routers and hosts; remove it");
                }
                read_unicast(v.items(), report).map(NativeSources::Listed)
            }
        });
        if let (Some(role), Some((local, place))) = (role, &local) {
            check_address(role, local, nat_address.flatten(), place, report);
        }
        let encapsulation = Encapsulation::read(section, mtu, report);
        claims.v6(PREFIX, Owner::SixToFour(index), section.place());
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: role?,
            local: local?.0,
            nat_address: nat_address.map_or(Some(None), |address| address.map(Some))?,
            relay: relay.map_or(Some(None), |relay| relay.map(Some))?,
            native_sources: native_sources?,
            encapsulation: encapsulation?,
        })
    }
}

fn check_address(
    role: SixToFourRole,
    local: &LocalAddress,
    nat_address: Option<Ipv4Addr>,
    place: &Place,
    report: &mut Report,
) {
    let Some(address) = local.found else { return };
    if address == ANYCAST {
        match role {
            SixToFourRole::Relay => report.warn(
                place,
                "is the anycast address of 6to4 relays, which RFC 7526 deprecates: routes to it are filtered in many networks; \
                 prefer an address of your own",
            ),
            SixToFourRole::Router | SixToFourRole::Host => {
                report.fault(place, "is the anycast address of relays and cannot be a site's (RFC 3068 §2.4); write an address that only this host has");
            }
        }
    }
    if let (Some(purpose), None) = (unusable(address), nat_address) {
        let which = match local.followed_interface() {
            Some(_) => format!("has {address}, which is"),
            None => "is".to_owned(),
        };
        report.fault(
            place,
            format!(
                "{which} not global ({purpose}): 6to4 belongs at the outermost NAT (RFC 3056 §5.8); run it there, or, if that NAT \
                 hands protocol 41 to this host, write nat_address = its outer address"
            ),
        );
    }
}
