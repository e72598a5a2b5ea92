//! Answers that need no upstream.
//!
//! | Name | Answer | Source |
//! |---|---|---|
//! | `ipv4only.arpa` | A, AAAA for each prefix of the client; DS is queried upstream | RFC 8880 §7.1 |
//! | PTR of prefix::192.0.0.170 and .171 | `ipv4only.arpa` | RFC 8880 §7.2.1 |
//! | names of a hosts file, and their addresses' names | what the file has; AAAA records that are made of A records | `hosts.rs` |
//! | `_dns.resolver.arpa` | SVCB: where this server is asked by TLS and HTTPS | RFC 9462 §4 |
//! | `localhost` and below | 127.0.0.1, ::1 | RFC 6761 §6.3 |
//! | `invalid`, `onion` and below | no such name | RFC 6761 §6.4, RFC 7686 §2 |
//! | `127.in-addr.arpa`, PTR of ::1 | `localhost` for 127.0.0.1 and ::1 | RFC 6303 §4.2, §4.3 |
//! | PTR of our prefixes, where a name is configured for them | that name | RFC 6147 §5.3.1, first option |
//! | `test`, `local`, `home.arpa`, reverse zones of private addresses and the like, unless an upstream is responsible | no such name | RFC 6761, RFC 6303: see [`zones`] |
//! | any other with QTYPE=ANY, if so configured | one HINFO record | RFC 8482 §4.2 |
//!
//! Names under IN-ADDR.ARPA of 192.0.0.170 and .171 are not special to a resolver (RFC 8880 §7.2, item 4).

mod answer;
mod answering;
mod designated;
#[cfg(test)]
mod tests;
mod zones;

pub(super) use answer::{LocalAnswer, LocalQuestion};
pub(super) use answering::Local;
