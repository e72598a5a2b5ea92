//! Permanent proxy neighbour entries, as `ip neigh add proxy` makes them: the kernel answers ARP requests, and with `proxy_ndp`
//! neighbour solicitations, for addresses that it routes into the device.

use super::kernel::{Refusal, ask};
use crate::config::ProxyNeighbour;
use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::RouteType;
use sixway_link::interface;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// All existing entries, by the index of their interface.
fn existing() -> Result<HashSet<(u32, IpAddr)>, Refusal> {
    let mut all = of_family(AddressFamily::Inet)?;
    all.extend(of_family(AddressFamily::Inet6)?);
    Ok(all)
}

fn of_family(family: AddressFamily) -> Result<HashSet<(u32, IpAddr)>, Refusal> {
    let dump = |handle: Handle| async move {
        let request = handle.neighbours().get().proxies().set_address_family(family);
        request.execute().try_collect::<Vec<_>>().await
    };
    let found = ask(dump)?.map_err(|error| Refusal::of(&error))?;
    let entries = found.iter().filter(|entry| entry.header.flags.contains(NeighbourFlags::Proxy));
    Ok(entries
        .filter_map(|entry| {
            let address = entry.attributes.iter().find_map(|attribute| match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                    Some(IpAddr::V4(*address))
                }
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                    Some(IpAddr::V6(*address))
                }
                _ => None,
            })?;
            Some((entry.header.ifindex, address))
        })
        .collect())
}

/// Those with the index of their interface; an interface that is missing has no entries.
fn with_index<'p>(proxies: impl IntoIterator<Item = &'p ProxyNeighbour>) -> Vec<(&'p ProxyNeighbour, u32)> {
    let mut indices: HashMap<&str, Option<u32>> = HashMap::new();
    let proxies = proxies.into_iter().filter_map(|proxy| {
        let index =
            indices.entry(&proxy.interface).or_insert_with(|| interface::index(&proxy.interface).ok());
        Some((proxy, (*index)?))
    });
    proxies.collect()
}

/// Those of these that exist.
pub(super) fn present(proxies: &[ProxyNeighbour]) -> Result<Vec<ProxyNeighbour>, Refusal> {
    if proxies.is_empty() {
        return Ok(Vec::new());
    }
    let existing = existing()?;
    let there =
        with_index(proxies).into_iter().filter(|(proxy, index)| existing.contains(&(*index, proxy.address)));
    Ok(there.map(|(proxy, _)| proxy.clone()).collect())
}

fn message(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    let (family, destination) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, NeighbourAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, NeighbourAddress::Inet6(address)),
    };
    message.header.family = family;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.header.flags = NeighbourFlags::Proxy;
    message.header.kind = RouteType::Unspec;
    message.attributes.push(NeighbourAttribute::Destination(destination));
    message
}

/// Makes them; the outcome of each whose interface exists.
pub(super) fn add(proxies: &[ProxyNeighbour]) -> Vec<(ProxyNeighbour, Result<(), Refusal>)> {
    let wanted = with_index(proxies);
    let messages: Vec<_> = wanted.iter().map(|(proxy, index)| (*index, proxy.address)).collect();
    let request = |handle: Handle| async move {
        let mut outcomes = Vec::with_capacity(messages.len());
        for (index, address) in messages {
            let mut add = handle.neighbours().add(index, address);
            *add.message_mut() = message(index, address);
            outcomes.push(add.execute().await.map_err(|error| Refusal::of(&error)));
        }
        outcomes
    };
    let outcomes = ask(request).unwrap_or_else(|refusal| vec![Err(refusal); wanted.len()]);
    wanted.into_iter().map(|(proxy, _)| proxy.clone()).zip(outcomes).collect()
}

/// Removes them; how many existed.
pub(super) fn remove(proxies: &[ProxyNeighbour]) -> usize {
    let messages: Vec<_> =
        with_index(proxies).into_iter().map(|(proxy, index)| message(index, proxy.address)).collect();
    let request = |handle: Handle| async move {
        let mut removed = 0;
        for message in messages {
            removed += usize::from(handle.neighbours().del(message).execute().await.is_ok());
        }
        removed
    };
    ask(request).unwrap_or(0)
}
