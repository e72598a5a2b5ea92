//! `[[six_to_four]]`: 6to4 (RFC 3056).

use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};
use sixway_dataplane::translate::address::non_global::non_global;
use sixway_dataplane::tunnel::address::embedded::is_public;
use sixway_dataplane::tunnel::address::six_to_four::{PREFIX, prefix_of};
use sixway_wire::Prefix6;

use super::claims::Owner;
use super::encapsulation::Encapsulation;
use super::fault::{Place, Report};
use super::local_address::LocalAddress;
use super::outer_end;
use super::pool::is_unicast;
use super::section::Reader;
use super::surroundings::Surroundings;
use super::text::{self, words};
use super::tunnels::Around;

words! {
    /// What a gateway is to 6to4 (RFC 3056 §1.1).
    SixToFourRole {
        /// A relay between 6to4 sites and native IPv6.
        Relay = "relay",
        /// The router of a site.
        Router = "router",
        /// A single host.
        Host = "host",
    }
}

/// The relays that packets from native IPv6 are accepted from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeSources {
    /// All of them.
    Any,
    /// These.
    Listed(Vec<Ipv4Addr>),
}

impl Serialize for NativeSources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.serialize_str("any"),
            Self::Listed(relays) => text::many(relays, serializer),
        }
    }
}

/// A 6to4 mechanism, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SixToFour {
    /// What it is called.
    pub name: String,
    /// What the gateway is.
    pub role: SixToFourRole,
    /// This end.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// The address that stands in the prefix, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_address: Option<Ipv4Addr>,
    /// The relay for native destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<Ipv4Addr>,
    /// The relays that packets from native IPv6 are accepted from.
    #[serde(skip_serializing_if = "is_any")]
    pub native_sources: NativeSources,
    /// How packets are put into IPv4.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

fn is_any(sources: &NativeSources) -> bool {
    *sources == NativeSources::Any
}

/// All of IPv6.
pub const WAY_OUT: Prefix6 = Prefix6::holding(std::net::Ipv6Addr::UNSPECIFIED, 0);

/// RFC 3068 §2.4: the anycast address of relays; deprecated by RFC 7526.
pub const ANYCAST: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 1);

/// Why an address cannot stand in a 6to4 prefix; documentation addresses may.
fn unusable(address: Ipv4Addr) -> Option<&'static str> {
    if is_public(address) { None } else { Some(non_global(address).map_or("no host's", |row| row.purpose)) }
}

impl SixToFour {
    /// What is routed into it.
    pub fn routes(&self) -> Vec<Prefix6> {
        std::iter::once(PREFIX).chain(self.relay.map(|_| WAY_OUT)).collect()
    }

    /// This end at the moment. `None`: it has no address, or one that was followed and has become one that 6to4 cannot be at (RFC 3056 §5.8).
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

    pub(super) fn read(section: &Reader, default_name: String, around: Around) -> Option<Self> {
        let Around { index, mtu, host, claims, report } = around;
        let name = section.value("name", report).map(|v| v.text(report));
        let role = section.value("role", report).and_then(|v| v.word::<SixToFourRole>(report));
        let local = LocalAddress::read(section, "address", host, report);
        let nat_address = section.value("nat_address", report).map(|v| {
            let address = v.address4(report)?;
            if role == Some(SixToFourRole::Relay) {
                report.fault(
                    &v.place,
                    "a relay is in the IPv4 Internet without a NAT before it (RFC 6343 §4.4); leave it out",
                );
            } else if let Some(purpose) = unusable(address) {
                report.fault(
                    &v.place,
                    format!("is not global ({purpose}); write the address outside of the outermost NAT"),
                );
            }
            Some(address)
        });
        let is_site = role != Some(SixToFourRole::Relay);
        let relay = section.value("relay", report).map(|v| {
            let relay = v.address4(report)?;
            if !is_site {
                report.fault(&v.place, "a relay reaches native destinations by itself; leave it out");
            } else if !is_unicast(relay) {
                report.fault(&v.place, "is no address that a host can have; write a relay's address");
            } else if local.as_ref().is_some_and(|(local, _)| local.found == Some(relay))
                || nat_address == Some(Some(relay))
            {
                report.fault(&v.place, "is this end too; write the address of another router, or leave it out");
            } else if relay == ANYCAST {
                report.warn(&v.place, "is the anycast address that RFC 7526 deprecates: nobody may answer there; write a relay that you know");
            }
            outer_end::check(relay, &v.place, host, claims, report);
            claims.v6(WAY_OUT, Owner::WayOut, &v.place);
            Some(relay)
        });
        let native_sources = section.value("native_sources", report).and_then(|v| match v.is_word("any") {
            true => Some(NativeSources::Any),
            false => {
                if !is_site {
                    report.fault(&v.place, "a relay has no other relays before it; leave it out");
                }
                read_addresses(v.items(), report).map(NativeSources::Listed)
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
                report.fault(place, "is the anycast address of relays, no site's (RFC 3068 §2.4); write an address of this host alone");
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

/// Unicast addresses; `None` if one cannot be read.
pub(super) fn read_addresses(items: Vec<super::value::Value>, report: &mut Report) -> Option<Vec<Ipv4Addr>> {
    let mut whole = true;
    let mut addresses = Vec::with_capacity(items.len());
    for item in items {
        match item.address4(report) {
            Some(address) if is_unicast(address) => addresses.push(address),
            Some(address) => {
                report.fault(&item.place, format!("{address} is no address that a host can have"));
                whole = false;
            }
            None => whole = false,
        }
    }
    whole.then_some(addresses)
}
