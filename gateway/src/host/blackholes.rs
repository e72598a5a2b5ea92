//! IPv4 destinations that are blackholed when the device is gone: routes of the lowest precedence next to those of pools into the device.
//! Without them, packets to a pool would follow the default route after a crash, and loop between this host and its router.

use super::kernel::{self, Refusal, ask};
use super::route_mark::RouteMark;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use rtnetlink::{Handle, RouteMessageBuilder};
use sixway_wire::Prefix4;
use std::net::Ipv4Addr;

fn message(prefix: Prefix4, mark: RouteMark) -> RouteMessage {
    let mut message = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(prefix.address(), prefix.length())
        .kind(RouteType::BlackHole)
        .protocol(mark.protocol())
        .build();
    message.attributes.push(RouteAttribute::Priority(u32::MAX));
    message
}

/// Adds them. One that exists serves the same purpose. The outcome of each.
pub(super) fn add(prefixes: &[Prefix4], mark: RouteMark) -> Vec<Result<(), Refusal>> {
    let messages = prefixes.iter().map(|prefix| message(*prefix, mark)).collect();
    let outcomes = kernel::add_routes(messages).into_iter();
    outcomes
        .map(|outcome| match outcome {
            Err(Refusal::Exists) => Ok(()),
            outcome => outcome,
        })
        .collect()
}

/// Removes them; how many there were.
pub(super) fn remove(prefixes: &[Prefix4], mark: RouteMark) -> usize {
    if prefixes.is_empty() {
        return 0;
    }
    let request = |handle: Handle| async move {
        let mut removed = 0;
        for prefix in prefixes {
            let outcome = handle.route().del(message(*prefix, mark)).execute().await;
            removed += usize::from(outcome.is_ok());
        }
        removed
    };
    ask(request).unwrap_or(0)
}
