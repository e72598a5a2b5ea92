//! Programs of others that ask Sixway's DNS64 over every transport, and hosts that learn of it by router advertisements.

mod announced;
mod connections;
mod designated;
mod discovery;
mod places;
mod private;
mod rude;
mod secured;
mod strict;

use crate::Interop;
use sixway_lab::dns64::Asker;
use sixway_lab::failure::Result;
use sixway_lab::name_service::RESOLVER;
use sixway_lab::topology::Network;
use std::net::{Ipv6Addr, SocketAddr};

/// All tests.
pub fn tests() -> Vec<Interop> {
    [
        connections::TESTS,
        secured::TESTS,
        discovery::TESTS,
        designated::TESTS,
        announced::TESTS,
        strict::TESTS,
        rude::TESTS,
        places::TESTS,
        private::TESTS,
    ]
    .concat()
}

/// What the zone `example` has.
const RECORDS: &str =
    "shop A 203.0.113.2\nboth A 203.0.113.2\nboth AAAA 2001:db8:aaaa::1\nalias CNAME shop\n";
/// The server as the client sees it.
const SERVER: &str = "64:ff9b::cb00:7102";

/// A user on the client who asks.
fn asker(network: &Network) -> Result<Asker> {
    Asker::open(network.host("client")?, SocketAddr::new(address(RESOLVER).into(), 53))
}

/// Only for addresses that are written here.
fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap_or(Ipv6Addr::UNSPECIFIED)
}
