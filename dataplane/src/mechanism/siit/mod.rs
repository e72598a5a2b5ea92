//! Stateless IP/ICMP translation (RFC 7915) with addresses by algorithm (RFC 6052), by table (RFC 7757, and so
//! SIIT-DC, RFC 7755 and 7756), and for hosts without a mapping from a dynamic pool, one to one.

pub mod dynamic_pool;
mod translator;

pub use translator::{Hairpinning, Siit, SiitConfig};
