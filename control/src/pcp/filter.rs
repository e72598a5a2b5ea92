//! Which remote hosts may use a mapping (RFC 6887 §13.3).

use core::net::{IpAddr, Ipv4Addr};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::Prefix4;

/// Filters of a mapping. A client that asks for more gets EXCESSIVE_REMOTE_PEERS.
pub const MOST_FILTERS: usize = 8;

/// Remote endpoints that may send to a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Their addresses.
    pub remote: Prefix4,
    /// Their port; 0: any.
    pub port: u16,
}

impl Filter {
    /// Whether a remote endpoint may send.
    pub fn admits(&self, address: Ipv4Addr, port: u16) -> bool {
        self.remote.contains(address) && (self.port == 0 || self.port == port)
    }
}

/// A filter option as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOption {
    /// Prefix length 0: all filters so far are removed.
    Clear,
    /// Addresses and a port.
    Admit {
        /// An address of the prefix.
        address: IpAddr,
        /// Significant bits, of 32 or of 128.
        length: u8,
        /// The port; 0: any.
        port: u16,
    },
}

/// Adds the filters of a request to those of a mapping, in their order. `None`: they are too many, or one is of IPv6 hosts that are not reached by
/// the NAT64.
pub(super) fn apply(
    before: &[Filter],
    options: &[FilterOption],
    prefixes: &[Rfc6052],
) -> Option<Vec<Filter>> {
    let mut filters = before.to_vec();
    for option in options {
        match *option {
            FilterOption::Clear => filters.clear(),
            FilterOption::Admit { address, length, port } => {
                let filter = Filter { remote: remote(address, length, prefixes)?, port };
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
        }
    }
    (filters.len() <= MOST_FILTERS).then_some(filters)
}

/// The IPv4 prefix of a filter: an IPv6 client of a NAT64 may name remote hosts as it sees them.
fn remote(address: IpAddr, length: u8, prefixes: &[Rfc6052]) -> Option<Prefix4> {
    match address {
        IpAddr::V4(address) => Some(Prefix4::holding(address, length)),
        IpAddr::V6(address) => {
            let own = prefixes.iter().find(|prefix| prefix.contains(address))?;
            let embedded = own.extract_any(address).ok()?;
            (0..=32)
                .rev()
                .map(|bits| Prefix4::holding(embedded, bits))
                .find(|remote| own.embed_prefix(*remote).length() == length)
        }
    }
}
