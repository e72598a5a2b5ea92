//! ICMP both ways (RFC 7915 §4.2, §4.3, §5.2, §5.3): the types of queries, and ICMP errors whole, with the packet that they
//! quote and the extensions behind it (RFC 4884).

mod envelope;
mod extensions;
mod message;
mod query;
mod quote;
mod v4_to_v6;
mod v6_to_v4;

pub use envelope::Envelope;
pub use query::{query_v4_to_v6, query_v6_to_v4};
pub use quote::renumber4 as renumber_quoted4;
pub use v4_to_v6::error_v4_to_v6;
pub use v6_to_v4::error_v6_to_v4;

#[cfg(test)]
mod tests;
