//! Next hops that do not answer: the kernel's neighbour table.

use super::kernel::{Refusal, ask};
use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use std::net::IpAddr;

/// Those of these addresses, each on an interface, that the kernel failed to resolve.
pub fn unresolved(next_hops: &[(IpAddr, String)]) -> Vec<String> {
    if next_hops.is_empty() {
        return Vec::new();
    }
    let request = |handle: rtnetlink::Handle| async move {
        handle.neighbours().get().execute().try_collect::<Vec<NeighbourMessage>>().await
    };
    let Ok(Ok(table)) = ask(request).map(|found| found.map_err(|error| Refusal::of(&error))) else {
        return Vec::new();
    };
    let failed = |address: IpAddr| {
        let mut of_address = table.iter().filter(|entry| address_of(entry) == Some(address)).peekable();
        // While packets are sent to it, the kernel asks again and again.
        let is_unresolved = |entry: &NeighbourMessage| {
            matches!(entry.header.state, NeighbourState::Failed | NeighbourState::Incomplete)
        };
        of_address.peek().is_some() && of_address.all(is_unresolved)
    };
    let found = next_hops.iter().filter(|(address, _)| failed(*address));
    found.map(|(address, interface)| format!("{address} on {interface}")).collect()
}

fn address_of(entry: &NeighbourMessage) -> Option<IpAddr> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    })
}
