//! Whether the routers that the kernel sends to answer, by its own table of neighbours.

use super::kernel::{self, Refusal};
use super::route_lookup;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A router that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SilentRouter {
    /// Its address.
    pub address: IpAddr,
    /// The interface that it is behind; its number, if it has no name any more.
    pub interface: String,
}

/// The next hops towards these destinations that the kernel asked for without success (by ARP or neighbour discovery). Each destination
/// costs one lookup, so that a full routing table costs nothing. Waits for the kernel.
pub fn silent_routers(destinations: &[IpAddr]) -> Vec<SilentRouter> {
    let wanted = destinations.to_vec();
    let asked = kernel::ask(|handle| async move {
        let mut hops = BTreeSet::new();
        for destination in wanted {
            // There may be no route, which is not this check's matter.
            if let Some((device, Some(router))) = route_lookup::lookup(&handle, destination).await {
                hops.insert((device, router));
            }
        }
        if hops.is_empty() {
            return Ok(Vec::new());
        }
        let neighbours: Vec<NeighbourMessage> =
            handle.neighbours().get().execute().try_collect().await.map_err(|error| Refusal::of(&error))?;
        Ok::<_, Refusal>(neighbours.iter().filter_map(unresolved).filter(|one| hops.contains(one)).collect())
    });
    let silent: Vec<(u32, IpAddr)> = asked.and_then(|silent| silent).unwrap_or_default();
    let mut silent: Vec<SilentRouter> = silent
        .into_iter()
        .map(|(index, address)| SilentRouter { address, interface: route_lookup::name(index) })
        .collect();
    silent.sort();
    silent
}

/// A neighbour that was asked for and has not answered.
fn unresolved(message: &NeighbourMessage) -> Option<(u32, IpAddr)> {
    if !matches!(message.header.state, NeighbourState::Failed | NeighbourState::Incomplete) {
        return None;
    }
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
            Some((message.header.ifindex, IpAddr::V4(*address)))
        }
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
            Some((message.header.ifindex, IpAddr::V6(*address)))
        }
        _ => None,
    })
}
