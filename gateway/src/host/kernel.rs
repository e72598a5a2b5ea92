//! Single blocking netlink requests to the kernel, for code without a runtime, such as `drop`.

use super::route_mark::RouteMark;
use crate::config::TunnelRoute;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressScope, CacheInfo,
};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use rtnetlink::packet_route::tc::TcMessage;
use rtnetlink::{AddressMessageBuilder, Error, Handle, RouteMessageBuilder};
use sixway_wire::{Prefix4, Prefix6};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a request to the kernel failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is such a thing already.
    Exists,
    /// It does not exist.
    Absent,
    /// IPv6 is switched off on the interface.
    SwitchedOff,
    /// Something else: its words.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("it exists already"),
            Self::Absent => f.write_str("it does not exist"),
            Self::SwitchedOff => {
                f.write_str("IPv6 is disabled on the interface (disable_ipv6 under net.ipv6.conf)")
            }
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl Refusal {
    /// The meaning of a netlink error.
    pub(super) fn of(error: &Error) -> Self {
        const GONE: [i32; 4] =
            [nix::libc::ESRCH, nix::libc::ENOENT, nix::libc::EADDRNOTAVAIL, nix::libc::ENODEV];
        match error {
            Error::NetlinkError(message) if message.raw_code() == -nix::libc::EEXIST => Self::Exists,
            // CAP_NET_ADMIN exists, or the gateway would have stopped before.
            Error::NetlinkError(message) if message.raw_code() == -nix::libc::EACCES => Self::SwitchedOff,
            Error::NetlinkError(message) if GONE.contains(&-message.raw_code()) => Self::Absent,
            error => Self::Other(error.to_string()),
        }
    }
}

/// Lets `work` speak with the kernel on a thread of its own, which is in this thread's network namespace, and waits for it.
pub(super) fn ask<T, W, F>(work: W) -> Result<T, Refusal>
where
    T: Send,
    W: FnOnce(Handle) -> F + Send,
    F: Future<Output = T>,
{
    ask_by(false, work)
}

/// The same; with `strict`, the kernel selects by all fields of a dump's request.
fn ask_by<T, W, F>(strict: bool, work: W) -> Result<T, Refusal>
where
    T: Send,
    W: FnOnce(Handle) -> F + Send,
    F: Future<Output = T>,
{
    let failed = |error: std::io::Error| Refusal::Other(format!("netlink: {error}"));
    let speak = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        runtime.block_on(async {
            let connection = match strict {
                true => rtnetlink::new_connection_with_strict_check(),
                false => rtnetlink::new_connection(),
            };
            let (connection, handle, _) = connection.map_err(failed)?;
            let connection = tokio::spawn(connection);
            let outcome = work(handle).await;
            connection.abort();
            Ok(outcome)
        })
    };
    std::thread::scope(|scope| {
        scope
            .spawn(speak)
            .join()
            .unwrap_or_else(|_| Err(Refusal::Other("netlink: the thread panicked".into())))
    })
}

/// The metric of the last resort.
const LAST: u32 = u32::MAX - 1;

/// A route of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route6 {
    /// Into the device of this index, with the MTU that this host's own connections begin with.
    Into(Prefix6, u32, Option<u16>),
    /// The same, for the last resort: other routes to the same destination have precedence.
    LastInto(Prefix6, u32, Option<u16>),
    /// Unreachable; the sender gets an ICMP error.
    Unreachable(Prefix6),
}

impl Route6 {
    pub(super) fn message(self, mark: RouteMark) -> RouteMessage {
        let builder = RouteMessageBuilder::<Ipv6Addr>::new().protocol(mark.protocol());
        match self {
            Self::Unreachable(prefix) => builder
                .destination_prefix(prefix.address(), prefix.length())
                .kind(RouteType::Unreachable)
                .build(),
            Self::Into(prefix, device, mtu) | Self::LastInto(prefix, device, mtu) => {
                let mut message = builder
                    .destination_prefix(prefix.address(), prefix.length())
                    .output_interface(device)
                    .build();
                let metrics = mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu.into())]));
                message.attributes.extend(metrics);
                message
            }
        }
    }

    /// Its metric, if others have precedence.
    const fn last(self) -> u32 {
        match self {
            // The kernel's own "unreachable", where there is one, comes after it.
            Self::LastInto(..) => LAST,
            Self::Into(..) | Self::Unreachable(_) => u32::MAX,
        }
    }

    pub(super) fn add(self, mark: RouteMark) -> Result<(), Refusal> {
        let mut message = self.message(mark);
        if let Self::Unreachable(_) | Self::LastInto(..) = self {
            // The last resort: a route of the operator's to the same destination has precedence.
            message.attributes.push(RouteAttribute::Priority(self.last()));
        }
        ask(|handle| async move { handle.route().add(message).execute().await })?
            .map_err(|error| Refusal::of(&error))
    }

    pub(super) fn remove(self, mark: RouteMark) -> Result<(), Refusal> {
        ask(|handle| async move { handle.route().del(self.message(mark)).execute().await })?
            .map_err(|error| Refusal::of(&error))
    }
}

/// Adds routes, in their order; the outcome of each.
pub(super) fn add_routes(routes: Vec<RouteMessage>) -> Vec<Result<(), Refusal>> {
    let count = routes.len();
    let request = |handle: Handle| async move {
        let mut outcomes = Vec::with_capacity(routes.len());
        for route in routes {
            let outcome = handle.route().add(route).execute().await;
            outcomes.push(outcome.map_err(|error| Refusal::of(&error)));
        }
        outcomes
    };
    ask(request).unwrap_or_else(|refusal| vec![Err(refusal); count])
}

/// The gateway's IPv4 routes into the device of this index: not the kernel's own, nor those that others added.
pub(super) fn routes4(device: u32, mark: RouteMark) -> Result<Vec<Prefix4>, Refusal> {
    let found = routes(AddressFamily::Inet, RouteType::Unicast, Some(device), mark)?;
    let mine = found.iter().filter(|route| is_into(route, device, mark));
    Ok(mine
        .filter_map(|route| match destination(route)? {
            IpAddr::V4(address) => Some(Prefix4::holding(address, route.header.destination_prefix_length)),
            IpAddr::V6(_) => None,
        })
        .collect())
}

/// The same of IPv6, with their MTUs.
pub(super) fn routes6(device: u32, mark: RouteMark) -> Result<Vec<TunnelRoute>, Refusal> {
    let found = routes(AddressFamily::Inet6, RouteType::Unicast, Some(device), mark)?;
    let mine = found.iter().filter(|route| is_into(route, device, mark));
    Ok(mine
        .filter_map(|route| match destination(route)? {
            IpAddr::V6(address) => {
                let prefix = Prefix6::holding(address, route.header.destination_prefix_length);
                let is_last = route.attributes.contains(&RouteAttribute::Priority(LAST));
                Some(TunnelRoute { prefix, mtu: mtu(route), is_last })
            }
            IpAddr::V4(_) => None,
        })
        .collect())
}

/// The gateway's unreachable IPv6 routes.
pub(super) fn unreachable6(mark: RouteMark) -> Result<Vec<Prefix6>, Refusal> {
    let found = routes(AddressFamily::Inet6, RouteType::Unreachable, None, mark)?;
    let mine = found.iter().filter(|route| {
        route.header.kind == RouteType::Unreachable && route.header.protocol == mark.protocol()
    });
    Ok(mine
        .filter_map(|route| match destination(route)? {
            IpAddr::V6(address) => Some(Prefix6::holding(address, route.header.destination_prefix_length)),
            IpAddr::V4(_) => None,
        })
        .collect())
}

/// The gateway's IPv4 destinations that are unreachable.
pub(super) fn blackholes4(mark: RouteMark) -> Result<Vec<Prefix4>, Refusal> {
    let found = routes(AddressFamily::Inet, RouteType::BlackHole, None, mark)?;
    let mine = found.iter().filter(|route| {
        route.header.kind == RouteType::BlackHole && route.header.protocol == mark.protocol()
    });
    Ok(mine
        .filter_map(|route| match destination(route)? {
            IpAddr::V4(address) => Some(Prefix4::holding(address, route.header.destination_prefix_length)),
            IpAddr::V6(_) => None,
        })
        .collect())
}

/// The gateway's routes in the main table, and perhaps others: the kernel selects them (Linux 4.20), so that a full table costs little.
fn routes(
    family: AddressFamily,
    kind: RouteType,
    device: Option<u32>,
    mark: RouteMark,
) -> Result<Vec<RouteMessage>, Refusal> {
    let mut wanted = RouteMessage::default();
    wanted.header.table = RouteHeader::RT_TABLE_MAIN;
    wanted.header.kind = kind;
    wanted.attributes.extend(device.map(RouteAttribute::Oif));
    selected(wanted, family, mark)
}

/// Whether the gateway has a route in a table of its own.
pub(super) fn has_table(family: AddressFamily, table: u32, mark: RouteMark) -> Result<bool, Refusal> {
    let mut wanted = RouteMessage::default();
    wanted.header.kind = RouteType::Unicast;
    wanted.attributes.push(RouteAttribute::Table(table));
    let found = selected(wanted, family, mark)?;
    let is_it = |route: &RouteMessage| {
        route.header.kind == RouteType::Unicast && route.attributes.contains(&RouteAttribute::Table(table))
    };
    Ok(found.iter().any(is_it))
}

/// Whether the gateway's default route of a table leads into this device.
pub(super) fn has_default_into(table: u32, device: u32, mark: RouteMark) -> Result<bool, Refusal> {
    let mut wanted = RouteMessage::default();
    wanted.header.kind = RouteType::Unicast;
    wanted.attributes.push(RouteAttribute::Table(table));
    let is_it = |route: &RouteMessage| {
        route.header.kind == RouteType::Unicast
            && route.header.destination_prefix_length == 0
            && route.attributes.contains(&RouteAttribute::Table(table))
            && route.attributes.contains(&RouteAttribute::Oif(device))
    };
    Ok(selected(wanted, AddressFamily::Inet, mark)?.iter().any(is_it))
}

/// The gateway's routes that the kernel selects.
fn selected(
    mut wanted: RouteMessage,
    family: AddressFamily,
    mark: RouteMark,
) -> Result<Vec<RouteMessage>, Refusal> {
    wanted.header.address_family = family;
    wanted.header.protocol = mark.protocol();
    let request = |handle: Handle| async move { handle.route().get(wanted).execute().try_collect().await };
    ask_by(true, request)?.map_err(|error| Refusal::of(&error))
}

fn is_into(route: &RouteMessage, device: u32, mark: RouteMark) -> bool {
    route.header.table == RouteHeader::RT_TABLE_MAIN
        && route.header.protocol == mark.protocol()
        && route.attributes.contains(&RouteAttribute::Oif(device))
}

/// Priority and handle of each filter at an interface's tc ingress.
pub(super) fn tc_filters(interface: u32) -> Result<Vec<(u16, u32)>, Refusal> {
    let request = |handle: Handle| async move {
        handle.traffic_filter(interface.cast_signed()).get().ingress().execute().try_collect().await
    };
    let found: Vec<TcMessage> = ask(request)?.map_err(|error| Refusal::of(&error))?;
    let filters = found.iter().map(|filter| {
        let handle = filter.header.handle;
        ((filter.header.info >> 16) as u16, u32::from(handle.major) << 16 | u32::from(handle.minor))
    });
    Ok(filters.collect())
}

/// A route's destination; the kernel leaves that of a default route out.
fn destination(route: &RouteMessage) -> Option<IpAddr> {
    let written = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    let default = match route.header.address_family {
        AddressFamily::Inet => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        AddressFamily::Inet6 => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        _ => None,
    };
    written.or(default)
}

fn mtu(route: &RouteMessage) -> Option<u16> {
    let metrics = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics),
        _ => None,
    })?;
    metrics.iter().find_map(|metric| match metric {
        RouteMetric::Mtu(mtu) => u16::try_from(*mtu).ok(),
        _ => None,
    })
}

/// The addresses of the device with this index: the kernel assigns none automatically.
pub(super) fn addresses(device: u32) -> Result<Vec<IpAddr>, Refusal> {
    let ask_for = |handle: Handle| async move {
        handle.address().get().set_link_index_filter(device).execute().try_collect::<Vec<_>>().await
    };
    let found = ask(ask_for)?.map_err(|error| Refusal::of(&error))?;
    let attributes = found.iter().flat_map(|message| &message.attributes);
    let addresses = attributes.filter_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    Ok(addresses.collect())
}

/// The length of a prefix that is one address.
pub(super) const fn whole(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Whether an address brings a route to its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// It does, and others on the link are asked first whether they have the address.
    OnLink,
    /// It does not.
    Nobody,
    /// It does not, and what this host begins itself has another source.
    Anycast,
}

/// Removes an interface.
pub(super) fn remove_link(index: u32) -> Result<(), Refusal> {
    ask(|handle| async move { handle.link().del(index).execute().await })?
        .map_err(|error| Refusal::of(&error))
}

fn address(device: u32, address: IpAddr, length: u8, network: Network) -> AddressMessage {
    let mut message = match address {
        IpAddr::V4(address) => {
            AddressMessageBuilder::<Ipv4Addr>::new().index(device).address(address, length).build()
        }
        IpAddr::V6(address) => {
            AddressMessageBuilder::<Ipv6Addr>::new().index(device).address(address, length).build()
        }
    };
    match (address, network) {
        (IpAddr::V4(_), Network::OnLink | Network::Nobody) | (IpAddr::V6(_), Network::OnLink) => {}
        // The kernel does not choose such an address for other hosts.
        (IpAddr::V4(_), Network::Anycast) => message.header.scope = AddressScope::Host,
        (IpAddr::V6(_), Network::Nobody | Network::Anycast) => {
            let flags = AddressFlags::Nodad | AddressFlags::Noprefixroute;
            message.attributes.push(AddressAttribute::Flags(flags));
        }
    }
    if address.is_ipv6() && network == Network::Anycast {
        // A deprecated one (RFC 6724 §5, rule 3).
        let mut lifetimes = CacheInfo::default();
        (lifetimes.ifa_preferred, lifetimes.ifa_valid) = (0, u32::MAX);
        message.attributes.push(AddressAttribute::CacheInfo(lifetimes));
    }
    message
}

/// Gives this host an address on the interface of this index.
pub(super) fn add_address(device: u32, own: IpAddr, length: u8, network: Network) -> Result<(), Refusal> {
    let message = address(device, own, length, network);
    let request = |handle: Handle| async move {
        let mut add = handle.address().add(device, own, length);
        *add.message_mut() = message;
        add.execute().await
    };
    ask(request)?.map_err(|error| Refusal::of(&error))
}

/// Takes an address away.
pub(super) fn remove_address(device: u32, own: IpAddr, length: u8) -> Result<(), Refusal> {
    let message = address(device, own, length, Network::OnLink);
    ask(|handle| async move { handle.address().del(message).execute().await })?
        .map_err(|error| Refusal::of(&error))
}
