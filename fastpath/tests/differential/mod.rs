//! What the programs forward is what the engine would send, octet for octet; and what they do not forward they leave alone.
//!
//! ```text
//!     choices ─▶ world, packet ─▶ program (test run by the kernel) ─▶ passed on: untouched?
//!                      │                                            └▶ forwarded: the same?
//!                      └────────▶ oracle: the host's routes, the engine ───────▲
//! ```
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod proof;
mod states;

use proof::rig::Hook;
use proof::world::World;
use proof::{judge, worlds};
use sixway_fastpath::layout::PASSED;

/// Packets for each world at each hook, unless PROOF_PACKETS says otherwise.
const PACKETS: u64 = 5_000;
/// How often each mechanism has to have forwarded, either way, at each hook.
const OFTEN: u64 = 1_000;
/// Causes of `PASS_` in `layout.h` that are seen nowhere: an entry that changes while a packet is looked at.
const UNSEEN: [u32; 1] = [12];

/// All worlds, or those whose name begins as PROOF_WORLD says.
fn only(worlds: Vec<World>) -> Vec<World> {
    let wanted = std::env::var("PROOF_WORLD").unwrap_or_default();
    worlds.into_iter().filter(|world| world.name.starts_with(&wanted)).collect()
}

fn prove(hook: Hook) {
    let worlds = only(worlds::all());
    let packets = std::env::var("PROOF_PACKETS").ok().and_then(|text| text.parse().ok()).unwrap_or(PACKETS);
    let wanted: Vec<u32> =
        worlds.iter().flat_map(|world| world.lanes.iter().map(|lane| lane.counter)).collect();
    let coverage = judge::prove(hook, worlds, packets);
    for counter in wanted {
        assert!(coverage.counted[&counter] >= OFTEN, "{counter} seldom forwards: {coverage:?}");
    }
    for cause in (0..15).filter(|cause| !UNSEEN.contains(cause)) {
        assert!(coverage.counted[&(PASSED as u32 + cause)] > 0, "cause {cause} was never seen: {coverage:?}");
    }
}

#[test]
fn what_is_forwarded_in_the_driver_is_what_the_engine_sends() {
    prove(Hook::Xdp);
}

#[test]
fn what_is_forwarded_at_tc_ingress_is_what_the_engine_sends() {
    prove(Hook::Tc);
}
