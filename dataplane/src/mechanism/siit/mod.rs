//! Stateless IP/ICMP translation (RFC 7915).

pub mod dynamic_pool;
