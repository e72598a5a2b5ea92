//! Route lookups in the kernel (rtnetlink): no program is needed.

use super::kernel;
use crate::config::TunnelRoute;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use rtnetlink::{Handle, RouteMessageBuilder};
use sixway_wire::teredo::TEREDO_PREFIX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the kernel sends packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The interface; its number, if it has no name any more.
    pub interface: String,
    /// The router there; `None`: the destination is on the link.
    pub gateway: Option<IpAddr>,
}

/// Where the kernel sends packets of this host to a destination; `None`: it is unreachable. Waits for the kernel.
pub fn hop(destination: IpAddr) -> Option<Hop> {
    hop_if_told(destination)?
}

/// The same; `None`: the kernel could not be asked, and `Some(None)`: it is unreachable.
pub fn hop_if_told(destination: IpAddr) -> Option<Option<Hop>> {
    let found = kernel::ask(|handle| async move { lookup(&handle, destination).await });
    let hop = |(index, gateway)| Hop { interface: name(index), gateway };
    Some(found.ok()?.map(hop))
}

/// The interfaces of IPv4's default routes in the main table, the preferred ones first. Waits for the kernel.
pub fn default_interfaces() -> Vec<String> {
    defaults(AddressFamily::Inet)
}

/// The same of IPv6.
pub fn default_interfaces6() -> Vec<String> {
    defaults(AddressFamily::Inet6)
}

fn defaults(family: AddressFamily) -> Vec<String> {
    let asked = kernel::ask(|handle| async move {
        let mut all = RouteMessage::default();
        all.header.address_family = family;
        let mut defaults = Vec::new();
        let mut routes = std::pin::pin!(handle.route().get(all).execute());
        while let Ok(Some(route)) = routes.try_next().await {
            let RouteHeader { destination_prefix_length, table, kind, .. } = route.header;
            if destination_prefix_length == 0
                && table == RouteHeader::RT_TABLE_MAIN
                && kind == RouteType::Unicast
            {
                defaults.push(route);
            }
        }
        defaults
    });
    let mut defaults = asked.unwrap_or_default();
    defaults.sort_by_key(metric);
    defaults.iter().flat_map(interfaces).map(name).collect()
}

/// A destination in the IPv6 Internet (a root server of the DNS), to which nothing is sent: the kernel only tells its route.
const ANYWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0x7fd, 0, 0, 0, 0, 0, 1);

/// Whether this host reaches the IPv6 Internet from a global address that is not Teredo's; `None`: the kernel does not say. `own`: a device
/// whose routes do not count, as a Teredo client's is one of them. Waits for the kernel.
pub fn native_ipv6(own: Option<&str>) -> Option<bool> {
    let own = own.and_then(|name| nix::net::if_::if_nametoindex(name).ok());
    let found = kernel::ask(|handle| async move {
        let message = RouteMessageBuilder::<Ipv6Addr>::new().destination_prefix(ANYWHERE, 128).build();
        handle.route().get(message).execute().try_next().await
    });
    match found.ok()? {
        Ok(route) => Some(route.is_some_and(|route| leads_out(&route, own))),
        Err(error) => says_there_is_none(&error).then_some(false),
    }
}

/// Whether the IPv6 Internet may be reached by a route of the configuration, which is not a Teredo client's.
pub fn routes_ipv6_internet(routes: &[TunnelRoute]) -> bool {
    routes.iter().any(|route| !route.is_last && route.prefix.contains(ANYWHERE))
}

fn leads_out(route: &RouteMessage, own: Option<u32>) -> bool {
    route.header.kind == RouteType::Unicast
        && source(&route.attributes).is_some_and(is_native)
        && (own.is_none() || device(&route.attributes) != own)
}

/// Without a route, and with one that refuses, the kernel answers with an error.
fn says_there_is_none(error: &rtnetlink::Error) -> bool {
    const NONE: [i32; 4] =
        [nix::libc::ENETUNREACH, nix::libc::EHOSTUNREACH, nix::libc::EACCES, nix::libc::EINVAL];
    matches!(error, rtnetlink::Error::NetlinkError(message) if NONE.contains(&-message.raw_code()))
}

fn source(attributes: &[RouteAttribute]) -> Option<Ipv6Addr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::PrefSource(RouteAddress::Inet6(address)) => Some(*address),
        _ => None,
    })
}

/// Whether it is a global unicast address of the Internet (RFC 4291 §2.5.4), and not a Teredo client's.
fn is_native(address: Ipv6Addr) -> bool {
    address.to_bits() >> 125 == 1 && !TEREDO_PREFIX.contains(address)
}

/// The interface and the router towards a destination; `None`: it is unreachable.
pub(super) async fn lookup(handle: &Handle, destination: IpAddr) -> Option<(u32, Option<IpAddr>)> {
    let message = match destination {
        IpAddr::V4(address) => RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(address, 32).build(),
        IpAddr::V6(address) => {
            RouteMessageBuilder::<Ipv6Addr>::new().destination_prefix(address, 128).build()
        }
    };
    let found: RouteMessage = handle.route().get(message).execute().try_next().await.ok()??;
    // IPv6 names a device for these too.
    if matches!(
        found.header.kind,
        RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit | RouteType::Throw
    ) {
        return None;
    }
    let router = found.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Gateway(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        // A route of IPv4 by a router of IPv6.
        RouteAttribute::Via(RouteVia::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Via(RouteVia::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    Some((device(&found.attributes)?, router))
}

fn device(attributes: &[RouteAttribute]) -> Option<u32> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn metric(route: &RouteMessage) -> u32 {
    let metric = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    metric.unwrap_or(0)
}

/// The interfaces of a route, which has several if it is a multipath route.
fn interfaces(route: &RouteMessage) -> Vec<u32> {
    let several = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::MultiPath(hops) => Some(hops.iter().map(|hop| hop.interface_index).collect()),
        _ => None,
    });
    several.unwrap_or_else(|| device(&route.attributes).into_iter().collect())
}

/// The name of an interface; its number, if it has none any more.
pub(super) fn name(index: u32) -> String {
    nix::net::if_::if_indextoname(index)
        .map_or_else(|_| index.to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtnetlink::packet_route::route::RouteNextHop;

    #[test]
    fn a_multipath_route_has_several_interfaces() {
        let mut route = RouteMessage::default();
        route.attributes.push(RouteAttribute::Oif(3));
        assert_eq!((interfaces(&route), metric(&route)), (vec![3], 0));
        let hops = [4, 5].map(|index| {
            let mut hop = RouteNextHop::default();
            hop.interface_index = index;
            hop
        });
        route.attributes = vec![RouteAttribute::MultiPath(hops.into()), RouteAttribute::Priority(100)];
        assert_eq!((interfaces(&route), metric(&route)), (vec![4, 5], 100));
    }

    /// Next to another global address on its device, a client's own route has that address as its source.
    #[test]
    fn the_route_of_a_client_is_not_native_and_a_tunnels_is() {
        let mut route = RouteMessage::default();
        route.header.kind = RouteType::Unicast;
        let source: Ipv6Addr = "2001:db8::1".parse().unwrap();
        route.attributes =
            vec![RouteAttribute::Oif(3), RouteAttribute::PrefSource(RouteAddress::Inet6(source))];
        assert!(leads_out(&route, None) && leads_out(&route, Some(4)) && !leads_out(&route, Some(3)));
        let of = |prefix: &str, is_last| TunnelRoute { prefix: prefix.parse().unwrap(), mtu: None, is_last };
        assert!(!routes_ipv6_internet(&[of("::/0", true), of("2001:db8::/32", false)]));
        assert!(routes_ipv6_internet(&[of("::/0", true), of("2000::/3", false)]));
    }

    #[test]
    fn that_there_is_no_route_is_an_answer_and_another_error_is_not() {
        let error = |code: i32| {
            let mut message = rtnetlink::packet_core::ErrorMessage::default();
            message.code = std::num::NonZeroI32::new(-code);
            rtnetlink::Error::NetlinkError(message)
        };
        assert!(says_there_is_none(&error(nix::libc::ENETUNREACH)));
        assert!(!says_there_is_none(&error(nix::libc::ENOBUFS)));
        assert!(!says_there_is_none(&rtnetlink::Error::RequestFailed));
    }

    #[test]
    fn neither_a_teredo_address_nor_one_of_a_site_is_native() {
        let is = |text: &str| is_native(text.parse().unwrap());
        assert!(is("2001:db8::1") && is("2a00::1"));
        assert!(!is("2001:0:c633:6401::1") && !is("fd00::1") && !is("fe80::1"));
    }

    #[test]
    fn this_host_is_reached_by_its_loopback_interface() {
        let found = hop(IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(found, Some(Hop { interface: "lo".into(), gateway: None }));
    }
}
