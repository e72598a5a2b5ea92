//! Names of hosts, for lookups by the DNS threads.

use super::book::LeaseBook;
use crate::config::Config;
use sixway_control::Instant;
use sixway_control::dhcp4o6::Asker;
use sixway_control::dns64::{LeasedAddress, LeasedNames};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The hosts of all concentrators that have names.
#[derive(Debug)]
pub(in crate::daemon) struct HostNames {
    book: Arc<LeaseBook>,
    /// By name in wire form: the concentrator's place, and the host.
    hosts: HashMap<Box<[u8]>, (usize, Ipv6Addr)>,
}

impl HostNames {
    /// Those of a configuration; `None`: it has none.
    pub(in crate::daemon) fn new(config: &Config, book: &Arc<LeaseBook>) -> Option<Self> {
        let sections = config.others.four_over_six.iter().filter(|it| it.concentrator().is_some());
        let of = |(place, section): (usize, &crate::config::FourOverSix)| {
            let named = section.names.iter().map(|it| (it.name.wire().0, (place, it.host)));
            named.collect::<Vec<_>>()
        };
        let hosts: HashMap<_, _> = sections.enumerate().flat_map(of).collect();
        (!hosts.is_empty()).then(|| Self { book: Arc::clone(book), hosts })
    }
}

impl LeasedNames for HostNames {
    fn address(&self, name: &[u8], (client, is_proven): (IpAddr, bool), _now: Instant) -> LeasedAddress {
        match self.hosts.get(name) {
            Some((place, host)) => self.book.look_up(*place, *host, Asker { client, is_proven }),
            None => LeasedAddress::NotListed,
        }
    }
}
