//! Streams on loopback, with real TLS: certificates are made by the tests.

mod certificates;
mod resolver;
mod secured;
mod servers;
mod upstreams;

pub use certificates::{Authority, Folder};
pub use resolver::{Resolver, answer, query};

use super::{Around, Bounds, StreamSettings, Streams};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Any port of loopback's.
pub fn loopback() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, 0).into()
}

/// Bounds that a test need not wait for.
pub fn bounds() -> Bounds {
    Bounds {
        per_address: 4,
        handshake: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        idle_when_crowded: Duration::from_millis(50),
        ..Bounds::default()
    }
}

/// Servers before `resolver`.
pub fn serve(settings: &StreamSettings, resolver: &Resolver) -> Streams {
    let around = Around { posts: resolver.posts(), admits: Arc::new(|_| true), queries: mpsc::channel(1).1 };
    Streams::start(settings, around).unwrap()
}
