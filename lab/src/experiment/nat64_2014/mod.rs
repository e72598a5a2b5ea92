//! "TAYGA and OpenBSD PF as NAT64" (Répás, Farnadi, Lencse 2014): one to eight clients ping, or fetch files from, each of 65,536 addresses
//! through one translator; one responder answers for all of them.

mod findings;
mod http;
mod icmp;
mod plan;
mod published;
mod steady;
mod topology;
mod udp;
mod vpn;

pub use plan::Nat642014;
