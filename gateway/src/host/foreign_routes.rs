//! IPv6 routes that are not this gateway's: those of the host's networks, and of other programs.

use super::kernel;
use super::route_lookup::name;
use super::route_mark::RouteMark;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType};
use sixway_wire::Prefix6;

/// Routes that are looked at.
const MOST: usize = 65_536;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRoute {
    /// The destination.
    pub prefix: Prefix6,
    /// The interface that it leads to; empty if it leads nowhere.
    pub interface: String,
}

/// The IPv6 routes of the main table, without default routes, those of gateways, and those of link-local and multicast addresses. Waits for
/// the kernel.
pub fn foreign_routes6() -> Vec<ForeignRoute> {
    let asked = kernel::ask(|handle| async move {
        let mut all = RouteMessage::default();
        all.header.address_family = AddressFamily::Inet6;
        let mut found = Vec::new();
        let mut routes = std::pin::pin!(handle.route().get(all).execute());
        while let Ok(Some(route)) = routes.try_next().await {
            if found.len() < MOST {
                found.extend(foreign(&route));
            }
        }
        found
    });
    asked.unwrap_or_default()
}

fn foreign(route: &RouteMessage) -> Option<ForeignRoute> {
    let RouteHeader { destination_prefix_length: length, table, kind, protocol, .. } = route.header;
    let leads = match kind {
        RouteType::Unicast => true,
        RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit | RouteType::Throw => false,
        _ => return None,
    };
    if table != RouteHeader::RT_TABLE_MAIN || protocol == RouteMark::default().protocol() {
        return None;
    }
    let mut interface = None;
    let mut prefix = None;
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
                prefix = Some(Prefix6::holding(*address, length));
            }
            RouteAttribute::Oif(index) if leads => interface = Some(name(*index)),
            _ => {}
        }
    }
    let prefix = prefix.filter(|prefix| {
        let address = prefix.address();
        length > 0 && !address.is_unicast_link_local() && !address.is_multicast()
    })?;
    Some(ForeignRoute { prefix, interface: interface.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn route(prefix: &str, kind: RouteType) -> RouteMessage {
        let prefix: Prefix6 = prefix.parse().unwrap();
        let mut route = RouteMessage::default();
        route.header.destination_prefix_length = prefix.length();
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.kind = kind;
        if prefix.address() != Ipv6Addr::UNSPECIFIED {
            route.attributes.push(RouteAttribute::Destination(RouteAddress::Inet6(prefix.address())));
        }
        route.attributes.push(RouteAttribute::Oif(1));
        route
    }

    #[test]
    fn routes_of_others_are_told_from_the_gateways_and_from_default_routes() {
        let there = |prefix: &str, kind| foreign(&route(prefix, kind));
        let network: Prefix6 = "2001:db8:1::/48".parse().unwrap();
        let by_lo = ForeignRoute { prefix: network, interface: "lo".into() };
        assert_eq!(there("2001:db8:1::/48", RouteType::Unicast), Some(by_lo));
        let nowhere = ForeignRoute { prefix: network, interface: String::new() };
        assert_eq!(there("2001:db8:1::/48", RouteType::Unreachable), Some(nowhere));
        for (prefix, kind) in [
            ("::/0", RouteType::Unicast),
            ("fe80::/64", RouteType::Unicast),
            ("ff00::/8", RouteType::Unicast),
            ("2001:db8:1::1/128", RouteType::Local),
        ] {
            assert_eq!(there(prefix, kind), None, "{prefix}");
        }
        let mut own = route("2001:db8:1::/48", RouteType::Unicast);
        own.header.protocol = RouteMark::default().protocol();
        assert_eq!(foreign(&own), None);
        let mut other_table = route("2001:db8:1::/48", RouteType::Unicast);
        other_table.header.table = 100;
        assert_eq!(foreign(&other_table), None);
    }
}
