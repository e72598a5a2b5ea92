//! Streams on loopback, with real TLS: certificates are made by the tests.

mod certificates;
mod crowding;
mod resolver;
mod secured;
mod servers;
mod upstreams;

pub use certificates::{Authority, Folder};
pub use resolver::{Resolver, answer, query};

use super::{Bounds, StreamContext, StreamSettings, Streams};
use sixway_control::dns64::Access;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::mpsc;

/// Any port of loopback's.
pub fn loopback() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, 0).into()
}

/// Any port of an IPv4 address of loopback's: clients have their choice of 16 million addresses.
pub fn loopback4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Bounds that a test need not wait for.
pub fn bounds() -> Bounds {
    Bounds {
        connections_per_client: Some(4),
        handshake: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        ..Bounds::default()
    }
}

/// Servers before `resolver`.
pub fn serve(settings: &StreamSettings, resolver: &Resolver) -> Streams {
    Streams::start(settings, around(resolver, everybody())).unwrap()
}

/// What servers need that have no upstreams.
pub fn around(resolver: &Resolver, access: Access) -> StreamContext {
    StreamContext { posts: resolver.posts(), access, queries: mpsc::channel(1).1 }
}

/// Any client.
pub fn everybody() -> Access {
    Access { v4: vec!["0.0.0.0/0".parse().unwrap()], v6: vec!["::/0".parse().unwrap()], ..Access::default() }
}
