//! The integration tests, one program: each file is a module, and `cargo test -p sixway-link --test all tun::` runs one of them.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::duplicate_mod, reason = "each fuzz target brings what it needs")]

#[macro_use]
extern crate sixway_trial;

#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;
mod neighbour_discovery;
mod overload_filter;
mod replay;
mod replay_tunnel_packet;
mod shared_port;
mod steering;
mod steering_program;
mod support;
mod tun;
mod tunnel_sockets;
mod udp;

fn main() {
    sixway_trial::main();
}
