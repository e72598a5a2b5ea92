//! The fast path over real veth devices: everything again that the engine does, and what only a fast path can do wrong.

mod again;
mod connections;
mod conversation;
mod death;
mod drained_blocks;
mod echo;
mod firewall;
mod hairpin;
mod ipsec;
mod load;
mod next_to_nat44;
mod oldest_kernel;
mod order;
mod path;
mod room;
mod super_frames;
mod vxlan;

use crate::Interop;

pub use again::again;
pub use load::endpoint;

pub fn tests() -> Vec<Interop> {
    [
        order::TESTS,
        death::TESTS,
        drained_blocks::TESTS,
        path::TESTS,
        room::TESTS,
        super_frames::TESTS,
        vxlan::TESTS,
        firewall::TESTS,
        hairpin::TESTS,
        next_to_nat44::TESTS,
        echo::TESTS,
        ipsec::TESTS,
        connections::TESTS,
        oldest_kernel::TESTS,
    ]
    .concat()
}
