//! NAT46: IPv4 hosts reach IPv6-only servers by name: the IPv4-to-IPv6 direction of NAT-PT (RFC 2766), without most of the faults for which
//! RFC 4966 deprecated it.
//!
//! A server's name leads an IPv4 client to an address of a pool, which represents the server's IPv6 address for as long as anyone may use it.

mod control;
mod lists;
mod mappings;
mod records;
mod settings;
mod translator;

#[cfg(test)]
mod tests;

pub use control::MappingRefused;
pub use mappings::{MappingCounts, MappingRow, MappingState, Mappings, MappingsKept};
pub use records::Words;
pub use settings::{
    MARGIN, MappingFault, MappingSettings, REST, SHORTEST_POOL, Sharing, TCP_IDLE, TCP_TRANSITORY, UDP_IDLE,
};
pub use translator::{Nat46, Nat46Config};
