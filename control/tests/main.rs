//! The integration tests, one program: each file is a module, and `cargo test -p sixway-control --test all dns64_words::` runs one of them.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::duplicate_mod, reason = "each fuzz target brings what it needs")]

mod dhcp4o6;
mod dns64;
mod dns64_upstream;
mod dns64_words;
mod isatap_host;
mod pcp;
mod replay;
mod router_advert;
mod teredo_client;
mod teredo_nats;
mod teredo_server;
